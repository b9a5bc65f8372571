"""Finding the end of a store in its files: as recovery would, or with more whole messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.readonly import StoreView
from storage.results import GetMessageStatus as Status
from tests.support.hand_made import TINY, HandMade, Stored

QUEUES = [("A", 0), ("A", 1), ("B", 0)]
ROOMY = TINY.with_(mapped_file_size_commit_log=4096, mapped_file_size_consume_queue=1000)


def filled(count: int = 30, *, clean: bool = True) -> HandMade:
    made = HandMade(clean=clean)
    for number in range(count):
        topic, queue_id = QUEUES[number % 3]
        made.put(topic, queue_id, f"message {number}".encode(), keys=[f"k{number}"])
    return made


def shown(view: StoreView) -> list[tuple[str, int, int, bytes]]:
    """Everything that can be read through the queues."""
    found = []
    for topic, queue_id in view.queues():
        offset, end = view.queue_bounds(topic, queue_id)
        while offset < end:
            result = view.get_message(topic, queue_id, offset, 32)
            found += [(topic, queue_id, m.queue_offset, m.body) for m in result.messages]
            assert result.next_begin_offset > offset
            offset = result.next_begin_offset
    return sorted(found)


def expected(messages: list[Stored]) -> list[tuple[str, int, int, bytes]]:
    return sorted((m.topic, m.queue_id, m.queue_offset, m.body) for m in messages)


def damage(
    root: Path, offset: int, data: bytes, size: int = TINY.mapped_file_size_commit_log
) -> None:
    path = root / "commitlog" / f"{offset - offset % size:020d}"
    with path.open("r+b") as file:
        file.seek(offset % size)
        file.write(data)


@pytest.mark.parametrize("clean", [True, False])
def test_a_whole_store_is_shown_whole(tmp_path: Path, clean: bool) -> None:
    made = filled(clean=clean)
    with StoreView.open(made.write(tmp_path)) as view:
        assert view.log_max_offset() == made.log_end
        assert shown(view) == expected(made.messages)


def test_an_empty_store_has_no_bounds(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    with StoreView.open(tmp_path) as view:
        assert (view.log_min_offset(), view.log_max_offset(), view.queues()) == (0, 0, [])


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("cut", [1, 8, 40, 88, 91, 95, 100])
def test_a_torn_last_record_is_not_shown(tmp_path: Path, cut: int, clean: bool) -> None:
    made = filled(clean=clean)
    root = made.write(tmp_path)
    last = made.messages[-1]
    damage(root, last.commitlog_offset + cut, bytes(last.size - cut))
    with StoreView.open(root) as view:
        assert view.log_max_offset() == last.commitlog_offset
        assert shown(view) == expected(made.messages[:-1])
        assert view.max_offset_in_queue(last.topic, last.queue_id) == last.queue_offset
        found = view.get_message(last.topic, last.queue_id, last.queue_offset, 1)
        assert found.status is Status.OFFSET_OVERFLOW_ONE


def test_units_of_lost_records_are_not_shown(tmp_path: Path) -> None:
    made = filled()
    root = made.write(tmp_path)
    lost = made.messages[-3:]
    damage(root, lost[0].commitlog_offset, bytes(sum(m.size for m in lost)))
    with StoreView.open(root) as view:
        assert view.log_max_offset() == lost[0].commitlog_offset
        assert shown(view) == expected(made.messages[:-3])


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.conformance("A15")
def test_records_that_no_queue_knows_yet_are_shown(tmp_path: Path, clean: bool) -> None:
    made = HandMade(clean=clean)
    for number in range(20):
        topic, queue_id = QUEUES[number % 3]
        made.put(topic, queue_id, b"%d" % number, queue_offset=number // 3, unit=number < 14)
    made.put("New", 2, b"new", unit=False)
    with StoreView.open(made.write(tmp_path)) as view:
        assert ("New", 2) in view.queues()
        assert shown(view) == expected(made.messages)


@pytest.mark.parametrize("missing", ["A/0", "A/1/00000000000000000100", "B", "."])
def test_after_a_crash_missing_queue_files_are_made_up_for(tmp_path: Path, missing: str) -> None:
    made = filled(clean=False)
    root = made.write(tmp_path)
    (root / "checkpoint").unlink()
    for path in sorted((root / "consumequeue" / missing).rglob("*"), reverse=True) or [
        root / "consumequeue" / missing
    ]:
        if path.is_file():
            path.unlink()
    with StoreView.open(root, made.config) as view:
        assert shown(view) == expected(made.messages)


def test_after_a_crash_the_checkpoint_says_from_where_units_are_looked_at(tmp_path: Path) -> None:
    """RocketMQ starts its recovery at the newest log file that the checkpoint vouches for."""
    made = filled(60, clean=False)
    root = made.write(tmp_path)
    path = root / "consumequeue/A/0/00000000000000000000"
    path.write_bytes(bytes(len(path.read_bytes())))  # its messages are all in the first log files
    with StoreView.open(root) as view:
        bounds = view.queue_bounds("A", 0)
        assert bounds.max_offset == 20
        assert shown(view) == expected(
            [m for m in made.messages if (m.topic, m.queue_id) != ("A", 0) or m.queue_offset >= 5]
        )


def test_a_damaged_record_in_the_middle_hides_itself_alone(tmp_path: Path) -> None:
    made = filled(clean=False)
    root = made.write(tmp_path)
    for victim in (made.messages[7], made.messages[20]):
        damage(root, victim.commitlog_offset + 90, b"\xff\xff")
    with StoreView.open(root) as view:
        assert view.log_max_offset() == made.log_end
        assert shown(view) == expected(
            [*made.messages[:7], *made.messages[8:20], *made.messages[21:]]
        )


@pytest.mark.parametrize("field", [0, 4], ids=["size", "magic"])
def test_a_damaged_head_without_units_hides_itself_alone(tmp_path: Path, field: int) -> None:
    made = HandMade(clean=False)
    for number in range(20):
        made.put("T", 0, b"%d" % number, queue_offset=number, unit=number < 5)
    root = made.write(tmp_path)
    damage(root, made.messages[10].commitlog_offset + field, b"\x00\x12\x34\x56")
    with StoreView.open(root) as view:
        assert shown(view) == expected([*made.messages[:10], *made.messages[11:]])


def test_a_lost_blank_record_does_not_hide_the_next_file(tmp_path: Path) -> None:
    made = HandMade(clean=False)
    for number in range(30):
        made.put("T", 0, b"%d" % number, queue_offset=number, unit=number < 2)
    root = made.write(tmp_path)
    blank = max(m.commitlog_offset + m.size for m in made.messages if m.commitlog_offset < 1024)
    damage(root, blank, bytes(8))
    with StoreView.open(root) as view:
        assert view.log_max_offset() == made.log_end
        assert shown(view) == expected(made.messages)


def test_left_overs_of_an_earlier_log_are_not_shown(tmp_path: Path) -> None:
    """Java truncates without zeroing: past the end lie whole records that are older."""
    made = HandMade(ROOMY, clean=False)
    for number in range(10):
        made.put("Old", 0, b"old %d" % number)
    old = bytes(made.log)
    again = HandMade(ROOMY, clean=False, timestamp=made.timestamp + 1000)
    again.put("New", 0, b"new")
    again.log += old[len(again.log) :]
    again.index = False
    with StoreView.open(again.write(tmp_path)) as view:
        assert view.log_max_offset() == again.messages[0].size
        assert shown(view) == expected(again.messages)


def test_an_all_zero_queue_file_behind_a_full_one_is_empty(tmp_path: Path) -> None:
    made = HandMade()
    for number in range(10):
        made.put("T", 0, b"%d" % number)
    root = made.write(tmp_path)
    (root / "consumequeue/T/0/00000000000000000200").write_bytes(bytes(100))
    with StoreView.open(root) as view:
        assert view.queue_bounds("T", 0) == (0, 10)


def test_a_file_cut_short_shows_what_it_holds(tmp_path: Path) -> None:
    made = filled(clean=False)
    root = made.write(tmp_path)
    path = root / "commitlog" / f"{made.log_end - made.log_end % 1024:020d}"
    last = made.messages[-1]
    path.write_bytes(path.read_bytes()[: (last.commitlog_offset + 50) % 1024])
    with StoreView.open(root, made.config) as view:
        assert shown(view) == expected(made.messages[:-1])


# -- a store that grows while it is open ----------------------------------------------------


def test_what_is_appended_while_the_view_is_open_appears(tmp_path: Path) -> None:
    made = filled(5, clean=False)
    with StoreView.open(made.write(tmp_path)) as view:
        assert shown(view) == expected(made.messages)
        for number in range(40):
            made.put(*QUEUES[number % 3], b"later %d" % number)
            made.write(tmp_path)
            newest = made.messages[-1]
            assert (
                view.max_offset_in_queue(newest.topic, newest.queue_id) == newest.queue_offset + 1
            )
            assert view.log_max_offset() == made.log_end
        made.put("Late", 5, b"in a new queue")
        made.write(tmp_path)
        assert view.max_offset_in_queue("Late", 5) == 1
        assert shown(view) == expected(made.messages)


def test_a_record_being_written_is_not_shown_before_it_is_whole(tmp_path: Path) -> None:
    made = filled(5, clean=False)
    root = made.write(tmp_path)
    with StoreView.open(root) as view:
        before = shown(view)
        end = view.log_max_offset()
        made.put("A", 0, b"x" * 60, keys=["last"])
        record = bytes(made.log[end:])
        # (no checksum covers the properties: a tear inside them cannot be seen)
        for count in range(1, len(record) - len("KEYS=last")):
            damage(root, end, record[:count])
            assert view.log_max_offset() == end
            assert shown(view) == before
        damage(root, end, record)
        assert view.log_max_offset() == end + len(record)
        made.write(tmp_path)
        assert shown(view) == expected(made.messages)


def test_a_unit_that_comes_before_its_record_is_not_shown(tmp_path: Path) -> None:
    made = filled(6, clean=False)
    root = made.write(tmp_path)
    with StoreView.open(root) as view:
        before = shown(view)
        end = view.log_max_offset()
        newest = made.put("A", 0, b"later")
        record = bytes(made.log[end:])
        made.log[end:] = bytes(len(record))
        made.write(tmp_path)
        assert shown(view) == before
        made.log[end:] = record
        made.write(tmp_path)
        assert view.max_offset_in_queue("A", 0) == newest.queue_offset + 1


def test_growing_is_followed_without_reading_from_the_start(tmp_path: Path) -> None:
    made = filled(10, clean=False)
    root = made.write(tmp_path)
    with StoreView.open(root) as view:
        assert view.max_offset_in_queue("A", 0) == 4
        # A reader that read the old records again would fail at this.
        damage(root, 0, bytes(made.messages[4].commitlog_offset))
        made_log = bytes(made.log)
        made.put("A", 1, b"later")
        made.write(tmp_path)
        damage(root, 0, bytes(made.messages[4].commitlog_offset))
        assert view.log_max_offset() == len(made.log) > len(made_log)
        assert view.max_offset_in_queue("A", 1) == 4


def test_units_that_come_after_their_records_appear(tmp_path: Path) -> None:
    """As a broker writes them: records first, then their units one after the other."""
    made = filled(6, clean=False)
    root = made.write(tmp_path)
    with StoreView.open(root) as view:
        for _ in range(2):  # with the second time it is known that the queues are at rest
            assert shown(view) == expected(made.messages)
        before = {queue: bytearray(units) for queue, units in made.queues.items()}
        old = len(made.messages)
        made.put("A", 0, b"later")
        made.put("B", 0, b"later")
        after, made.queues = made.queues, before
        for count, queue in enumerate([None, ("A", 0), ("B", 0)]):
            if queue is not None:
                made.queues[queue] = after[queue]
            made.write(root)
            for _ in range(2):
                assert view.log_max_offset() == made.log_end
                assert shown(view) == expected(made.messages[: old + count])
