"""Where a queue has its first hole: the fast paths give what reading each unit gives."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from storage.files.read_files import StoreFiles
from storage.format.cq_unit import CQ_STORE_UNIT
from storage.format.names import file_name
from storage.log.record_reader import QueueKey
from storage.queue import unit_holes, written_end
from storage.queue.coverage import _units_between
from storage.queue.unit_holes import cut_at_hole, may_be_torn
from storage.queue.written_end import QueueTail
from tests.support.examples import examples
from tests.support.hand_made import TINY

UNITS = 60
CONFIG = TINY.with_(mapped_file_size_consume_queue=20 * UNITS)
RECORD = 100
units = st.lists(st.sampled_from(["unit", "zeros", "below", "empty"]), max_size=2 * UNITS)


def packed(kinds: list[str]) -> bytes:
    """Unit i is that of the record at i * RECORD; or none of a record."""
    values = {"unit": (0, RECORD), "zeros": (0, 0), "below": (-10_000, RECORD), "empty": (0, 0)}
    return b"".join(
        CQ_STORE_UNIT.pack(
            number * RECORD + values[kind][0] if kind != "zeros" else 0, values[kind][1], 7
        )
        for number, kind in enumerate(kinds)
    )


def expected(kinds: list[str], vouched: int, end: int) -> tuple[int, int]:
    """The units that count, and where the first hole is."""
    old = [
        n for n, kind in enumerate(kinds[:end]) if kind == "unit" and (n + 1) * RECORD <= vouched
    ]
    first = old[-1] + 1 if old else 0
    hole = next((n for n in range(first, end) if kinds[n] != "unit"), end)
    # The unit in front of the hole may lie in a sector that was kept and in one that was lost.
    within = (hole - 1) % UNITS * 20
    torn = hole > first and within // 512 != (within + 19) // 512
    return (hole - 1 if torn else hole), hole


def tail_of(folder: Path, kinds: list[str], kept: int = 0) -> QueueTail:
    """``kept``: so many units are in memory."""
    row = folder / "consumequeue" / "T" / "0"
    row.mkdir(parents=True)
    data, size = packed(kinds), 20 * UNITS
    for start in range(0, len(data), size):
        (row / file_name(start)).write_bytes(data[start : start + size].ljust(size, b"\0"))
    found = StoreFiles(folder, CONFIG).queue("T", 0)
    assert found is not None
    found.relist()
    units_kept = data[len(data) - 20 * kept :]
    span = written_end._span_of(units_kept) if kept else None
    return QueueTail(found, QueueKey("T", 0), len(kinds), units_kept, span)


@pytest.mark.parametrize("many", [False, True], ids=["few", "many"])
@example(kinds=["zeros", "unit", "unit", "unit", "unit"], vouched=2600, whole=20, kept=0)
@example(kinds=["zeros", "unit", "unit", "unit", "unit"], vouched=2600, whole=20, kept=9)
@example(kinds=[], vouched=0, whole=25, kept=26)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    kinds=units,
    vouched=st.integers(0, 2 * UNITS * RECORD),
    whole=st.integers(0, UNITS),
    kept=st.integers(0, UNITS),
)
def test_the_first_hole_behind_what_is_vouched_for(
    many: bool,
    kinds: list[str],
    vouched: int,
    whole: int,
    kept: int,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unit_holes, "_FEW", -1 if many else 20_000)
    kinds = ["unit"] * whole + kinds + ["unit"]
    tail = tail_of(tmp_path_factory.mktemp("s"), kinds, min(kept, len(kinds)))
    cut_at_hole(tail, vouched)
    counted, hole = expected(kinds, vouched, len(kinds))
    assert tail.next_offset == counted
    assert tail.hole == (hole if counted < len(kinds) else None)


@pytest.mark.parametrize("many", [False, True], ids=["few", "many"])
def test_the_last_unit_that_is_vouched_for_counts_and_what_lies_before_it(
    many: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit_holes, "_FEW", -1 if many else 20_000)
    kinds = ["unit", "zeros", "unit", "empty", "below", "unit", "unit", "zeros", "unit"]
    for vouched, counted in ((599, 3), (600, 7), (700, 7), (899, 7), (900, 9), (300, 3), (299, 1)):
        tail = tail_of(tmp_path / str(vouched), kinds)
        cut_at_hole(tail, vouched)
        assert tail.next_offset == counted, vouched


def test_the_unit_in_front_of_the_end_that_lies_in_two_sectors_is_not_believed(
    tmp_path: Path,
) -> None:
    """Unit 25 has 12 bytes in one sector and 8 in the next one; a file has sectors of its own."""
    for count, counted in ((25, 25), (26, 25), (27, 27), (UNITS + 26, UNITS + 25)):
        tail = tail_of(tmp_path / str(count), ["unit"] * count)
        cut_at_hole(tail, 0)
        assert tail.next_offset == counted, count
        tail = tail_of(tmp_path / f"vouched-{count}", ["unit"] * count)
        cut_at_hole(tail, count * RECORD)
        assert tail.next_offset == count


@pytest.mark.slow
@example(whole=9, kept=9, start=800, end=2_000)
@example(whole=9, kept=9, start=100, end=800)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    whole=st.integers(1, UNITS),
    kept=st.integers(0, UNITS),
    start=st.integers(0, UNITS).map(RECORD.__mul__),
    end=st.integers(0, UNITS * RECORD),
)
def test_units_of_a_part_of_the_log(
    whole: int, kept: int, start: int, end: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tail = tail_of(tmp_path_factory.mktemp("s"), ["unit"] * whole, min(kept, whole))
    within = [n for n in range(whole) if start <= n * RECORD < end]
    wanted = packed(["unit"] * whole)[20 * within[0] : 20 * within[-1] + 20] if within else b""
    assert _units_between(tail, start, end) == wanted


def test_which_units_lie_in_two_sectors() -> None:
    for position in range(0, 20 * 520, 20):
        assert may_be_torn(position) == (position // 512 != (position + 19) // 512), position


def test_a_file_that_was_cut_has_a_hole_there(tmp_path: Path) -> None:
    tail = tail_of(tmp_path, ["unit"] * (UNITS + 9))
    path = tmp_path / "consumequeue" / "T" / "0" / file_name(0)
    path.write_bytes(path.read_bytes()[: 20 * 10])
    cut_at_hole(tail, 0)
    assert tail.next_offset == 10


def test_a_queue_whose_first_files_are_deleted_is_looked_at_from_its_first_file(
    tmp_path: Path,
) -> None:
    tail = tail_of(tmp_path, ["unit"] * (UNITS + 20))
    (tmp_path / "consumequeue" / "T" / "0" / file_name(0)).unlink()
    tail.row.relist()
    cut_at_hole(tail, (UNITS + 20) * RECORD)
    assert tail.next_offset == UNITS + 20
