"""What a read of a queue answers at each edge (behaviour of DefaultMessageStore.getMessage)."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.read.tag_filter import TagFilter
from storage.readonly import StoreView
from storage.results import GetMessageStatus as Status
from tests.support.hand_made import TINY, HandMade

ROOMY = TINY.with_(mapped_file_size_commit_log=1 << 20, mapped_file_size_consume_queue=100_000)


def test_a_queue_without_messages_says_so(tmp_path: Path) -> None:
    made = HandMade()
    made.put("T")
    with StoreView.open(made.write(tmp_path)) as view:
        for topic, queue_id in (("T", 1), ("Other", 0)):
            result = view.get_message(topic, queue_id, 7, 32)
            assert result == (Status.NO_MESSAGE_IN_QUEUE, 0, 0, 0, [], 0, None)


def test_what_can_be_no_queue_has_no_logic_queue(tmp_path: Path) -> None:
    made = HandMade()
    made.put("T")
    made.write(tmp_path / "store")
    (tmp_path / "T" / "0").mkdir(parents=True)
    with StoreView.open(tmp_path / "store") as view:
        for topic, queue_id in (("T", -1), ("", 0), ("../../T", 0), ("..", 0), ("a\0b", 0)):
            assert view.get_message(topic, queue_id, 0, 32).status is Status.NO_MATCHED_LOGIC_QUEUE
            assert view.read_column(topic, queue_id, 0, 9).status is Status.NO_MATCHED_LOGIC_QUEUE
            assert view.offset_in_queue_by_time(topic, queue_id, 1) == 0
            assert view.queue_bounds(topic, queue_id) == (0, 0)


def test_offsets_outside_the_queue_are_told_apart(tmp_path: Path) -> None:
    made = HandMade(ROOMY)
    for _ in range(6):
        made.put("T")
    with StoreView.open(made.write(tmp_path)) as view:
        cases = {
            -1: (Status.OFFSET_TOO_SMALL, 0),
            6: (Status.OFFSET_OVERFLOW_ONE, 6),
            7: (Status.OFFSET_OVERFLOW_BADLY, 6),
        }
        for offset, expected in cases.items():
            result = view.get_message("T", 0, offset, 32)
            assert (result.status, result.next_begin_offset) == expected
            assert (result.min_offset, result.max_offset, result.messages) == (0, 6, [])


def test_an_answer_ends_at_the_end_of_a_queue_file(tmp_path: Path) -> None:
    made = HandMade()
    for _ in range(12):
        made.put("T")
    with StoreView.open(made.write(tmp_path)) as view:
        result = view.get_message("T", 0, 3, 32)
        assert [message.queue_offset for message in result.messages] == [3, 4]
        assert result.next_begin_offset == 5


def test_an_answer_keeps_the_limits_of_messages_and_bytes(tmp_path: Path) -> None:
    made = HandMade(ROOMY)
    for size in [3000, 3000, 100, 100, 9000, 100]:
        made.put("T", body=bytes(size))
    root = made.write(tmp_path)
    with StoreView.open(root, ROOMY.with_(max_transfer_bytes_in_memory=8000)) as view:
        assert [len(m.body) for m in view.get_message("T", 0, 0, 32).messages] == [
            3000,
            3000,
            100,
            100,
        ]
        # the first message comes whatever its size
        assert [len(m.body) for m in view.get_message("T", 0, 4, 32).messages] == [9000]
        assert len(view.get_message("T", 0, 0, 2).messages) == 2
        result = view.get_message("T", 0, 2, 32)
        assert result.buffer_total_size == sum(m.store_size for m in result.messages)
    with StoreView.open(root, ROOMY.with_(max_transfer_count_in_memory=3)) as view:
        assert len(view.get_message("T", 0, 0, 32).messages) == 3


def test_a_filter_passes_tags_by_hash_and_scans_a_bounded_stretch(tmp_path: Path) -> None:
    made = HandMade(ROOMY)
    for number in range(1000):
        made.put("T", tags="Aa" if number == 900 else "Other")
    with StoreView.open(made.write(tmp_path)) as view:
        # BB has the hash of Aa
        wanted = TagFilter.parse("BB || None")
        result = view.get_message("T", 0, 0, 32, tags=wanted)
        assert (result.status, result.next_begin_offset) == (Status.NO_MATCHED_MESSAGE, 800)
        result = view.get_message("T", 0, 800, 32, tags=wanted)
        assert result.status is Status.FOUND
        assert [message.queue_offset for message in result.messages] == [900]
        assert result.next_begin_offset == 1000


def test_a_missing_queue_file_is_found_null_and_passed(tmp_path: Path) -> None:
    made = HandMade()
    for _ in range(15):
        made.put("T")
    root = made.write(tmp_path)
    (root / "consumequeue/T/0/00000000000000000100").unlink()
    with StoreView.open(root) as view:
        result = view.get_message("T", 0, 6, 32)
        assert (result.status, result.next_begin_offset) == (Status.OFFSET_FOUND_NULL, 10)
        assert view.get_message("T", 0, 10, 1).messages[0].queue_offset == 10


def test_a_queue_that_begins_in_the_middle_of_a_file_starts_at_its_first_message(
    tmp_path: Path,
) -> None:
    made = HandMade()
    for offset in range(8, 12):
        made.put("T", queue_offset=offset)
    with StoreView.open(made.write(tmp_path)) as view:
        assert view.queue_bounds("T", 0) == (8, 12)
        result = view.get_message("T", 0, 5, 32)
        assert (result.status, result.next_begin_offset) == (Status.OFFSET_TOO_SMALL, 8)
        assert view.get_message("T", 0, 8, 1).messages[0].queue_offset == 8


@pytest.mark.conformance("A18")
def test_deleted_messages_are_below_the_minimum(tmp_path: Path) -> None:
    made = HandMade()
    for _ in range(20):
        made.put("T")
    made.put("Gone", body=b"x")
    root = made.write(tmp_path)
    first_left = next(m for m in made.messages if m.commitlog_offset >= 1024)
    (root / "commitlog/00000000000000000000").unlink()
    with StoreView.open(root) as view:
        assert view.log_min_offset() == 1024
        assert view.queue_bounds("T", 0) == (first_left.queue_offset, 20)
        assert view.earliest_message_time("T", 0) == first_left.store_timestamp
        assert view.get_message("T", 0, 0, 9).status is Status.OFFSET_TOO_SMALL


def test_a_queue_whose_messages_are_all_deleted_is_empty_at_its_end(tmp_path: Path) -> None:
    made = HandMade()
    for _ in range(3):
        made.put("Gone")
    for _ in range(20):
        made.put("T")
    root = made.write(tmp_path)
    (root / "commitlog/00000000000000000000").unlink()
    with StoreView.open(root) as view:
        assert view.queue_bounds("Gone", 0) == (3, 3)
        assert view.get_message("Gone", 0, 0, 1).status is Status.OFFSET_TOO_SMALL
        assert view.get_message("Gone", 0, 3, 1).status is Status.OFFSET_OVERFLOW_ONE
        assert view.earliest_message_time("Gone", 0) is None


def test_retention_under_an_open_view_is_noticed(tmp_path: Path) -> None:
    made = HandMade()
    for _ in range(20):
        made.put("T")
    root = made.write(tmp_path)
    with StoreView.open(root) as view:
        message = view.get_message("T", 0, 0, 1).messages[0]
        (root / "commitlog/00000000000000000000").unlink()
        assert view.get_message("T", 0, 0, 1).status is Status.OFFSET_TOO_SMALL
        assert message.body == b"body"


def test_a_unit_of_a_file_that_is_gone_is_being_removed(tmp_path: Path) -> None:
    """The file went after the bounds were taken, or in the middle of the log."""
    made = HandMade()
    for _ in range(30):
        made.put("T")
    root = made.write(tmp_path)
    (root / "commitlog/00000000000000001024").unlink()
    gone = [m.queue_offset for m in made.messages if 1024 <= m.commitlog_offset < 2048]
    with StoreView.open(root) as view:
        assert view.queue_bounds("T", 0) == (0, 30)
        inside = next(offset for offset in gone if offset % 5 == 0)
        result = view.get_message("T", 0, inside, 32)
        assert result.status is Status.MESSAGE_WAS_REMOVING
        assert result.next_begin_offset == inside + 5


def test_a_light_queue_hands_out_only_what_is_dispatched_to_it(tmp_path: Path) -> None:
    made = HandMade(ROOMY)
    stored = made.put(
        "Parent",
        3,
        properties={
            "INNER_MULTI_DISPATCH": "%LMQ%one,Plain",
            "INNER_MULTI_QUEUE_OFFSET": "0,0",
        },
    )
    place = (stored.commitlog_offset, stored.size, 0)
    for queue in (("%LMQ%one", 0), ("Plain", 3), ("%LMQ%two", 0), ("Plain", 1)):
        made.add_unit(*queue, *place)
    with StoreView.open(made.write(tmp_path)) as view:
        for queue in (("%LMQ%one", 0), ("Plain", 3)):
            found = view.get_message(*queue, 0, 1)
            assert found.messages[0].topic == "Parent"
            assert len(view.read_column(*queue, 0, 9).stored_bodies) == 1
        for queue in (("%LMQ%two", 0), ("Plain", 1)):
            assert view.get_message(*queue, 0, 1).status is Status.MESSAGE_WAS_REMOVING
            assert view.read_column(*queue, 0, 9).stored_bodies == []


def test_records_of_version_2_and_with_ipv6_hosts_are_read_like_others(tmp_path: Path) -> None:
    made = HandMade(ROOMY)
    topic = "%RETRY%" + "g" * 150
    made.put(topic, version=2)
    made.put("T", born_host=bytes(15) + b"\1" + bytes(4))
    made.put("T", body=b"")
    with StoreView.open(made.write(tmp_path)) as view:
        assert view.get_message(topic, 0, 0, 1).messages[0].version == 2
        hosts = [m.born_host for m in view.get_message("T", 0, 0, 9).messages]
        assert hosts == ["[::1]:0", "127.0.0.1:10911"]
        assert view.read_column("T", 0, 0, 9).stored_bodies == [b"body", b""]
        for message in made.messages:
            found = view.look_message_by_offset(message.commitlog_offset)
            assert found is not None
            assert found.topic == message.topic


def test_looking_by_offset_finds_only_whole_records_at_their_place(tmp_path: Path) -> None:
    made = HandMade()
    first = made.put("T")
    made.put("T")
    with StoreView.open(made.write(tmp_path)) as view:
        for offset in range(-5, made.log_end + 50):
            found = view.look_message_by_offset(offset)
            wanted = {m.commitlog_offset for m in made.messages}
            assert (found is not None) == (offset in wanted)
        assert view.look_message_by_offset(1 << 40) is None
        assert view.look_message_by_offset(first.commitlog_offset) is not None


FIELDS = {
    "size": 3,
    "magic": 7,
    "CRC": 11,
    "queue id": 15,
    "queue offset": 27,
    "own place": 35,
    "body length": 87,
    "body": 88,
    "topic length": 92,
    "topic": 93,
}


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("version", [1, 2])
def test_a_record_that_contradicts_its_unit_is_left_out(
    tmp_path: Path, field: str, version: int
) -> None:
    made = HandMade(ROOMY)
    for _ in range(40):
        made.put("T", version=version)
    root = made.write(tmp_path)
    position = FIELDS[field] + (version == 2 and field == "topic")
    if version == 2 and field == "topic length":
        position += 1
    with (root / "commitlog/00000000000000000000").open("r+b") as file:
        file.seek(made.messages[20].commitlog_offset + position)
        byte = file.read(1)[0]
        file.seek(-1, 1)
        file.write(bytes((byte ^ 1,)))
    with StoreView.open(root) as view:
        expected = [number for number in range(40) if number != 20]
        result = view.get_message("T", 0, 15, 32)
        assert [m.queue_offset for m in result.messages] == expected[15:]
        assert list(view.read_column("T", 0, 0, 100).queue_offsets) == expected
        assert view.get_message("T", 0, 20, 1).messages[0].queue_offset == 21


def test_the_status_of_a_read_that_found_nothing_is_that_of_its_last_unit(tmp_path: Path) -> None:
    made = HandMade(ROOMY)
    for tag in ("Wanted", "Other", "Wanted"):
        made.put("T", tags=tag)
    root = made.write(tmp_path)
    wanted = TagFilter.parse("Wanted")
    with (root / "commitlog/00000000000000000000").open("r+b") as file:
        for message in (made.messages[0], made.messages[2]):
            file.seek(message.commitlog_offset)
            file.write(bytes(8))
    for name in (None, "consumequeue/T/0/00000000000000000000"):
        if name is not None:  # without the last unit
            data = bytearray((root / name).read_bytes())
            data[40:60] = bytes(20)
            (root / name).write_bytes(data)
        with StoreView.open(root) as view:
            status = view.get_message("T", 0, 0, 32, tags=wanted).status
            last_is_lost = view.max_offset_in_queue("T", 0) == 3
            assert status is (
                Status.MESSAGE_WAS_REMOVING if last_is_lost else Status.NO_MATCHED_MESSAGE
            )
