"""Calling a listener for message after message, as long as it only succeeds, and quickly.

A consumer with a backlog spends its time here, and an empty listener costs about as much as the
rest of the work for a message. So anything beyond the next call ends this loop: the caller handles
it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from client import native
from storage.format.message import PROPERTY_CONSUME_START_TIMESTAMP
from storage.native import nothing

from .listener import ACK_ALL, ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus

if TYPE_CHECKING:
    from storage.format.message import MessageQueue

    from .listener import ConcurrentCall
    from .process_queue import Messages, ProcessQueue
    from .worker_pool import WorkerPool

_SUCCESS: Final = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
_START_TIME: Final = PROPERTY_CONSUME_START_TIMESTAMP.encode() + b"\x01%d"


class LoopResult(NamedTuple):
    """A call that has ended the loop: it failed, or needs more than the next call."""

    messages: Messages
    context: ConsumeConcurrentlyContext
    status: ConsumeConcurrentlyStatus | None
    error: BaseException | None


class ListenerLoop(NamedTuple):
    """Calls of a listener for the messages of a queue. ``clock`` None is the system's, else it
    gives seconds since 1970."""

    listen: ConcurrentCall
    queue: MessageQueue
    process_queue: ProcessQueue
    pool: WorkerPool
    clock: Callable[[], float] | None

    def run(
        self,
        requests: Iterator[Messages],
        started_ms: int,
        until: float,
        finished: list[Messages],
    ) -> LoopResult | None:
        """Consume requests until none is left (None), or one was the last for now.

        That is the first one that is no CONSUME_SUCCESS with an unset ``ack_index``, or ends at
        ``until`` (seconds) or later, or after the queue was dropped or the pool stopped. All before
        it are appended to ``finished``. Messages get ``started_ms`` as their CONSUME_START_TIME. A
        context may be reused for the next call if the listener has not kept it.
        """
        listen, queue, process_queue, pool, clock = self
        item = _START_TIME % started_ms
        ended = call_quickly(
            requests, listen, queue, item, until, clock, process_queue, pool, finished
        )
        return None if ended is None else LoopResult(*ended)


def _call_quickly(
    requests: Iterator[Messages],
    listen: ConcurrentCall,
    queue: MessageQueue,
    item: bytes,
    until: float,
    clock: Callable[[], float] | None,
    process_queue: ProcessQueue,
    pool: WorkerPool,
    finished: list[Messages],
    /,
) -> LoopResult | None:
    """Consume requests as ListenerLoop.run does."""
    clock = clock or time.time
    before, added = b"", item
    for messages in requests:
        context = ConsumeConcurrentlyContext(queue)
        if isinstance(messages, tuple):
            for message in messages:
                own = message.added_property_bytes
                if own is not before:  # all of a pull have the same
                    before, added = own, own + b"\x02" + item if own else item
                message.added_property_bytes = added
        else:
            messages.add_property_bytes(item)
        try:
            status, error = listen(messages, context), None
        except BaseException as raised:  # noqa: BLE001 - they come again after any error
            # Without this frame, which the compiled form does not have: the same failure has
            # the same hash in all members (broker.api.failure_reason).
            trace = raised.__traceback__
            status, error = None, raised.with_traceback(trace and trace.tb_next)
        if (
            status is _SUCCESS
            and context.ack_index is ACK_ALL
            and clock() < until
            and not (process_queue.dropped or pool.stopped)
        ):
            finished.append(messages)
            continue
        return LoopResult(messages, context, status, error)
    return None


native.form("bind_calls", nothing)(ConsumeConcurrentlyContext, _SUCCESS, ACK_ALL)
call_quickly: Final = native.form("call_quickly", _call_quickly)
