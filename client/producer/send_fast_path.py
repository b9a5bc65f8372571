"""Plain messages and batches in quick succession: what those of one millisecond to one topic share.

Most of such a send would repeat the look-ups of the message before: the topic's queues, their
brokers, the options. So from the third send of a millisecond on they are cached, thread by thread.
The next millisecond begins anew, and nothing has to be invalidated meanwhile. Only a first attempt
is made this way: SendProcess goes on from it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.api.send import SendStatus
from broker.errors import BrokerError
from client.errors import UNANSWERED, ClientError
from storage.format.plain_message import PLAIN_WITHOUT_ID, give_id, look_at

if TYPE_CHECKING:
    from broker.api.send import SendOptions, SendResult
    from client.runtime.routes import Routes
    from storage.format.message import Message, MessageQueue
    from storage.format.message_id import UniqueIds

    from .config import ProducerConfig
    from .fault_strategy import ThreadLocalIndex

_SEND_OK: Final = SendStatus.SEND_OK
_TOLD: Final = (*UNANSWERED, ClientError, BrokerError)

Send = Callable[[Any, int, "SendOptions"], "SendResult"]


class Target(NamedTuple):
    """A queue, and its broker's ``send`` and ``send_batch``."""

    queue: MessageQueue
    queue_id: int
    send: Send
    send_batch: Send


class FirstAttempt(NamedTuple):
    """An unfinished send: it failed, or the message is stored but not SEND_OK."""

    queue: MessageQueue
    outcome: SendResult | Exception

    def result(self) -> SendResult:
        """Give the result, or raise the error."""
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


class _Run:
    """The sends of a millisecond to a topic, in one thread and with one time-out."""

    __slots__ = ("begin", "options", "targets", "timeout_ms", "turn")

    def __init__(
        self,
        begin: int,
        timeout_ms: int,
        options: SendOptions,
        targets: Sequence[Target],
        turn: Iterator[int],
    ) -> None:
        self.begin = begin
        self.timeout_ms = timeout_ms
        self.options = options
        self.targets = targets
        self.turn = turn


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.runs: dict[str, _Run] = {}
        self.last_begin = -1


class SendFastPath:
    """The runs of a producer without hooks. Safe for threads."""

    def __init__(
        self,
        config: ProducerConfig,
        routes: Routes,
        ids: UniqueIds,
        make_ready: Callable[[tuple[Message, ...], int], bool],
    ) -> None:
        """``make_ready``: SendKernel.make_plain_ready."""
        self._largest = min(config.max_message_size, config.compress_msg_body_over_howmuch - 1)
        self._routes = routes
        self._ids = ids
        self._make_ready = make_ready
        self._local = _OfThread()

    def send(self, message: Any, begin: int, timeout_ms: int) -> SendResult | FirstAttempt | None:
        """Send it if it is a plain message and there is a run for it; None: nothing is done."""
        plain = look_at(message, self._largest)
        run = self._local.runs.get(message.topic) if plain else None
        if run is None or run.begin != begin or run.timeout_ms != timeout_ms:
            return None
        if plain == PLAIN_WITHOUT_ID:
            give_id(message, self._ids.next(begin))
        target = run.targets[next(run.turn) % len(run.targets)]
        return _attempt(target, target.send, message, run.options)

    def send_batch(
        self, batch: Any, begin: int, timeout_ms: int
    ) -> SendResult | FirstAttempt | None:
        """Do the same with a list or tuple of them; after None they may have ids."""
        messages = tuple(batch)  # a copy: other threads may add to ``batch``
        topic = getattr(messages[0], "topic", None) if messages else None
        run = self._local.runs.get(topic) if type(topic) is str else None
        if run is None or run.begin != begin or run.timeout_ms != timeout_ms:
            return None
        if not self._make_ready(messages, begin):
            return None
        target = run.targets[next(run.turn) % len(run.targets)]
        return _attempt(target, target.send_batch, messages, run.options)

    def is_another(self, begin: int) -> bool:
        """Note plain messages that were sent the usual way; returns whether this thread sent
        another one in this millisecond, so that a run is worth it."""
        local = self._local
        if local.last_begin == begin:
            return True
        local.last_begin = begin
        return False

    def begin(
        self,
        topic: str,
        begin: int,
        timeout_ms: int,
        options: SendOptions,
        queues: Sequence[MessageQueue],
        index: ThreadLocalIndex,
    ) -> None:
        """Send plain messages the fast way from now on, with the options of the last one."""
        brokers = self._routes.by_name
        if all(queue.broker_name in brokers for queue in queues):
            targets = []
            for queue in queues:
                broker = brokers[queue.broker_name]
                targets.append(Target(queue, queue.queue_id, broker.send, broker.send_batch))
            run = _Run(begin, timeout_ms, options, targets, index.turn(topic))
            self._local.runs[topic] = run


def _attempt(
    target: Target, send: Send, message: Any, options: SendOptions
) -> SendResult | FirstAttempt:
    try:
        result = send(message, target.queue_id, options)
    except _TOLD as error:
        return FirstAttempt(target.queue, error)
    return result if result.send_status is _SEND_OK else FirstAttempt(target.queue, result)
