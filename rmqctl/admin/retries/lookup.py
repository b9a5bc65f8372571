"""Finding one message among a group's retries and dead letters."""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from analytics.lag.delayed import messages_in_doubt
from broker.retry.failures import record_with_id
from rmqctl.admin.message_filter import key_hint
from rmqctl.admin.queue_scan import QueueScan
from rmqctl.errors import NotFound
from storage.format.message import PROPERTY_ORIGIN_MESSAGE_ID, dlq_topic

from .retries import Retries

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from storage.format.message import MessageExt
    from storage.readonly import StoreView


def find(view: "StoreView", broker: "Broker", group: str, message_id: str) -> "MessageExt":
    """The newest record of a message in a group: waiting, ready for a retry, or dead.

    Also one of which it is unknown whether it waits (messages_in_doubt).
    ``message_id`` is its unique id, the offset id of one of its records, or that of the original.
    NotFound for an unknown group and without such a message.
    """
    retries = Retries(view, broker, group)
    named = record_with_id(view, message_id, None)
    topics = (retries.topic, dlq_topic(group))
    if named is not None and named.topic in topics:
        return named
    unique = () if named is None else (named.msg_id,)
    # A user may set any text as the unique id: in the other case it is another one.
    spellings = [(text, *unique) for text in dict.fromkeys((message_id, message_id.upper()))]
    delayed = [
        one.message for one in (*retries.waiting(), *messages_in_doubt(view)) if one.topic in topics
    ]
    found: list[MessageExt] = []
    for ids in spellings:
        found = _named(delayed, ids)
        for topic in topics:
            for text in ids:
                found += view.find_unique(topic, text)
        if found:
            break
    else:
        every = {text for ids in spellings for text in ids}
        scans = [QueueScan(view, topic).messages() for topic in topics]
        likely = [message for scan in scans for message in _named(scan, every)]
        found = next(filter(None, (_named(likely, ids) for ids in spellings)), [])
    if not found:
        hint = key_hint(message_id)
        hint = hint and f"; 'retry browse {group} -k {message_id}' finds a key"
        raise NotFound(f"group {group} has no retry and no dead letter {message_id!r}{hint}")
    return max(found, key=lambda message: message.commitlog_offset)


def _named(messages: "Iterable[MessageExt]", ids: Collection[str]) -> "list[MessageExt]":
    """Those with one of the ids, or whose original has it."""
    return [message for message in messages if not _ids_of(message).isdisjoint(ids)]


def _ids_of(message: "MessageExt") -> set[str | None]:
    origin = message.get_property(PROPERTY_ORIGIN_MESSAGE_ID)
    return {message.msg_id, message.offset_msg_id, origin}
