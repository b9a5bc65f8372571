"""The rows of ``lag watch``."""

from typing import Annotated, NamedTuple

from rmqctl.output.fields import Rank

from .rows import Age, Drain, Lag, Status


class WatchedRow(NamedTuple):
    """A group in a topic at one reading."""

    at_timestamp: Annotated[int, "time of the reading"]
    group: Annotated[str, "the consumer group"]
    topic: Annotated[str, "the topic"]
    lag: Lag
    change: Annotated[int | None, "change since the previous reading", Rank.MAIN]
    oldest_unread_age_ms: Age
    status: Status
    retry: Annotated[int | None, "messages of the group that wait for a retry, in all topics"]
    dlq: Annotated[int, "dead letters of the group, in all topics"]


class WatchedRateRow(NamedTuple):
    """The same with the fields of ``--rate``."""

    at_timestamp: Annotated[int, "time of the reading"]
    group: Annotated[str, "the consumer group"]
    topic: Annotated[str, "the topic"]
    lag: Lag
    change: Annotated[int | None, "change since the previous reading"]
    oldest_unread_age_ms: Age
    rate_in: Annotated[float | None, "messages stored per second, over the watched time"]
    rate_out: Annotated[float | None, "messages read per second, over the same time"]
    drain_ms: Drain
    members: Annotated[int, "live consumers of the group"]
    members_needed: Annotated[
        int | None,
        "members needed at their present speed to keep up; null if they read nothing",
    ]
    status: Status
    retry: Annotated[int | None, "messages of the group that wait for a retry, in all topics"]
    dlq: Annotated[int, "dead letters of the group, in all topics"]
