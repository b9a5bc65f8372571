"""The rows of ``lag watch``."""

from typing import Annotated, NamedTuple

from rmqctl.lag.rows import Age, Drain, Lag, Status


class WatchedRow(NamedTuple):
    """A group in a topic at one look."""

    at_timestamp: Annotated[int, "when it was looked"]
    group: Annotated[str, "the consumer group"]
    topic: Annotated[str, "the topic"]
    lag: Lag
    change: Annotated[int | None, "by how much that is more than at the look before"]
    oldest_unread_age_ms: Age
    status: Status
    retry: Annotated[
        int | None, "the group's messages that wait for their next attempt, of all topics"
    ]
    dlq: Annotated[int, "the group's dead letters, of all topics"]


class WatchedRateRow(NamedTuple):
    """The same with what ``--rate`` adds."""

    at_timestamp: Annotated[int, "when it was looked"]
    group: Annotated[str, "the consumer group"]
    topic: Annotated[str, "the topic"]
    lag: Lag
    change: Annotated[int | None, "by how much that is more than at the look before"]
    oldest_unread_age_ms: Age
    rate_in: Annotated[float | None, "messages stored a second, over the time that was watched"]
    rate_out: Annotated[float | None, "messages read a second, over the same time"]
    drain_ms: Drain
    members: Annotated[int, "consumers of the group that live now"]
    members_needed: Annotated[
        int | None,
        "how many as quick as these keep up with what comes in; null if they read nothing",
    ]
    status: Status
    retry: Annotated[
        int | None, "the group's messages that wait for their next attempt, of all topics"
    ]
    dlq: Annotated[int, "the group's dead letters, of all topics"]
