"""Ending the wait of a delayed message: it goes at once to its target topic, or to the dead
letters.

The waiting copy cannot be removed from its queue. It is noted in rmqctl/delays-ended.json, and
rmqctl's delivery passes over it; a Java broker delivers it all the same. The note comes last, when
the message is on the device elsewhere. After a kill in between, the next attempt finds the copy and
only notes it; if the delay ends before that, the message comes twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.errors import BrokerSystemError, MessageIllegalError, NoPermissionError
from broker.schedule.message import message_timeup
from broker.send.send import DLQ_NUMS_PER_GROUP, prepared
from broker.tables.shared_table import READ_ONLY
from storage.counted import counted
from storage.errors import RocketMQError, StoreBrokenError, StoreNotWritableError
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


class EarlyDelivery(NamedTuple):
    """Where a message went."""

    topic: str
    queue_id: int
    queue_offset: int


class DeliveryBrokenOffError(RocketMQError):
    """Something failed when messages had been delivered.

    A repeated delivery only notes those that are not noted yet; without it they come twice.
    """

    def __init__(self, ends: Sequence[EarlyDelivery | None], noted: int, cause: Exception) -> None:
        """``ends``: where the first messages went, in their order; None: nowhere yet, as all that
        come after them. ``noted``: how many of these are noted."""
        sent = sum(end is not None for end in ends)
        sentence = f"{cause}; {counted(sent, 'message')} had been sent"
        if noted < sent:
            which = f"{sent - noted} of them " if noted else ""
            sentence += f", and {which}will come once more when due"
        super().__init__(
            f"{sentence}; remove the cause and repeat the command: it sends none of them twice"
        )
        self.ends = tuple(ends)


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
        that names no topic, CorruptFileError and StoreVersionError if it cannot be noted that they
        wait no more, BrokerSystemError and StoreError if they cannot be stored: nothing was sent
        then. DeliveryBrokenOffError after that.
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
        self._ended().check()
        ends: list[EarlyDelivery | None] = []
        for begin in range(0, len(waiting), _BATCH):
            batch = slice(begin, begin + _BATCH)
            self._end_batch(store, waiting[batch], inners[batch], ends)
        return [end for end in ends if end is not None]

    def _end_batch(
        self,
        store: MessageStore,
        waiting: Sequence[MessageExt],
        inners: Sequence[MessageInner],
        ends: list[EarlyDelivery | None],
    ) -> None:
        """Append where they went to ``ends``, which has those that are noted."""
        noted = len(ends)
        try:
            ends += _send(store, waiting, inners)
            store.flush()
            self._note(waiting)
        except (RocketMQError, OSError) as error:
            if len(ends) == noted and isinstance(error, StoreNotWritableError | StoreBrokenError):
                # The put may have stored them, and failed at the device.
                with suppress(RocketMQError, OSError):
                    ends += _copies(store, waiting, inners)
            if not any(ends):
                raise
            raise DeliveryBrokenOffError(ends, noted, error) from error

    def _note(self, waiting: Sequence[MessageExt]) -> None:
        places: dict[int, list[Place]] = {}
        for message in waiting:
            place = (message.queue_offset, message.commitlog_offset)
            places.setdefault(message.queue_id, []).append(place)
        self._ended().add(places)


def _send(
    store: MessageStore, waiting: Sequence[MessageExt], inners: Sequence[MessageInner]
) -> list[EarlyDelivery]:
    ends = _copies(store, waiting, inners)
    wanted = [inner for inner, end in zip(inners, ends, strict=True) if end is None]
    put: Iterator[EarlyDelivery] = iter(())
    if wanted:
        result = store.put(prepared(wanted))
        if not result.status.stored:
            raise BrokerSystemError(result.reason or f"the store answered {result.status}")
        put = iter(
            EarlyDelivery(inner.topic, inner.queue_id, int(offset))
            for inner, offset in zip(wanted, result.queue_offsets, strict=True)
        )
    return [next(put) if end is None else end for end in ends]


def _copies(
    store: MessageStore, waiting: Sequence[MessageExt], inners: Sequence[MessageInner]
) -> list[EarlyDelivery | None]:
    return [_copy(store, *pair) for pair in zip(waiting, inners, strict=True)]


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
