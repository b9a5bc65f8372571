"""Messages that are deleted between the scan and the count are a loss, and no damage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from analytics.engines.local import LocalEngine
from analytics.lag.selection import Choice
from analytics.report import scan as scanning
from analytics.report.lag_report import MadeReport, lag_report
from analytics.report.stores import StoreRef
from storage.format.names import file_name
from tests.analytics.report.test_lag_report import write_offsets
from tests.support.hand_made import START_MS, TINY, HandMade

T = TypeVar("T")
R = TypeVar("R")
LONG = TINY.with_(mapped_file_size_consume_queue=2000)


class DeletingEngine(LocalEngine):
    """The broker deletes the oldest log file after the scan, before anything is counted."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        progress: Callable[[int], None] | None = None,
    ) -> list[R]:
        (self.root / "commitlog" / file_name(0)).unlink(missing_ok=True)
        return super().map(function, items, progress)


def reported(root: Path) -> MadeReport:
    refs = [StoreRef("b", str(root))]
    return lag_report(DeletingEngine(root), refs, START_MS + 10_000_000, Choice())


@pytest.mark.parametrize("few", [True, False])
def test_what_is_deleted_meanwhile_is_named_as_deleted(
    tmp_path: Path, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not few:
        monkeypatch.setattr(scanning, "EACH_TIME_UP_TO", -1)
        monkeypatch.setattr(scanning, "EACH_TAG_UP_TO", -1)
    store = HandMade(LONG)
    for _ in range(30):
        store.put("T", 0, tags="a")
    store.write(tmp_path)
    write_offsets(tmp_path, {("g", "T", 0): 0})
    gone = sum(one.commitlog_offset < LONG.mapped_file_size_commit_log for one in store.messages)
    made = reported(tmp_path)
    assert not made.is_damaged
    assert made.shares[0].is_damaged is False
    assert made.report.warnings == [
        f"b: {gone} messages were deleted before they were counted: they are counted without "
        "bytes, time and tag"
    ]
    row = made.report.groups[0]
    assert (row["lag"], row["lag_bytes"]) == (30, None)
    assert {one["tag"]: one["messages"] for one in made.report.tags} == {"a": 30 - gone, None: gone}
    unknown = [one for one in made.report.minutes if one["minute_timestamp"] is None]
    assert [(one["messages"], one["bytes"]) for one in unknown] == [(gone, 0)]
    assert sum(one["messages"] for one in made.report.minutes) == 30
