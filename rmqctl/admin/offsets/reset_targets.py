"""Where the offset of a queue is to go: a destination for each way of saying so.

A destination is a function of what the plan read and of one queue. ``to_earliest``, ``to_latest``
and ``to_current`` are destinations; the other functions return one.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rmqctl.errors import NotFound, UsageProblem
from storage.parse.times import check_timestamp
from storage.read.by_time import Boundary

from .queues import GroupPosition, QueueId, committed

if TYPE_CHECKING:
    from storage.format.message import MessageExt

    from .snapshot import OffsetSnapshot


class ResetTarget(NamedTuple):
    """Where the offset of a queue is to go."""

    offset: int | None
    """The next message to read; None for no offset."""
    note: str | None = None
    stays: bool = False
    """There is no such place: the queue is left alone."""
    timestamp: int | None = None
    """The time (ms) that was asked for, if the offset was found by one."""


FUTURE = "the time lies in the future"
"""The note where a queue goes to a time that has not come yet."""
Destination = Callable[["OffsetSnapshot", GroupPosition], ResetTarget]


def to_time(timestamp: int, boundary: Boundary = Boundary.LOWER) -> Destination:
    """To the message that was stored at a time (epoch ms).

    LOWER is the first message at or after it, UPPER the last one at or before it, NEAREST49 what a
    4.9 broker finds (storage.read.by_time). A note says where the time lies after ``now_ms``.
    UsageProblem for a time other than 0 before 1990 or after 2200.
    """
    check_is_ms(timestamp)
    return to_any_time(timestamp, boundary)


def check_is_ms(timestamp: int) -> None:
    """Raise UsageProblem for a time that cannot be meant in milliseconds."""
    try:
        check_timestamp("the timestamp", timestamp)
    except ValueError as error:
        raise UsageProblem(str(error)) from None


def to_any_time(timestamp: int, boundary: Boundary) -> Destination:
    """``to_time`` without a check, as a broker has none."""

    def reset_target(snapshot: "OffsetSnapshot", position: GroupPosition) -> ResetTarget:
        note = FUTURE if timestamp > snapshot.now_ms else None
        return _at_time(snapshot, position, timestamp, boundary)._replace(note=note)

    return reset_target


def to_earliest(_: "OffsetSnapshot", position: GroupPosition) -> ResetTarget:
    """To the first message that is still there."""
    return ResetTarget(position.low)


def to_latest(_: "OffsetSnapshot", position: GroupPosition) -> ResetTarget:
    """To the true end: only messages from now on are read."""
    return ResetTarget(position.high)


def to_current(_: "OffsetSnapshot", position: GroupPosition) -> ResetTarget:
    """To where it is, which stops a consumer that runs ahead of it."""
    return _stays("it has no progress") if position.offset is None else ResetTarget(position.offset)


def to_nothing(_: "OffsetSnapshot", position: GroupPosition) -> ResetTarget:
    """To no offset at all."""
    return _stays("it has no progress") if position.offset is None else ResetTarget(None)


def to_offset(offset: int) -> Destination:
    """To an offset, 0 or more."""
    return lambda _snapshot, _position: ResetTarget(offset)


def shift_by(count: int) -> Destination:
    """Forward by so many messages, or, below 0, back."""

    def reset_target(_: "OffsetSnapshot", position: GroupPosition) -> ResetTarget:
        if position.offset is None:
            return _stays("it has no progress to shift")
        return ResetTarget(position.offset + count)

    return reset_target


def to_group(other: str) -> Destination:
    """To where another group is in the same queue. NotFound if that has no offset anywhere."""

    def reset_target(snapshot: "OffsetSnapshot", position: GroupPosition) -> ResetTarget:
        if other not in snapshot.groups:
            raise NotFound(f"group {other} has no progress in {snapshot.root}")
        offset = committed(snapshot.progress.get(*position.queue._replace(group=other).key))
        return _stays(f"{other} has no progress") if offset is None else ResetTarget(offset)

    return reset_target


def to_offsets(offsets: Mapping[QueueId, int | None]) -> Destination:
    """To an offset for each queue; None is no offset."""

    def reset_target(_: "OffsetSnapshot", position: GroupPosition) -> ResetTarget:
        offset = offsets[position.queue]
        if offset is None and position.offset is None:
            return _stays("it has no progress")
        return ResetTarget(offset)

    return reset_target


def to_messages(
    messages: "Sequence[MessageExt]", boundary: Boundary = Boundary.LOWER
) -> Destination:
    """To messages, one a topic: its own queue goes to it, the others to its store time.

    Only for queues of these topics.
    """
    by_topic = {message.topic: message for message in messages}

    def reset_target(snapshot: "OffsetSnapshot", position: GroupPosition) -> ResetTarget:
        message = by_topic[position.queue.topic]
        if message.queue_id == position.queue.queue_id:
            return ResetTarget(message.queue_offset)
        return _at_time(snapshot, position, message.store_timestamp, boundary)

    return reset_target


def clamped(reset_target: ResetTarget, position: GroupPosition) -> ResetTarget:
    """The target cut to what the queue has."""
    offset = reset_target.offset
    if offset is None or reset_target.stays or position.low <= offset <= position.high:
        return reset_target
    if offset < position.low:
        return reset_target._replace(
            offset=position.low, note=f"{offset} is before the first; cut to it"
        )
    return reset_target._replace(
        offset=position.high, note=f"{offset} is beyond the end; cut to it"
    )


def _at_time(
    snapshot: "OffsetSnapshot", position: GroupPosition, timestamp: int, boundary: Boundary
) -> ResetTarget:
    _, topic, queue_id = position.queue
    offset = snapshot.view.offset_in_queue_by_time(topic, queue_id, timestamp, boundary)
    return ResetTarget(offset, timestamp=timestamp)


def _stays(note: str) -> ResetTarget:
    return ResetTarget(None, note, stays=True)
