"""The producer (DefaultMQProducer of 4.9): sends messages to the brokers that it is given."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, Self

from broker.validation import check_group, check_topic
from client.arguments import (
    check_callable,
    check_kind,
    check_queue,
    check_whole,
    checked_brokers,
)
from client.errors import (
    ClientConfigError,
    ClientStateError,
    GroupRegisteredError,
    TooManyAsyncSendsError,
)
from client.runtime.client_config import ClientConfig
from client.runtime.client_manager import CLIENT_MANAGER, ClientManager
from client.runtime.own_broker import open_own_broker
from client.runtime.service_state import ServiceState, not_running, not_startable
from storage.coordination.locks import ForkAware, at_fork
from storage.counted import counted
from storage.format.message import Message
from storage.format.names import exact_str

from .bounded_executor import BoundedExecutor
from .config import ProducerConfig
from .fault_strategy import FaultStrategy
from .kernel import SendKernel
from .sending import SendProcess, SendTarget

if TYPE_CHECKING:
    from concurrent.futures import Future
    from os import PathLike

    from broker.api.broker import Broker
    from broker.api.send import SendResult
    from broker.api.transactions import CheckTransactionState
    from client.at_exit import AtExit
    from client.hooks import CheckForbiddenHook, SendMessageHook
    from client.runtime.instance import ClientInstance
    from client.trace.dispatcher import TraceDispatcher
    from storage.format.message import MessageQueue

    from .selector import MessageQueueSelector

logger = logging.getLogger("rmqctl.client")

_RUNNING: Final = ServiceState.RUNNING

INNER_PRODUCER_GROUP: Final = "CLIENT_INNER_PRODUCER"
"""Group of the producer that sends retries for a client's consumers."""


