"""The rows of ``resetOffsetByTime`` and of the ``offset`` commands that move progress."""

from typing import Annotated, Any, NamedTuple

from rmqctl.output.fields import Rank, Wide


class ResetByTimeRow(NamedTuple):
    """Where a reset by time takes one queue."""

    broker: Annotated[str, "the broker's name"]
    queue_id: Annotated[int, "the queue"]
    old_offset: Annotated[int | None, "what the group had committed"]
    new_offset: Annotated[int | None, "the next message that the group will read"]
    lands_on_timestamp: Annotated[int | None, "when that message was stored; null at the end"]
    note: Annotated[str | None, "what is special here"]


class PlannedMove(NamedTuple):
    """Where a change of progress takes one queue of one group."""

    group: Annotated[str, "the consumer group"]
    topic: Annotated[str, "the topic"]
    broker: Annotated[str, "the broker's name"]
    queue_id: Annotated[int, "the queue"]
    old_offset: Annotated[int | None, "what the group has committed", Rank.KEY]
    new_offset: Annotated[
        int | None, "the next message that it will read; null: no progress", Rank.KEY
    ]
    move: Annotated[int | None, "messages passed over, or, below 0, read again"]
    lands_on_timestamp: Annotated[int | None, "when the message was stored that it lands on"]
    lag_old: Annotated[int | None, "messages that it has not read"]
    lag_new: Annotated[int | None, "messages that it will not have read"]
    age_new_ms: Annotated[int | None, "how long ago the oldest of those was stored; 0 without any"]
    note: Annotated[str | None, "what is special here"]
    bytes: Annotated[int | None, Wide("bytes in the log of what is read again or passed over")]
    lands_on_key: Annotated[str | None, Wide("the first key of the message that it lands on")]
    lands_on_msg_id: Annotated[str | None, Wide("the id of that message")]
    lower: Annotated[int | None, Wide("the first message at or after the time")]
    upper: Annotated[int | None, Wide("the last message at or before the time")]
    nearest49: Annotated[int | None, Wide("what a 4.9 broker finds for the time")]


_APPLIED = Annotated[bool | None, "whether it was done, as read back; null: left alone"]
_new_row_type: Any = NamedTuple

DoneMove: Any = _new_row_type(
    "DoneMove", [*PlannedMove.__annotations__.items(), ("applied", _APPLIED)]
)
"""A planned move and whether it was done."""
