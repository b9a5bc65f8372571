"""One damaged byte, anywhere: never a wrong message, never a traceback, and fsck sees it.

Exhaustive over every byte that a small store uses, in all of its files. The short run takes every
fourth one: of eleven records that is each byte of a head, in one or another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from storage.format.cq_unit import MOST_LOST
from storage.format.layout import HEAD_SIZES
from storage.format.names import file_name
from storage.readonly import Boundary, StoreView
from storage.store import MessageStore
from storage.tools.fsck import Code, Severity, fsck
from tests.support.hand_made import TINY, HandMade, Stored

CONFIG = TINY.with_(mapped_file_size_consume_queue=60, max_index_num=20)
Key = tuple[str, int, int]

# Fields of a record that RocketMQ protects by no checksum and that nothing else repeats, by their
# place in it: flag, sysFlag, times, hosts, reconsumeTimes, preparedTransactionOffset.
UNPROTECTED = (range(16, 20), range(36, 84))
HEAD = range(HEAD_SIZES[0])


def store(root: Path, *, clean: bool) -> HandMade:
    made = HandMade(CONFIG, clean=clean)
    for number in range(11):
        topic, queue_id = [("Alpha", 0), ("Beta", 1)][number % 2]
        made.put(topic, queue_id, b"body-%d" % number, tags=f"Tag{number % 3}", keys=[f"k{number}"])
    made.write(root)
    return made


def every_byte(root: Path, first: int = 0, step: int = 1) -> Iterator[tuple[Path, int]]:
    """All bytes, or each ``step``-th from ``first`` on, of all files up to a few after the last
    one that is not zero."""
    for path in sorted(root.rglob("*")):
        if path.is_file():
            used = len(path.read_bytes().rstrip(b"\0")) + 9
            for position in range(first, min(used, path.stat().st_size), step):
                yield path, position


def head_bytes(made: HandMade, places: Iterable[tuple[Path, int]]) -> set[int]:
    """Which bytes of a record's head are among places in the log, in whatever record."""
    of_log = {int(path.name) + at for path, at in places if path.parent.name == "commitlog"}
    return {offset - m.commitlog_offset for m in made.messages for offset in of_log} & set(HEAD)


def patched(path: Path, position: int, value: int) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(bytes((value,)))


def read_everything(root: Path) -> dict[Key, tuple[bytes, bool]]:
    """Body of each message that is returned, by any of the reading calls."""
    found: dict[Key, tuple[bytes, bool]] = {}
    with StoreView.open(root, CONFIG) as view:
        for topic, queue_id in view.queues():
            offset, end = view.queue_bounds(topic, queue_id)
            assert end < 1 << 41
            steps = 0
            while offset < end and steps < 50:
                result = view.get_message(topic, queue_id, offset, 32)
                for message in result.messages:
                    at = message.queue_offset
                    found[message.topic, message.queue_id, at] = (message.stored_body, True)
                assert result.next_begin_offset > offset
                offset, steps = result.next_begin_offset, steps + 1
            column = view.read_column(topic, queue_id, *view.queue_bounds(topic, queue_id)[:1], 50)
            for at, body in zip(column.queue_offsets, column.stored_bodies, strict=True):
                found[topic, queue_id, at] = (body, True)
            for boundary in Boundary:
                view.offset_in_queue_by_time(topic, queue_id, 1_700_000_005_000, boundary)
        for number in range(11):
            for topic in ("Alpha", "Beta"):
                view.query_message(topic, f"k{number}")
    return found


def originals(made: HandMade) -> dict[Key, Stored]:
    return {(m.topic, m.queue_id, m.queue_offset): m for m in made.messages}


@pytest.mark.slow
@pytest.mark.parametrize("clean", [True, False], ids=["closed", "crashed"])
@pytest.mark.parametrize(
    ("flip", "step"),
    [
        pytest.param(0xFF, 4, id="inverted"),
        pytest.param(0xFF, 1, id="all inverted", marks=pytest.mark.long),
        pytest.param(0x01, 1, id="lowest bit", marks=pytest.mark.long),
        pytest.param(None, 1, id="zeroed", marks=pytest.mark.long),
    ],
)
def test_no_damaged_byte_makes_a_wrong_message(
    tmp_path: Path, flip: int | None, step: int, clean: bool
) -> None:
    made = store(tmp_path, clean=clean)
    right = originals(made)
    assert set(read_everything(tmp_path)) == set(right)
    places = list(every_byte(tmp_path, clean % step, step))
    assert head_bytes(made, places) == set(HEAD)
    for path, position in places:
        before = path.read_bytes()[position]
        after = 0 if flip is None else before ^ flip
        if after == before:
            continue
        patched(path, position, after)
        try:
            found = read_everything(tmp_path)
        finally:
            patched(path, position, before)
        for key, (body, _) in found.items():
            assert key in right, f"{path.name}+{position}: {key} was never stored"
            assert body == right[key].body, f"{path.name}+{position}: {key}"


EVERY = pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.long)])


@pytest.mark.slow
@EVERY
def test_a_damaged_byte_hides_one_message_at_most(tmp_path: Path, step: int) -> None:
    """After a crash, when the queues are compared with the log: RocketMQ would cut the log."""
    made = store(tmp_path, clean=False)
    right = set(originals(made))
    places = list(every_byte(tmp_path / "commitlog", 0, step))
    assert head_bytes(made, places) == set(HEAD)
    for path, position in places:
        before = path.read_bytes()[position]
        patched(path, position, before ^ 0xFF)
        try:
            found = read_everything(tmp_path)
        finally:
            patched(path, position, before)
        assert len(right - set(found)) <= 1, f"{path.name}+{position}"


