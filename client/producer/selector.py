"""Choosing a queue by a key of the message, so that related messages stay in order.

A selector is any callable that takes the topic's queues (sorted by broker and id), the message and
the argument of ``send``, and gives one of the queues. Messages with the same argument go to the
same queue as long as the topic has the same queues (org.apache.rocketmq.client.producer.selector).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Final, Protocol

from storage.format.java_hash import java_hash

if TYPE_CHECKING:
    from storage.format.message import Message, MessageQueue

_DOUBLE: Final = Struct(">d")
_LONG: Final = Struct(">q")
_ROOM_SEPARATOR: Final = "@"


class MessageQueueSelector(Protocol):
    """Chooses a queue for a message; None means no queue."""

    def __call__(
        self, queues: Sequence[MessageQueue], message: Message, arg: object, /
    ) -> MessageQueue | None:
        """Choose one of ``queues``, of which there is at least one."""
        ...


def java_hash_code(value: object) -> int:
    """Give ``value.hashCode()`` as Java would: -2^31 .. 2^31 - 1.

    For str, bool, int (Java's Integer; a Long where it takes more than 32 bits) and float
    (Double). Raises ValueError for other types: hash a text of them.
    """
    match value:
        case str():
            return java_hash(value)
        case bool():
            return 1231 if value else 1237
        case int():
            if -(1 << 31) <= value < 1 << 31:
                return value
            if -(1 << 63) <= value < 1 << 63:
                return _fold(value)
        case float():
            bits = 0x7FF8000000000000 if value != value else _LONG.unpack(_DOUBLE.pack(value))[0]
            return _fold(bits)
        case _:
            pass
    raise ValueError(f"{value!r} has no hash in Java that all clients agree on; pass a str")


def _fold(bits: int) -> int:
    """Long.hashCode: the two halves, xor-ed, as an int."""
    bits &= (1 << 64) - 1
    half = (bits ^ bits >> 32) & 0xFFFFFFFF
    return (half ^ 1 << 31) - (1 << 31)


def select_by_hash(
    queues: Sequence[MessageQueue], message: Message, arg: object, /
) -> MessageQueue:
    """Choose by the hash of ``arg``, as Java clients do (SelectMessageQueueByHash).

    Examples:
        >>> from rmqctl import Message, MessageQueue
        >>> queues = [MessageQueue("OrderEvent", "broker-a", i) for i in range(4)]
        >>> select_by_hash(queues, Message("OrderEvent", b"paid"), "order-1001").queue_id
        3
    """
    # Java's remainder has the sign of the dividend; its absolute value is that of the number's.
    return queues[abs(java_hash_code(arg)) % len(queues)]


def select_by_random(
    queues: Sequence[MessageQueue], message: Message, arg: object, /
) -> MessageQueue:
    """Choose any queue (SelectMessageQueueByRandom)."""
    return queues[random.randrange(len(queues))]


class SelectByMachineRoom:
    """Chooses, by the hash of ``arg``, among the queues of brokers in some machine rooms.

    A broker's room is the part before ``@`` in its name, as for the allocation strategy of that
    name. None if no queue is in one. RocketMQ's SelectMessageQueueByMachineRoom has the setting,
    but always chooses nothing.
    """

    def __init__(self, consumer_idcs: Iterable[str]) -> None:
        self._rooms = frozenset(consumer_idcs)

    def __call__(
        self, queues: Sequence[MessageQueue], message: Message, arg: object, /
    ) -> MessageQueue | None:
        """See MessageQueueSelector."""
        near = [it for it in queues if it.broker_name.split(_ROOM_SEPARATOR)[0] in self._rooms]
        return select_by_hash(near, message, arg) if near else None
