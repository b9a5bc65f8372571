"""The rows of the ``lag`` commands."""

from typing import Annotated, NamedTuple

from rmqctl.output.fields import Wide

Group = Annotated[str, "the consumer group"]
Topic = Annotated[str, "the topic"]
Retry = Annotated[
    int | None, "the group's messages that wait for their next attempt, of all topics"
]
Dlq = Annotated[int, "the group's dead letters, of all topics"]
WorstQueue = Annotated[int | None, Wide("the queue with the largest lag")]
Skew = Annotated[float | None, Wide("the largest lag over the mean of all queues; 1 is even")]
UnknownQueues = Annotated[int, Wide("queues that are not in the sums: nothing is known")]
Queue = Annotated[int, "the queue"]
MinOffset = Annotated[int, "the first message that is still there"]
Committed = Annotated[int | None, "the next message that the group will read"]
MaxOffset = Annotated[int, "where the next message will be"]
Groups = Annotated[int, "groups that read it"]
GroupsLag = Annotated[int | None, "messages that groups have not read, summed over the groups"]
Queues = Annotated[int, "its queues that are read"]
Lag = Annotated[int | None, "messages that it has not read, deleted ones included"]
LagBytes = Annotated[int | None, "bytes in the log of those that are still there"]
Oldest = Annotated[int | None, "when the oldest of those was stored"]
Age = Annotated[int | None, "how long ago that was"]
RateIn = Annotated[
    float | None, "messages stored a second, over the last 5 minutes, or as far back as rate_out"
]
RateOut = Annotated[
    float | None,
    "messages read a second, over the last 5 minutes or what is known of them; null: one look",
]
Drain = Annotated[int | None, "until all is read at these rates; null if unknown or never"]
Status = Annotated[str, "OK, UNKNOWN, WARN, REWIND, STALL or STOP (rmqctl explain STALL)"]
Lost = Annotated[int | None, Wide("messages that were deleted before it read them")]
Risk = Annotated[
    int | None,
    Wide("from when on its oldest unread message may be deleted; null: not before a new file"),
]


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
    rate_out: Annotated[float | None, "messages read a second, summed over the groups"]
    drain_ms: Annotated[int | None, "until the slowest has read all; null if unknown or never"]
    status: Annotated[str, "the worst of its groups"]
    retry: Annotated[int | None, "messages of its groups that wait for their next attempt"]
    dlq: Annotated[int, "dead letters of its groups"]
    worst_queue_id: WorstQueue
    skew: Skew
    lost: Lost
    risk_timestamp: Risk
    unknown_queues: UnknownQueues


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
