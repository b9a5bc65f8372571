"""Progress at the broker, for clustering (RemoteBrokerOffsetStore of 4.9).

The difference: brokers merge, and count deliberate moves of progress in *generations* (see
OffsetQuery). A newer generation in the answer to a commit means that the progress was moved
elsewhere, for instance by a reset. Then this store

  1. takes over the moved offset,
  2. ignores what the consumer still notes of the queue: it is from before the move,
  3. calls ``moved``, which drops the queue and begins anew,

until the queue is removed or read from the store again. So old progress never overwrites a reset,
even if the notice of it was lost. A correction of this consumer itself (``correct_offset``) begins
a generation, too, and is no such move.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from broker.api.offsets import OffsetCommit, OffsetQuery, ProgressPastEnd
from broker.errors import BrokerError
from client.errors import UNANSWERED, ClientError
from storage.format.message import MessageQueue

from .offset_store import ReadOffsetType

if TYPE_CHECKING:
    from broker.api.broker import Broker

logger = logging.getLogger("rmqctl.client.offset_store")

Moved = Mapping[MessageQueue, int | None]
"""Queues whose progress was moved, with the new offset; None: it was removed."""


class RemoteBrokerOffsetStore:
    """An OffsetStore over the brokers that have the queues. No lock is held during a broker's
    call."""

    def __init__(
        self,
        group: str,
        broker: Callable[[str], Broker],
        moved: Callable[[Moved], object] = lambda _: None,
    ) -> None:
        """Keep a group's progress; ``broker`` finds one by name or raises BrokerNotExistError.

        ``moved`` is called by the thread that persists, under no lock.
        """
        self._group = group
        self._broker = broker
        self._moved = moved
        self._lock = threading.Lock()  # guards all below
        self._offsets: dict[MessageQueue, int] = {}
        self._generations: dict[MessageQueue, int] = {}
        self._ignored: set[MessageQueue] = set()  # moved elsewhere
        self._correcting: set[MessageQueue] = set()  # a newer generation may be our own

    def load(self) -> None:
        """Do nothing: progress is read queue by queue."""

    def update_offset(self, queue: MessageQueue, offset: int, increase_only: bool) -> None:
        """See OffsetStore.update_offset."""
        with self._lock:
            if queue in self._ignored:
                return
            if not increase_only or offset > self._offsets.get(queue, -1):
                self._offsets[queue] = offset

    def read_offset(self, queue: MessageQueue, read_type: ReadOffsetType) -> int | None:
        """See OffsetStore.read_offset. The store is the queue's broker."""
        if read_type is not ReadOffsetType.READ_FROM_STORE:
            offset = self._offsets.get(queue)
            if offset is not None or read_type is ReadOffsetType.READ_FROM_MEMORY:
                return offset
        found = self._broker(queue.broker_name).query_consumer_offset(
            self._group, queue.topic, queue.queue_id
        )
        with self._lock:
            self._adopt(queue, found)
            self._ignored.discard(queue)
        return found.offset

    def generation_of(self, queue: MessageQueue) -> int | None:
        """Give the generation of the progress that was read here; None if none was."""
        with self._lock:
            return self._generations.get(queue)

    def is_moved(self, queue: MessageQueue) -> bool:
        """Whether the progress was moved since it was read here; True if that is unknown."""
        with self._lock:
            known = self._generations.get(queue)
        try:
            found = self._broker(queue.broker_name).query_consumer_offset(
                self._group, queue.topic, queue.queue_id
            )
        except (*UNANSWERED, BrokerError, ClientError):
            return True
        return found.generation != known

    def correct_offset(self, queue: MessageQueue, found: ProgressPastEnd) -> None:
        """Have the broker move progress past the end of its queue back, and go on from there.

        A commit that ends meanwhile does not take the new generation for a move. Where the progress
        was moved elsewhere at the same time, nothing is taken over: the next commit tells. Raises
        the errors of the broker.
        """
        broker = self._broker(queue.broker_name)
        with self._lock:
            self._correcting.add(queue)
        try:
            answer = broker.correct_consumer_offset(self._group, *found)
            with self._lock:
                known = self._generations.get(queue, 0)
                corrected = (found.generation + 1, found.end)
                if known == found.generation and (answer.generation, answer.offset) == corrected:
                    self._adopt(queue, answer)
        finally:
            with self._lock:
                self._correcting.discard(queue)

    def persist_all(
        self, queues: Collection[MessageQueue], kept: Collection[MessageQueue] = ()
    ) -> None:
        """See OffsetStore.persist_all. Removes from memory the offsets that it has of other queues;
        not their generations: one may be a queue that is being taken.

        Every entry goes to its broker, changed or not: so a move is noticed. Those of queues that
        are only ``kept`` stay in memory, and are not committed.
        """
        if not queues:
            return
        wanted, known = frozenset(queues), frozenset(kept).union(queues)
        with self._lock:
            for queue in [queue for queue in self._offsets if queue not in known]:
                logger.info("forgot the progress of a queue: group=%s %s", self._group, queue)
                del self._offsets[queue]
            entries = {queue: o for queue, o in self._offsets.items() if queue in wanted}
        self._commit(entries)

    def persist(self, queue: MessageQueue) -> None:
        """See OffsetStore.persist."""
        offset = self._offsets.get(queue)
        if offset is not None:
            self._commit({queue: offset})

    def remove_offset(self, queue: MessageQueue) -> None:
        """See OffsetStore.remove_offset."""
        with self._lock:
            self._forget(queue)

    def clone_offset_table(self, topic: str | None = None) -> dict[MessageQueue, int]:
        """See OffsetStore.clone_offset_table."""
        with self._lock:
            return {q: o for q, o in self._offsets.items() if topic in (None, q.topic)}

    def pull_commit(self, queue: MessageQueue) -> OffsetCommit | None:
        """See OffsetStore.pull_commit; only offsets above 0 are carried."""
        with self._lock:
            offset = self._offsets.get(queue, 0)
            return self._entry(queue, offset) if offset > 0 else None

    def _entry(self, queue: MessageQueue, offset: int) -> OffsetCommit:
        topic, _, queue_id = queue
        return OffsetCommit(topic, queue_id, offset, self._generations.get(queue, 0))

    def _forget(self, queue: MessageQueue) -> None:
        self._offsets.pop(queue, None)
        self._generations.pop(queue, None)
        self._ignored.discard(queue)

    def _adopt(self, queue: MessageQueue, found: OffsetQuery) -> None:
        self._generations[queue] = found.generation
        if found.offset is None:
            self._offsets.pop(queue, None)
        else:
            self._offsets[queue] = found.offset

    def _commit(self, entries: Mapping[MessageQueue, int]) -> None:
        by_broker: dict[str, list[MessageQueue]] = {}
        for queue in entries:
            by_broker.setdefault(queue.broker_name, []).append(queue)
        moved: dict[MessageQueue, int | None] = {}
        for broker_name, queues in by_broker.items():
            try:
                moved.update(self._commit_to(broker_name, queues))
            except (*UNANSWERED, BrokerError, ClientError) as error:
                logger.warning(
                    "progress cannot be committed: group=%s broker=%s queues=%d: %s",
                    self._group, broker_name, len(queues), error,
                )  # fmt: skip
        if moved:
            logger.warning("progress was moved: group=%s to=%s", self._group, moved)
            self._moved(moved)

    def _commit_to(
        self, broker_name: str, queues: Sequence[MessageQueue]
    ) -> dict[MessageQueue, int | None]:
        with self._lock:
            queues = [queue for queue in queues if queue in self._offsets]
            commits = [self._entry(queue, self._offsets[queue]) for queue in queues]
        if not commits:
            return {}
        answers = self._broker(broker_name).update_consumer_offsets(self._group, commits)
        moved: dict[MessageQueue, int | None] = {}
        with self._lock:
            for queue, commit, answer in zip(queues, commits, answers, strict=True):
                # The progress of a queue that was given up, or read anew, meanwhile is another
                # owner's. What happens beside a correction is judged by the next commit.
                if queue in self._correcting or queue not in self._offsets:
                    continue
                known = self._generations.get(queue, 0)
                if answer.generation > commit.generation and known == commit.generation:
                    self._adopt(queue, answer)
                    self._ignored.add(queue)
                    moved[queue] = answer.offset
        return moved
