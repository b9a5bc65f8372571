"""Records are read by the stretch as they are read one by one."""

from pathlib import Path

import numpy as np
import pytest

from storage.readonly import StoreView
from storage.tools.carve import plain_records
from storage.tools.carve.plain_records import topic_field
from storage.tools.carve.ranges import QueueRange, RangeReader, TakenRange
from tests.support import golden
from tests.support.compiled import compiled, native, needs_compiled

PARTS = {
    "size": 3,
    "magic": 7,
    "queue": 15,
    "offset": 27,
    "log offset": 35,
    "body": 88,
    "last": -1,
    "topic": 88,
}
"""Bytes of a record; the last one is of its properties, that of the topic lies behind the body."""

Row = tuple[int, int, bytes]
"""The number of a range, a queue offset, a record."""
Lost = set[tuple[int, int]]


@pytest.fixture(autouse=True, params=[pytest.param("compiled", marks=needs_compiled), "pure"])
def forms(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "compiled", compiled if request.param == "compiled" else None)


def byte_of(part: str, record: bytes) -> int:
    body = int.from_bytes(record[84:88], "big") + 1 if part == "topic" else 0
    return (PARTS[part] + body) % len(record)


def ranges_of(view: StoreView) -> list[QueueRange]:
    bounds = {queue: view.queue_bounds(*queue) for queue in sorted(view.queues())}
    return [QueueRange(*queue, *found, *found) for queue, found in bounds.items()]


def one_by_one(view: StoreView, ranges: list[QueueRange]) -> tuple[list[tuple[int, *Row]], Lost]:
    """The place in the log and the row of each message, in order, and the lost ones."""
    found: list[tuple[int, *Row]] = []
    lost: Lost = set()
    log = view.files.apart().log
    for number, wanted in enumerate(ranges):
        for offset in range(wanted.begin, wanted.end):
            unit = view.unit(wanted.topic, wanted.queue_id, offset)
            message = None
            if unit is not None:
                message = view.message_of_unit(wanted.topic, wanted.queue_id, offset, unit)
            if unit is None or message is None or message.topic != wanted.topic:
                lost.add((number, offset))
                continue
            place, size, _ = unit
            file = log.at(place - place % log.file_size)
            at = place % log.file_size
            assert file is not None
            found.append((place, number, offset, bytes(file.map[at : at + size])))
    return sorted(found), lost


def by_stretches(view: StoreView, ranges: list[QueueRange]) -> tuple[list[Row], Lost]:
    found: list[Row] = []
    lost: Lost = set()
    for taken in RangeReader(view, ranges).stretches():
        numbers, offsets = taken.queue_numbers.tolist(), taken.queue_offsets.tolist()
        found += zip(numbers, offsets, taken.records(), strict=True)
        lost |= set(taken.lost)
    return found, lost


def agree(root: Path, ranges: list[QueueRange]) -> tuple[int, int]:
    """How many records there are and how many are lost, in both ways of reading."""
    with StoreView.open(root) as view:
        wanted, wanted_lost = one_by_one(view, ranges)
        found, lost = by_stretches(view, ranges)
    assert found == [row[1:] for row in wanted]
    assert lost == wanted_lost
    return len(found), len(lost)


@pytest.mark.parametrize("name", ["basic-4.9", "ipv6-4.9", "basic-5.3", "small-files-4.9"])
def test_a_brokers_records_come_in_the_order_of_the_log(name):
    root = golden.store(name)
    with StoreView.open(root) as view:
        ranges = ranges_of(view)
    count, lost = agree(root, ranges)
    assert count > 10
    assert not lost


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.long), 7])
def test_a_damaged_record_is_lost_alone(tmp_path, part, every):
    root = golden.extract("basic-4.9", tmp_path)
    with StoreView.open(root) as view:
        ranges = ranges_of(view)
        before, _ = one_by_one(view, ranges)
        size = view.files.apart().log.file_size
    for place, *_, record in before[:-1:every]:
        with (root / "commitlog" / f"{place - place % size:020d}").open("r+b") as file:
            file.seek(place % size + byte_of(part, record))
            byte = file.read(1)[0]
            file.seek(-1, 1)
            file.write(bytes([byte ^ 1]))
    count, lost = agree(root, ranges)
    assert count + lost == len(before)
    changed = len(before[:-1:every])
    assert lost == (0 if part == "last" else changed), "no checksum covers properties"


@pytest.mark.parametrize("wrong", ["number", "offset", "position", "size", "beyond", "short"])
def test_records_that_their_units_contradict_are_not_taken(wrong):
    with StoreView.open(golden.store("basic-4.9")) as view:
        ranges = ranges_of(view)
        found, _ = one_by_one(view, ranges)
        log = view.files.apart().log.at(0)
        assert log is not None
        fields = [topic_field(wanted.topic) for wanted in ranges]
        ids = np.array([wanted.queue_id for wanted in ranges], np.int64)
        rows = np.array([(n, o, place, len(record)) for place, n, o, record in found], np.int64).T
        columns = dict(zip(("number", "offset", "position", "size"), rows, strict=True))
        match wrong:
            case "number":
                columns["number"][::2] = (columns["number"][::2] + 1) % len(ranges)
            case "beyond":
                columns["position"][::2] += 1 << 40
            case "short":
                columns["size"][::2] = 5
            case _:
                columns[wrong][::2] += 1
        given = np.ascontiguousarray(rows).reshape(-1)
        records, good = plain_records.take_records(log.view, 0, given.data, ids.data, fields)
    assert [*map(bool, good)] == [row % 2 == 1 for row in range(len(found))]
    assert records == b"".join(record for *_, record in found[1::2])


@needs_compiled
def test_columns_that_do_not_fit_are_refused():
    log, one = memoryview(bytes(200)), np.zeros(4, np.int64)
    assert compiled.take_records(log, 0, one.data, one[:1].data, [b"\x01T"]) == (b"", b"\0")
    for rows, ids in ((one[:3], one[:1]), (one - 1, one[:1]), (one + 1, one[:1]), (one, one[:2])):
        with pytest.raises(ValueError, match="do not fit|no range"):
            compiled.take_records(log, 0, rows.data, ids.data, [b"\x01T"])


def test_parts_have_all_records():
    records = [b"a" * size for size in (3, 1, 4, 1, 5)]
    sizes, numbers = np.array([3, 1, 4, 1, 5]), np.arange(5)
    taken = TakenRange(bytearray().join(records), sizes, numbers, numbers + 7, [], 14)
    for most in range(1, 7):
        parts = list(taken.parts(most))
        assert [record for part in parts for record in part.records()] == records
        assert [row for part in parts for row in part.queue_offsets.tolist()] == [7, 8, 9, 10, 11]
        assert max(len(part.sizes) for part in parts) <= most
