"""Evidence in retries and dead letters: which message of which queue a group could not consume.

Each message that a consumer gives back is stored at once: in the delay topic until its next
attempt, or as a dead letter. The attempt's number is in the record, the first message's id in
ORIGIN_MESSAGE_ID. From there on

    attempt 1 was read in the queue of the message with that id
    attempt n was read in the group's retry topic, where attempt n - 1 lies
    or, by an orderly consumer, n times in the queue itself; it sends the retry itself

Left out is what no consumer of that queue gave back: what rmqctl has redriven, and what came from a
group that reads dead letters of another group (its attempts do not begin at 1).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.retry.redrive_properties import REDRIVES
from storage.format.message import (
    DLQ_GROUP_TOPIC_PREFIX,
    PROPERTY_MAX_RECONSUME_TIMES,
    PROPERTY_ORIGIN_MESSAGE_ID,
    PROPERTY_REAL_TOPIC,
    PROPERTY_RETRY_TOPIC,
    RETRY_GROUP_TOPIC_PREFIX,
    SCHEDULE_TOPIC,
)
from storage.format.message_id import parse_offset_msg_id

from .contiguous import ConsumedOffsets
from .evidence import Source

if TYPE_CHECKING:
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

_BATCH: Final = 32


class _Back(NamedTuple):
    """A message that was given back."""

    group: str
    origin: str
    attempt: int
    message: MessageExt
    dead: bool
    self_sent: bool


def given_back(view: StoreView) -> list[ConsumedOffsets]:
    """Read all retries and dead letters of a store that are still there.

    Costs a record for each of them, and one for each message that they come from.
    """
    backs = sorted(_backs(view), key=lambda back: back.message.commitlog_offset)
    lying = _retries(view, {back.group for back in backs if back.attempt > 1})
    origins: dict[tuple[str, str], tuple[int, int] | None] = {}
    reported: set[tuple[str, str, int]] = set()
    events = []
    for back in backs:
        topic = back.message.get_property(PROPERTY_RETRY_TOPIC) or ""
        places = lying.get((back.group, back.origin, back.attempt - 1), [])
        found = None
        if back.attempt == 1 or (back.self_sent and not places):
            key = (topic, back.origin)
            if key not in origins:
                origins[key] = _origin(view, *key)
            found = origins[key]
        elif len(places) == 1:
            topic = RETRY_GROUP_TOPIC_PREFIX + back.group
            found = places[0]
        reported_before = (back.group, back.origin, back.attempt) in reported
        reported.add((back.group, back.origin, back.attempt))
        if found is None:
            continue
        queue_id, offset = found
        events.append(
            ConsumedOffsets(
                (back.group, topic, queue_id),
                offset,
                back.message.store_timestamp,
                back.message.commitlog_offset,
                back.message.offset_msg_id,
                Source.RETRY,
                # A waiting retry that was made a dead letter has the same attempt.
                alive=not (back.dead and reported_before),
            )
        )
    return events


def _backs(view: StoreView) -> Iterator[_Back]:
    for topic, queue_id in view.queues():
        dead = topic.startswith(DLQ_GROUP_TOPIC_PREFIX)
        if not dead and topic != SCHEDULE_TOPIC:
            continue
        for message in _messages(view, topic, queue_id):
            target = message.get_property(PROPERTY_REAL_TOPIC)
            if dead and target is not None:
                continue  # its record in the delay topic has the time
            group = _group_of(target or topic)
            origin = message.get_property(PROPERTY_ORIGIN_MESSAGE_ID)
            if group and origin and message.get_property(REDRIVES) is None:
                own = message.get_property(PROPERTY_MAX_RECONSUME_TIMES) is not None
                yield _Back(group, origin, message.reconsume_times, message, dead, own)


def _group_of(topic: str) -> str | None:
    """The group whose retries or dead letters a topic holds."""
    for prefix in (RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX):
        if topic.startswith(prefix):
            return topic.removeprefix(prefix)
    return None


def _retries(
    view: StoreView, groups: set[str]
) -> dict[tuple[str, str, int], list[tuple[int, int]]]:
    """Where attempts lie in retry topics: group, origin and attempt to queue id and offset."""
    found: dict[tuple[str, str, int], list[tuple[int, int]]] = {}
    for topic, queue_id in view.queues():
        group = topic.removeprefix(RETRY_GROUP_TOPIC_PREFIX)
        if group == topic or group not in groups:
            continue
        for message in _messages(view, topic, queue_id):
            origin = message.get_property(PROPERTY_ORIGIN_MESSAGE_ID)
            if origin:
                key = (group, origin, message.reconsume_times)
                found.setdefault(key, []).append((queue_id, message.queue_offset))
    return found


def _origin(view: StoreView, topic: str, msg_id: str) -> tuple[int, int] | None:
    """Queue id and offset of the first message; None if that is not certain.

    A consumer that sends a retry itself (all orderly ones do) names the unique id.
    """
    try:
        _, offset = parse_offset_msg_id(msg_id)
    except ValueError:
        return None
    low, high = view.log_min_offset(), view.log_max_offset()
    message = view.look_message_by_offset(offset) if low <= offset < high else None
    if message is None or message.offset_msg_id != msg_id:
        named = [
            found
            for found in view.find_unique(topic, msg_id)
            if found.msg_id == msg_id and not found.reconsume_times
        ]
        message = named[0] if len(named) == 1 else None
    if message is None or message.topic != topic or message.reconsume_times:
        return None
    if message.queue_id < 0:  # damage that no checksum covers
        return None
    return message.queue_id, message.queue_offset


def _messages(view: StoreView, topic: str, queue_id: int) -> Iterator[MessageExt]:
    """All messages of a queue that can be read."""
    at, end = view.queue_bounds(topic, queue_id)
    while at < end:
        result = view.get_message(topic, queue_id, at, _BATCH)
        yield from result.messages
        at = max(at + 1, result.next_begin_offset)
