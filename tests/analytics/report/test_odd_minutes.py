"""A damaged store time may lie in any year: no memory is taken for the minutes up to it."""

from pathlib import Path

import pytest

from analytics.engines import task
from analytics.report import scan
from storage.format.layout import SYS_FLAG_POSITION
from tests.analytics.report.test_lag_report import NOW, report, write_offsets
from tests.support.hand_made import TINY, HandMade

STORE_TIMESTAMP_POSITION = SYS_FLAG_POSITION + 20
_THIS_YEAR = 29_000_000


@pytest.mark.parametrize("minutes", [(0, _THIS_YEAR), (_THIS_YEAR, 781_000_000), (5, -7)])
def test_minutes_far_apart_make_no_edges(minutes, tmp_path):
    from storage.config import SMALL_STORE
    from storage.store import MessageStore

    MessageStore.create(tmp_path / "s", SMALL_STORE)
    try:
        _, edges = task._of(task.CountTask("job", str(tmp_path / "s"), (), minutes))
        assert len(edges.times) == 0
    finally:
        task.forget()


def test_times_far_apart_do_not_go_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "EACH_TIME_UP_TO", -1)
    store = HandMade(TINY)
    for step_ms in (0, 1000, 10 * 366 * 86_400_000):
        store.put("T", 0, step_ms=step_ms)
    store.write(tmp_path)
    write_offsets(tmp_path, {("g", "T", 0): 0})
    found = report(tmp_path)
    assert found.warnings == []
    assert [row["messages"] for row in found.minutes] == [2, 1]


@pytest.mark.parametrize("stored", [-1, -(1 << 63)])
def test_a_damaged_time_before_1970_is_no_age(tmp_path: Path, stored: int) -> None:
    """The sign bit is one of 64; an age up to then may be more than 64 bits hold."""
    store = HandMade(TINY, timestamp=NOW - 5000)
    store.put("T", 0, step_ms=0)
    store.put("T", 1, step_ms=0)
    of_first = slice(STORE_TIMESTAMP_POSITION, STORE_TIMESTAMP_POSITION + 8)
    store.log[of_first] = stored.to_bytes(8, "big", signed=True)
    store.write(tmp_path)
    write_offsets(tmp_path, {("g", "T", 0): 0, ("g", "T", 1): 0})
    found = report(tmp_path)
    names = ("lag", "oldest_unread_timestamp", "oldest_unread_age_ms")
    assert [tuple(row[name] for name in names) for row in found.queues] == [
        (1, None, None),
        (1, NOW - 5000, 5000),
    ]
    (group,) = found.groups
    assert tuple(group[name] for name in names) == (2, NOW - 5000, 5000)
    assert [(row["minute_timestamp"] is None, row["messages"]) for row in found.minutes] == [
        (True, 1),
        (False, 1),
    ]
