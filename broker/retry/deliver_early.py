"""Ending the wait of a delayed message: it goes at once to its target topic, or to the dead
letters.

The waiting copy cannot be removed from its queue. It is noted in rmqctl/delays-ended.json, and
rmqctl's delivery passes over it; a Java broker delivers it all the same. The note comes last, when
the message is on the device elsewhere. After a kill in between, the next attempt finds the copy and
only notes it; if the delay ends before that, the message comes twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.errors import BrokerSystemError, MessageIllegalError, NoPermissionError
from broker.schedule.message import message_timeup
from broker.send.send import DLQ_NUMS_PER_GROUP, prepared
from broker.tables.shared_table import READ_ONLY
from storage.counted import counted
from storage.errors import RocketMQError, StoreNotWritableError
from storage.format.message import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_ORIGIN_MESSAGE_ID,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    dlq_topic,
)

if TYPE_CHECKING:
    from broker.send.message_builder import MessageBuilder
    from broker.tables.topics import TopicManager
    from storage.configs.early_deliveries import EarlyDeliveries, Place
    from storage.format.encode import MessageInner
    from storage.format.message import MessageExt
    from storage.store import MessageStore


_BATCH: Final = 256
"""Messages of one put, which holds up all other writers."""


class DeliveryNotNotedError(RocketMQError):
    """Messages were delivered, and it could not be noted that they wait no more.

    Delivered once more before they are due they are noted only; else they come twice.
    """

    def __init__(self, delivered: int, cause: Exception) -> None:
        super().__init__(
            f"{cause}; {counted(delivered, 'message')} had been sent, and will come once more when "
            "due; remove the cause and repeat the command: it sends none of them twice"
        )


class EarlyDelivery(NamedTuple):
    """Where a message went."""

    topic: str
    queue_id: int
    queue_offset: int


class EarlyDeliveryHandler:
    """Ends waits. Holds no state; safe for threads. ``store`` is None where it is read only."""

    def __init__(
        self,
        topics: TopicManager,
        builder: MessageBuilder,
        store: MessageStore | None,
        ended: Callable[[], EarlyDeliveries],
    ) -> None:
        self._topics = topics
        self._builder = builder
        self._store = store
        self._ended = ended

    def deliver(self, waiting: Sequence[MessageExt]) -> list[EarlyDelivery]:
        """Deliver messages of the delay topic now, as if their time had come.

        On the device when this returns. Raises NoPermissionError, MessageIllegalError for a message
        that names no topic, BrokerSystemError if they cannot be stored, and DeliveryNotNotedError.
        """
        store = self._writable()
        inners: list[MessageInner] = []
        for message in waiting:
            inner = message_timeup(message)
            if inner is None:
                raise MessageIllegalError(f"message {message.msg_id} names no topic to go to")
            inners.append(inner)
        return self._end(store, waiting, inners)

    def bury(self, group: str, waiting: Sequence[MessageExt]) -> list[EarlyDelivery]:
        """Make dead letters of a group's waiting retries now; otherwise like ``deliver``.

        They keep the reason of their last failure and the number of their attempts.
        """
        store = self._writable()
        topic = self._topics.for_own_use(dlq_topic(group), DLQ_NUMS_PER_GROUP).topic_name
        inners = [
            self._builder.again(
                message, topic, 0, {**message.properties, PROPERTY_DELAY_TIME_LEVEL: "0"}
            )
            for message in waiting
        ]
        return self._end(store, waiting, inners)

    def _writable(self) -> MessageStore:
        if self._store is None:
            raise NoPermissionError(READ_ONLY)
        return self._store

    def _end(
        self, store: MessageStore, waiting: Sequence[MessageExt], inners: Sequence[MessageInner]
    ) -> list[EarlyDelivery]:
        ends: list[EarlyDelivery] = []
        for begin in range(0, len(waiting), _BATCH):
            part = slice(begin, begin + _BATCH)
            ends += self._end_batch(store, waiting[part], inners[part])
        return ends

    def _end_batch(
        self, store: MessageStore, waiting: Sequence[MessageExt], inners: Sequence[MessageInner]
    ) -> list[EarlyDelivery]:
        ends = [_copy(store, *pair) for pair in zip(waiting, inners, strict=True)]
        wanted = [inner for inner, end in zip(inners, ends, strict=True) if end is None]
        if wanted:
            result = store.put(prepared(wanted))
            if not result.status.stored:
                raise BrokerSystemError(result.reason or f"the store answered {result.status}")
            put = iter(
                EarlyDelivery(inner.topic, inner.queue_id, int(offset))
                for inner, offset in zip(wanted, result.queue_offsets, strict=True)
            )
            ends = [next(put) if end is None else end for end in ends]
        store.flush()
        places: dict[int, list[Place]] = {}
        for message in waiting:
            place = (message.queue_offset, message.commitlog_offset)
            places.setdefault(message.queue_id, []).append(place)
        try:
            self._ended().add(places)
        except StoreNotWritableError as error:
            raise DeliveryNotNotedError(len(ends), error) from error
        return [end for end in ends if end is not None]


def _copy(store: MessageStore, message: MessageExt, inner: MessageInner) -> EarlyDelivery | None:
    """Find the copy that a process stored before it was killed, and so could not note."""
    unique_id = message.get_property(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
    if not unique_id:
        return None
    for found in store.view.find_unique(inner.topic, unique_id):
        if (
            found.commitlog_offset > message.commitlog_offset
            and found.reconsume_times == message.reconsume_times
            and found.born_timestamp == message.born_timestamp
            and found.get_property(PROPERTY_ORIGIN_MESSAGE_ID)
            == message.get_property(PROPERTY_ORIGIN_MESSAGE_ID)
        ):
            return EarlyDelivery(found.topic, found.queue_id, found.queue_offset)
    return None
