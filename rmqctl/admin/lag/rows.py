"""The rows of the ``lag`` commands."""

from typing import Annotated, NamedTuple

from rmqctl.output.fields import Rank, Wide

Group = Annotated[str, "the consumer group"]
Topic = Annotated[str, "the topic"]
Retry = Annotated[
    int | None, "messages of the group that wait for a retry, in all topics", Rank.MAIN
]
Dlq = Annotated[int, "dead letters of the group, in all topics", Rank.MAIN]
WorstQueue = Annotated[int | None, Wide("the queue with the largest lag")]
Skew = Annotated[float | None, Wide("largest lag divided by the mean of all queues; 1 is even")]
UnknownQueues = Annotated[
    int, Wide("queues that are not in the sums, as their progress is unknown")
]
Queue = Annotated[int, "the queue"]
MinOffset = Annotated[int, "offset of the first stored message"]
Committed = Annotated[int | None, "offset that the group reads next"]
MaxOffset = Annotated[int, "offset of the next message to be stored"]
Groups = Annotated[int, "groups that read the topic"]
GroupsLag = Annotated[int | None, "unread messages, summed over the groups"]
Queues = Annotated[int, "queues that are read", Rank.EXTRA]
Lag = Annotated[int | None, "unread messages, including deleted ones"]
LagBytes = Annotated[int | None, "bytes in the log of those that are still stored"]
Oldest = Annotated[int | None, "when the oldest of those was stored"]
Age = Annotated[int | None, "age of that message"]
RateIn = Annotated[
    float | None,
    "messages stored per second, over the last 5 minutes, or over the time of rate_out",
]
RateOut = Annotated[
    float | None,
    "messages read per second, over the last 5 minutes or the known part; null: one sample",
]
Drain = Annotated[int | None, "time until all is read at these rates; null if unknown or never"]
Status = Annotated[str, "OK, UNKNOWN, WARN, REWIND, STALL or STOP (rmqctl explain STALL)"]
Lost = Annotated[int | None, Wide("messages deleted before the group read them")]
Risk = Annotated[
    int | None,
    Wide("when its oldest unread message may be deleted; null: not before a new file"),
]


def _unknown(row: "LagRow | LagTopicRow | LagQueueRow") -> tuple[str, ...]:
    if row.lag == 0 or row.oldest_unread_age_ms is not None:
        return ()
    return ("oldest_unread_timestamp", "oldest_unread_age_ms")


class LagRow(NamedTuple):
    """A group in a topic."""

    group: Group
    topic: Topic
    queues: Queues
    lag: Lag
    lag_bytes: LagBytes
    oldest_unread_timestamp: Oldest
    oldest_unread_age_ms: Age
    rate_in: RateIn
    rate_out: RateOut
    drain_ms: Drain
    status: Status
    retry: Retry
    dlq: Dlq
    worst_queue_id: WorstQueue
    skew: Skew
    lost: Lost
    risk_timestamp: Risk
    unknown_queues: UnknownQueues

    @property
    def unknown(self) -> tuple[str, ...]:
        """The fields whose null is a value that could not be found out."""
        return _unknown(self)


class LagTopicRow(NamedTuple):
    """All groups in a topic."""

    topic: Topic
    groups: Groups
    queues: Queues
    lag: GroupsLag
    lag_bytes: LagBytes
    oldest_unread_timestamp: Oldest
    oldest_unread_age_ms: Age
    rate_in: RateIn
    rate_out: Annotated[float | None, "messages read per second, summed over the groups"]
    drain_ms: Annotated[
        int | None, "time until the slowest group has read all; null if unknown or never"
    ]
    status: Annotated[str, "the worst of its groups"]
    retry: Annotated[int | None, "messages of its groups that wait for a retry"]
    dlq: Annotated[int, "dead letters of its groups"]
    worst_queue_id: WorstQueue
    skew: Skew
    lost: Lost
    risk_timestamp: Risk
    unknown_queues: UnknownQueues

    @property
    def unknown(self) -> tuple[str, ...]:
        """The fields whose null is a value that could not be found out."""
        return _unknown(self)


class LagQueueRow(NamedTuple):
    """A group in a queue."""

    group: Group
    topic: Topic
    queue_id: Queue
    min_offset: MinOffset
    committed_offset: Committed
    max_offset: MaxOffset
    lag: Lag
    lag_bytes: LagBytes
    oldest_unread_timestamp: Oldest
    oldest_unread_age_ms: Age
    rate_in: RateIn
    rate_out: RateOut
    drain_ms: Drain
    status: Status
    lost: Lost
    risk_timestamp: Risk

    @property
    def unknown(self) -> tuple[str, ...]:
        """The fields whose null is a value that could not be found out."""
        return _unknown(self)
