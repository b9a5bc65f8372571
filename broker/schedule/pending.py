"""Delayed delivery that reads on while puts are pending (HandlePutResultTask of 4.9).

``enableScheduleAsyncDeliver``: each message that is due goes to a thread which stores it, and waits
in a queue for its result. The level's offset advances only over the finished head of the queue, so
no message is passed over that is not stored. A failed put is tried again, 100 ms later each time;
after many failures the level submits nothing more.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Final

from broker.errors import MessageIllegalError
from broker.send.send import prepared
from storage.errors import RocketMQError, StoreBrokenError, StoreClosedError
from storage.format.cq_unit import CQ_STORE_UNIT_SIZE

from .level import DelayLevel

if TYPE_CHECKING:
    from broker.config import BrokerConfig
    from storage.configs.early_deliveries import Place
    from storage.readonly import StoreView
    from storage.results import PutMessageResult

logger = logging.getLogger("rmqctl.broker")

DELAY_FOR_A_SLEEP_MS: Final = 10
"""How often results are checked."""
RESEND_STEP_MS: Final = 100
LONGEST_RESEND_PAUSE_MS: Final = 60_000
_LAST_PUTS_S: Final = 1.0
"""How long closing waits for pending puts."""


class PutResultProcess:
    """A pending put: its message, and the number of its failures."""

    __slots__ = ("future", "offset", "resend_at", "resend_count", "unit")

    def __init__(self, offset: int, unit: bytes) -> None:
        self.offset = offset
        self.unit = unit
        self.future: Future[PutMessageResult | None]
        self.resend_count = 0
        self.resend_at: int | None = None

    def finished_well(self, skip_after: int) -> bool:
        """Whether the message was stored, or never will be, or cannot be read (any more)."""
        error = self.future.exception()
        if error is None:
            result = self.future.result()
            if result is not None:
                return result.status.stored or result.status.illegal
            return not 0 < self.resend_count <= skip_after
        if not isinstance(error, (RocketMQError, OSError)):
            raise error
        return False


class PendingDelayLevel(DelayLevel):
    """A level whose puts are done by ``executor``, in order; None makes it a thread of its own."""

    def __init__(
        self,
        level: int,
        delay_ms: int,
        config: BrokerConfig,
        *,
        view: Callable[[], StoreView],
        put: Callable[..., PutMessageResult],
        now: Callable[[], int],
        ended: Callable[[int], Collection[Place]] = lambda _: (),
        intend: Callable[[int, int, int], None] = lambda *_: None,
        executor: Executor | None = None,
    ) -> None:
        super().__init__(level, delay_ms, view=view, put=put, now=now, ended=ended, intend=intend)
        self._max_pending = config.schedule_async_deliver_max_pending_limit
        self._max_resends = config.schedule_async_deliver_max_resend_num_to_blocked
        self._executor = executor
        self._pending: deque[PutResultProcess] = deque()

    @property
    def pending(self) -> int:
        """Number of puts that are running, or wait for an earlier one."""
        return len(self._pending)

    def run(self) -> int:
        """Check results, submit what is due; gives when to run again."""
        self._handle_results()
        following = super().run()
        if self._pending:
            following = min(following, self._now() + DELAY_FOR_A_SLEEP_MS)
        return following

    def settle(self) -> None:
        """Wait a moment for pending puts; failed and late ones are left for the next start, which
        finds what a late one has stored."""
        if self._executor is not None:
            wait([process.future for process in self._pending], _LAST_PUTS_S)
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = None
        self._advance()
        if self._pending:
            self.offset = self._pending[0].offset
            self._pending.clear()

    def _deliver(self, units: bytes) -> bool:
        if not self._pending:  # else a copy may lie before the end of the log
            self._note_intent()
        for at in range(0, len(units), CQ_STORE_UNIT_SIZE):
            if len(self._pending) > self._max_pending:
                return False
            if self._pending and self._pending[0].resend_count > self._max_resends:
                return False
            process = PutResultProcess(self.offset, units[at : at + CQ_STORE_UNIT_SIZE])
            process.future = self._submit(process)
            self._pending.append(process)
            self.offset += 1
        return True

    def _advance(self) -> None:
        """Remove the finished head of the queue."""
        pending = self._pending
        while pending and pending[0].future.done() and not pending[0].future.cancelled():
            if not pending[0].finished_well(self._max_resends * 2):
                return
            self.delivered = pending.popleft().offset + 1

    def _handle_results(self) -> None:
        """Advance over stored messages; retry failed ones when their pause is over."""
        self._advance()
        if not self._pending or not self._pending[0].future.done():
            return
        head = self._pending[0]
        error = head.future.exception()
        if isinstance(error, (StoreBrokenError, StoreClosedError)):
            raise error  # it would fail again
        now = self._now()
        if head.resend_at is None:
            pause = min(head.resend_count * RESEND_STEP_MS, LONGEST_RESEND_PAUSE_MS)
            head.resend_at = now + pause
            head.resend_count += 1
            logger.warning(
                "delay level %d: the message at offset %d was not stored, try %d",
                self.level,
                head.offset,
                head.resend_count,
            )
        if now >= head.resend_at:
            head.resend_at = None
            head.future = self._submit(head)

    def _submit(self, process: PutResultProcess) -> Future[PutMessageResult | None]:
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, thread_name_prefix=f"schedule-{self.level}")
        return self._executor.submit(self._put_one, process)

    def _put_one(self, process: PutResultProcess) -> PutMessageResult | None:
        (inner,) = self._read(process.offset, process.unit)
        if inner is None:
            return None
        try:
            records = prepared([inner])
        except MessageIllegalError as error:
            self._report_passed_over(process.offset, inner, str(error))
            return None
        result = self._put(records)
        if result.status.illegal:
            self._report_passed_over(process.offset, inner, result.reason or result.status)
        return result
