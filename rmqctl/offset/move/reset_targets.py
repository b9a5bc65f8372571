"""Where a queue's progress is to go: one function for each way of saying so."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from storage.read.by_time import Boundary

from .queues import GroupPosition, QueueId, committed

if TYPE_CHECKING:
    from storage.configs.progress_table import ProgressTable
    from storage.format.message import MessageExt
    from storage.readonly import StoreView


class ResetTarget(NamedTuple):
    """Where a queue's progress is to go."""

    offset: int | None
    """The next message to read; None for no progress."""
    note: str | None = None
    stays: bool = False
    """There is nothing to wish for: the queue is left alone."""
    timestamp: int | None = None
    """The time (ms) that was asked for, if the offset was found by one."""


FUTURE = "the time lies in the future"
"""The note where a queue goes to a time that has not come yet."""
Scope = Callable[[GroupPosition], ResetTarget]


def to_time(
    view: "StoreView", timestamp: int, boundary: Boundary, now_ms: int | None = None
) -> Scope:
    """To what was stored at a time (ms); see storage.read.by_time. A note says where it
    lies after ``now_ms``."""
    note = FUTURE if now_ms is not None and timestamp > now_ms else None

    def reset_target(stand: GroupPosition) -> ResetTarget:
        _, topic, queue_id = stand.place
        offset = view.offset_in_queue_by_time(topic, queue_id, timestamp, boundary)
        return ResetTarget(offset, note, timestamp=timestamp)

    return reset_target


def to_earliest(stand: GroupPosition) -> ResetTarget:
    """To the first message that is still there."""
    return ResetTarget(stand.low)


def to_latest(stand: GroupPosition) -> ResetTarget:
    """To the true end: only what comes from now on is read."""
    return ResetTarget(stand.high)


def to_current(stand: GroupPosition) -> ResetTarget:
    """To where it is, which stops whoever runs ahead of it."""
    return _stays("it has no progress") if stand.offset is None else ResetTarget(stand.offset)


def to_nothing(stand: GroupPosition) -> ResetTarget:
    """To no progress at all."""
    return _stays("it has no progress") if stand.offset is None else ResetTarget(None)


def to_offset(offset: int) -> Scope:
    """To an offset."""
    return lambda _stand: ResetTarget(offset)


def shift_by(count: int) -> Scope:
    """Forward by so many messages, or, below 0, back."""

    def reset_target(stand: GroupPosition) -> ResetTarget:
        if stand.offset is None:
            return _stays("it has no progress to shift")
        return ResetTarget(stand.offset + count)

    return reset_target


def to_group(progress: "ProgressTable", other: str) -> Scope:
    """To where another group is in the same queue."""

    def reset_target(stand: GroupPosition) -> ResetTarget:
        offset = committed(progress.get(*stand.place._replace(group=other).key))
        return _stays(f"{other} has no progress") if offset is None else ResetTarget(offset)

    return reset_target


def as_planned(offsets: Mapping[QueueId, int | None]) -> Scope:
    """To what a plan says."""

    def reset_target(stand: GroupPosition) -> ResetTarget:
        offset = offsets[stand.place]
        if offset is None and stand.offset is None:
            return _stays("it has no progress")
        return ResetTarget(offset)

    return reset_target


def to_messages(view: "StoreView", messages: "Sequence[MessageExt]", boundary: Boundary) -> Scope:
    """To messages, one a topic: its own queue lands on it, the others at its store time."""
    by_topic = {message.topic: message for message in messages}

    def reset_target(stand: GroupPosition) -> ResetTarget:
        message = by_topic[stand.place.topic]
        if message.queue_id == stand.place.queue_id:
            return ResetTarget(message.queue_offset)
        return to_time(view, message.store_timestamp, boundary)(stand)

    return reset_target


def clamped(reset_target: ResetTarget, stand: GroupPosition) -> ResetTarget:
    """The wish cut to what the queue has."""
    offset = reset_target.offset
    if offset is None or reset_target.stays or stand.low <= offset <= stand.high:
        return reset_target
    if offset < stand.low:
        return reset_target._replace(
            offset=stand.low, note=f"{offset} is before the first; cut to it"
        )
    return reset_target._replace(offset=stand.high, note=f"{offset} is beyond the end; cut to it")


def _stays(note: str) -> ResetTarget:
    return ResetTarget(None, note, stays=True)
