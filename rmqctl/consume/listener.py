"""The listener of a member of a group.

A message is acknowledged after its output was written. A message that could not be written is not
answered, so the next consumer gets it again.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from client.listener.listener import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus
from storage.format.errors import BodyError
from storage.read.message_rows import MessageRows, offset_at

from .held_up import HeldUp
from .outstanding import Outstanding
from .portions import portions

if TYPE_CHECKING:
    from client.listener.process_queue import ProcessQueue
    from client.push.push_consumer import PushConsumer
    from rmqctl.admin.message_filter import Predicate
    from rmqctl.output.encoded_rows import Layout
    from storage.format.message import MessageExt, MessageQueue

    from .printing import Printer
    from .quota import Quota

logger = logging.getLogger("rmqctl.consume")


class Handler(Protocol):
    """Handles messages. Thread-safe."""

    def __call__(self, messages: "Sequence[MessageExt]", /) -> None:
        """Consume messages; an exception means that all of them are retried."""
        ...


class OutputFailedError(Exception):
    """The rest of a batch cannot be printed; ``__cause__`` is the reason."""

    def __init__(self, printed: int) -> None:
        super().__init__(printed)
        self.printed = printed
        """Number of messages of the batch that were written."""


class PrintHandler:
    """Prints the messages that match; the output is flushed when it returns."""

    def __init__(self, printer: "Printer", predicate: "Predicate | None") -> None:
        self._printer = printer
        self._predicate = predicate
        self._layout = _layout_of(printer) if predicate is None else None
        self._lock = threading.Lock()  # one prints at a time

    @property
    def fields(self) -> "frozenset[str] | None":
        """The fields of tables (storage.read.message_table) that it takes in the place of
        messages; None: it takes messages only."""
        return None if self._layout is None else self._layout.fields

    def __call__(self, messages: "Sequence[MessageExt]") -> None:
        """See Handler. Raises OutputFailedError; earlier messages are flushed.

        BodyError if a body cannot be unpacked: the client passes such a message alone.
        """
        with self._lock:
            if isinstance(messages, MessageRows) and self._layout is not None:
                rows = self._layout.rows(messages.table)
                self._write(rows[messages.begin : messages.end], 0)
                return
            printed = 0
            for portion in portions(messages):
                self._print(portion, printed)
                printed += len(portion)

    def _print(self, messages: "Sequence[MessageExt]", printed: int) -> None:
        predicate = self._predicate
        wanted = messages if predicate is None else [m for m in messages if predicate(m)]
        if wanted:
            self._write(wanted, printed)

    def _write(self, wanted: Sequence[Any], printed: int) -> None:
        try:
            self._printer.write(wanted)
            self._printer.flush()
        except BodyError:
            raise
        except Exception as error:  # whatever it is, it is no failure of these messages
            raise OutputFailedError(printed) from error


def _places(
    queue: "MessageQueue", messages: "Sequence[MessageExt]"
) -> "list[tuple[MessageQueue, int]]":
    return [(queue, message.queue_offset) for message in messages]


def _layout_of(printer: "Printer") -> "Layout | None":
    """How rows are made of tables. A table lacks the properties that a client adds."""
    layout = printer.layout
    return None if layout is None or "properties" in layout.fields else layout


class MemberListener:
    """Calls a handler for a push consumer, and stops at the quota.

    ``exact``: one thread consumes a queue at a time, so it can stop between two messages.
    ``tell`` is called with a sentence for each message whose body cannot be unpacked.
    ``delay_level``: RocketMQ's delay level of retries; 0 is RocketMQ's rule.
    Register :meth:`consume` or :meth:`consume_orderly` with the consumer.
    """

    def __init__(
        self,
        consumer: "PushConsumer",
        handler: Handler,
        quota: "Quota",
        *,
        exact: bool,
        delay_level: int = 0,
        tell: Callable[[str], object] = logger.warning,
    ) -> None:
        self._consumer = consumer
        self._tell = tell
        self._handler = handler
        self._exact = exact
        self._delay_level = delay_level
        self._outstanding = Outstanding()
        self._failures = HeldUp(tell)
        self.quota = quota
        self.failed = 0
        """Failed messages: their handler call raised; each attempt counts."""
        self._failing: set[tuple[MessageQueue, int]] = set()
        """Of an orderly consumer: queue and offset of messages whose last attempt has failed."""
        self.unreadable = 0
        """Messages whose bodies cannot be unpacked; each attempt counts."""
        self.given_up: set[MessageQueue] = set()
        """Queues that are consumed no further."""
        self.failure: BaseException | None = None
        """Why a queue was stopped before its end."""
        self.stopped = False
        """Whether nothing more can be consumed."""
        self.changed = threading.Event()
        """Set when there may be a reason to stop."""

    @property
    def failed_in_the_end(self) -> int:
        """Number of messages that failed, without those of an orderly queue that succeeded after
        a failed attempt."""
        return len(self._failing) if self._consumer.orderly else self.failed

    def consume(self, messages: "Sequence[MessageExt]", context: Any) -> ConsumeConcurrentlyStatus:
        """Listener of a concurrent consumer."""
        context.delay_level_when_next_consume = self._delay_level
        self._consume(messages, context.message_queue)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    def consume_orderly(
        self, messages: "Sequence[MessageExt]", context: Any
    ) -> ConsumeOrderlyStatus:
        """Listener of an orderly consumer; with a limited quota, one message at a time."""
        self._consume(messages, context.message_queue)
        return ConsumeOrderlyStatus.SUCCESS

    def _consume(self, messages: "Sequence[MessageExt]", queue: "MessageQueue") -> None:
        count = self.quota.enter(queue, messages)
        stops = count < len(messages)
        begun = messages[:count]
        try:
            if count:
                self._outstanding.add(queue, begun, self._consumer.process_queues.get(queue))
                self._handler(begun)
                if self._failing:
                    self._failing.difference_update(_places(queue, begun))
                if self._exact and self.quota.ends_with(queue, offset_at(messages, count - 1)):
                    stops = True
        except OutputFailedError as error:
            self.failure = self.failure or error.__cause__
            self.stopped = True
            self.quota.stop()
            count, stops = error.printed, True
            self._outstanding.take_back(queue, begun[count:])
        except BodyError as error:
            # The client passes a message that it cannot unpack in a batch of its own.
            self.unreadable += count
            self._tell(str(error))
            raise
        except BaseException as error:
            self.failed += count
            if self._consumer.orderly and begun:
                self._failing.update(_places(queue, begun))
                self._failures.note(begun[0], error)
            raise
        finally:
            self.quota.leave(queue, count)
            if not stops and self.quota.used_up:
                self.changed.set()
        if stops:
            self._give_up(queue, messages, count)
            self.changed.set()

    def _give_up(self, queue: "MessageQueue", messages: "Sequence[MessageExt]", count: int) -> None:
        """Finish ``count`` of the messages and leave the rest in the queue; nothing is sent
        back."""
        self.given_up.add(queue)
        process_queue = self._consumer.process_queues.get(queue)
        if process_queue is None:
            return
        self.quota.wait_for_others(queue)
        if not self._consumer.orderly:
            if count:  # now, as another thread may wait for them here
                self._finish(messages[:count], process_queue, queue)
            settle = partial(self._settle, process_queue, queue)
            self._outstanding.wait(queue, process_queue, settle)
        # In one step: an empty pull in between would commit an offset past these messages.
        with process_queue.ack_collector:
            if process_queue.dropped:
                return
            if self._consumer.orderly:
                last = messages[count] if count < len(messages) else None
                offset = messages[-1].queue_offset + 1 if last is None else last.queue_offset
                self._consumer.offset_store.update_offset(queue, offset, increase_only=True)
            process_queue.dropped = True
            process_queue.clear()  # so that the return value of this call has no effect

    def _settle(self, process_queue: "ProcessQueue", queue: "MessageQueue") -> None:
        """Commit finished messages now, as the thread that would do so may be this one."""
        service = self._consumer.consume_service
        service.give_back()
        service.settle(process_queue, queue)

    def _finish(
        self,
        messages: "Sequence[MessageExt]",
        process_queue: "ProcessQueue",
        queue: "MessageQueue",
    ) -> None:
        with process_queue.ack_collector:
            offset = process_queue.remove_message(messages)
            if offset is not None and not process_queue.dropped:
                self._consumer.offset_store.update_offset(queue, offset, increase_only=True)
