"""One run of ``consume`` as a member of a group: start, wait for a reason to stop, leave."""

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
"""When nothing came for so long, progress is committed."""
_TO_THE_END_S: Final = 0.05


class MemberRun:
    """Has a push consumer consume until the quota is used up, or for ever."""

    def __init__(
        self,
        consumer: "PushConsumer",
        listening: "MemberListener",
        *,
        watches_reader: bool,
    ) -> None:
        """``watches_reader``: it ends when nobody reads its output, also while nothing comes."""
        self._consumer = consumer
        self._listening = listening
        self._quota = listening.quota
        self._watches_reader = watches_reader
        self._wait_s = _IDLE_S if self._quota.ends is None else _TO_THE_END_S

    def run(self, progress: "Progress") -> None:
        """Consume. What was consumed is committed when this returns, or is left by a signal.

        Raises what the output raised; what brokers refuse a member with.
        """
        try:
            self._consumer.start()
            # The queues that this member gets are known before it is asked whether it is done.
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
        """Whether every queue that this member has now is consumed up to its end."""
        consumer, ends = self._consumer, self._quota.ends or {}
        for queue, process_queue in list(consumer.process_queues.items()):
            end = ends.get(queue, 0)
            if process_queue.dropped:
                if queue in self._listening.given_up:
                    continue
                return False  # it is mended, and taken again
            consumer.consume_service.settle(process_queue, queue)
            offset = consumer.offset_store.read_offset(queue, ReadOffsetType.READ_FROM_MEMORY)
            if end and (offset is None or offset < end):
                return False
        return True
