"""The rows of ``lag show --compare`` and ``lag record``."""

from typing import Annotated, NamedTuple

from rmqctl.output.fields import Rank, Wide

from .rows import Group, Topic


class LagComparisonRow(NamedTuple):
    """The lag of a group in a topic at an earlier time and now."""

    group: Group
    topic: Topic
    lag_then: Annotated[int | None, "unread messages at the earlier time; null: unknown", Rank.KEY]
    lag: Annotated[int | None, "unread messages now"]
    lag_change: Annotated[
        int | None, "lag less lag_then; null if one of them is unknown in part", Rank.KEY
    ]
    oldest_unread_age_then_ms: Annotated[
        int | None, "age of the oldest unread message then; 0: none was unread", Rank.MAIN
    ]
    oldest_unread_age_ms: Annotated[int | None, "age of the oldest unread message; 0: none is"]
    oldest_unread_age_change_ms: Annotated[int | None, "the difference of the two ages", Rank.USUAL]
    status: Annotated[str, "OK, UNKNOWN, WARN, REWIND, STALL or STOP now (rmqctl explain STALL)"]
    then_timestamp: Annotated[int | None, Wide("the earlier time; null: a file without a time")]


class RecordedRow(NamedTuple):
    """A recorded group in a topic: a part of a line of ``lag record``."""

    group: Group
    topic: Topic
    lag: int | None
    lag_bytes: int | None
    oldest_unread_timestamp: int | None
    oldest_unread_age_ms: int | None
    retry: int | None
    dlq: int
    unknown_queues: int
