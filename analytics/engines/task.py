"""A piece of counting that any process can do that sees the store's files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from analytics.kernels.edges import MinuteEdges
from analytics.kernels.partials import MINUTE_MS, Partials, QueueTask, add_up, count_unread
from storage.readonly import StoreView

MOST_MINUTES: Final = 2_000_000
"""Minutes that are kept in mind, some four years: a damaged store time may lie in any year."""


class CountTask(NamedTuple):
    """Parts of queues of one store. Pickles into some hundred bytes.

    ``minutes`` are the first and the last minute (since 1970) in which something unread was
    stored; see count_unread for the rest. Works with the same ``job`` see the store through one
    view, where they are done by the same process.
    """

    job: str
    root: str
    tasks: tuple[QueueTask, ...]
    minutes: tuple[int, int]
    each_time: bool = False
    each_tag: bool = False


def do(work: CountTask) -> Partials:
    """Count one piece. Raises what ``StoreView.open`` raises."""
    view, edges = _of(work)
    found = [
        count_unread(
            view,
            task,
            edges,
            view.store_timestamps,
            each_time=work.each_time,
            each_tag=work.each_tag,
        )
        for task in work.tasks
    ]
    return together(found)


def together(parts: Sequence[Partials]) -> Partials:
    """Add up what several pieces found."""
    return Partials(
        add_up([part.minutes for part in parts]),
        add_up([part.tags for part in parts]),
        add_up([part.missing for part in parts]),
        {tag: text for part in parts for tag, text in part.texts.items()},
        any(part.disorder for part in parts),
    )


def forget() -> None:
    """Let go of what this process has open for a job."""
    _KEPT.forget()


class _Kept:
    """What this process has open for the job that it works for: views, and where minutes begin."""

    def __init__(self) -> None:
        self.job = ""
        self.views: dict[str, StoreView] = {}
        self.edges: dict[tuple[str, int, int], MinuteEdges] = {}

    def forget(self) -> None:
        for view in self.views.values():
            view.close()
        self.views.clear()
        self.edges.clear()


_KEPT: Final = _Kept()


def _of(work: CountTask) -> tuple[StoreView, MinuteEdges]:
    if work.job != _KEPT.job:
        _KEPT.forget()
        _KEPT.job = work.job
    view = _KEPT.views.get(work.root)
    if view is None:
        view = _KEPT.views[work.root] = StoreView.open(work.root)
        view.reads_log_at_random()
    key = (work.root, *work.minutes)
    edges = _KEPT.edges.get(key)
    if edges is None:
        first, last = work.minutes
        if not 0 <= last - first < MOST_MINUTES:
            last = first - 2  # no edges at all: then each record is looked at
        times = np.arange(first, last + 2, dtype=np.int64) * MINUTE_MS
        edges = _KEPT.edges[key] = MinuteEdges(times)
    return view, edges