class Producer(ForkAware):
    """Sends messages, from any number of threads; a context manager that starts and shuts down.

    >>> from broker.embedded.broker import EmbeddedBroker
    >>> from rmqctl import Message, Producer
    >>> with EmbeddedBroker.open(store) as broker:
    ...     with Producer("order-service", brokers=[broker]) as producer:
    ...         result = producer.send(Message("OrderEvent", b"created", keys="order-1001"))
    >>> result.send_status
    <SendStatus.SEND_OK: 'SEND_OK'>

    With several brokers messages go to the queues of all of them in turn. A send that fails is
    tried again, preferably at another broker (client.producer.sending has the rules). A message
    gets a UNIQ_KEY when it is sent, and keeps it: a consumer that detects repeats recognises a
    message that was sent again.

    Errors: those of broker.errors where the broker refused the message. Where it did not answer,
    SendFailedError, or its cause if there was one attempt. RouteNotFoundError for a topic that no
    broker has and none creates.
    """

    def __init__(
        self,
        group: str,
        *,
        brokers: Iterable[Broker] = (),
        config: ProducerConfig | None = None,
        client_config: ClientConfig | None = None,
        manager: ClientManager = CLIENT_MANAGER,
    ) -> None:
        """Make a producer of ``group``; the caller closes the brokers.

        Raises InvalidNameError for an illegal group name, ClientArgumentError for an argument of
        another type.
        """
        check_group(group)
        check_kind("config", config, ProducerConfig)
        check_kind("client_config", client_config, ClientConfig)
        self.group: Final = exact_str(group)
        self.config: Final = config or ProducerConfig()
        self.send_message_hooks: Final[list[SendMessageHook]] = []
        """Called around each attempt to send; append yours before ``start``."""
        self.check_forbidden_hooks: Final[list[CheckForbiddenHook]] = []
        """May refuse a message before each attempt; append yours before ``start``."""
        self._client_config = client_config or ClientConfig()
        self._brokers = checked_brokers(brokers, type(self), group)
        self._manager = manager
        self._owned: Broker | None = None
        self._borrowed: ClientInstance | None = None
        self._instance: ClientInstance | None = None
        self._process: SendProcess | None = None
        self._dispatcher: TraceDispatcher | None = None
        self._is_copy = False  # of one in the parent process
        self._at_exit: AtExit | None = None
        self._program_ends = False
        self._failed_at_end: list[BaseException] = []
        self._state = ServiceState.CREATE_JUST
        self._async_sender = BoundedExecutor(
            f"AsyncSenderExecutor {group}",
            self.config.async_sender_threads,
            self.config.async_sender_queue,
        )
        at_fork(self)

    @classmethod
    def open(
        cls,
        store: str | PathLike[str],
        group: str,
        config: ProducerConfig | None = None,
        *,
        create: bool = False,
    ) -> Self:
        """Make a producer for the store in a folder; the store is closed with the producer.

        ``create`` makes the store first if there is none (see EmbeddedBroker.open).

        >>> from rmqctl import Message, Producer
        >>> with Producer.open(store, "order-service") as producer:
        ...     queue = producer.send(Message("OrderEvent", b"paid")).message_queue
        >>> queue.topic
        'OrderEvent'

        Its broker delivers retries and delayed messages while it is open: see ``open_own_broker``,
        also for the errors.
        """
        check_group(group)
        check_kind("config", config, ProducerConfig)
        return cls._owning(
            store, create, lambda brokers: cls(group, brokers=brokers, config=config)
        )

    @classmethod
    def _owning(
        cls, store: str | PathLike[str], create: bool, make: Callable[[list[Broker]], Self]
    ) -> Self:
        """Make a producer that closes the store's broker."""
        broker = open_own_broker(store, create=create)
        try:
            producer = make([broker])
        except BaseException:
            broker.close()
            raise
        producer._owned = broker
        return producer

    @classmethod
    def within(
        cls, instance: ClientInstance, group: str, config: ProducerConfig | None = None
    ) -> Self:
        """Make a producer that is a part of a client: running, and not in its table of producers.

        It sends retries and traces. ``shutdown`` ends the producer, not the client.
        """
        producer = cls(group, config=config, client_config=instance.config)
        producer._borrowed = instance
        producer.start()
        return producer

    @classmethod
    def inner(cls, instance: ClientInstance) -> Self:
        """Make the producer that sends the messages that consumers of a client send back."""
        return cls.within(instance, INNER_PRODUCER_GROUP)

    # -- life

    @property
    def state(self) -> ServiceState:
        """The producer's state."""
        return self._state

    @property
    def instance(self) -> ClientInstance:
        """The client that the producer is part of. Raises ClientStateError before ``start``."""
        if self._instance is None:
            raise not_running(f"producer {self.group}", self._state)
        return self._instance

    def start(self) -> None:
        """Register with the client and connect to the brokers.

        Raises ClientStateError if it was started before, GroupRegisteredError if the client
        has a producer of the group: then it can be started later.
        """
        if self._state is not ServiceState.CREATE_JUST:
            raise not_startable(f"producer {self.group}", self._state)
        self._state = ServiceState.START_FAILED
        if self._borrowed is not None:
            self._begin(self._borrowed)
            return
        instance = self._register()
        try:
            self._begin(instance)
            instance.send_heartbeat_to_all_brokers()
        except BaseException:  # Ctrl-C, too: nothing of it may stay in the client
            self._state = ServiceState.START_FAILED
            self._leave(instance)
            raise

    def _begin(self, instance: ClientInstance) -> None:
        config = self.config
        kernel = SendKernel(
            self.group,
            config,
            client_id=instance.client_id,
            client_ip=instance.config.client_ip,
            routes=instance.routes,
            clock=instance.clock,
        )
        kernel.send_hooks = self.send_message_hooks
        kernel.check_forbidden_hooks = self.check_forbidden_hooks
        faults = FaultStrategy(
            instance.clock,
            enabled=config.send_latency_fault_enable,
            latency_max=config.latency_max,
            not_available_duration=config.not_available_duration,
        )
        self._process = SendProcess(config, kernel, instance.routes, faults, instance.clock)
        self._instance = instance
        if config.enable_msg_trace:
            self._trace(instance)
        self._state = ServiceState.RUNNING

    def shutdown(self) -> None:
        """Wait for asynchronous sends, send remaining traces, and leave. Calling twice is fine.

        RocketMQ drops asynchronous sends that still wait; here they are sent. Only where none has
        ended for 2.5 s, because a callback blocks, those that have not begun are given up: their
        futures and ``on_exception`` get ClientStateError.
        """
        with ExitStack() as stack:  # each step runs whatever an earlier one raised
            stack.callback(self._close_owned)
            if self._state is ServiceState.RUNNING:
                if self._borrowed is None and self._instance is not None:
                    stack.callback(self._leave, self._instance)
                stack.callback(self._end_running)
                if self._dispatcher is not None:
                    stack.callback(self._dispatcher.shutdown)
                self._async_sender.shutdown()

    def _end_running(self) -> None:
        self._state = ServiceState.SHUTDOWN_ALREADY
        if self._at_exit is not None:
            self._at_exit.cancel()

    def _leave(self, instance: ClientInstance) -> None:
        try:
            instance.unregister_producer(self.group)
        finally:
            instance.shutdown()

    def _close_owned(self) -> None:
        owned, self._owned = self._owned, None
        if owned is not None:
            owned.close()

    def send_before_exit(self) -> None:
        """Send what waits, because the program ends and has not called ``shutdown``.

        Waits no longer than ``shutdown``. Later asynchronous sends are made at once, in the thread
        that calls ``send_async``. What fails without a callback is reported in the log.
        """
        if self._state is not ServiceState.RUNNING:
            return
        self._program_ends = True
        self._async_sender.shutdown()
        self._report_failures()
        if self._dispatcher is not None:
            self._dispatcher.send_before_exit()

    def _report_failures(self) -> None:
        failed, self._failed_at_end = self._failed_at_end, []
        if failed:
            logger.error(
                "producer %s: %s failed while the program ended; the first error: %s",
                self.group,
                counted(len(failed), "asynchronous send"),
                failed[0],
            )

    def after_fork(self) -> None:
        """Have nothing to end in the child: traces and the client belong to its parent."""
        self._is_copy = True
        self._dispatcher = None
        self._borrowed = self._instance

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.shutdown()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    # -- sending

    def send(
        self,
        message: Message | Sequence[Message],
        *,
        queue: MessageQueue | None = None,
        selector: MessageQueueSelector | None = None,
        arg: object = None,
        timeout_ms: int | None = None,
    ) -> SendResult:
        """Send a message, or several of one topic as a batch, and wait until it is stored.

        ``queue``, or ``selector`` with ``arg``, chooses the queue: then there is one attempt.
        Without both the queues get their messages in turn, and a failed send is tried again.
        ``timeout_ms``, by default the config's, is for all attempts together. Stored according to
        the broker's flush_disk_type when this returns; check ``send_status``.

        >>> from rmqctl import Message, Producer, select_by_hash
        >>> with Producer.open(store, "order-service") as producer:
        ...     for step in (b"created", b"paid", b"finished"):
        ...         message = Message("OrderSteps", step)
        ...         result = producer.send(message, selector=select_by_hash, arg="order-1001")
        >>> result.message_queue.queue_id, result.queue_offset
        (3, 2)
        """
        target: SendTarget = None
        if queue is not None or selector is not None or arg is not None:
            target = _target(queue, selector, arg)
        if timeout_ms is None:
            timeout_ms = self.config.send_msg_timeout_ms
        elif type(timeout_ms) is not int:
            check_whole("timeout_ms", timeout_ms)
        process = self._process
        if process is None or self._state is not _RUNNING:
            process = self._running  # raises
        return process.send(message, target, timeout_ms)

    def send_async(
        self,
        message: Message | Sequence[Message],
        *,
        queue: MessageQueue | None = None,
        selector: MessageQueueSelector | None = None,
        arg: object = None,
        timeout_ms: int | None = None,
        on_success: Callable[[SendResult], object] | None = None,
        on_exception: Callable[[Exception], object] | None = None,
    ) -> Future[SendResult]:
        """Send in another thread; the future has the result, or the error of ``send``.

        Several messages are taken out of their list in the call: the caller may use it again.
        ``on_success`` or ``on_exception`` is called before the future is done, in the sending
        thread; their errors are logged. Raises ClientStateError if the producer is not
        running, and TooManyAsyncSendsError if 50,000 sends (``async_sender_queue``) wait already.
        Messages may overtake each other.

        A program that ends without ``shutdown``, also by an exception, sends first what waits, as
        ``shutdown`` does. What waits is lost if ``os._exit`` or a signal ends the process: a
        message is stored when its future has a result.
        """
        from concurrent.futures import Future

        target = _target(queue, selector, arg)
        check_callable("on_success", on_success)
        check_callable("on_exception", on_exception)
        process, timeout_ms = self._running, self._timeout(timeout_ms)
        taken = _taken_out(message)
        begin = self.instance.clock.now_ms()
        future: Future[SendResult] = Future()
        future.set_running_or_notify_cancel()  # it cannot be cancelled any more

        def task() -> None:
            try:
                result = process.send_async(taken, target, begin, timeout_ms)
            except BaseException as error:  # noqa: BLE001 - the future raises it
                if self._program_ends and on_exception is None:  # nothing reads the future
                    self._failed_at_end.append(error)
                _call_back(on_exception, error)
                future.set_exception(error)
            else:
                _call_back(on_success, result)
                future.set_result(result)

        def give_up() -> None:
            error = ClientStateError(f"producer {self.group} has ended before it could send")
            if not self._is_copy:  # else the parent process sends it
                _call_back(on_exception, error)
            future.set_exception(error)

        if self._at_exit is None:
            from client.at_exit import AtExit

            self._at_exit = AtExit(self.send_before_exit)
        if not self._async_sender.submit(task, give_up):
            if not self._program_ends:
                raise TooManyAsyncSendsError(self.config.async_sender_queue)
            task()
            self._report_failures()
        return future

    def send_oneway(
        self,
        message: Message | Sequence[Message],
        *,
        queue: MessageQueue | None = None,
        selector: MessageQueueSelector | None = None,
        arg: object = None,
    ) -> None:
        """Send without waiting for the result: one attempt, and a refusal is not reported.

        Raises SendFailedError (with ``queue`` or ``selector`` the error itself) if no broker could
        take the request.
        """
        target = _target(queue, selector, arg)
        self._running.send_oneway(message, target, self.config.send_msg_timeout_ms)

    def fetch_publish_message_queues(self, topic: str) -> list[MessageQueue]:
        """Give the queues that messages of a topic go to, sorted by broker and id.

        Raises InvalidNameError.
        """
        check_topic(topic)
        config = self.config
        return self.instance.routes.publish_queues(
            exact_str(topic), config.create_topic_key, config.default_topic_queue_nums
        )

    # -- for the client instance

    def check_transaction_state(self, broker: Broker, request: CheckTransactionState) -> None:
        """Answer a broker's question about a transaction: this producer has none."""
        logger.warning(
            "producer %s has no transaction listener: msg_id=%s broker=%s",
            self.group,
            request.msg_id,
            broker.name,
        )

    def _register(self) -> ClientInstance:
        client_config = self._client_config
        if self.group != INNER_PRODUCER_GROUP:
            client_config = client_config.with_own_instance_name()
        instance = self._manager.get_or_create(client_config, self._brokers)
        if not instance.register_producer(self.group, self):
            self._state = ServiceState.CREATE_JUST
            raise GroupRegisteredError("producer", self.group, instance.client_id)
        try:
            instance.start()
        except BaseException:
            instance.unregister_producer(self.group)
            raise
        return instance

    def _trace(self, instance: ClientInstance) -> None:
        from client.trace.trace_hooks import SendMessageTraceHook

        from .tracing import trace_dispatcher

        self._dispatcher = trace_dispatcher(
            instance, self.group, "PRODUCE", self.config.customized_trace_topic
        )
        self.send_message_hooks.append(SendMessageTraceHook(self._dispatcher, instance.clock))

    @property
    def _running(self) -> SendProcess:
        if self._process is None or self._state is not ServiceState.RUNNING:
            raise not_running(f"producer {self.group}", self._state)
        return self._process

    def _timeout(self, timeout_ms: int | None) -> int:
        if timeout_ms is None:
            return self.config.send_msg_timeout_ms
        check_whole("timeout_ms", timeout_ms)
        return timeout_ms


def _target(
    queue: MessageQueue | None, selector: MessageQueueSelector | None, arg: object
) -> SendTarget:
    if selector is None:
        if arg is not None:
            raise ClientConfigError(
                "arg is for a selector, and there is none; pass selector= too, such as "
                "select_by_hash"
            )
        if queue is not None:
            check_queue(queue, "fetch_publish_message_queues(topic)")
        return queue
    check_callable("selector", selector)
    if queue is not None:
        raise ClientConfigError(
            "a message goes to a queue or where a selector says, not both; pass one of them"
        )
    chosen = selector
    return lambda queues, message: chosen(queues, message, arg)


def _taken_out(message: Message | Sequence[Message]) -> Message | Sequence[Message]:
    """Copy the list of a batch; what is neither it nor a message is refused when it is sent."""
    if isinstance(message, Message | str | bytes):
        return message
    try:
        messages = iter(message)
    except TypeError:
        return message
    return tuple(messages)


def _call_back(callback: Callable[[Any], object] | None, value: object) -> None:
    if callback is None:
        return
    try:
        callback(value)
    except BaseException:  # the future must be set after any error
        logger.exception("a send's callback failed")
