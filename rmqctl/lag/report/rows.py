"""The rows of ``lag report``."""

from typing import Annotated, Any, NamedTuple

from rmqctl.lag.rows import (
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

Messages = Annotated[int, "messages that it has not read and that are still there"]
Bytes = Annotated[int, "their bytes in the log"]


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
    lag_before: Annotated[int | None, OmitNull("lag in the report that this is compared with")]
    lag_change: Annotated[int | None, OmitNull("how much lag has grown since")]


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


class ReportTagRow(NamedTuple):
    """What a group has not read, by tag."""

    group: Group
    topic: Topic
    tag: Annotated[str | None, "the tag; null: none, or not to be told from the queue"]
    messages: Messages
    bytes: Bytes


class ReportMinuteRow(NamedTuple):
    """What a group has not read, by the minute in which it was stored."""

    group: Group
    topic: Topic
    minute_timestamp: Annotated[int | None, "when the minute began; null: not to be read"]
    messages: Messages
    bytes: Bytes


class ReportHourRow(NamedTuple):
    """What a group has not read, by the hour in which it was stored."""

    group: Group
    topic: Topic
    hour_timestamp: Annotated[int | None, "when the hour began; null: not to be read"]
    messages: Messages
    bytes: Bytes


class LagReport(NamedTuple):
    """The whole report."""

    as_of: Annotated[int, "the moment that ages and drains count from"]
    engine: Annotated[str, "who counted: spark or local"]
    stores: Annotated[list[Any], "broker, path, log_min_offset, log_max_offset of each"]
    totals: Annotated[dict[str, Any], "sums over all groups"]
    groups: Annotated[list[Any], "a row for each group and topic: the fields of lag show"]
    queues: Annotated[list[Any], "a row for each group, topic, broker and queue"]
    tags: Annotated[list[Any], "group, topic, tag, messages, bytes"]
    minutes: Annotated[list[Any], "group, topic, minute_timestamp, messages, bytes"]
    hours: Annotated[list[Any], "group, topic, hour_timestamp, messages, bytes"]
    ages: Annotated[list[Any], "group, topic, from_age_ms, to_age_ms, messages, bytes"]
    agenda: Annotated[list[Any], "broker, level, messages: delayed messages that wait"]
    orphans: Annotated[list[Any], "broker, group, topic: progress in topics that do not exist"]
    warnings: Annotated[list[str], "whatever is unknown, left out or odd"]
    elapsed_ms: Annotated[int, "how long it took"]


class WarmupRow(NamedTuple):
    """The archive that ``lag warmup`` made."""

    path: Annotated[str, "where it lies"]
    size_bytes: Annotated[int, "how large it is"]
    java: Annotated[str, "which Java it is for"]
