"""Putting one record into several queues (org.apache.rocketmq.store.MultiDispatch).

INNER_MULTI_DISPATCH names further queues, INNER_MULTI_QUEUE_OFFSET the record's offset in each, so
such a record is encoded when the offsets are known: under the write lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from storage.format.message import LMQ_PREFIX, PROPERTY_INNER_MULTI_QUEUE_OFFSET

if TYPE_CHECKING:
    from storage.format.encode import MessageInner
    from storage.format.prepared import PreparedRecords

SEPARATOR = ","
_MAX_NAME_BYTES: Final = 255


def is_possible_queue(name: str) -> bool:
    """Whether INNER_MULTI_DISPATCH may name this queue: it becomes the name of a folder."""
    from storage.format.dispatch import is_possible_topic  # few senders need it

    return is_possible_topic(name) and len(name.encode("utf-8", "replace")) <= _MAX_NAME_BYTES


class LmqPut(NamedTuple):
    """One message for its own queue and for the LMQs ``names``, in the property's order."""

    message: MessageInner
    names: tuple[str, ...]

    @property
    def queues(self) -> list[tuple[str, int]]:
        """The message's own queue, then the others; ``%LMQ%`` queues always have the id 0."""
        topic, queue_id = self.message.topic, self.message.queue_id
        others = [(n, 0 if n.startswith(LMQ_PREFIX) else queue_id) for n in self.names]
        return [(topic, queue_id), *others]


def record_for_lmq_queues(message: MessageInner, offsets: str) -> PreparedRecords:
    """Encode the message with the property that holds its offsets in the LMQs."""
    from storage.format.encode import prepare

    properties = message.properties
    if properties and not properties.endswith(b"\x02"):
        properties += b"\x02"
    properties += f"{PROPERTY_INNER_MULTI_QUEUE_OFFSET}\x01{offsets}".encode()
    return prepare([message._replace(properties=properties)])
