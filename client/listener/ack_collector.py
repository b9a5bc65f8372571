"""Turns messages that concurrent consumption has finished into progress, and counts them.

A thread notes what it has finished in a WorkerAcks of the pull (``pull_batch.py``); it is collected
from there as late as possible: removing the whole of a pull from a ProcessQueue costs next to
nothing, removing a part costs something for each message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from storage.format.message import MessageExt, MessageQueue

    from .process_queue import ProcessQueue
    from .service import ConsumerContext

_PARTS_MS: Final = 20
"""How long a pull leaves the finished messages of a WorkerAcks that goes on."""


class AckCollector:
    """The progress of one consumer's queues. Safe for threads."""

    def __init__(self, consumer: ConsumerContext) -> None:
        self._consumer = consumer

    def settle(
        self, process_queue: ProcessQueue, queue: MessageQueue, pulled_ms: int | None = None
    ) -> None:
        """See ConsumeService.settle."""
        finished = process_queue.finished
        if not finished:
            return
        done = requests = 0
        with process_queue.ack_collector:
            parts_may_wait = False
            if pulled_ms is not None:
                parts_may_wait = 0 <= pulled_ms - process_queue.settled_ms < _PARTS_MS
                if not parts_may_wait:
                    process_queue.settled_ms = pulled_ms
            for _ in range(len(finished)):
                share = finished.popleft()
                if not share.ended:
                    finished.append(share)  # its thread goes on
                    if parts_may_wait:
                        continue
                messages, count, ok = share.take()
                if messages:
                    self._note_removed(messages, process_queue, queue)
                    done += ok
                    requests += count
        if requests:
            self.count(queue, 0, done, times=requests)

    def remove(
        self, messages: Sequence[MessageExt], process_queue: ProcessQueue, queue: MessageQueue
    ) -> None:
        """Remove finished messages, whatever else is in the queue."""
        with process_queue.ack_collector:
            self._note_removed(messages, process_queue, queue)

    def note(self, process_queue: ProcessQueue, queue: MessageQueue) -> None:
        """Turn finished messages into progress that survives this process."""
        self.settle(process_queue, queue)
        if not process_queue.dropped:
            self._consumer.note_progress(queue)

    def count(
        self, queue: MessageQueue, took: int, ok: int = 0, failed: int = 0, times: int = 1
    ) -> None:
        """Count ``times`` requests that took so many ms together, and their messages."""
        stats, key = self._consumer.stats, self.key(queue)
        stats.consume_rt.add_value(key, took, times)
        if ok:
            stats.consume_ok_tps.add_value(key, ok, times)
        if failed:
            stats.consume_failed_tps.add_value(key, failed, times)

    def key(self, queue: MessageQueue) -> str:
        """Name the statistics of a queue's topic."""
        return f"{queue.topic}@{self._consumer.group}"

    def _note_removed(
        self, messages: Sequence[MessageExt], process_queue: ProcessQueue, queue: MessageQueue
    ) -> None:
        offset = process_queue.remove_message(messages)
        # A thread that drops a queue holds ``ack_collector`` for it: after that nothing of it is
        # noted.
        if offset is not None and not process_queue.dropped:
            self._consumer.offset_store.update_offset(queue, offset, increase_only=True)
