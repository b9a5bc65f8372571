"""A backlog of any size takes the memory of one piece of it, and few reads of the log."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from analytics.engines.local import LocalEngine
from analytics.kernels.partials import CHUNK
from analytics.lag.selection import Choice
from analytics.report.lag_report import MadeReport, lag_report
from analytics.report.stores import StoreRef
from benchmarks.large_store import FIRST_MS, make_large_store
from benchmarks.report_store import have_read

QUEUES = 2
SHARED_BY = 1_000
BYTES_A_UNIT = 200
"""At most, of the units of one piece."""


def report(root: Path) -> MadeReport:
    as_of = FIRST_MS + 86_400_000
    return lag_report(LocalEngine(), [StoreRef("b", str(root))], as_of, Choice())


def peak_of_a_report(root: Path) -> int:
    """Bytes that Python and NumPy hold at once, at most."""
    tracemalloc.start()
    try:
        made = report(root)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert not [warning for warning in made.report.warnings if "store times" in warning]
    return peak


@pytest.mark.slow
def test_memory_does_not_grow_with_the_backlog(tmp_path: Path) -> None:
    peaks = []
    for pieces in (2, 8):
        root = tmp_path / f"{pieces} pieces"
        make_large_store(root, "big", pieces * CHUNK, QUEUES, shared_by=SHARED_BY)
        have_read(root, [0.0, 0.3])
        peaks.append(peak_of_a_report(root))
    small, large = peaks
    assert large < CHUNK * BYTES_A_UNIT
    assert large < 1.1 * small


@pytest.mark.slow
def test_the_numbers_are_right(tmp_path: Path) -> None:
    messages = 4 * CHUNK
    make_large_store(tmp_path, "big", messages, QUEUES, shared_by=SHARED_BY)
    have_read(tmp_path, [0.0, 0.5])
    found = report(tmp_path).report
    assert [row["lag"] for row in found.groups] == [messages, messages // 2]
    rows = [row for row in found.minutes if row["group"] == "group-0"]
    first, second, *_, last = rows
    assert first["minute_timestamp"] == FIRST_MS // 60_000 * 60_000
    # A message a millisecond; up to a record's share of neighbours have the time of the first.
    assert second["messages"] == pytest.approx(60_000, abs=2 * SHARED_BY)
    assert sum(row["messages"] for row in rows) == messages
    assert last["minute_timestamp"] == (FIRST_MS + messages) // 60_000 * 60_000
