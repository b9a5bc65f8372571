"""How often, where and for how long a producer tries (sendDefaultImpl, MQClientAPIImpl).

            attempts            tried again after
synchronous 1 + 2               no answer, no such broker, an answer of retry_response_codes, and,
                                if configured, a message that is stored but not SEND_OK
asynchronous 1 + 2              no answer; the queue id stays, also on another broker
one-way     1                   nothing
to a queue that the caller chose: one attempt; asynchronous 1 + 2, at the same queue

All attempts share one time-out. A broker in this process cannot be interrupted: if it answers late,
it has stored the message, and its result is given.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, cast

from broker.api.send import SendResult, SendStatus
from broker.errors import BrokerError
from broker.validation import check_types, typed
from client.errors import (
    UNANSWERED,
    ClientError,
    ClientErrorCode,
    RouteNotFoundError,
    SendFailedError,
    SendTimeoutError,
)
from client.send_kinds import CommunicationMode
from storage.errors import WriteLockTimeoutError
from storage.format.message import Message, MessageQueue

from .send_fast_path import SendFastPath

if TYPE_CHECKING:
    from client.runtime.routes import Routes
    from client.timing import Clock

    from .config import ProducerConfig
    from .fault_strategy import FaultStrategy
    from .kernel import Outgoing, SendKernel
    from .send_fast_path import FirstAttempt

logger = logging.getLogger("rmqctl.client")

SendTarget = MessageQueue | Callable[[Sequence[MessageQueue], Message], MessageQueue | None] | None
"""The target: a queue, a selector, or None: in turn."""

_SYNC: Final = CommunicationMode.SYNC
_SEND_OK: Final = SendStatus.SEND_OK
_FAILED: Final = (*UNANSWERED, ClientError)


class SendProcess:
    """Sends prepared messages. Safe for threads."""

    def __init__(
        self,
        config: ProducerConfig,
        kernel: SendKernel,
        routes: Routes,
        faults: FaultStrategy,
        clock: Clock,
    ) -> None:
        self._config = config
        self._kernel = kernel
        self._routes = routes
        self._faults = faults
        self._now = clock.now_ms
        self._learns = faults.enabled
        self._select = faults.select if faults.enabled else faults.choice.select
        self._runs: SendFastPath | None = None
        if not faults.enabled:
            self._runs = SendFastPath(config, routes, kernel.unique_ids, kernel.make_plain_ready)

    def send(
        self,
        message: Message | Sequence[Message],
        target: SendTarget,
        timeout_ms: int,
    ) -> SendResult:
        """Send and wait for the answer."""
        begin = self._now()
        first = None
        if target is None and self._runs is not None:
            is_batch = type(message) is list or type(message) is tuple
            send = self._runs.send_batch if is_batch else self._runs.send
            sent = send(message, begin, timeout_ms)
            if type(sent) is SendResult:
                return sent
            first = cast("FirstAttempt | None", sent)
        outgoing = self._kernel.prepare(message, begin)
        if target is None:
            result = self._send_anywhere(outgoing, _SYNC, begin, timeout_ms, first)
            if outgoing.is_plain and self._runs is not None and self._runs.is_another(begin):
                self._begin_run(self._runs, outgoing.topic, begin, timeout_ms)
            return result
        queue = self._queue(outgoing, target)
        left = self._left(outgoing, begin, timeout_ms)
        return self._kernel.attempt(outgoing, queue, _SYNC, left)

    def send_oneway(
        self, message: Message | Sequence[Message], target: SendTarget, timeout_ms: int
    ) -> None:
        """Send without waiting for the result; raises only if no broker could take the request."""
        begin = self._now()
        outgoing = self._kernel.prepare(message, begin)
        try:
            if target is None:
                self._send_anywhere(outgoing, CommunicationMode.ONEWAY, begin, timeout_ms)
            else:
                queue = self._queue(outgoing, target)
                left = self._left(outgoing, begin, timeout_ms)
                self._kernel.attempt(outgoing, queue, CommunicationMode.ONEWAY, left)
        except BrokerError as error:
            check_types(outgoing.batch or (outgoing.message,))  # the caller's fault is raised
            logger.info("a one-way message was refused: topic=%s %s", outgoing.topic, error)

    def send_async(
        self,
        message: Message | Sequence[Message],
        target: SendTarget,
        begin: int,
        timeout_ms: int,
    ) -> SendResult:
        """Send in an executor's thread; ``begin`` is the time of the caller's request."""
        waited = self._now() - begin
        if waited >= timeout_ms:
            topic = message.topic if isinstance(message, Message) else message[0].topic
            raise SendTimeoutError(topic, timeout_ms, (), waited)
        outgoing = self._kernel.prepare(message, begin + waited)
        queues: Sequence[MessageQueue] | None = None
        if target is None:
            queues = self._publish_queues(outgoing.topic)
            queue = self._select(queues, None)
        else:
            queue = self._queue(outgoing, target)
        return self._send_async(outgoing, queue, queues, begin, timeout_ms)

    def _begin_run(self, runs: SendFastPath, topic: str, begin: int, timeout_ms: int) -> None:
        known = self._kernel.known_options(begin, timeout_ms)
        if known is not None:
            queues = self._routes.known_queues_to(topic)
            runs.begin(topic, begin, timeout_ms, known, queues, self._faults.choice.index)

    def _send_anywhere(
        self,
        outgoing: Outgoing,
        mode: CommunicationMode,
        begin: int,
        timeout_ms: int,
        first: FirstAttempt | None = None,
    ) -> SendResult:
        """Try as often as the mode allows; ``first`` was an attempt, and counts."""
        topic = outgoing.message.topic
        queues = self._routes.known_queues_to(topic) or self._publish_queues(topic)
        config = self._config
        sync = mode is _SYNC
        brokers_sent: list[str] = []
        last_error: Exception | None = None
        result: SendResult | None = None
        for _ in range(1 + config.retry_times_when_send_failed if sync else 1):
            started = self._now()
            left = timeout_ms - started + begin
            done, first = first, None
            if done is not None:
                queue = done.queue
            else:
                queue = self._select(queues, brokers_sent[-1] if brokers_sent else None)
                if left < 0:
                    if result is not None:
                        break
                    raise SendTimeoutError(
                        topic, timeout_ms, brokers_sent, started - begin, last_error
                    ) from last_error
            brokers_sent.append(queue.broker_name)
            try:
                if done is not None:
                    result = done.result()
                else:
                    result = self._kernel.attempt(outgoing, queue, mode, left)
            except _FAILED as error:
                self._learn(queue.broker_name, started, isolation=True)
                logger.warning("a send failed, trying again: queue=%s %s", queue, error)
                last_error = error
            except BrokerError as error:
                self._learn(queue.broker_name, started, isolation=True)
                if error.code not in config.retry_response_codes:
                    if result is not None:
                        break
                    raise
                logger.warning("a send was refused, trying again: queue=%s %s", queue, error)
                last_error = error
            except BaseException:
                self._learn(queue.broker_name, started, isolation=False)
                raise
            else:
                if self._learns:
                    self._learn(queue.broker_name, started, isolation=False)
                stored = not sync or result.send_status is _SEND_OK
                if stored or not config.retry_another_broker_when_not_store_ok:
                    return result
        if result is not None:
            return result
        raise self._failure(topic, brokers_sent, begin, last_error)

    def _send_async(
        self,
        outgoing: Outgoing,
        queue: MessageQueue,
        queues: Sequence[MessageQueue] | None,
        begin: int,
        timeout_ms: int,
    ) -> SendResult:
        """Try until there is an answer; hooks are called around all attempts together."""
        kernel = self._kernel
        context = kernel.context(outgoing, queue, CommunicationMode.ASYNC)
        brokers_sent: list[str] = []
        broker_name = queue.broker_name
        last_error: Exception | None = None
        for attempt in range(1 + self._config.retry_times_when_send_async_failed):
            if attempt and queues is not None:
                broker_name = self._select(queues, broker_name).broker_name
            started = self._now()
            left = timeout_ms - (started - begin)
            if left < 0:
                late = SendTimeoutError(
                    outgoing.topic, timeout_ms, brokers_sent, started - begin, last_error
                )
                kernel.done(context, None, late)
                raise late from last_error
            brokers_sent.append(broker_name)
            try:
                result = kernel.call(outgoing, broker_name, queue.queue_id, left)
            except BrokerError as error:
                self._learn(broker_name, started, isolation=True)
                kernel.done(context, None, error)
                raise
            except _FAILED as error:
                self._learn(broker_name, started, isolation=True)
                logger.warning("an asynchronous send failed: broker=%s %s", broker_name, error)
                last_error = error
            else:
                self._learn(broker_name, started, isolation=False)
                kernel.done(context, result)
                return result
        failure = self._failure(outgoing.topic, brokers_sent, begin, last_error)
        kernel.done(context, None, failure)
        raise failure

    def _queue(self, outgoing: Outgoing, target: SendTarget) -> MessageQueue:
        """Give the queue that the caller chose, or let the selector choose one."""
        if isinstance(target, MessageQueue):
            if target.topic != outgoing.topic:
                raise ClientError(
                    f"the message's topic is {outgoing.topic}, the queue's is {target.topic}"
                )
            return target
        if target is None:
            raise ValueError("there is no target")
        queue = target(list(self._publish_queues(outgoing.topic)), outgoing.message)
        if queue is None:
            raise ClientError(f"the selector chose no queue of topic {outgoing.topic}")
        given: object = queue
        if not isinstance(given, MessageQueue):
            raise ClientError(
                f"the selector gave {typed(given)}; it gives one of the queues that it gets"
            )
        return given

    def _publish_queues(self, topic: str) -> Sequence[MessageQueue]:
        config = self._config
        queues = self._routes.queues_to(
            topic, config.create_topic_key, config.default_topic_queue_nums
        )
        if not queues:
            raise RouteNotFoundError(topic, brokers=len(self._routes.by_name))
        return queues

    def _left(self, outgoing: Outgoing, begin: int, timeout_ms: int) -> int:
        cost = self._now() - begin
        if timeout_ms < cost:
            raise SendTimeoutError(outgoing.topic, timeout_ms, (), cost)
        return timeout_ms - cost

    def _learn(self, broker_name: str, started: int, *, isolation: bool) -> None:
        self._faults.update(broker_name, self._now() - started, isolation=isolation)

    def _failure(
        self, topic: str, brokers_sent: Sequence[str], begin: int, cause: Exception | None
    ) -> SendFailedError:
        cost_ms = self._now() - begin
        error = SendFailedError(topic, brokers_sent, cost_ms, cause, _code_of(cause))
        error.__cause__ = cause
        return error


def _code_of(cause: Exception | None) -> int | None:
    """Give the code of a failed send: the broker's, or that of the failure on the way to it."""
    if isinstance(cause, BrokerError):
        return cause.code
    if isinstance(cause, (TimeoutError, WriteLockTimeoutError)):
        return ClientErrorCode.ACCESS_BROKER_TIMEOUT
    if isinstance(cause, UNANSWERED):
        return ClientErrorCode.CONNECT_BROKER_EXCEPTION
    return ClientErrorCode.BROKER_NOT_EXIST_EXCEPTION
