"""The rows of the ``topic`` commands."""

from typing import Annotated, NamedTuple

from rmqctl.output.fields import Wide


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
    created: Annotated[bool, "false if it was there with the same settings"]
    read_queues: Annotated[int, "queues that consumers read"]
    write_queues: Annotated[int, "queues that producers write"]
    perm: Annotated[int, "sum of 4 (read), 2 (write) and 1 (new topics may be made like it)"]
    order: Annotated[bool, Wide("whether it is an ordered topic")]
