"""Why a group lags, as rows with sentences."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from analytics.lag.health import Health
from storage.counted import counted
from storage.parse.durations import format_duration

from .rows import GroupWhy, GroupWhyRow

_MEANING: Final = {
    Health.OK: "it keeps up: nothing is unread for a minute, or its lag shrinks",
    Health.UNKNOWN: "it is behind, and it is unknown whether it moves",
    Health.WARN: "it moves, but does not get nearer to the end",
    Health.REWIND: "its progress went back and has not reached the old offset again",
    Health.STALL: "it has members, and its progress does not move",
    Health.STOP: "its progress does not move, and no member is known",
}


def why_rows(found: GroupWhy, now_ms: int) -> Iterator[GroupWhyRow]:
    """The facts, the most important first; queues without unread messages are left out."""
    yield _state(found, now_ms)
    if not found.members:
        words = "no member runs"
        if found.members is None:
            words = "unknown: a Java broker keeps its members in memory, files do not show them"
        yield GroupWhyRow("MEMBER", None, None, found.last_member_timestamp, words)
    for member in found.members or ():
        where = f"pid {member['pid']} on {member['host']}"
        since = member["since_timestamp"]
        yield GroupWhyRow("MEMBER", where, None, since, _member(member, now_ms))
    for queue in found.queues:
        if queue["state"] == Health.OK and queue["lag"] == 0:
            continue
        where = f"{queue['topic']}:{queue['queue_id']}"
        since = queue["since_timestamp"]
        yield GroupWhyRow("QUEUE", where, queue["state"], since, _queue(queue))
        if queue["next_message"] is not None:
            words = _message(queue["next_message"])
            stored = queue["next_message"]["store_timestamp"]
            yield GroupWhyRow("MESSAGE", where, None, stored, words)
    retries = found.retries
    if retries["waiting"] or retries["ready"] != 0:
        due = retries["next_due_timestamp"]
        yield GroupWhyRow("RETRIES", None, None, None, _retries(retries, due, now_ms))
    for sentence in retries["doubts"]:
        yield GroupWhyRow("RETRIES", None, None, None, sentence)
    dead = found.dead_letters
    if dead["depth"]:
        words = f"{counted(dead['depth'], 'dead letter')}, {dead['unhandled']} not handled"
        if dead["newest_reason"]:
            words += f"; the newest: {dead['newest_reason']}"
        yield GroupWhyRow("DEAD_LETTERS", None, None, dead["newest_timestamp"], words)
    for command in found.advice:
        yield GroupWhyRow("DO", None, None, None, command)


def _state(found: GroupWhy, now_ms: int) -> GroupWhyRow:
    if not found.queues:
        words = "it has no progress and no live member: nothing is known of what it has read"
        return GroupWhyRow("STATE", None, found.state, None, words)
    words = _MEANING[Health(found.state)]
    of_queues = any(queue["state"] == found.state for queue in found.queues)
    if found.retries["waiting"] is None and not of_queues:
        words = "how many of its retries wait is unknown"
    if found.lag is None:
        words += "; an unknown number of messages are unread"
    else:
        words += f"; {counted(found.lag, 'message is', 'messages are')} unread"
    blocked = [
        f"{queue['topic']}:{queue['queue_id']}"
        for queue in found.queues
        if queue["next_message"] is not None and queue["next_message"]["maybe_blocked"]
    ]
    if blocked:
        words += f"; {', '.join(blocked)} wait{'s' if len(blocked) == 1 else ''} at one message"
    if found.unknown_queues:
        words += f", {counted(found.unknown_queues, 'queue is', 'queues are')} unknown"
    if found.state != Health.OK:
        if found.since_timestamp is not None:
            ago = format_duration(max(0, now_ms - found.since_timestamp))
            words += f"; its progress moved last {ago} ago or before"
        elif found.last_consumed_timestamp is not None:
            ago = format_duration(max(0, now_ms - found.last_consumed_timestamp))
            words += (
                "; since when is unknown, as no process has sampled it, but the newest message "
                f"that it has read was stored {ago} ago"
            )
    return GroupWhyRow("STATE", None, found.state, found.since_timestamp, words)


def _member(member: Mapping[str, Any], now_ms: int) -> str:
    if not member["answers"]:
        return "it lives, but does not answer (stopped?)"
    parts = ["paused"] if member["paused"] else []
    for queue in member["queues"]:
        place = f"{queue['topic']}:{queue['queue_id']}"
        if queue["at_offset"] is None:
            continue
        words = f"{place} at {queue['at_offset']}"
        if queue["failed_times"]:
            words += f", failed {counted(queue['failed_times'], 'time')}"
            if queue["last_failure"]:
                words += f" ({queue['last_failure']})"
        elif queue["maybe_blocked"]:
            ago = format_duration(max(0, now_ms - queue["last_consume_timestamp"]))
            words += f", finished nothing for {ago}"
        parts.append(words)
    count = len(member["queues"])
    idle = count - len([queue for queue in member["queues"] if queue["at_offset"] is not None])
    if idle or not count:
        parts.append(f"{idle} of its {counted(count, 'queue')} without messages in work")
    if member["consume_failed_msgs"]:
        parts.append(f"{counted(member['consume_failed_msgs'], 'failure')} within the last hour")
    return "; ".join(parts)


def _queue(queue: Mapping[str, Any]) -> str:
    committed = queue["committed_offset"]
    if committed is None:
        return f"no progress; the queue ends at {queue['max_offset']}"
    words = f"at {committed} of {queue['max_offset']}"
    if queue["lag"] is None:
        return f"{words}: beyond the end"
    words += f", {queue['lag']} unread"
    age = queue["oldest_unread_age_ms"]
    return words if age is None else f"{words}, the oldest for {format_duration(age)}"


def _message(message: Mapping[str, Any]) -> str:
    words = f"next is offset {message['queue_offset']}"
    if message["msg_id"] is None:
        return f"{words}, which cannot be read; 'rmqctl store fsck' shows why"
    words += f", id {message['msg_id']}"
    if message["keys"]:
        words += f", key {' '.join(message['keys'])}"
    if message["failed_times"]:
        words += f": failed {message['failed_times']} times"
        if message["last_failure"]:
            words += f" ({message['last_failure']})"
    elif message["maybe_blocked"]:
        words += ": it may block the queue"
    return words


def _retries(retries: Mapping[str, Any], due: int | None, now_ms: int) -> str:
    ready = retries["ready"]
    waiting = retries["waiting"]
    words = "how many wait is unknown, " if waiting is None else f"{waiting} wait, "
    words += "how many are ready is unknown" if ready is None else f"{ready} are ready"
    if retries["overdue"]:
        return f"{words}; {retries['overdue']} are overdue: no process delivers"
    if due is not None:
        words += f"; the next is due in {format_duration(max(0, due - now_ms))}"
    return words
