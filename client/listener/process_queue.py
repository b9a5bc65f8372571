"""Messages of one queue that were pulled and are not finished yet (ProcessQueue of 4.9).

Messages are in a sorted map by queue offset, RocketMQ's ``msgTreeMap``. A pull whose messages come
after all others is kept beside it as a *run*, and is sorted in when less than the whole of it is
requested. Most runs leave whole, so no work is done for a single message. Progress is one number:
the smallest offset that is not finished. A message that is stuck holds it back, and it jumps when
that message is finished:

    1001..1010 finished, nothing left                 1011
    1001..1008 finished, 1009 and 1010 left           1009
    1001 stuck, all others finished                   1001

If a consumer dies then, its successor begins at 1001: everything that was finished after it comes
again, which is why listeners must be idempotent.

Locks: ``ack_collector`` before ``_lock``. ``consume_lock``, which orderly consumption holds around
the listener, comes before both.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence, Set
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from sortedcontainers import SortedDict

from client import native
from client.timing import SYSTEM_CLOCK, Clock
from storage.format.message import PROPERTY_CONSUME_START_TIMESTAMP, PROPERTY_MAX_OFFSET, MessageExt
from storage.read.message_rows import MessageRows, offset_at

if TYPE_CHECKING:
    from .pull_batch import WorkerAcks

logger = logging.getLogger("rmqctl.client.process_queue")

PULL_MAX_IDLE_TIME_MS: Final = 120_000
"""A queue that was not pulled for longer has lost its pull request."""
REBALANCE_LOCK_MAX_LIVE_TIME_MS: Final = 30_000
"""How long a broker's lock counts without a refresh."""
REBALANCE_LOCK_INTERVAL_MS: Final = 20_000
"""How often the broker's locks are refreshed."""
MAX_CLEANED_MESSAGES: Final = 16
"""Expired messages that one scan removes from a queue."""

_QUEUE_OFFSET: Final = attrgetter("queue_offset")
_STORED_BODY: Final = attrgetter("stored_body")
_new: Final = tuple.__new__

Objects: TypeAlias = tuple[MessageExt, ...]
Messages: TypeAlias = Objects | MessageRows
"""Messages of one pull, or of one call of a listener; the listener must not change it."""


class _Run(NamedTuple):
    """Messages of one pull, with ascending offsets, none of which is finished alone."""

    messages: Sequence[MessageExt]
    last: int
    size: int


def _run_of(messages: Sequence[MessageExt], last: int) -> tuple[int, int] | None:
    """Give the last offset of messages, and the bytes of their bodies as they are stored.

    None if their offsets do not ascend from ``last`` + 1 or more.
    """
    size = 0
    for message in messages:
        offset = message.queue_offset
        if offset <= last:
            return None
        last = offset
        size += len(message.stored_body)
    return last, size


_run_of_objects: Final = native.form("run_of", _run_of)


def run_of(messages: Sequence[MessageExt], last: int) -> tuple[int, int] | None:
    """Give the last offset of messages (a list, a tuple or rows), and the bytes of their bodies as
    they are stored.

    None if their offsets do not ascend from ``last`` + 1 or more.
    """
    if not isinstance(messages, MessageRows):
        return _run_of_objects(messages, last)
    offsets = messages.offsets
    if not offsets:
        return last, 0
    return None if offsets[0] <= last else (offsets[-1], messages.body_bytes)


