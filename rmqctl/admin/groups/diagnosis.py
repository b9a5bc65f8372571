"""Why a group lags: its queues, members, retries and dead letters in one answer.

What the files do not tell is None: a Java broker keeps its members in memory, and without samples
it is not known since when a group stands.
"""

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from analytics.lag.health import Health, worst
from analytics.lag.ready_retries import ready_retries
from analytics.lag.selection import Choice
from analytics.lag.totals import QueueLag, add_up
from broker.retry.failures import reason_text
from rmqctl.admin.dead_letters.dead_letters import DeadLetters
from rmqctl.admin.known_groups import check_known_group
from rmqctl.admin.lag.snapshot import look
from rmqctl.admin.offsets.queues import TopicChoice, read_queues_without
from rmqctl.admin.queues.topic_queues import bounds_from
from rmqctl.admin.retries.retries import Retries
from storage.configs.consumer_offsets import topic_at_group
from storage.configs.offset_samples import OffsetSamples, SampleHistory
from storage.format.message import retry_topic
from storage.format.names import MEMBERS_FOLDER, OURS

from .diagnosis_text import why_rows
from .facts import RunningInfo, members_with_info
from .rows import GroupWhy

if TYPE_CHECKING:
    from analytics.lag.lag_snapshot import LagSnapshot
    from broker.api.broker import Broker
    from storage.configs.topics import TopicConfig
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

_STUCK: Final = (Health.STALL, Health.STOP, Health.UNKNOWN, Health.WARN, Health.REWIND)

Queue = tuple[str, int]
"""Topic and queue id."""


def why(
    view: "StoreView",
    broker: "Broker",
    group: str,
    *,
    now_ms: int,
    ask: RunningInfo | None = None,
) -> GroupWhy:
    """Why a group lags. Live members are asked for what they do.

    ``ask`` does that; default: the broker, which has to be open for writing. NotFound for an
    unknown group.
    """
    check_known_group(view, broker, group)
    history = OffsetSamples(view.root).read(0)
    seen: LagSnapshot | None = None
    if _has_place(view, broker, group):
        seen = look(view, broker, now_ms, Choice([group], include_retry=True), history)
    members = _members(view, group, ask or broker.consumer_running_info)
    holders = _holders(members or ())
    queues = [
        _queue(view, history, group, lag.topic, queue, holders, now_ms)
        for lag in (seen.group_lags if seen else ())
        for queue in lag.queues
    ]
    lags = [lag.queues for lag in (seen.group_lags if seen else ())]
    totals = add_up([queue for of_topic in lags for queue in of_topic])
    state = worst(Health(queue["state"]) for queue in queues) if queues else Health.UNKNOWN
    stuck = [queue for queue in queues if queue["state"] in _STUCK]
    since = [queue["since_timestamp"] for queue in (stuck or queues)]
    consumed = [
        stamp
        for queue in queues
        if (stamp := _last_consumed(view, queue)) is not None
        and queue["topic"] != retry_topic(group)
    ]
    heard = [member["last_heartbeat_timestamp"] for member in members or ()]
    retries = _retries(view, broker, group, now_ms)
    if retries["waiting"] is None:
        state = worst((state, Health.UNKNOWN))
    dead = _dead_letters(view, broker, group)
    found = GroupWhy(
        group,
        str(state),
        max((at for at in since if at is not None), default=None),
        max(consumed, default=None),
        max(heard, default=None),
        totals.lag if queues else None,
        totals.unknown_queues,
        members,
        queues,
        retries,
        dead,
        [],
        [],
    )
    found = found._replace(advice=list(_advice(found, broker.topics())))
    return found._replace(facts=list(why_rows(found, now_ms)))


def _has_place(view: "StoreView", broker: "Broker", group: str) -> bool:
    from broker.members.living import members_by_group

    return bool(broker.consumer_offsets(group)) or group in members_by_group(view.root)


