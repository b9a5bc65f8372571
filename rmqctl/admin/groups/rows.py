"""The rows of the ``group`` commands."""

from typing import Annotated, Any, NamedTuple

from rmqctl.output.fields import Fit, OmitNull, Rank, Wide


class GroupRow(NamedTuple):
    """One group of a list."""

    group: Annotated[str, "the consumer group"]
    kind: Annotated[str, "normal or system"]
    members: Annotated[int, "live consumers", Rank.MAIN]
    message_model: Annotated[
        str | None, "CLUSTERING or BROADCASTING; null without members", Rank.EXTRA
    ]
    topics: Annotated[int, "topics in which it has progress, without its retry topic"]
    retry: Annotated[
        int | None,
        "messages that failed and are ready for the next attempt; null if its progress among them "
        "is unknown",
        Rank.MAIN,
    ]
    dlq: Annotated[int, "its dead letters", Rank.MAIN]
    consume_enable: Annotated[bool, Wide("whether it may consume")]
    retry_max_times: Annotated[int, Wide("retries before a message becomes a dead letter")]


class GroupDescription(NamedTuple):
    """One group in full."""

    group: Annotated[str, "the consumer group"]
    kind: Annotated[str, "normal or system"]
    settings: Annotated[
        dict[str, Any] | None, "settings of the group; null if it has none of its own", Rank.EXTRA
    ]
    consume_type: Annotated[
        str | None, "push (CONSUME_PASSIVELY) or pull (CONSUME_ACTIVELY); null without members"
    ]
    message_model: Annotated[str | None, "CLUSTERING or BROADCASTING; null without members"]
    subscriptions: Annotated[
        list[Any] | None, "topic, expression, expression_type, sub_version; null without members"
    ]
    members: Annotated[list[str], "client ids of the live consumers", Rank.MAIN]
    topics: Annotated[list[str], "topics in which it has progress", Rank.MAIN]
    retry: Annotated[
        int | None,
        "messages that failed and are ready for the next attempt; null if its progress among them "
        "is unknown",
    ]
    dlq: Annotated[int, "its dead letters"]


class GroupClientRow(NamedTuple):
    """One live member of a group."""

    group: Annotated[str, "the consumer group"]
    client_id: Annotated[str, "the client id", Rank.KEY]
    host: Annotated[str, "the machine that it runs on", Rank.MAIN]
    pid: Annotated[int, "the process id", Rank.MAIN]
    since_timestamp: Annotated[int, "when it joined"]
    consume_type: Annotated[
        str | None, "CONSUME_PASSIVELY (push) or CONSUME_ACTIVELY (pull)", Rank.EXTRA
    ]
    message_model: Annotated[str | None, "CLUSTERING or BROADCASTING", Rank.EXTRA]
    subscriptions: Annotated[list[str], "topic:expression of each topic"]
    queues: Annotated[
        list[str] | None,
        "its queues as topic:queue; where it does not answer those that it announced last, null "
        "for none",
        Rank.KEY,
    ]
    last_heartbeat_timestamp: Annotated[int, Wide("time of its last heartbeat")]
    consume_from_where: Annotated[str | None, Wide("its start without progress")]
    running_info: Annotated[
        dict[str, Any] | None,
        Wide("its settings, queues and statistics; null if it does not answer"),
    ]


class CreatedGroupRow(NamedTuple):
    """The outcome of creating one group."""

    group: Annotated[str, "the consumer group"]
    created: Annotated[
        bool | None,
        "whether it was created; false: it existed with the same settings; null: a dry run",
    ]
    retry_max_times: Annotated[int, "retries before a message becomes a dead letter"]
    retry_queue_nums: Annotated[int, "queues of the retry topic"]
    consume_enable: Annotated[bool, "whether it may consume"]
    consume_from_min_enable: Annotated[bool, Wide("stored, but RocketMQ ignores it")]
    consume_broadcast_enable: Annotated[bool, Wide("whether members may use broadcasting")]


class ChangedGroupRow(NamedTuple):
    """One changed setting of a group."""

    group: Annotated[str, "the consumer group"]
    setting: Annotated[str, "its name in RocketMQ's SubscriptionGroupConfig"]
    old: Annotated[str, "before"]
    new: Annotated[str, "after"]
    note: Annotated[str | None, "the consequence; null for none"]
    applied: Annotated[bool | None, OmitNull("whether the change was made; null in a plan")]


class DeletedGroupRow(NamedTuple):
    """One part of a group that is deleted."""

    group: Annotated[str, "the consumer group"]
    part: Annotated[str, "settings, offsets, retries or dead letters"]
    topic: Annotated[str | None, "the topic"]
    amount: Annotated[int, "number of objects", Rank.MAIN]
    fate: Annotated[str, "removed or kept", Rank.KEY]
    note: Annotated[str | None, "the consequence"]
    applied: Annotated[bool | None, OmitNull("whether the change was made; null in a plan")]


class GroupWhyRow(NamedTuple):
    """One fact about a group that is behind."""

    part: Annotated[
        str, "STATE, MEMBER, QUEUE, MESSAGE (the next one to read), RETRIES, DEAD_LETTERS, DO"
    ]
    where: Annotated[str | None, "the topic and queue, or the member", Rank.MAIN, Fit.MIDDLE]
    state: Annotated[str | None, "OK, UNKNOWN, WARN, REWIND, STALL or STOP (rmqctl explain STALL)"]
    since_timestamp: Annotated[int | None, "since when it is so, as far as known", Rank.MAIN]
    what: Annotated[str, "the fact in words; of DO: a command", Rank.KEY]


class GroupWhy(NamedTuple):
    """Why a group lags, or that it is not."""

    group: Annotated[str, "the consumer group"]
    state: Annotated[
        str,
        "the worst of its queues: OK, UNKNOWN, WARN, REWIND, STALL or STOP; not OK if it is "
        "unknown how many retries wait",
    ]
    since_timestamp: Annotated[
        int | None, "when its progress was last seen to change; null if it was not observed"
    ]
    last_consumed_timestamp: Annotated[
        int | None, "store time of the newest message before its progress"
    ]
    last_member_timestamp: Annotated[
        int | None, "last heartbeat of a member; null if no member is known"
    ]
    lag: Annotated[int | None, "unread messages; null if unknown"]
    unknown_queues: Annotated[int, "queues whose progress is unknown"]
    members: Annotated[
        list[dict[str, Any]] | None,
        "live members and their queues; null if members leave no trace here (a Java broker)",
    ]
    queues: Annotated[
        list[dict[str, Any]],
        "each queue: topic, queue_id, committed_offset, max_offset, lag, oldest_unread_age_ms, "
        "state, since_timestamp, next_message",
    ]
    retries: Annotated[
        dict[str, Any],
        "waiting, overdue, ready, next_due_timestamp, null if unknown; doubts: why it is unknown",
    ]
    dead_letters: Annotated[dict[str, Any], "depth, unhandled, newest_timestamp, newest_reason"]
    advice: Annotated[list[str], "commands that help, most likely first"]
    facts: Annotated[list[GroupWhyRow], "the same in words, as in a table"]
