"""The rows of ``offset list`` and ``offset inspect``."""

from typing import Annotated, NamedTuple

from analytics.lag.queue_position import OffsetState
from rmqctl.admin.offsets.committed import OffsetSource
from rmqctl.output.fields import OmitNull, Rank, Wide


class OffsetRow(NamedTuple):
    """A group's progress in one queue."""

    group: Annotated[str, "the consumer group"]
    topic: Annotated[str, "the topic"]
    broker: Annotated[str, "the broker's name"]
    queue_id: Annotated[int, "the queue"]
    min_offset: Annotated[int, "the first message that is still there"]
    committed_offset: Annotated[int | None, "the next message that the group will read"]
    max_offset: Annotated[int, "where the next message will be", Rank.MAIN]
    lag: Annotated[int | None, "messages that it has not read, deleted ones included"]
    state: Annotated[OffsetState, "CAUGHT_UP, BEHIND, LOST, AHEAD or NONE (no progress)"]
    note: Annotated[
        str | None, OmitNull("by how many it is ahead, or how many were deleted unread")
    ]


class InspectedOffsetRow(NamedTuple):
    """Everything about a group's progress in one queue."""

    group: Annotated[str, "the consumer group"]
    topic: Annotated[str, "the topic"]
    broker: Annotated[str, "the broker's name"]
    queue_id: Annotated[int, "the queue"]
    min_offset: Annotated[int, "the first message that is still there"]
    committed_offset: Annotated[int | None, "the next message that the group will read"]
    max_offset: Annotated[int, "where the next message will be", Rank.MAIN]
    lag: Annotated[int | None, "messages that it has not read, deleted ones included"]
    oldest_unread_age_ms: Annotated[
        int | None, "how long ago the oldest message was stored that it has not read"
    ]
    last_consumed_timestamp: Annotated[
        int | None, "when the message before its committed offset was stored"
    ]
    state: Annotated[
        OffsetState | None,
        "CAUGHT_UP, BEHIND, LOST, AHEAD or NONE (no progress); null: not known for then",
    ]
    note: Annotated[
        str | None,
        OmitNull(
            "by how many it is ahead, how many were deleted unread, or between what the offset "
            "lay that is not known"
        ),
    ]
    lag_bytes: Annotated[int | None, Wide("bytes in the log of what it has not read")]
    oldest_unread_timestamp: Annotated[
        int | None, Wide("when the oldest message was stored that it has not read")
    ]
    oldest_unread_msg_id: Annotated[str | None, Wide("the id of that message")]
    source: Annotated[
        OffsetSource | None, Wide("where the committed offset was read: file, bak, journal")
    ]
    changed_timestamp: Annotated[int | None, Wide("when it was moved last, by the journal")]
    changed_by: Annotated[str | None, Wide("who did, and on which machine: user@host")]
