"""The listener of a group's member: what it does with messages, and where it stops.

A message is acknowledged when the reader of our output has it, and not before: what could not be
written is given up without an answer, so that it comes again to whoever consumes next.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from client.listener.listener import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus
from rmqctl.errors import CliError
from storage.format.errors import BodyError

from .outstanding import Outstanding

if TYPE_CHECKING:
    from client.listener.process_queue import ProcessQueue
    from client.push.push_consumer import PushConsumer
    from rmqctl.message.filter_options import Predicate
    from storage.format.message import MessageExt, MessageQueue

    from .printing import Printer
    from .quota import Quota

logger = logging.getLogger("rmqctl.consume")


class Handler(Protocol):
    """Does with messages what was asked for. Safe for threads."""

    def __call__(self, messages: "Sequence[MessageExt]", /) -> None:
        """Consume them; an exception means that all of them are to come again."""
        ...


class OutputFailedError(Exception):
    """The rest of a batch can not be printed: ``__cause__`` says why."""

    def __init__(self, printed: int) -> None:
        super().__init__(printed)
        self.printed = printed
        """How many of the batch the reader has."""


class PrintHandler:
    """Prints the messages that are wanted; the reader has them when it returns."""

    def __init__(self, printer: "Printer", predicate: "Predicate | None") -> None:
        self._printer = printer
        self._predicate = predicate
        self._lock = threading.Lock()  # one prints at a time

    def __call__(self, messages: "Sequence[MessageExt]") -> None:
        """See Handler. Raises OutputFailedError; what was printed before it, is flushed.

        BodyError where one body cannot be unpacked: then none of them is printed.
        """
        with self._lock:
            self._print(messages, 0)

    def _print(self, messages: "Sequence[MessageExt]", printed: int) -> None:
        predicate = self._predicate
        wanted = messages if predicate is None else [m for m in messages if predicate(m)]
        if wanted:
            try:
                self._printer.write(wanted)
                self._printer.flush()
            except (OSError, CliError) as error:
                raise OutputFailedError(printed) from error


class MemberListener:
    """Calls a handler for a push consumer, and stops at the quota.

    ``exact``: one thread consumes a queue at a time, so it can be given up between two messages.
    ``tell`` gets a sentence for each message whose body cannot be unpacked.
    ``delay_level``: after which of RocketMQ's delays a message comes again; 0 is its rule.
    Give :meth:`consume` or :meth:`consume_orderly` to the consumer.
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
        self.quota = quota
        self.failed = 0
        """Messages whose call of the handler ended in an exception; each attempt counts."""
        self.unreadable = 0
        """Messages whose bodies cannot be unpacked; each attempt counts."""
        self.given_up: set[MessageQueue] = set()
        """Queues that are not consumed any further."""
        self.failure: BaseException | None = None
        """Why a queue was given up before its end."""
        self.stopped = False
        """Whether nothing can be consumed any more."""
        self.changed = threading.Event()
        """Set when there may be a reason to stop."""

    def consume(self, messages: "Sequence[MessageExt]", context: Any) -> ConsumeConcurrentlyStatus:
        """Consume for a concurrent consumer."""
        context.delay_level_when_next_consume = self._delay_level
        self._consume(messages, context.message_queue)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    def consume_orderly(
        self, messages: "Sequence[MessageExt]", context: Any
    ) -> ConsumeOrderlyStatus:
        """Consume for an orderly consumer; with a limited quota one message at a time."""
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
                if self._exact and self.quota.ends_with(queue, messages[count - 1]):
                    stops = True
        except OutputFailedError as error:
            self.failure = self.failure or error.__cause__
            self.stopped = True
            self.quota.stop()
            count, stops = error.printed, True
            self._outstanding.take_back(queue, begun[count:])
        except BodyError as error:
            # The client hands over what it cannot unpack alone.
            self.unreadable += count
            self._tell(str(error))
            raise
        except BaseException:
            self.failed += count
            raise
        finally:
            self.quota.leave(queue, count)
            if not stops and self.quota.used_up:
                self.changed.set()
        if stops:
            self._give_up(queue, messages, count)
            self.changed.set()

    def _give_up(self, queue: "MessageQueue", messages: "Sequence[MessageExt]", count: int) -> None:
        """Finish ``count`` of the messages, and leave what follows in the queue as it is: nothing
        is sent back."""
        self.given_up.add(queue)
        process_queue = self._consumer.process_queues.get(queue)
        if process_queue is None:
            return
        self.quota.wait_for_others(queue)
        if not self._consumer.orderly:
            if count:  # at once, as another thread may wait for them in here
                self._finish(messages[:count], process_queue, queue)
            settle = partial(self._settle, process_queue, queue)
            self._outstanding.wait(queue, process_queue, settle)
        # In one step: a pull that brings nothing would note what it has passed meanwhile.
        with process_queue.ack_collector:
            if process_queue.dropped:
                return
            if self._consumer.orderly:
                last = messages[count] if count < len(messages) else None
                offset = messages[-1].queue_offset + 1 if last is None else last.queue_offset
                self._consumer.offset_store.update_offset(queue, offset, increase_only=True)
            process_queue.dropped = True
            process_queue.clear()  # so that this call's own answer counts for nothing

    def _settle(self, process_queue: "ProcessQueue", queue: "MessageQueue") -> None:
        """Have noted what has ended, in whatever way: this thread may be who keeps it waiting."""
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
