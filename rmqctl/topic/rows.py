"""The rows of the ``topic`` commands."""

from typing import Annotated, NamedTuple

from rmqctl.output.fields import OmitNull, Wide


class TopicRow(NamedTuple):
    """One topic of a list."""

    topic: Annotated[str, "the topic"]
    kind: Annotated[str, "normal, retry, dlq or system"]
    read_queues: Annotated[int, "queues that consumers read"]
    write_queues: Annotated[int, "queues that producers write"]
    perm: Annotated[int, "sum of 4 (read), 2 (write) and 1 (new topics may be made like it)"]
    messages: Annotated[int, "messages that are stored"]


class TopicDescription(NamedTuple):
    """One topic in full."""

    topic: Annotated[str, "the topic"]
    kind: Annotated[str, "normal, retry, dlq or system"]
    read_queues: Annotated[int, "queues that consumers read"]
    write_queues: Annotated[int, "queues that producers write"]
    perm: Annotated[int, "sum of 4 (read), 2 (write) and 1 (new topics may be made like it)"]
    order: Annotated[bool, "whether it is an ordered topic"]
    topic_filter_type: Annotated[str, "SINGLE_TAG or MULTI_TAG"]
    topic_sys_flag: Annotated[int, "1: a unit, 2: a unit with subscriptions"]
    messages: Annotated[int, "messages that are stored"]
    first_timestamp: Annotated[int | None, "when the oldest one was stored"]
    last_timestamp: Annotated[int | None, "when the newest one was stored"]
    groups: Annotated[list[str], "groups that have progress in it"]


class TopicQueueRow(NamedTuple):
    """One queue of a topic."""

    topic: Annotated[str, "the topic"]
    broker: Annotated[str, "the broker's name"]
    queue_id: Annotated[int, "the queue"]
    min_offset: Annotated[int, "the first message that is still there"]
    max_offset: Annotated[int, "where the next message will be"]
    count: Annotated[int, "messages that are stored"]  # type: ignore[assignment]  # a tuple's method
    first_timestamp: Annotated[int | None, "when the oldest one was stored"]
    last_timestamp: Annotated[int | None, "when the newest one was stored"]


class CreatedTopicRow(NamedTuple):
    """What became of one topic that was to be created."""

    topic: Annotated[str, "the topic"]
    created: Annotated[
        bool | None,
        "whether it was made; false: it was there with the same settings; null: a dry run",
    ]
    read_queues: Annotated[int, "queues that consumers read"]
    write_queues: Annotated[int, "queues that producers write"]
    perm: Annotated[int, "sum of 4 (read), 2 (write) and 1 (new topics may be made like it)"]
    order: Annotated[bool, Wide("whether it is an ordered topic")]


class ChangedTopicRow(NamedTuple):
    """One setting of a topic that changes."""

    topic: Annotated[str, "the topic"]
    setting: Annotated[str, "what changes, by its name in RocketMQ's TopicConfig"]
    old: Annotated[str, "before"]
    new: Annotated[str, "after"]
    note: Annotated[str | None, "what that means for messages; null if nothing"]
    applied: Annotated[bool | None, OmitNull("whether it is so now; null in a plan")]


class DeletedTopicRow(NamedTuple):
    """What becomes of one part of a topic that is deleted."""

    topic: Annotated[str, "the topic"]
    part: Annotated[str, "settings, queues, messages or offsets"]
    group: Annotated[str | None, "the group whose offsets they are"]
    amount: Annotated[int, "how many there are"]
    fate: Annotated[str, "removed or kept"]
    note: Annotated[str | None, "what that means"]
    applied: Annotated[bool | None, OmitNull("whether it is so now; null in a plan")]


class TopicStatsRow(NamedTuple):
    """What a topic or a part of it holds, and how fast it grows."""

    topic: Annotated[str, "the topic"]
    queue_id: Annotated[int | None, OmitNull("the queue, with --by queue")]
    from_timestamp: Annotated[int | None, OmitNull("where the hour begins, with --by hour")]
    messages: Annotated[int, "messages that are stored"]
    bytes: Annotated[int | None, "their records in the log; null if units are damaged"]
    average_size: Annotated[int | None, "bytes of a record; null without messages"]
    share: Annotated[float | None, "part of the topic's messages, 0 to 1; null without messages"]
    rate: Annotated[float | None, "messages a second; null without any"]
    first_timestamp: Annotated[int | None, "when the oldest one was stored"]
    last_timestamp: Annotated[int | None, "when the newest one was stored"]
    bytes_rate: Annotated[float | None, Wide("bytes a second")]
    skew: Annotated[
        float | None,
        Wide("the fullest queue against the average of all; 1 is even; null without messages"),
    ]


class TopicUsageRow(NamedTuple):
    """How much of the disk a topic takes."""

    topic: Annotated[str | None, "the topic; null for the rest of the log"]
    messages: Annotated[int | None, "messages that are stored"]
    bytes: Annotated[
        int | None, "their records in the log; 0 for a light queue, null if units are damaged"
    ]
    share: Annotated[float | None, "part of the log, 0 to 1"]
    queue_bytes: Annotated[int | None, "what its consume queues take on the disk"]
    oldest_timestamp: Annotated[int | None, "when the oldest one was stored"]
    newest_timestamp: Annotated[int | None, "when the newest one was stored"]
