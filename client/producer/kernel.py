"""One attempt to send to one queue: ids, compression, hooks and the call (sendKernelImpl)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from broker.api.send import SendOptions, SendResult
from broker.errors import BrokerError, MessageIllegalError
from broker.send.compression import compress_body
from broker.validation import (
    SENT_TO,
    WRONG_TYPES,
    check_message,
    check_messages,
    check_send_topic,
    check_types,
)
from client.errors import UNANSWERED, BrokerNotExistError, RemotingTimeoutError
from client.runtime.unique_ids import client_unique_ids
from client.send_kinds import CommunicationMode, MessageType
from storage.format.message import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_MAX_RECONSUME_TIMES,
    PROPERTY_RECONSUME_TIME,
    PROPERTY_TRANSACTION_PREPARED,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    RETRY_GROUP_TOPIC_PREFIX,
    Message,
    MessageQueue,
)
from storage.format.plain_message import PLAIN_WITHOUT_ID, give_id, give_ids, look_at, look_over
from storage.format.sys_flag import MessageSysFlag

from .batch import ITEM_HEAD, check_batch, encoded_size, fits

if TYPE_CHECKING:
    from client.hooks import CheckForbiddenHook, SendMessageContext, SendMessageHook
    from client.runtime.routes import Routes
    from client.timing import Clock

    from .config import ProducerConfig

logger = logging.getLogger("rmqctl.client")

_NORMAL: Final = MessageType.Normal_Msg
_ONEWAY: Final = CommunicationMode.ONEWAY
_REFUSED: Final = (*UNANSWERED, BrokerError, BrokerNotExistError)
_new_tuple: Final = tuple.__new__  # does the same as a NamedTuple's own, in half the time
_UNIQ_KEY_SIZE: Final = len(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX) + 2
"""Bytes that an id adds to a message's properties, beside its own: name and separators."""


class Outgoing(NamedTuple):
    """A message as it goes to a broker, or a batch: then ``message`` is the first of them."""

    message: Message
    batch: tuple[Message, ...]
    body_length: int
    """Bytes of the body as sent; 0 for a batch, whose size only hooks use."""
    sys_flag: int
    message_type: MessageType
    reconsume_times: int = 0
    max_reconsume_times: int | None = None
    is_plain: bool = False
    """Sent by the fast path of plain messages: it has no options of its own."""

    @property
    def topic(self) -> str:
        """The topic of all."""
        return self.message.topic