class ProcessQueue:
    """The messages of one queue that a consumer holds. Safe for threads.

    Times are ms of ``clock``. ``dropped``: this consumer has no longer the queue; running work may
    end, and its result is ignored. ``offset_illegal``: it was dropped because its progress lies
    outside of the queue, and is about to be repaired. ``locked`` is the client's view of the
    broker's lock. ``finished`` is for the concurrent service: what its threads have finished and
    what was not removed yet, see its ``settle``.
    """

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        now_ms = clock.now_ms()
        self.dropped = False
        self.offset_illegal = False
        self.locked = False
        self.last_pull_timestamp = now_ms
        self.last_consume_timestamp = now_ms
        self.last_lock_timestamp = now_ms
        self.try_unlock_times = 0
        self.last_failure: str | None = None
        """Of an orderly queue: why its first message failed last."""
        self.queue_offset_max = 0
        self.msg_acc_cnt = 0
        """Messages in the queue after the last one pulled, according to its MAX_OFFSET."""
        self.consume_lock: Final = threading.Lock()
        self.ack_collector: Final = threading.Lock()  # held while ``finished`` becomes progress
        self.finished: Final[deque[WorkerAcks]] = deque()
        self.slow_offset = -1  # of a message for which those after it wait no more
        self.settled_ms = -1  # when a pull last collected from running threads, too
        self._clock = clock
        self._lock = threading.Lock()  # guards all below, and queue_offset_max
        self._tree: SortedDict = SortedDict()  # queue offset -> message: to be consumed
        self._runs: dict[int, _Run] = {}  # by first offset, ascending, all after ``_tree``
        self._orderly: SortedDict = SortedDict()  # taken by orderly consumption, not committed
        self._sent_away: SortedDict = SortedDict()  # taken, sent to the retry topic, not committed
        self._msg_count = 0  # of all four
        self._msg_size = 0
        self._consuming = False

    # -- counters

    @property
    def msg_count(self) -> int:
        """Messages that are not finished, including those in the listener."""
        return self._msg_count

    @property
    def msg_size(self) -> int:
        """Bytes of their bodies, as they are stored."""
        return self._msg_size

    def get_max_span(self) -> int:
        """Distance between the first and the last offset to be consumed; 0 if there is none."""
        with self._lock:
            first, last = self._first(), self._last()
            return 0 if first is None or last is None else last - first

    def first_offset(self) -> int | None:
        """The smallest offset to be consumed, None if there is none."""
        with self._lock:
            return self._first()

    def held(self, offsets: Set[int]) -> set[int]:
        """Those of the offsets whose messages are not finished."""
        with self._lock:
            self._sort_in()
            return {offset for offset in offsets if offset in self._tree}

    def has_temp_message(self) -> bool:
        """Whether something waits to be consumed."""
        return bool(self._runs or self._tree)

    def is_lock_expired(self) -> bool:
        """Whether the broker's lock was refreshed too long ago to rely on it."""
        return self._clock.now_ms() - self.last_lock_timestamp > REBALANCE_LOCK_MAX_LIVE_TIME_MS

    def is_pull_expired(self) -> bool:
        """Whether pulling of the queue has stopped, which is a fault to be repaired."""
        return self._clock.now_ms() - self.last_pull_timestamp > PULL_MAX_IDLE_TIME_MS

    # -- pulled, and finished

    def put_message(self, messages: Sequence[MessageExt], max_offset: int | None = None) -> bool:
        """Add pulled messages; True if orderly consumption has to be started.

        That is once for each change from idle to busy. A message at an existing offset replaces the
        old one and is not counted again. ``messages`` is kept, and must not be changed any more.
        ``max_offset`` is their MAX_OFFSET, if the caller has it already.
        """
        if not messages:
            return False
        with self._lock:
            self._put(messages)
            if max_offset is None:
                max_offset = int(messages[-1].get_property(PROPERTY_MAX_OFFSET) or 0)
            accumulated = max_offset - offset_at(messages, -1)
            if accumulated > 0:
                self.msg_acc_cnt = accumulated
            dispatch = not self._consuming
            self._consuming = True
            return dispatch

    def _put(self, messages: Sequence[MessageExt]) -> None:
        first = offset_at(messages, 0)
        before = self._last() if self._runs or self._tree else None
        run = run_of(messages, first - 1 if before is None else before)
        if run is not None:
            last, size = run
            self._runs[first] = _new(_Run, (messages, last, size))
            self._msg_count += len(messages)
            self._msg_size += size
            self.queue_offset_max = last
            return
        self._sort_in()
        fresh = dict(zip(map(_QUEUE_OFFSET, messages), messages, strict=True))
        known = fresh.keys() & self._tree.keys()
        self._tree.update(fresh)
        for offset in known:
            del fresh[offset]
        if fresh:
            self._msg_count += len(fresh)
            self._msg_size += sum(map(len, map(_STORED_BODY, fresh.values())))
            self.queue_offset_max = next(reversed(fresh))

    def remove_message(self, messages: Sequence[MessageExt]) -> int | None:
        """Remove finished messages; gives the progress: the next offset to consume.

        None if there was nothing to remove from: then there is no progress to note (RocketMQ: -1).
        The very object that was put is removed at once, whatever else is there.
        """
        with self._lock:
            self.last_consume_timestamp = self._clock.now_ms()
            if not (self._runs or self._tree):
                return None
            if messages and not self._take_out_run(messages):
                self._sort_in(max(map(_QUEUE_OFFSET, messages)))
                self._take_out(messages)
            first = self._first()
            return self.queue_offset_max + 1 if first is None else first

    def _first(self) -> int | None:
        first: int | None = next(iter(self._tree or self._runs), None)
        return first

    def _last(self) -> int | None:
        if self._runs:
            return next(reversed(self._runs.values())).last
        last: int | None = next(reversed(self._tree)) if self._tree else None
        return last

    def _sort_in(self, up_to: int | None = None) -> None:
        """Sort in all runs, or those that begin at ``up_to`` or before."""
        for first in list(self._runs):
            if up_to is not None and first > up_to:
                break
            messages = self._runs.pop(first).messages
            self._tree.update(zip(map(_QUEUE_OFFSET, messages), messages, strict=True))

    def _take_out_run(self, messages: Sequence[MessageExt]) -> bool:
        first = offset_at(messages, 0)
        run = self._runs.get(first)
        if run is None or run.messages is not messages:
            return False
        del self._runs[first]
        self._msg_count -= len(messages)
        self._msg_size -= run.size
        return True

    def _take_out(self, messages: Sequence[MessageExt]) -> None:
        tree = self._tree
        before = len(tree)
        gone = set(map(_QUEUE_OFFSET, messages))
        if gone.issuperset(dict.keys(tree)):
            self._msg_size -= sum(map(len, map(_STORED_BODY, dict.values(tree))))
            tree.clear()
        else:
            for offset in gone:
                removed = tree.pop(offset, None)
                if removed is not None:
                    self._msg_size -= len(removed.stored_body)
        self._msg_count -= before - len(tree)

    # -- orderly consumption

    def take_messages(self, batch_size: int) -> list[MessageExt]:
        """Take the first messages, up to ``batch_size``; they stay counted until ``commit``.

        None left: the queue is idle, and the next ``put_message`` requests a new start.
        """
        with self._lock:
            self.last_consume_timestamp = self._clock.now_ms()
            self._sort_in()
            tree = self._tree
            taken = []
            for _ in range(min(batch_size, len(tree))):
                offset, message = tree.popitem(0)
                self._orderly[offset] = message
                taken.append(message)
            if not taken:
                self._consuming = False
            return taken

    def commit(self) -> int | None:
        """Finish the taken messages, and those sent away that no message to be consumed comes
        before; gives the next offset to consume.

        None if there are none: the queue was cleared meanwhile (RocketMQ fails then).
        """
        with self._lock:
            done = dict(self._orderly)
            self._orderly.clear()
            first = self._first() if self._sent_away else None
            while self._sent_away and (first is None or next(iter(self._sent_away)) < first):
                offset, message = self._sent_away.popitem(0)
                done[offset] = message
            if not done:
                return None
            self._msg_count -= len(done)
            self._msg_size -= sum(len(m.stored_body) for m in done.values())
            last: int = max(done)
            return last + 1

    def rollback(self) -> None:
        """Put back everything that was taken."""
        with self._lock:
            self._sort_in()
            self._tree.update(self._orderly)
            self._orderly.clear()

    def note_sent_away(self, messages: Sequence[MessageExt]) -> None:
        """Keep taken messages that are retries now: ``commit`` finishes them, and nothing puts them
        back."""
        with self._lock:
            for message in messages:
                if self._orderly.pop(message.queue_offset, None) is not None:
                    self._sent_away[message.queue_offset] = message

    def make_message_to_consume_again(self, messages: Sequence[MessageExt]) -> None:
        """Put some of the taken messages back, to be consumed first."""
        with self._lock:
            self._sort_in()
            for message in messages:
                # Cleared meanwhile: another owner has it.
                if self._orderly.pop(message.queue_offset, None) is not None:
                    self._tree[message.queue_offset] = message

    # -- the rest

    def clear(self) -> None:
        """Remove all messages; running work has nothing to finish."""
        with self._lock:
            self.finished.clear()
            self._runs.clear()
            self._tree = SortedDict()
            self._orderly = SortedDict()
            self._sent_away = SortedDict()
            self._msg_count = self._msg_size = 0
            self.queue_offset_max = 0

    def clean_expired_msg(
        self, consume_timeout_ms: int, send_back: Callable[[MessageExt], object]
    ) -> int:
        """Send back what is in a listener for too long, and remove it; gives how many.

        Checks the first message only, at most 16 times, so what is stuck after one that is not
        stuck stays. ``send_back`` is called under no lock; if it raises, the message stays and is
        tried again. The progress that a removal gives is not noted (ProcessQueue.cleanExpiredMsg).
        """
        cleaned = 0
        for _ in range(min(self._msg_count, MAX_CLEANED_MESSAGES)):
            message = self._first_expired(consume_timeout_ms)
            if message is None:
                break
            try:
                send_back(message)
            except Exception:
                logger.exception("an expired message could not be sent back: %r", message)
                continue
            with self._lock:
                still_first = self._first() == message.queue_offset
            if still_first:
                self.remove_message([message])
                cleaned += 1
        return cleaned

    def _first_expired(self, consume_timeout_ms: int) -> MessageExt | None:
        with self._lock:
            self._sort_in()
            if not self._tree:
                return None
            message: MessageExt = self._tree.peekitem(0)[1]
        started = message.get_property(PROPERTY_CONSUME_START_TIMESTAMP)
        if started is None or self._clock.now_ms() - int(started) <= consume_timeout_ms:
            return None
        return message

    def info(self) -> dict[str, Any]:
        """Give a queue's part of the running info (ProcessQueueInfo); no offset is None."""
        with self._lock:
            self._sort_in()
            tree, orderly = self._tree, self._orderly
            first = next(iter((orderly or tree).values()), None)
            return {
                "cached_msg_min_offset": next(iter(tree)) if tree else None,
                "cached_msg_max_offset": next(reversed(tree)) if tree else None,
                "cached_msg_count": len(tree),
                "cached_msg_size_in_mib": self._msg_size >> 20,
                "transaction_msg_min_offset": next(iter(orderly)) if orderly else None,
                "transaction_msg_max_offset": next(reversed(orderly)) if orderly else None,
                "transaction_msg_count": len(orderly),
                "first_msg_reconsume_times": None if first is None else first.reconsume_times,
                "last_failure": self.last_failure if first and first.reconsume_times else None,
                "locked": self.locked,
                "try_unlock_times": self.try_unlock_times,
                "last_lock_timestamp": self.last_lock_timestamp,
                "dropped": self.dropped,
                "last_pull_timestamp": self.last_pull_timestamp,
                "last_consume_timestamp": self.last_consume_timestamp,
            }
