"""Sending failed messages back to their broker, several in one call.

A request that failed quickly is only noted, like one that succeeded quickly, and sent back with
those of the same pull that fail within the same millisecond. If the listener takes longer over the
next request, a timer sends back what was noted before: 10 ms after it failed at the latest. Nothing
is lost meanwhile, because a message leaves the process queue, and progress passes it, only when the
broker has stored it again.

Progress is noted at once after messages were sent back, where it survives this process: if the
process is killed, the next owner of the queue sends the last batch back once more, and not
everything since the last commit. Progress does not pass unfinished messages, so threads send back
in the order of the queue: a thread whose messages come after those of another thread waits for it,
200 ms at most. A message that is in the listener for longer is not waited for again: failed
messages after it go back at once, and come once more if the process is killed before that one ends.

  stored by the broker     finished: the message that comes again is a new one
  refused by both ways     reconsume_times + 1, again in 5 s; progress waits for it
  queue dropped before     nothing is done: it has another owner
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from broker.api.failure_reason import failure_properties

from .service import ListenerResult

if TYPE_CHECKING:
    from client.timing import Scheduler
    from storage.format.message import MessageExt, MessageQueue

    from .process_queue import Messages, ProcessQueue
    from .service import ConsumerContext

logger = logging.getLogger("rmqctl.client.consume")

BATCH: Final = 32
"""How many messages are sent back and noted at once: so many come again after a kill between the
two. A pull may have some hundred."""
TURN_S: Final = 0.2
"""How long a thread waits for earlier messages of the queue."""
_LOOK_S: Final = 0.0005
LATEST_MS: Final = 10
"""How long failed messages wait for more of their pull, at most."""

_Thing = TypeVar("_Thing")
Remove = Callable[["Sequence[MessageExt]", "ProcessQueue", "MessageQueue"], None]
"""Removes messages from their process queue, noting progress."""


class FailedMessages(NamedTuple):
    """Messages of one call of the listener that are to come again."""

    messages: Messages
    delay_level: int
    failure: dict[str, str]


class PendingSendBacks:
    """What one thread has noted of a pull. ``given`` takes the requests that were sent back. The
    thread or timer that pops a call from ``calls`` processes it.
    """

    __slots__ = ("calls", "given", "process_queue", "queue", "registered")

    def __init__(
        self, process_queue: ProcessQueue, queue: MessageQueue, given: list[Messages]
    ) -> None:
        self.process_queue = process_queue
        self.queue = queue
        self.given = given
        self.calls: deque[FailedMessages] = deque()
        self.registered = False


class SendBackBatcher:
    """Sends failed messages of one consumer back. Safe for threads, holds no lock."""

    def __init__(
        self,
        consumer: ConsumerContext,
        scheduler: Scheduler,
        *,
        remove: Remove,
        again_later: Callable[[Messages, ProcessQueue, MessageQueue], None],
        settle: Callable[[ProcessQueue, MessageQueue], None],
        note_progress: Callable[[ProcessQueue, MessageQueue], None],
        count_failed: Callable[[MessageQueue, int, int], None],
    ) -> None:
        """``again_later`` consumes messages again in 5 s; ``settle`` removes what is finished from
        a process queue, and ``note_progress`` makes it survive this process; ``count_failed``
        counts messages and the calls of the listener that they were in."""
        self._consumer = consumer
        self._scheduler = scheduler
        self._remove = remove
        self._again_later = again_later
        self._settle = settle
        self._note_progress = note_progress
        self._count_failed = count_failed
        self._owing: deque[PendingSendBacks] = deque()  # registered ones, for the timer
        self._armed = False
        self._answered: tuple[str, int, dict[str, str]] = ("", -1, {})

    def note(
        self, pending: PendingSendBacks, messages: Messages, level: int, failure: dict[str, str]
    ) -> None:
        """Send the messages of a request back soon.

        Noted first, then registered; the timer uses the other order.
        """
        pending.calls.append(FailedMessages(messages, level, failure))
        if not pending.registered:
            pending.registered = True
            self._owing.append(pending)
        if not self._armed:
            self._armed = True
            self._scheduler.call_later(LATEST_MS, self.give_all_noted)

    def give_noted(self, pending: PendingSendBacks) -> None:
        """Send back what is noted, in the thread that has noted it."""
        for calls in _parts(_taken(pending.calls)):
            self._wait_for_turn(calls, pending)
            pending.given += self._give(calls, pending)
            self._note_given(pending)

    def _wait_for_turn(self, calls: Sequence[FailedMessages], pending: PendingSendBacks) -> None:
        """Wait for earlier messages; an error of the offset store delays none."""
        process_queue = pending.process_queue
        lowest = min(message.queue_offset for call in calls for message in call.messages)
        ends = time.monotonic() + TURN_S
        while not process_queue.dropped:
            try:
                self._settle(process_queue, pending.queue)
            except (Exception, SystemExit):
                logger.exception("progress could not be noted: %s", pending.queue)
            first = process_queue.first_offset()
            if first is None or first >= lowest or first == process_queue.slow_offset:
                return
            if time.monotonic() >= ends:
                process_queue.slow_offset = first
                return
            time.sleep(_LOOK_S)

    def give_all_noted(self) -> None:
        """Send back what any thread has noted: the threads may be in listeners that take long."""
        self._armed = False
        owing = _taken(self._owing)
        for pending in owing:
            pending.registered = False
        for pending in owing:
            for calls in _parts(_taken(pending.calls)):
                for messages in self._give(calls, pending):
                    self._take_out(messages, pending)
                self._note_given(pending)

    def give(
        self, failed: FailedMessages, process_queue: ProcessQueue, queue: MessageQueue
    ) -> Sequence[MessageExt]:
        """Send messages back now; gives those that stay here, to be consumed again in 5 s."""
        refused = self._refused([failed], queue)
        if refused:
            self._keep(refused, process_queue, queue)
        return refused

    def failure(self, error: BaseException | None, answer: str) -> dict[str, str]:
        """Make the reason to send along; empty if the setting is off."""
        consumer = self._consumer
        if not consumer.config.record_failure_reason:
            return {}
        now_ms = consumer.clock.now_ms()
        if error is not None:
            return failure_properties(error, consumer.client_id, now_ms, answer=answer)
        known_answer, known_ms, known = self._answered
        if known_ms != now_ms or known_answer != answer:
            known = failure_properties(None, consumer.client_id, now_ms, answer=answer)
            self._answered = answer, now_ms, known
        return known

    def _give(self, calls: Sequence[FailedMessages], pending: PendingSendBacks) -> list[Messages]:
        """Send failed messages back; gives the requests that are finished by that."""
        if not calls:
            return []
        process_queue, queue = pending.process_queue, pending.queue
        self._count_failed(queue, sum(len(call.messages) for call in calls), len(calls))
        if process_queue.dropped:
            logger.info("the result does not count, the queue is dropped: %s", queue)
            return []
        refused = self._refused(calls, queue)
        if not refused:
            return [call.messages for call in calls]
        whole: list[Messages] = []
        for call in calls:
            kept = [message for message in call.messages if message in refused]
            if not kept:
                whole.append(call.messages)
                continue
            self._keep(kept, process_queue, queue)
            gone = [message for message in call.messages if message not in kept]
            self._take_out(gone, pending)
        return whole

    def _note_given(self, pending: PendingSendBacks) -> None:
        try:
            self._note_progress(pending.process_queue, pending.queue)
        except (Exception, SystemExit):
            logger.exception("progress could not be noted: %s", pending.queue)

    def _take_out(self, messages: Sequence[MessageExt], pending: PendingSendBacks) -> None:
        """Remove what the broker has stored; an error does not delay other messages."""
        try:
            self._remove(messages, pending.process_queue, pending.queue)
        except (Exception, SystemExit):
            logger.exception("progress could not be noted: %s", pending.queue)

    def _refused(self, calls: Sequence[FailedMessages], queue: MessageQueue) -> list[MessageExt]:
        """Send failed messages back; gives the messages that no broker took."""
        returned = [
            ListenerResult(message, level, failure)
            for messages, level, failure in calls
            for message in messages
        ]
        errors: Sequence[Exception | None]
        try:
            errors = self._consumer.send_messages_back(returned, queue)
        except Exception as failed:  # noqa: BLE001 - none of them may be lost by any error
            errors = [failed] * len(returned)
        refused: list[MessageExt] = []
        for (message, _, _), error in zip(returned, errors, strict=True):
            if error is not None:
                logger.error(
                    "a message cannot be sent back, again in 5 s: %r", message, exc_info=error
                )
                refused.append(message)
        return refused

    def _keep(
        self, messages: Sequence[MessageExt], process_queue: ProcessQueue, queue: MessageQueue
    ) -> None:
        for message in messages:
            message.reconsume_times += 1
        self._again_later(tuple(messages), process_queue, queue)


def _parts(calls: Sequence[FailedMessages]) -> Iterator[Sequence[FailedMessages]]:
    """Divide calls into parts that are sent back and noted at once."""
    part: list[FailedMessages] = []
    count = 0
    for call in calls:
        if part and count + len(call.messages) > BATCH:
            yield part
            part, count = [], 0
        part.append(call)
        count += len(call.messages)
    if part:
        yield part


def _taken(things: deque[_Thing]) -> list[_Thing]:
    """Take what is in a deque; each item goes to one taker."""
    taken = []
    try:
        while True:
            taken.append(things.popleft())
    except IndexError:
        return taken