def _members(view: "StoreView", group: str, ask: RunningInfo) -> list[dict[str, Any]] | None:
    if not (view.root / OURS / MEMBERS_FOLDER).is_dir():
        return None
    found = []
    for client, info in members_with_info(view, group, ask):
        found.append(
            {
                "client_id": client.client_id,
                "host": client.host,
                "pid": client.pid,
                "since_timestamp": client.since,
                "last_heartbeat_timestamp": client.last_heartbeat,
                "answers": info is not None,
                "orderly": None if info is None else info["properties"].get("consumeOrderly"),
                "paused": None if info is None else info["properties"].get("paused"),
                "consume_failed_msgs": None if info is None else _failed(info),
                "queues": None if info is None else [_held(queue) for queue in info["queues"]],
            }
        )
    return found


def _failed(info: Mapping[str, Any]) -> int:
    """Failures of the last hour, in all topics."""
    return sum(status["consume_failed_msgs"] for status in info["status"].values())


def _held(queue: Mapping[str, Any]) -> dict[str, Any]:
    """A queue of a member: the first message that it holds and has not finished."""
    at = queue["transaction_msg_min_offset"]
    if at is None:
        at = queue["cached_msg_min_offset"]
    return {
        "topic": queue["topic"],
        "queue_id": queue["queue_id"],
        "at_offset": at,
        "messages_held": queue["cached_msg_count"],
        "failed_times": queue.get("first_msg_reconsume_times") if at is not None else None,
        "last_failure": queue.get("last_failure"),
        "maybe_blocked": queue["maybe_blocked"],
        "last_consume_timestamp": queue["last_consume_timestamp"],
    }


def _holders(members: Sequence[Mapping[str, Any]]) -> dict[Queue, Mapping[str, Any]]:
    """What the member that holds a queue does with it."""
    return {
        (queue["topic"], queue["queue_id"]): queue
        for member in members
        for queue in member["queues"] or ()
    }


def _queue(
    view: "StoreView",
    history: SampleHistory,
    group: str,
    topic: str,
    queue: QueueLag,
    holders: Mapping[Queue, Mapping[str, Any]],
    now_ms: int,
) -> dict[str, Any]:
    position = queue.unread
    committed = position.committed_offset
    changes = history.committed(topic_at_group(topic, group), queue.queue_id)
    since = changes[-1][0] if changes and changes[-1][1] == committed else None
    oldest = queue.oldest_unread_timestamp
    next_message, state, first = None, queue.status, position.first_unread
    held = holders.get((topic, queue.queue_id))
    if held is not None and (held["at_offset"] is None or held["at_offset"] != first):
        held = None
    blocked = held is not None and bool(held["failed_times"] or held["maybe_blocked"])
    if blocked:
        state = worst((state, Health.WARN))
    if first is not None and state in _STUCK:
        next_message = _next(view, topic, queue.queue_id, first, held, blocked=blocked)
    return {
        "topic": topic,
        "queue_id": queue.queue_id,
        "committed_offset": committed,
        "max_offset": position.max_offset,
        "lag": position.lag,
        "oldest_unread_age_ms": None if oldest is None else max(0, now_ms - oldest),
        "state": str(state),
        "since_timestamp": since,
        "next_message": next_message,
    }


def _next(
    view: "StoreView",
    topic: str,
    queue_id: int,
    offset: int,
    held: Mapping[str, Any] | None,
    *,
    blocked: bool,
) -> dict[str, Any]:
    """The first unread message; ``held`` is what a member does with it, None if that is unknown."""
    message = _message(view, topic, queue_id, offset)
    return {
        "queue_offset": offset,
        "msg_id": None if message is None else message.msg_id,
        "keys": None if message is None else list(message.keys),
        "store_timestamp": None if message is None else message.store_timestamp,
        "failed_times": None if held is None else held["failed_times"],
        "last_failure": None if held is None else held["last_failure"],
        "maybe_blocked": None if held is None else blocked,
    }


def _message(view: "StoreView", topic: str, queue_id: int, offset: int) -> "MessageExt | None":
    unit = view.unit(topic, queue_id, offset)
    return None if unit is None else view.message_of_unit(topic, queue_id, offset, unit)


def _last_consumed(view: "StoreView", queue: Mapping[str, Any]) -> int | None:
    """When the message before the progress was stored."""
    committed = queue["committed_offset"]
    if not committed or committed > queue["max_offset"]:
        return None
    return view.store_timestamp(queue["topic"], queue["queue_id"], committed - 1)


