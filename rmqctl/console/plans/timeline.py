"""When the messages of a plan's queues were stored: a cell for each of some minutes."""

from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from rmqctl.admin.changes import Change
from storage.read.by_time import Boundary

if TYPE_CHECKING:
    from storage.readonly import StoreView

CELLS: Final = 56
_MINUTE: Final = 60_000
_STEPS: Final = tuple(
    _MINUTE * minutes for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 360, 720, 1440, 10_080)
)
"""What a cell may stand for, in ms."""
_MOST_QUEUES: Final = 256
"""Queues that are looked through; with more the picture is left out."""


class Timeline(NamedTuple):
    """Messages stored over time."""

    start_ms: int
    step_ms: int
    """The time that a cell stands for."""
    counts: tuple[int, ...]
    target_ms: int
    """Where the plan leads."""
    here_ms: int | None
    """When the oldest message was stored that the group has not read; None if it has read all."""
    kept_ms: int | None
    """When the oldest message was stored that is still there, if older ones have been deleted."""

    def cell_of(self, timestamp: int | None) -> int | None:
        """The cell of a time; None outside of the picture."""
        if timestamp is None:
            return None
        cell = (timestamp - self.start_ms) // self.step_ms
        return cell if 0 <= cell < len(self.counts) else None


def timeline(view: "StoreView", change: Change, target_ms: int, now_ms: int) -> Timeline | None:
    """The picture of a move of offsets to a time; None if it has too many queues."""
    positions = [step.position for step in getattr(change, "steps", ())]
    queues = sorted({(one.queue.topic, one.queue.queue_id) for one in positions})
    if not queues or len(queues) > _MOST_QUEUES:
        return None
    span = max(now_ms - target_ms, _MINUTE) * 4 // 3
    step = next((one for one in _STEPS if one * (CELLS - 1) >= span), _STEPS[-1])
    start = now_ms // step * step - step * (CELLS - 1)
    ends = [
        sum(
            view.offset_in_queue_by_time(*queue, start + step * n, Boundary.LOWER)
            for queue in queues
        )
        for n in range(CELLS + 1)
    ]
    unread = [
        view.store_timestamp(one.queue.topic, one.queue.queue_id, max(one.offset or 0, one.low))
        for one in positions
        if (one.offset or 0) < one.high
    ]
    oldest = [
        view.store_timestamp(one.queue.topic, one.queue.queue_id, one.low)
        for one in positions
        if 0 < one.low < one.high
    ]
    return Timeline(
        start,
        step,
        tuple(max(0, after - before) for before, after in pairwise(ends)),
        target_ms,
        min((time for time in unread if time is not None), default=None),
        min((time for time in oldest if time is not None), default=None),
    )
