"""The rows of the ``group`` commands."""

from typing import Annotated, Any, NamedTuple

from rmqctl.output.fields import OmitNull, Wide


class GroupRow(NamedTuple):
    """One group of a list."""

    group: Annotated[str, "the consumer group"]
    kind: Annotated[str, "normal or system"]
    members: Annotated[int, "consumers that live now"]
    message_model: Annotated[str | None, "CLUSTERING or BROADCASTING; null without members"]
    topics: Annotated[int, "topics in which it has progress, its retries aside"]
    retry: Annotated[int, "messages that failed and are there for the next attempt"]
    dlq: Annotated[int, "its dead letters"]
    consume_enable: Annotated[bool, Wide("whether it may consume")]
    retry_max_times: Annotated[int, Wide("attempts after the first before a message is dead")]


class GroupDescription(NamedTuple):
    """One group in full."""

    group: Annotated[str, "the consumer group"]
    kind: Annotated[str, "normal or system"]
    settings: Annotated[
        dict[str, Any] | None, "of the group at its broker; null if it has none of its own"
    ]
    consume_type: Annotated[str | None, "who comes for messages; null without members"]
    message_model: Annotated[str | None, "CLUSTERING or BROADCASTING; null without members"]
    subscriptions: Annotated[
        list[Any] | None, "topic, expression, expression_type, sub_version; null without members"
    ]
    members: Annotated[list[str], "client ids of the consumers that live now"]
    topics: Annotated[list[str], "topics in which it has progress"]
    retry: Annotated[int, "messages that failed and are there for the next attempt"]
    dlq: Annotated[int, "its dead letters"]


class GroupClientRow(NamedTuple):
    """One live member of a group."""

    group: Annotated[str, "the consumer group"]
    client_id: Annotated[str, "who it is"]
    host: Annotated[str, "where it runs"]
    pid: Annotated[int, "its process"]
    since_timestamp: Annotated[int, "when it joined"]
    consume_type: Annotated[str | None, "CONSUME_PASSIVELY (push) or CONSUME_ACTIVELY (pull)"]
    message_model: Annotated[str | None, "CLUSTERING or BROADCASTING"]
    subscriptions: Annotated[list[str], "topic:expression of each topic"]
    queues: Annotated[list[str] | None, "topic:queue that it has; null if it does not answer"]
    last_heartbeat_timestamp: Annotated[int, Wide("when it last said that it is there")]
    consume_from_where: Annotated[str | None, Wide("where it begins without progress")]
    running_info: Annotated[
        dict[str, Any] | None, Wide("its settings, queues and statistics; null as for queues")
    ]


class CreatedGroupRow(NamedTuple):
    """What became of one group that was to be created."""

    group: Annotated[str, "the consumer group"]
    created: Annotated[
        bool | None,
        "whether it was made; false: it was there with the same settings; null: a dry run",
    ]
    retry_max_times: Annotated[int, "attempts after the first before a message is dead"]
    retry_queue_nums: Annotated[int, "queues of its retry topic"]
    consume_enable: Annotated[bool, "whether it may consume"]
    consume_from_min_enable: Annotated[bool, Wide("RocketMQ keeps it and never looks at it")]
    consume_broadcast_enable: Annotated[bool, Wide("whether its members may broadcast")]


class ChangedGroupRow(NamedTuple):
    """One setting of a group that changes."""

    group: Annotated[str, "the consumer group"]
    setting: Annotated[str, "what changes, by its name in RocketMQ's SubscriptionGroupConfig"]
    old: Annotated[str, "before"]
    new: Annotated[str, "after"]
    note: Annotated[str | None, "what that means; null if nothing"]
    applied: Annotated[bool | None, OmitNull("whether it is so now; null in a plan")]


class DeletedGroupRow(NamedTuple):
    """What becomes of one part of a group that is deleted."""

    group: Annotated[str, "the consumer group"]
    part: Annotated[str, "settings, offsets, retries or dead letters"]
    topic: Annotated[str | None, "the topic that it is about"]
    amount: Annotated[int, "how many there are"]
    fate: Annotated[str, "removed or kept"]
    note: Annotated[str | None, "what that means"]
    applied: Annotated[bool | None, OmitNull("whether it is so now; null in a plan")]