class SendKernel:
    """Prepares messages and sends them to brokers. Safe for threads, except for the hook lists."""

    def __init__(
        self,
        producer_group: str,
        config: ProducerConfig,
        *,
        client_id: str,
        client_ip: str,
        routes: Routes,
        clock: Clock,
    ) -> None:
        self._group = producer_group
        self._config = config
        self._client_id = client_id
        self._routes = routes
        self._now = clock.now_ms
        self._known_options: tuple[int, int, SendOptions] = (-1, -1, SendOptions())
        self.unique_ids: Final = client_unique_ids(client_ip)
        self.send_hooks: list[SendMessageHook] = []
        self.check_forbidden_hooks: list[CheckForbiddenHook] = []

    def prepare(self, message: Message | Sequence[Message], now_ms: int) -> Outgoing:
        """Check a message or a batch, give each message its UNIQ_KEY, and compress the body.

        The key is put into the caller's message, unless it has one: sent once more, it is the same
        message. Raises MessageIllegalError, InvalidNameError and NoPermissionError.
        """
        try:
            if not isinstance(message, Message):
                return self._prepare_batch(tuple(message), now_ms)
            config = self._config
            topic = message.topic
            plain = look_at(message, config.max_message_size)
            if not plain or topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
                return self._prepare_any(message, now_ms)
            if topic not in SENT_TO:
                check_send_topic(topic)
            if plain == PLAIN_WITHOUT_ID:
                give_id(message, self.unique_ids.next(now_ms))
            size = len(message.body)
            if size >= config.compress_msg_body_over_howmuch:
                return self._prepare_any(message, now_ms)
            return _new_tuple(Outgoing, (message, (), size, 0, _NORMAL, 0, None, True))
        except WRONG_TYPES:
            several = isinstance(message, Iterable) and not isinstance(
                message, Message | str | bytes
            )
            check_types(cast("Iterable[object]", message) if several else (message,))
            raise

    def context(
        self, outgoing: Outgoing, queue: MessageQueue, mode: CommunicationMode
    ) -> SendMessageContext | None:
        """Check whether the message is forbidden, and call the hooks before; None without hooks."""
        if not self.check_forbidden_hooks and not self.send_hooks:
            return None
        from client.hooks import CheckForbiddenContext, SendMessageContext, call_hooks

        for check in self.check_forbidden_hooks:
            check.check_forbidden(
                CheckForbiddenContext(
                    group=self._group,
                    message=outgoing.message,
                    message_queue=queue,
                    communication_mode=mode,
                )
            )
        if not self.send_hooks:
            return None
        batch = outgoing.batch
        context = SendMessageContext(
            producer_group=self._group,
            message=outgoing.message,
            message_queue=queue,
            communication_mode=mode,
            client_id=self._client_id,
            body_length=encoded_size(batch) if batch else outgoing.body_length,
            batch=batch,
            message_type=outgoing.message_type,
        )
        call_hooks((hook.send_message_before for hook in self.send_hooks), context)
        return context

    def done(
        self,
        context: SendMessageContext | None,
        result: SendResult | None,
        error: Exception | None = None,
    ) -> None:
        """Call the hooks after."""
        if context is not None:
            from client.hooks import call_hooks

            context.send_result, context.error = result, error
            call_hooks((hook.send_message_after for hook in self.send_hooks), context)

    def call(
        self, outgoing: Outgoing, broker_name: str, queue_id: int, timeout_ms: int
    ) -> SendResult:
        """Let a broker store it. Raises BrokerNotExistError, BrokerError and ``UNANSWERED``."""
        routes = self._routes
        broker = routes.by_name.get(broker_name) or routes.broker(broker_name)  # raises
        if timeout_ms < 0:
            raise RemotingTimeoutError(f"no time is left to send to broker {broker_name}")
        known_ms, known_timeout, options = self._known_options
        if known_ms != self._now() or known_timeout != timeout_ms or not outgoing.is_plain:
            options = self._options(outgoing, timeout_ms)
        if outgoing.batch:
            return broker.send_batch(outgoing.batch, queue_id, options)
        return broker.send(outgoing.message, queue_id, options)

    def attempt(
        self, outgoing: Outgoing, queue: MessageQueue, mode: CommunicationMode, timeout_ms: int
    ) -> SendResult:
        """Send to a queue once, with the hooks around it. Raises the errors of ``call``."""
        _, broker_name, queue_id = queue
        if not self.send_hooks and not self.check_forbidden_hooks:
            return self.call(outgoing, broker_name, queue_id, timeout_ms)
        context = self.context(outgoing, queue, mode)
        try:
            result = self.call(outgoing, broker_name, queue_id, timeout_ms)
        except _REFUSED as error:
            self.done(context, None, error)
            raise
        self.done(context, None if mode is _ONEWAY else result)
        return result

    def known_options(self, now_ms: int, timeout_ms: int) -> SendOptions | None:
        """Give the options of the last usual message, if it was sent at that time and without
        hooks."""
        known_ms, known_timeout, known_options = self._known_options
        if self.send_hooks or self.check_forbidden_hooks:
            return None
        return known_options if known_ms == now_ms and known_timeout == timeout_ms else None

    def _options(self, outgoing: Outgoing, timeout_ms: int) -> SendOptions:
        """Make a message's options: one object for all usual messages of a millisecond."""
        now = self._now()
        config = self._config
        options = _new_tuple(
            SendOptions,
            (
                self._group,
                config.create_topic_key,
                config.default_topic_queue_nums,
                outgoing.sys_flag,
                now,
                None,
                outgoing.reconsume_times,
                outgoing.max_reconsume_times,
                timeout_ms,
            ),
        )
        if outgoing.is_plain:
            self._known_options = now, timeout_ms, options
        return options

    def _prepare_any(self, message: Message, now_ms: int) -> Outgoing:
        """Prepare a message that is not plain, or is to be compressed."""
        config = self._config
        check_message(message, config.max_message_size)
        topic, properties = message.topic, message.properties
        if PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX not in properties:
            unique_id = self.unique_ids.next(now_ms)
            properties[PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX] = unique_id
        body, sys_flag = compress_body(message.body, config.compress_msg_body_over_howmuch)
        message_type = MessageType.Normal_Msg
        if properties.get(PROPERTY_TRANSACTION_PREPARED) == "true":
            sys_flag |= MessageSysFlag.TRANSACTION_PREPARED_TYPE
            message_type = MessageType.Trans_Msg_Half
        if PROPERTY_DELAY_TIME_LEVEL in properties:
            message_type = MessageType.Delay_Msg
        reconsume_times, max_reconsume_times = 0, None
        sent = message
        if topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            # These two are options, and are stored in the message all the same: RocketMQ removes
            # them from the map after the text is made (golden retry-dlq stores).
            reconsume_times = int(properties.get(PROPERTY_RECONSUME_TIME, "0"))
            most = properties.get(PROPERTY_MAX_RECONSUME_TIMES)
            max_reconsume_times = None if most is None else int(most)
        if body is not message.body:
            sent = Message(topic, body, flag=message.flag)
            sent.properties = properties
        return Outgoing(
            sent, (), len(body), sys_flag, message_type, reconsume_times, max_reconsume_times
        )

    def _prepare_batch(self, batch: tuple[Message, ...], now_ms: int) -> Outgoing:
        limit = self._config.max_message_size
        if not self.make_plain_ready(batch, now_ms):
            check_batch(batch)
            check_messages(batch, limit)
            self._give_ids(batch, now_ms)
            if not fits(batch, limit):
                raise MessageIllegalError(
                    f"the batch has {encoded_size(batch)} bytes, allowed are {limit}; "
                    "cut it with split_batch"
                )
        return _new_tuple(Outgoing, (batch[0], batch, 0, 0, _NORMAL, 0, None, True))

    def make_plain_ready(self, batch: tuple[Message, ...], now_ms: int) -> bool:
        """Do all that ``prepare`` does if all are plain and small; False leaves the work to it."""
        topic, limit = batch[0].topic if batch else "", self._config.max_message_size
        checked = look_over(batch, topic, limit)
        if checked is None or not topic or topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            return False
        if topic not in SENT_TO:
            check_send_topic(topic)
        missing, size = checked
        if missing:
            ids = self.unique_ids.take(missing, now_ms)
            give_ids(batch, ids.joined, ids.width)
            size += missing * (_UNIQ_KEY_SIZE + ids.width)
        return size + len(batch) * ITEM_HEAD <= limit

    def _give_ids(self, batch: Sequence[Message], now_ms: int) -> None:
        missing = [
            message.properties
            for message in batch
            if PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX not in message.properties
        ]
        if missing:
            ids = self.unique_ids.take(len(missing), now_ms)
            for properties, unique_id in zip(missing, ids.texts(), strict=True):
                properties.setdefault(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX, unique_id)
