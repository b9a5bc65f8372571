"""Finding one message among a group's retries and dead letters."""

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
    wanted = message_id.upper()
    named = record_with_id(view, message_id, None)
    topics = (retries.topic, dlq_topic(group))
    if named is not None and named.topic in topics:
        return named
    unique = wanted if named is None else named.msg_id.upper()
    delayed = [*retries.waiting(), *messages_in_doubt(view)]
    found = [
        one.message
        for one in delayed
        if one.topic in topics and _is_named(one.message, wanted, unique)
    ]
    for topic in topics:
        for spelling in dict.fromkeys((unique, message_id)):
            found += view.find_unique(topic, spelling)
    if not found:
        scans = [QueueScan(view, topic).messages() for topic in topics]
        found = [
            message for scan in scans for message in scan if _is_named(message, wanted, unique)
        ]
    if not found:
        hint = key_hint(message_id)
        hint = hint and f"; 'retry browse {group} -k {message_id}' finds a key"
        raise NotFound(f"group {group} has no retry and no dead letter {message_id!r}{hint}")
    return max(found, key=lambda message: message.commitlog_offset)


def _is_named(message: "MessageExt", wanted: str, unique: str) -> bool:
    ids = {message.msg_id, message.offset_msg_id, message.get_property(PROPERTY_ORIGIN_MESSAGE_ID)}
    return not ids.isdisjoint({wanted, unique})
