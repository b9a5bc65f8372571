"""The rows of the ``offset`` commands."""

from typing import Annotated, NamedTuple

from analytics.lag.queue_position import OffsetState
from rmqctl.output.fields import OmitNull


class OffsetRow(NamedTuple):
    """A group's progress in one queue."""

    group: Annotated[str, "the consumer group"]
    topic: Annotated[str, "the topic"]
    broker: Annotated[str, "the broker's name"]
    queue_id: Annotated[int, "the queue"]
    min_offset: Annotated[int, "the first message that is still there"]
    committed_offset: Annotated[int | None, "the next message that the group will read"]
    max_offset: Annotated[int, "where the next message will be"]
    lag: Annotated[int | None, "messages that it has not read, deleted ones included"]
    state: Annotated[OffsetState, "CAUGHT_UP, BEHIND, LOST, AHEAD or NONE (no progress)"]
    note: Annotated[
        str | None, OmitNull("by how many it is ahead, or how many were deleted unread")
    ]
