"""The messages of all contestants: the same objects, made before the clock starts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle, islice

from storage.format.encode import MessageInner
from storage.format.host import pack_host
from storage.format.message import Message
from storage.format.message_id import UniqueIds
from storage.format.properties import encode_properties
from storage.store import now_ms

TOPIC = "benchmark"
TAG = "TagA"
QUEUES = 4
BESIDES = 276
"""Approximate bytes of log, queues and index for a message, without its body."""
HOST = pack_host("127.0.0.1:10911")
IDS = UniqueIds(bytes((127, 0, 0, 1)), 4711, 0x5A5A5A5A)


def bodies_of(size: int) -> list[bytes]:
    """A hundred different bodies."""
    body = bytes(i % 251 for i in range(size))
    return [body[turn:] + body[:turn] for turn in range(100)]


def to_be_sent(bodies: list[bytes], first: int, count: int) -> list[Message]:
    """Messages as a program passes them to a client: one tag, one key, the bodies in turn."""
    in_turn = islice(cycle(bodies), first % len(bodies), None)
    return [
        Message(TOPIC, body, tags=TAG, keys=f"order-{number}")
        for number, body in zip(range(first, first + count), in_turn, strict=False)
    ]


def messages(count: int, body_size: int, *, first: int = 0) -> list[MessageInner]:
    """Messages as a client sends them: unique id, WAIT, one tag, one key; four queues in turn.

    Keys ascend, which favours peers that keep them in a tree. Bodies are a hundred objects, so that
    a million messages fit into memory.
    """
    made = []
    now = now_ms()
    bodies = bodies_of(body_size)
    for number in range(first, first + count):
        unique_id, key = IDS.next(now), f"order-{number}"
        properties = {"UNIQ_KEY": unique_id, "WAIT": "true", "TAGS": TAG, "KEYS": key}
        made.append(
            MessageInner(
                TOPIC,
                number % QUEUES,
                bodies[number % len(bodies)],
                encode_properties(properties),
                now,
                HOST,
                HOST,
                tags=TAG,
                keys=(unique_id, key),
            )
        )
    return made


@dataclass(frozen=True)
class Column:
    """A batch whose messages differ in body, queue, unique id and key only."""

    bodies: list[bytes]
    queue_ids: list[int]
    keys: list[str]


def columns(count: int, batch: int, body_size: int) -> list[Column]:
    """``count`` batches of ``batch`` messages."""
    bodies = bodies_of(body_size)
    return [
        Column(
            [bodies[i % len(bodies)] for i in range(batch)],
            [i % QUEUES for i in range(batch)],
            [f"order-{number * batch + i}" for i in range(batch)],
        )
        for number in range(count)
    ]


SHARED_PROPERTIES = encode_properties({"WAIT": "true", "TAGS": TAG})