def _retries(view: "StoreView", broker: "Broker", group: str, now_ms: int) -> dict[str, Any]:
    retries = Retries(view, broker, group, now_ms)
    due = [one.due_timestamp for one in retries.waiting()]
    committed = broker.consumer_offsets(group).get((group, retries.topic), {})
    bounds = bounds_from(view, retries.topic)
    known = not retries.unknown_levels()
    return {
        "waiting": len(due) if known else None,
        "overdue": sum(at <= now_ms for at in due) if known else None,
        "ready": ready_retries(view, retries.topic, bounds, committed),
        "next_due_timestamp": min(due, default=None) if known else None,
        "doubts": retries.doubts(),
    }


def _dead_letters(view: "StoreView", broker: "Broker", group: str) -> dict[str, Any]:
    letters = DeadLetters(view, broker, group)
    row = letters.row()
    newest: MessageExt | None = None
    for queue_id in letters.queue_ids:
        low, high = view.queue_bounds(letters.topic, queue_id)
        message = _message(view, letters.topic, queue_id, high - 1) if high > low else None
        if message is not None and (
            newest is None or message.store_timestamp > newest.store_timestamp
        ):
            newest = message
    return {
        "depth": row.depth,
        "unhandled": row.unhandled,
        "newest_timestamp": row.newest_timestamp,
        "newest_reason": None if newest is None else reason_text(newest),
    }


def _is_not_read(queue: Mapping[str, Any], settings: "Mapping[str, TopicConfig]") -> bool:
    """Whether no group reads the queue, as its topic has fewer read queues."""
    return read_queues_without(settings.get(queue["topic"]), queue["queue_id"]) is not None


def _place(queue: Mapping[str, Any]) -> str:
    """A queue as ``offset reset --topic`` takes it."""
    return quote(str(TopicChoice(queue["topic"], (queue["queue_id"],))))


def _advice(found: GroupWhy, settings: "Mapping[str, TopicConfig]") -> Iterator[str]:
    group = quote(found.group)
    behind = [queue for queue in found.queues if queue["lag"]]
    not_read = [queue for queue in behind if _is_not_read(queue, settings)]
    for topic in dict.fromkeys(queue["topic"] for queue in not_read):
        count = 1 + max(queue["queue_id"] for queue in not_read if queue["topic"] == topic)
        yield f"rmqctl topic alter {quote(topic)} --read-queues {count}"
    behind = [queue for queue in behind if queue not in not_read]
    topics = dict.fromkeys(queue["topic"] for queue in behind)
    topics.pop(retry_topic(found.group), None)
    if behind and found.members == []:
        for topic in topics:
            yield f"rmqctl consume {quote(topic)} -g {group}"
    for queue in behind:
        message = queue["next_message"]
        if message is None or not message["maybe_blocked"]:
            continue
        place = _place(queue)
        if message["msg_id"] is not None:
            yield f"rmqctl message get {message['msg_id']}"
        if message["failed_times"]:
            yield f"rmqctl offset reset -g {group} -t {place} --shift-by 1"
    if any(member["paused"] for member in found.members or ()):
        yield f"rmqctl group clients {group} -o json"
    if found.retries["overdue"]:
        yield "rmqctl broker start"
    elif found.retries["waiting"]:
        yield f"rmqctl retry browse {group}"
    elif found.retries["waiting"] is None:
        yield "rmqctl retry agenda"
    if found.dead_letters["unhandled"]:
        yield f"rmqctl dlq browse {group} --unhandled"
        yield f"rmqctl dlq redrive {group} --all"
    for queue in found.queues:
        committed = queue["committed_offset"]
        if committed is not None and committed > queue["max_offset"]:
            place = _place(queue)
            yield f"rmqctl offset reset -g {group} -t {place} --to-earliest"
    unknown = found.state == Health.UNKNOWN and any(
        queue["state"] == Health.UNKNOWN for queue in found.queues
    )
    if unknown and behind and found.members is None:
        yield f"rmqctl offset inspect {group} --around 1,3"