@pytest.mark.feature(111, 112)
@pytest.mark.slow
@EVERY
def test_fsck_names_what_can_be_seen(tmp_path: Path, step: int) -> None:
    made = store(tmp_path, clean=True)
    with StoreView.open(tmp_path, CONFIG) as view:
        assert fsck(view).healthy
    unseen = []
    places = list(every_byte(tmp_path, 1 % step, step))
    assert head_bytes(made, places) == set(HEAD)
    for path, position in places:
        before = path.read_bytes()[position]
        patched(path, position, before ^ 0xFF)
        try:
            with StoreView.open(tmp_path, CONFIG) as view:
                report = fsck(view)
        finally:
            patched(path, position, before)
        if report.healthy:
            unseen.append((path.parent.name, path.name, position))
    for folder, name, position in unseen:
        assert is_unprotected(made, folder, name, position), f"{folder}/{name}+{position}"


def is_unprotected(made: HandMade, folder: str, name: str, position: int) -> bool:
    """Whether RocketMQ's format gives no means to see a change of this byte."""
    if folder == "commitlog":
        offset = int(name) + position
        inside = [
            m for m in made.messages if m.commitlog_offset <= offset < m.commitlog_offset + m.size
        ]
        if not inside:
            before = [m for m in made.messages if m.commitlog_offset < offset]
            return offset >= before[-1].commitlog_offset + before[-1].size + 8  # a blank record
        place = offset - inside[0].commitlog_offset
        return any(place in fields for fields in UNPROTECTED)
    if folder == "index":
        entries = 40 + 4 * CONFIG.max_hash_slot_num
        last = entries + 20 * (1 + len(made.messages))
        return entries <= position < entries + 20 or position >= last  # entry 0, after the last
    return name == "checkpoint"  # times may be older than the log


@pytest.mark.feature(111)
@pytest.mark.parametrize("position", [0, 4, 8, 20, 28, 88], ids=str)
def test_a_damaged_record_is_named_with_its_place(tmp_path: Path, position: int) -> None:
    made = store(tmp_path, clean=True)
    victim = made.messages[3]
    path = tmp_path / "commitlog" / "00000000000000000000"
    patched(path, victim.commitlog_offset + position, 0x77)
    with StoreView.open(tmp_path, CONFIG) as view:
        errors = [f for f in fsck(view).findings if f.severity is Severity.ERROR]
    assert errors
    assert errors[0].file == "commitlog/00000000000000000000"
    assert errors[0].position == victim.commitlog_offset
    assert len(HEAD) == 88


def test_two_records_of_one_queue_offset_are_told(tmp_path: Path) -> None:
    made = HandMade(CONFIG)
    for offset in (0, 1, 1, 2):
        made.put("T", queue_offset=offset, unit=offset != 1 or len(made.messages) == 1)
    with StoreView.open(made.write(tmp_path), CONFIG) as view:
        codes = [f.code for f in fsck(view).findings]
    assert codes.count(Code.RECORD_REPEATED) == 1


@pytest.mark.parametrize("far", [1 << 26, 1 << 45])
@pytest.mark.slow
def test_a_check_reads_only_what_is_there(tmp_path: Path, far: int) -> None:
    """However far past the others a queue's last file claims to be."""
    made = HandMade(TINY)
    for _ in range(7):
        made.put("T")
    made.write(tmp_path)
    folder, far = tmp_path / "consumequeue" / "T" / "0", far * TINY.mapped_file_size_consume_queue
    (folder / file_name(far)).write_bytes((folder / file_name(100)).read_bytes())
    with StoreView.open(tmp_path, TINY) as view:
        assert view.bounds.next_offset("T", 0) == far // 20 + 2
        report = fsck(view)
        following, found = 0, 0
        while following < far // 20 + 2:
            result = view.get_message("T", 0, following, 32)
            following, found = result.next_begin_offset, found + len(result.messages)
    assert found == 7
    assert report.checked.units == 7 + 3 + 2
    gaps = [finding.what for finding in report.findings if finding.code is Code.QUEUE_GAP]
    assert gaps == [f"T queue 0: offsets 7 to {far // 20 - 1}: neither unit nor record"]
    del made.log[made.messages[5].commitlog_offset :]
    made.write(tmp_path)
    with StoreView.open(tmp_path, TINY) as view:  # neither 5, 6 nor the far ones
        assert view.bounds.next_offset("T", 0) == 5
        assert Code.LOG_TAIL_LOST in {finding.code for finding in fsck(view).findings}


@pytest.mark.parametrize("victim", [0, 3, 8])
@pytest.mark.parametrize("claim", [0, 1, 5, 500, MOST_LOST * 3, (1 << 63) - 1])
def test_a_record_that_claims_another_place_hides_no_other(
    tmp_path: Path, victim: int, claim: int
) -> None:
    """Where the units have to be made from the log: by a reader, and by recovery."""
    made = HandMade(TINY, clean=False, index=False)
    for offset in range(9):
        made.put("T", queue_offset=claim if offset == victim else offset, unit=False)
    made.write(tmp_path)
    others = {*range(9)} - {victim, claim}
    assert others <= set(queue_offsets(tmp_path)) <= {*range(9), claim}
    with MessageStore.open(tmp_path, TINY) as store:
        assert store.recovery is not None
    assert others <= set(queue_offsets(tmp_path)) <= {*range(9), claim}


def queue_offsets(root: Path) -> list[int]:
    """Those of all messages that are returned from a queue, in their order."""
    found: list[int] = []
    with StoreView.open(root, TINY) as view:
        offset, end = view.queue_bounds("T", 0)
        while offset < end:
            result = view.get_message("T", 0, offset, 32)
            found += [message.queue_offset for message in result.messages]
            assert result.next_begin_offset > offset
            offset = result.next_begin_offset
    assert found == sorted(set(found))
    return found
