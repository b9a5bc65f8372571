"""A report on a store that is being written: one cut, and no negative lag."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from analytics.engines.local import LocalEngine
from analytics.lag.selection import Choice
from analytics.report.lag_report import lag_report
from analytics.report.report import Report
from analytics.report.stores import StoreRef
from storage.readonly import StoreView
from storage.store import MessageStore
from tests.support.busy_puppet import ROOMY, busy_puppet
from tests.support.cli import run

REPORTS = 25


def report(root: Path) -> Report:
    now = time.time_ns() // 1_000_000
    made = lag_report(LocalEngine(), [StoreRef("b", str(root))], now, Choice())
    assert not made.unreadable
    assert made.report.as_of == now
    return made.report


@pytest.mark.slow
def test_every_report_is_of_one_moment(tmp_path: Path) -> None:
    root = tmp_path / "store"
    MessageStore.create(root, ROOMY)
    with busy_puppet() as puppet:
        puppet.call("open", root=str(root))
        puppet.call("begin")
        with StoreView.open(root) as view:
            (topic, queue_id), *_ = view.queues()
        lags = []
        for _ in range(REPORTS):
            with StoreView.open(root) as view:
                end = view.max_offset_in_queue(topic, queue_id)
            moved = run(
                "-S",
                root,
                "offset",
                "reset",
                "-g",
                "g",
                "-t",
                f"{topic}:{queue_id}",
                "--to-offset",
                end,
                "--new-group",
                "--yes",
                "-q",
            )
            assert moved.code == 0, moved.err
            found = report(root)
            (queue,) = [row for row in found.queues if row["queue_id"] == queue_id]
            assert queue["committed_offset"] == end
            assert queue["lag"] == queue["max_offset"] - end >= 0
            for rows in (found.minutes, found.tags):
                assert sum(row["messages"] for row in rows) == found.totals["lag"]
                assert sum(row["bytes"] for row in rows) == found.totals["lag_bytes"]
            lags.append(queue["lag"])
        assert puppet.call("end") > REPORTS
        puppet.call("close")
    assert any(lags)
