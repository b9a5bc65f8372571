"""Collecting traces and sending them as messages (AsyncTraceDispatcher).

Contexts wait in a queue of 1024; what does not fit is dropped and counted. Their records are
gathered in a segment, which is sent when it is 500 ms old (checked each 100 ms), or when it holds
118,000 bytes (or keys for a message's properties). Nothing runs while there is nothing to trace.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, NamedTuple

from client.at_exit import AtExit
from storage.format.message import Message

from .trace import TraceContext, encode_trace, halved, trace_keys

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from client.producer.producer import Producer
    from client.timing import Clock, Scheduler

logger = logging.getLogger("rmqctl.client.trace")

QUEUE_SIZE: Final = 1024
POLLING_MS: Final = 100
WAIT_TIME_THRESHOLD_MS: Final = 500
MAX_MSG_SIZE: Final = 128_000
"""Bytes of records in a message, at most."""
FLUSH_BYTES: Final = MAX_MSG_SIZE - 10_000
MAX_KEY_BYTES: Final = 32_000
"""A message's properties hold 32,767 bytes; RocketMQ loses segments with more keys than that."""
FLUSH_KEY_BYTES: Final = 30_000


class _Part(NamedTuple):
    """Records of one context, and the keys by which they are found."""

    records: bytes
    keys: frozenset[str]

    @property
    def key_bytes(self) -> int:
        return _bytes_of(self.keys)


class TraceDispatcher:
    """Sends the contexts that are appended to it, by a producer of its own. Safe for threads."""

    def __init__(
        self, producer: Producer, trace_topic: str, clock: Clock, scheduler: Scheduler
    ) -> None:
        self.trace_topic: Final = trace_topic
        self._producer = producer
        self._clock = clock
        self._scheduler = scheduler
        self._lock = threading.Lock()  # guards what follows; nothing is sent under it
        self._contexts: deque[TraceContext] = deque()
        self._records: list[bytes] = []
        self._keys: set[str] = set()
        self._bytes = self._key_bytes = 0
        self._first_timestamp = 0
        self._scheduled = self._hurried = False
        self._discarded = 0
        self._at_exit: AtExit | None = None

    @property
    def discarded(self) -> int:
        """How many contexts did not fit."""
        return self._discarded

    def append(self, context: TraceContext) -> bool:
        """Take a context; False if it was dropped. Does not block."""
        if self._at_exit is None:
            self._at_exit = AtExit(self.send_before_exit)
        with self._lock:
            if len(self._contexts) >= QUEUE_SIZE:
                self._discarded += 1
                logger.info("the trace buffer is full: discarded=%d", self._discarded)
                return False
            self._contexts.append(context)
            if not self._first_timestamp:
                self._first_timestamp = self._clock.now_ms()
            schedule = not self._scheduled
            self._scheduled = True
            hurry = len(self._contexts) >= QUEUE_SIZE // 2 and not self._hurried
            self._hurried = self._hurried or hurry
        if schedule:
            self._scheduler.call_later(POLLING_MS, self._poll)
        if hurry:
            self._scheduler.call_later(0, self._gather)
        return True

    def flush(self) -> None:
        """Pass everything that waits to the producer."""
        self._gather()
        for message in self._take():
            self._send(message)

    def shutdown(self) -> None:
        """Send everything that waits, and wait until it is sent."""
        with ExitStack() as stack:  # each step runs whatever an earlier one raised
            if self._at_exit is not None:
                stack.callback(self._at_exit.cancel)
            stack.callback(self._producer.shutdown)
            self.flush()

    def send_before_exit(self) -> None:
        """Send everything that waits, because the program ends and has not called ``shutdown``."""
        self._producer.send_before_exit()
        self.flush()  # in this thread from now on: Python 3.12 starts no thread any more

    def _poll(self) -> None:
        self._gather()
        with self._lock:
            age = self._clock.now_ms() - self._first_timestamp
            due = self._first_timestamp > 0 and age >= WAIT_TIME_THRESHOLD_MS
        for message in self._take() if due else ():
            self._send(message)
        with self._lock:
            self._scheduled = again = self._first_timestamp > 0
        if again:
            self._scheduler.call_later(POLLING_MS, self._poll)

    def _gather(self) -> None:
        """Turn contexts into records; full segments are sent."""
        while True:
            with self._lock:
                self._hurried = False
                if not self._contexts:
                    return
                context = self._contexts.popleft()
                full = [message for one in _parts(context) for message in self._add(one)]
            for message in full:
                self._send(message)

    def _add(self, part: _Part) -> Iterator[Message]:
        """Add records to the segment; gives the segments that are full. Called under the lock."""
        if not _fits(self._bytes + len(part.records), self._key_bytes + part.key_bytes):
            yield from self._cut()
        self._first_timestamp = self._first_timestamp or self._clock.now_ms()
        self._records.append(part.records)
        new_keys = part.keys - self._keys
        self._keys |= new_keys
        self._key_bytes += _bytes_of(new_keys)
        self._bytes += len(part.records)
        if self._bytes >= FLUSH_BYTES or self._key_bytes >= FLUSH_KEY_BYTES:
            yield from self._cut()

    def _take(self) -> list[Message]:
        with self._lock:
            return list(self._cut())

    def _cut(self) -> Iterator[Message]:
        """End the segment; gives nothing if it is empty. Called under the lock."""
        if self._records:
            yield Message(self.trace_topic, b"".join(self._records), keys=sorted(self._keys))
            self._records, self._keys = [], set()
            self._bytes = self._key_bytes = 0
            self._first_timestamp = self._clock.now_ms() if self._contexts else 0

    def _send(self, message: Message) -> None:
        try:
            self._producer.send_async(message, on_exception=_not_sent)
        except Exception:
            logger.exception("a trace could not be sent")


def _parts(context: TraceContext) -> Iterator[_Part]:
    """A context, in halves until each fits into a message: a batch has a key for each message.

    One message whose own keys are too many stays whole: its trace is refused, and no other.
    """
    keys = frozenset(key.encode(errors="replace").decode() for key in trace_keys(context))
    part = _Part(encode_trace(context).encode(errors="replace"), keys)
    halves = () if _fits(len(part.records), part.key_bytes) else halved(context)
    for half in halves:
        yield from _parts(half)
    if not halves:
        yield part


def _fits(record_bytes: int, key_bytes: int) -> bool:
    return record_bytes <= MAX_MSG_SIZE and key_bytes <= MAX_KEY_BYTES


def _bytes_of(keys: Collection[str]) -> int:
    """Bytes of keys with their separators."""
    return sum(len(key.encode()) + 1 for key in keys)


def _not_sent(error: Exception) -> None:
    logger.error("a trace could not be sent: %s", error)
