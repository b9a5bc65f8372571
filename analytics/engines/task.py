"""A piece of counting for any process that can read the store's files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from analytics.kernels.edges import MinuteEdges
from analytics.kernels.partials import MINUTE_MS, Partials, QueueTask, add_up, count_unread
from storage.readonly import StoreView

MOST_MINUTES: Final = 2_000_000
"""Minutes kept at most, some four years: a damaged store time may lie in any year."""


class CountTask(NamedTuple):
    """Parts of queues of one store. Pickles into some hundred bytes.

    ``minutes`` are the first and the last minute (since 1970) in which something unread was stored;
    see count_unread for the rest. Tasks with the same ``job`` use one view of the store, where the
    same process does them.
    """

    job: str
    root: str
    tasks: tuple[QueueTask, ...]
    minutes: tuple[int, int]
    each_time: bool = False
    each_tag: bool = False


def do(work: CountTask) -> Partials:
    """Count one piece. Raises the errors of ``StoreView.open``."""
    view, edges = _of(work)
    first, last = work.minutes
    are_far_apart = last - first >= MOST_MINUTES
    found = [
        count_unread(
            view,
            task,
            edges,
            view.store_timestamps,
            each_time=work.each_time or are_far_apart,
            each_tag=work.each_tag,
        )
        for task in work.tasks
    ]
    return together(found)


def together(parts: Sequence[Partials]) -> Partials:
    """Add up the results of several pieces. Of two tags with one hash that of the first message
    counts, however the queues were cut."""
    texts: dict[tuple[str, int], str | None] = {}
    places: dict[tuple[str, int], tuple[int, int]] = {}
    for part in parts:
        for tag, text in part.texts.items():
            place = part.places.get(tag)
            if text is None:
                texts.setdefault(tag, None)
            elif texts.get(tag) is None or (place is not None and place < places[tag]):
                texts[tag] = text
                if place is not None:
                    places[tag] = place
    return Partials(
        add_up([part.minutes for part in parts]),
        add_up([part.tags for part in parts]),
        add_up([part.missing for part in parts]),
        texts,
        places,
        any(part.disorder for part in parts),
    )


def forget() -> None:
    """Release what this process has open for a job."""
    _KEPT.forget()


class _Kept:
    """What this process has open for its job: views, and the edges of minutes."""

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
            last = first - 2  # no edges at all: then each record is read
        times = np.arange(first, last + 2, dtype=np.int64) * MINUTE_MS
        edges = _KEPT.edges[key] = MinuteEdges(times)
    return view, edges
