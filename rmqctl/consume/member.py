"""One run of ``consume`` as a member of a group: start, wait until it has to stop, leave."""

import time
from typing import TYPE_CHECKING, Final

from client.offset_store.offset_store import ReadOffsetType

from .reader import check_reader

if TYPE_CHECKING:
    from client.push.push_consumer import PushConsumer
    from rmqctl.cli.progress import Progress

    from .listener import MemberListener

_IDLE_S: Final = 1.0
_SOON_S: Final = 0.2
"""Progress is committed after this time without a message."""
_TO_THE_END_S: Final = 0.05


class MemberRun:
    """Runs a push consumer until the quota is used up, or without end."""

    def __init__(
        self,
        consumer: "PushConsumer",
        listening: "MemberListener",
        *,
        watches_reader: bool,
    ) -> None:
        """``watches_reader``: end when the output has no reader, even while no message comes."""
        self._consumer = consumer
        self._listening = listening
        self._quota = listening.quota
        self._watches_reader = watches_reader
        self._wait_s = _IDLE_S if self._quota.ends is None else _TO_THE_END_S

    def run(self, progress: "Progress") -> None:
        """Consume. Consumed messages are committed when this returns or a signal ends it.

        Raises errors of the output, and those with which brokers refuse a member.
        """
        try:
            self._consumer.start()
            # The queues of this member are known before the first check for the end.
            self._consumer.do_rebalance()
            self._wait(progress)
        finally:
            self._quota.stop()
            self._consumer.shutdown()
        failure = self._listening.failure
        if failure is not None:
            raise failure

    def _wait(self, progress: "Progress") -> None:
        listening = self._listening
        persisted = time.monotonic()
        seen = persisted_at = 0
        while not self._finished():
            known = self._quota.consumed == persisted_at
            listening.changed.wait(self._wait_s if known else min(self._wait_s, _SOON_S))
            listening.changed.clear()
            count, now = self._quota.consumed, time.monotonic()
            if count > seen:
                progress.advance(count - seen)
            else:
                progress.clear()
            if count > persisted_at and (count == seen or now - persisted >= _IDLE_S):
                self._consumer.persist_consumer_offset()
                persisted, persisted_at = now, count
            seen = count
            if self._watches_reader:
                check_reader()
        progress.advance(self._quota.consumed - seen)

    def _finished(self) -> bool:
        listening = self._listening
        if listening.stopped or self._quota.used_up:
            return True
        return self._quota.ends is not None and self._at_ends()

    def _at_ends(self) -> bool:
        """Whether every current queue of this member is consumed up to its end."""
        consumer, ends = self._consumer, self._quota.ends or {}
        for queue, process_queue in list(consumer.process_queues.items()):
            end = ends.get(queue, 0)
            if process_queue.dropped:
                if queue in self._listening.given_up:
                    continue
                return False  # the queue is corrected and allocated again
            consumer.consume_service.settle(process_queue, queue)
            offset = consumer.offset_store.read_offset(queue, ReadOffsetType.READ_FROM_MEMORY)
            if end and (offset is None or offset < end):
                return False
        return True
