"""The rows of ``lag report``."""

from typing import Annotated, Any, NamedTuple

from rmqctl.admin.lag.rows import (
    Age,
    Committed,
    Dlq,
    Drain,
    Group,
    Groups,
    GroupsLag,
    Lag,
    LagBytes,
    Lost,
    MaxOffset,
    MinOffset,
    Oldest,
    Queue,
    Queues,
    RateIn,
    RateOut,
    Retry,
    Risk,
    Skew,
    Status,
    Topic,
    UnknownQueues,
    WorstQueue,
)
from rmqctl.output.fields import OmitNull

Messages = Annotated[int, "unread messages that are still stored"]
Bytes = Annotated[int, "bytes of their records in the log"]


class ReportGroupRow(NamedTuple):
    """A group in a topic, over all stores."""

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
    lag_before: Annotated[
        int | None, OmitNull("lag in the report of --compare; null: unknown, also in part")
    ]
    lag_change: Annotated[
        int | None, OmitNull("growth of the lag since then; null if one is unknown in part")
    ]


class ReportQueueRow(NamedTuple):
    """A group in a queue."""

    group: Group
    topic: Topic
    broker: Annotated[str, "the broker's name"]
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


class ReportTopicRow(NamedTuple):
    """All groups in a topic, over all stores."""

    topic: Topic
    groups: Groups
    lag: GroupsLag
    lag_bytes: LagBytes
    oldest_unread_timestamp: Oldest
    oldest_unread_age_ms: Age
    status: Annotated[str, "the worst of its groups"]
    unknown_queues: UnknownQueues


class ReportTagRow(NamedTuple):
    """Unread messages of a group, by tag."""

    group: Group
    topic: Topic
    tag: Annotated[str | None, "the tag; null: none, or unknown from the queue"]
    messages: Messages
    bytes: Bytes


class ReportMinuteRow(NamedTuple):
    """Unread messages of a group, by the minute of storing."""

    group: Group
    topic: Topic
    minute_timestamp: Annotated[int | None, "start of the minute; null: unreadable"]
    messages: Messages
    bytes: Bytes


class ReportHourRow(NamedTuple):
    """Unread messages of a group, by the hour of storing."""

    group: Group
    topic: Topic
    hour_timestamp: Annotated[int | None, "start of the hour; null: unreadable"]
    messages: Messages
    bytes: Bytes


class LagReport(NamedTuple):
    """The whole report."""

    as_of: Annotated[int, "time to which ages and drain times are relative"]
    engine: Annotated[str, "the engine: spark or local"]
    stores: Annotated[list[Any], "broker, path, log_min_offset, log_max_offset of each"]
    totals: Annotated[dict[str, Any], "sums over all groups"]
    groups: Annotated[list[Any], "a row for each group and topic: the fields of lag show"]
    queues: Annotated[list[Any], "a row for each group, topic, broker and queue"]
    tags: Annotated[list[Any], "group, topic, tag, messages, bytes"]
    minutes: Annotated[list[Any], "group, topic, minute_timestamp, messages, bytes"]
    hours: Annotated[list[Any], "group, topic, hour_timestamp, messages, bytes"]
    ages: Annotated[list[Any], "group, topic, from_age_ms, to_age_ms, messages, bytes"]
    agenda: Annotated[list[Any], "broker, level, messages: delayed ones that wait; null: unknown"]
    orphans: Annotated[list[Any], "broker, group, topic: progress in topics that do not exist"]
    warnings: Annotated[list[str], "everything that is unknown, left out or unusual"]
    elapsed_ms: Annotated[int, "duration of the report"]


class WarmupRow(NamedTuple):
    """The archive that ``lag warmup`` built."""

    path: Annotated[str, "its path"]
    size_bytes: Annotated[int, "its size"]
    java: Annotated[str, "the Java that it is for"]
