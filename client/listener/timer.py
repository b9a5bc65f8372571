"""A timer for each request: stuck messages are sent back exactly when their time is over.

The alternative to ``clean_expire_msg``, which checks the first message of a queue only, at most 16
at a time, and lets up to two timeouts pass. Here a one-shot timer is set before each call of the
listener and cancelled after it. If it fires, the messages are first sent back and then removed from
the process queue: progress moves on, and the stuck message is certain to come again. One sure
duplicate instead of many possible ones.

    no timer fires in time      nothing happens
    sending back fails          the message stays, and the listener's answer counts
    the listener ends later     its result does not count for what was sent back
    queue dropped               nothing is done: it has another owner

The timer holds its request weakly, so a request that is finished is not kept alive by it.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from storage.format.message import MessageExt, MessageQueue

if TYPE_CHECKING:
    from client.timing import Scheduler

    from .process_queue import Messages, ProcessQueue

logger = logging.getLogger("rmqctl.client.consume")


class WatchedRequest:
    """One call of a listener that a timer watches (ConsumeRequestWithUnAck).

    ``resent`` are the queue offsets that were sent back by the timer. ``lock`` decides between the
    timer and the listener's end: it is held while either sends messages back and notes progress,
    before any lock of the process queue.
    """

    __slots__ = (
        "__weakref__",
        "finished",
        "lock",
        "messages",
        "process_queue",
        "queue",
        "resent",
    )

    def __init__(
        self, messages: Messages, process_queue: ProcessQueue, queue: MessageQueue
    ) -> None:
        self.messages = messages
        self.process_queue = process_queue
        self.queue = queue
        self.lock = threading.Lock()
        self.finished = False
        self.resent: set[int] = set()


class ConsumeTimer:
    """Watches requests with a scheduler of its own (ackAndResendScheduler)."""

    def __init__(
        self,
        scheduler: Scheduler,
        send_back: Callable[[MessageQueue, MessageExt], None],
        remove: Callable[[Sequence[MessageExt], ProcessQueue, MessageQueue], None],
    ) -> None:
        """``send_back`` raises if it fails; ``remove`` removes messages, noting progress."""
        self._scheduler = scheduler
        self._send_back = send_back
        self._remove = remove

    def run(
        self, request: WatchedRequest, after_ms: int, consume: Callable[[WatchedRequest], None]
    ) -> None:
        """Consume a request; if that takes longer than ``after_ms``, send it back."""
        check = self._scheduler.call_later(after_ms, _TooLongChecker(self, request))
        try:
            consume(request)
        finally:
            check.cancel()

    def resend(self, request: WatchedRequest) -> None:
        """Send back what is not finished; remove it after that."""
        with request.lock:
            if request.finished or request.process_queue.dropped:
                return
            done = []
            for message in request.messages:
                try:
                    self._send_back(request.queue, message)
                except Exception:
                    logger.exception("a message took too long and stays: %r", message)
                    continue
                request.resent.add(message.queue_offset)
                done.append(message)
            if done:
                self._remove(done, request.process_queue, request.queue)

    def shutdown(self) -> None:
        """Stop watching."""
        self._scheduler.shutdown()


class _TooLongChecker:
    """What a timer calls (ConsumeTooLongChecker)."""

    __slots__ = ("_request", "_timer")

    def __init__(self, timer: ConsumeTimer, request: WatchedRequest) -> None:
        self._timer = timer
        self._request = weakref.ref(request)

    def __call__(self) -> None:
        request = self._request()
        if request is not None:
            self._timer.resend(request)
