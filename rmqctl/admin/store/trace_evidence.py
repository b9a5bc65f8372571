"""Evidence of progress from traces, for broker.offset_recovery.

A trace names a message by its unique id, not its offset: the id leads to the record. Two records
with one id (a producer that sent again after a timeout) are no evidence.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from broker.offset_recovery.contiguous import ConsumedOffsets
from broker.offset_recovery.evidence import Source
from client.trace.trace import TraceContext, TraceType, decode_traces
from storage.format.errors import BodyError
from storage.format.message import (
    DLQ_GROUP_TOPIC_PREFIX,
    RETRY_GROUP_TOPIC_PREFIX,
    TRACE_TOPIC,
    retry_topic,
)
from storage.format.message_id import parse_offset_msg_id

if TYPE_CHECKING:
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

_SUCCESS: Final = 0
_BATCH: Final = 32


def traced(view: "StoreView", trace_topic: str = TRACE_TOPIC) -> list[ConsumedOffsets]:
    """Read all stored traces of consumers, and the ids of messages sent by traced producers."""
    contexts = [
        (message, context)
        for message in _messages(view, trace_topic)
        for context in _contexts(message)
    ]
    topics = _Topics(contexts)
    calls: dict[str, TraceContext] = {}
    attempts: dict[tuple[str, str], int] = {}
    begun: set[tuple[str, str, int]] = set()
    events: list[ConsumedOffsets] = []
    for message, context in contexts:
        if context.trace_type is TraceType.SubBefore:
            calls[context.request_id] = context
        elif context.trace_type is not TraceType.SubAfter:
            continue
        call = calls.get(context.request_id)
        group = context.group_name or (call.group_name if call else "")
        for bean in context.beans:
            key = (context.request_id, bean.msg_id)
            before = context.trace_type is TraceType.SubBefore
            if before:
                attempts[key] = bean.retry_times
            attempt = attempts.get(key)
            if attempt is None or not group:
                continue
            place = topics.place(view, group, bean.msg_id, attempt)
            if place is None:
                continue
            telling = (group, bean.msg_id, attempt)
            again = before and telling in begun
            if before:
                begun.add(telling)
                if attempt and not place[0].startswith(RETRY_GROUP_TOPIC_PREFIX):
                    continue  # retried in order: the message was not stored again
            elif not (context.success and context.context_code in (_SUCCESS, -1)):
                continue
            topic, queue_id, offset = place
            events.append(
                ConsumedOffsets(
                    (group, topic, queue_id),
                    offset,
                    message.store_timestamp,
                    message.commitlog_offset,
                    message.offset_msg_id,
                    Source.TRACE,
                    done=not before,
                    again=again,
                )
            )
    return events


class _Topics:
    """Offsets of the messages that traces name."""

    def __init__(self, contexts: "list[tuple[MessageExt, TraceContext]]") -> None:
        self._sent: dict[str, str] = {}  # unique id to offset id
        self._known: dict[tuple[str, str, int], tuple[str, int, int] | None] = {}
        for _, context in contexts:
            if context.trace_type is TraceType.Pub:
                for bean in context.beans:
                    if bean.offset_msg_id:
                        self._sent[bean.msg_id] = bean.offset_msg_id

    def place(
        self, view: "StoreView", group: str, msg_id: str, attempt: int
    ) -> tuple[str, int, int] | None:
        """Topic, queue id and offset of a consumed message; None if unknown."""
        key = (group if attempt else "", msg_id, attempt)
        if key not in self._known:
            self._known[key] = self._find(view, group, msg_id, attempt)
        return self._known[key]

    def _find(
        self, view: "StoreView", group: str, msg_id: str, attempt: int
    ) -> tuple[str, int, int] | None:
        if attempt:
            topic = retry_topic(group)
            tried = [m for m in view.find_unique(topic, msg_id) if m.reconsume_times == attempt]
            if tried:
                return (topic, *_place(tried[0])) if len(tried) == 1 else None
            # An orderly consumer retried it in its queue.
        sent = self._record(view, msg_id)
        if sent is None:
            return None
        found = [m for m in _first_ones(view, sent.topic, msg_id) if m.topic == sent.topic]
        return (sent.topic, *_place(found[0])) if len(found) == 1 else None

    def _record(self, view: "StoreView", msg_id: str) -> "MessageExt | None":
        """The message as its producer stored it, by the offset id that the producer traced."""
        try:
            _, offset = parse_offset_msg_id(self._sent.get(msg_id, ""))
        except ValueError:
            return self._by_topics(view, msg_id)
        if not view.log_min_offset() <= offset < view.log_max_offset():
            return None
        message = view.look_message_by_offset(offset)
        return message if message is not None and message.msg_id == msg_id else None

    def _by_topics(self, view: "StoreView", msg_id: str) -> "MessageExt | None":
        """The one message with that id, if its producer did not trace."""
        found = []
        for topic in {name for name, _ in view.queues()}:
            if not topic.startswith((RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX)):
                found += _first_ones(view, topic, msg_id)
        return found[0] if len(found) == 1 else None


def _first_ones(view: "StoreView", topic: str, msg_id: str) -> "list[MessageExt]":
    """Messages with a unique id that were not retried; other keys may look like the id."""
    found = view.find_unique(topic, msg_id)
    return [m for m in found if m.msg_id == msg_id and not m.reconsume_times]


def _place(message: "MessageExt") -> tuple[int, int]:
    return message.queue_id, message.queue_offset


def _contexts(message: "MessageExt") -> list[TraceContext]:
    try:
        return decode_traces(message.body.decode("utf-8", "replace"))
    except BodyError:
        return []


def _messages(view: "StoreView", topic: str) -> "Iterator[MessageExt]":
    """All trace messages, in the order of the log."""
    found = []
    for name, queue_id in view.queues():
        if name != topic:
            continue
        at, end = view.queue_bounds(topic, queue_id)
        while at < end:
            result = view.get_message(topic, queue_id, at, _BATCH)
            found += result.messages
            at = max(at + 1, result.next_begin_offset)
    return iter(sorted(found, key=lambda message: message.commitlog_offset))
