"""The rows of the ``topic`` commands."""

from typing import Annotated, NamedTuple

from rmqctl.output.fields import OmitNull, Rank, Wide


class TopicRow(NamedTuple):
    """One topic of a list."""

    topic: Annotated[str, "the topic"]
    kind: Annotated[str, "normal, retry, dlq or system", Rank.MAIN]
    read_queues: Annotated[int, "queues that consumers read"]
    write_queues: Annotated[int, "queues that producers write"]
    perm: Annotated[int, "sum of 4 (read), 2 (write) and 1 (template for new topics)"]
    messages: Annotated[int, "stored messages", Rank.KEY]


class TopicDescription(NamedTuple):
    """One topic in full."""

    topic: Annotated[str, "the topic"]
    kind: Annotated[str, "normal, retry, dlq or system", Rank.MAIN]
    read_queues: Annotated[int, "queues that consumers read"]
    write_queues: Annotated[int, "queues that producers write"]
    perm: Annotated[int, "sum of 4 (read), 2 (write) and 1 (template for new topics)"]
    order: Annotated[bool, "whether it is an ordered topic"]
    topic_filter_type: Annotated[str, "SINGLE_TAG or MULTI_TAG", Rank.EXTRA]
    topic_sys_flag: Annotated[int, "1: a unit, 2: a unit with subscriptions", Rank.EXTRA]
    messages: Annotated[int, "stored messages", Rank.KEY]
    first_timestamp: Annotated[int | None, "when the oldest one was stored"]
    last_timestamp: Annotated[int | None, "when the newest one was stored"]
    groups: Annotated[list[str], "groups with progress in it"]

    @property
    def unknown(self) -> tuple[str, ...]:
        """The fields whose null is a value that could not be found out."""
        return ("first_timestamp", "last_timestamp") if self.messages else ()


class TopicQueueRow(NamedTuple):
    """One queue of a topic."""

    topic: Annotated[str, "the topic"]
    broker: Annotated[str, "the broker's name"]
    queue_id: Annotated[int, "the queue"]
    min_offset: Annotated[int, "offset of the first stored message", Rank.MAIN]
    max_offset: Annotated[int, "offset of the next message to be stored", Rank.MAIN]
    count: Annotated[int, "stored messages", Rank.MAIN]  # type: ignore[assignment]  # a tuple's method
    first_timestamp: Annotated[int | None, "when the oldest one was stored"]
    last_timestamp: Annotated[int | None, "when the newest one was stored", Rank.MAIN]

    @property
    def unknown(self) -> tuple[str, ...]:
        """The fields whose null is a value that could not be found out."""
        return ("first_timestamp", "last_timestamp") if self.count else ()


class CreatedTopicRow(NamedTuple):
    """The outcome of creating one topic."""

    topic: Annotated[str, "the topic"]
    created: Annotated[
        bool | None,
        "whether it was created; false: it existed with the same settings; null: a dry run",
    ]
    read_queues: Annotated[int, "queues that consumers read"]
    write_queues: Annotated[int, "queues that producers write"]
    perm: Annotated[int, "sum of 4 (read), 2 (write) and 1 (template for new topics)"]
    order: Annotated[bool, Wide("whether it is an ordered topic")]


class ChangedTopicRow(NamedTuple):
    """One changed setting of a topic."""

    topic: Annotated[str, "the topic"]
    setting: Annotated[str, "its name in RocketMQ's TopicConfig"]
    old: Annotated[str, "before"]
    new: Annotated[str, "after"]
    note: Annotated[str | None, "the consequence for messages; null for none"]
    applied: Annotated[bool | None, OmitNull("whether the change was made; null in a plan")]


class DeletedTopicRow(NamedTuple):
    """One part of a topic that is deleted."""

    topic: Annotated[str, "the topic"]
    part: Annotated[str, "settings, queues, messages or offsets"]
    group: Annotated[str | None, "the group of the offsets"]
    amount: Annotated[int, "number of objects", Rank.MAIN]
    fate: Annotated[str, "removed or kept", Rank.KEY]
    note: Annotated[str | None, "the consequence"]
    applied: Annotated[bool | None, OmitNull("whether the change was made; null in a plan")]


class TopicStatsRow(NamedTuple):
    """Size and growth of a topic or a part of it."""

    topic: Annotated[str, "the topic"]
    queue_id: Annotated[int | None, OmitNull("the queue, with --by queue")]
    from_timestamp: Annotated[int | None, OmitNull("start of the hour, with --by hour"), Rank.KEY]
    messages: Annotated[int, "stored messages", Rank.KEY]
    bytes: Annotated[
        int | None, "bytes of their records in the log; null if units are damaged", Rank.MAIN
    ]
    average_size: Annotated[int | None, "bytes of a record; null without messages", Rank.EXTRA]
    share: Annotated[float | None, "share of the topic's messages, 0 to 1; null without messages"]
    rate: Annotated[
        float | None,
        "messages per second; null if the first and last time are equal or unknown",
        Rank.MAIN,
    ]
    first_timestamp: Annotated[int | None, "when the oldest one was stored"]
    last_timestamp: Annotated[int | None, "when the newest one was stored"]
    bytes_rate: Annotated[float | None, Wide("bytes per second")]
    skew: Annotated[
        float | None,
        Wide("fullest queue divided by the mean of all; 1 is even; null without messages"),
    ]

    @property
    def unknown(self) -> tuple[str, ...]:
        """The fields whose null is a value that could not be found out."""
        return ("first_timestamp", "last_timestamp") if self.messages else ()


class TopicUsageRow(NamedTuple):
    """Disk usage of a topic."""

    topic: Annotated[str | None, "the topic; null for the rest of the log"]
    messages: Annotated[int | None, "stored messages"]
    bytes: Annotated[
        int | None,
        "bytes of their records in the log; 0 for a light queue, null if units are damaged",
        Rank.KEY,
    ]
    share: Annotated[float | None, "share of the log, 0 to 1", Rank.MAIN]
    queue_bytes: Annotated[int | None, "disk usage of its consume queues"]
    oldest_timestamp: Annotated[int | None, "when the oldest one was stored"]
    newest_timestamp: Annotated[int | None, "when the newest one was stored"]

    @property
    def unknown(self) -> tuple[str, ...]:
        """The fields whose null is a value that could not be found out."""
        return ("oldest_timestamp", "newest_timestamp") if self.messages else ()
