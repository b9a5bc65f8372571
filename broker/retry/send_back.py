"""Giving messages back that a consumer could not consume (SendMessageProcessor of 4.9).

A retry is a delayed message for the group's retry topic; after too many it is a dead letter.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.api.failure_reason import FAILURE_PROPERTIES
from broker.errors import BrokerSystemError, MessageIllegalError, NoPermissionError
from broker.send.message_builder import stored_again
from broker.send.send import DLQ_NUMS_PER_GROUP, prepared
from broker.tables.shared_table import READ_ONLY
from broker.validation import check_properties
from storage.configs.topics import PERM_WRITE
from storage.errors import RocketMQError
from storage.format.encode import record_size
from storage.format.java_numbers import next_java_int
from storage.format.message import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_ORIGIN_MESSAGE_ID,
    PROPERTY_RETRY_TOPIC,
    PROPERTY_WAIT_STORE_MSG_OK,
    RESERVED_PROPERTIES,
    MessageExt,
    dlq_topic,
    retry_topic,
)
from storage.results import PutMessageResult

if TYPE_CHECKING:
    from broker.api.send_back import SendBackRequest
    from broker.config import BrokerConfig
    from broker.send.message_builder import MessageBuilder
    from broker.tables.groups import GroupManager
    from broker.tables.topics import TopicManager
    from storage.configs.subscription_groups import SubscriptionGroupConfig
    from storage.configs.topics import TopicConfig
    from storage.format.encode import MessageInner

FIRST_RETRY_LEVEL: Final = 3
"""Delay level of the first retry where the broker decides; each further one is a level higher."""
BATCH_BYTES: Final = 1 << 20
"""Bytes of bodies after which a put ends, to limit how long the write lock is held."""


class _Target(NamedTuple):
    """Where a group's retries go; ``topic`` None: its messages are dropped."""

    group: SubscriptionGroupConfig
    topic: TopicConfig | None


class SendBackHandler:
    """Stores messages for their next attempt. Holds no state; safe for threads.

    ``put`` is MessageStore.put, None where the store is open for reading only; ``read_message``
    reads the message at a commit log offset; ``choose`` gives a number below its argument.
    ``stored`` is called when records were put, before the caller may count them.
    """

    def __init__(
        self,
        config: BrokerConfig,
        topics: TopicManager,
        groups: GroupManager,
        builder: MessageBuilder,
        *,
        put: Callable[..., PutMessageResult] | None,
        read_message: Callable[[int], MessageExt | None],
        choose: Callable[[int], int] = random.randrange,
        stored: Callable[[], None] = lambda: None,
    ) -> None:
        self._writeable = bool(config.broker_permission & PERM_WRITE)
        self._keep_reasons = config.keep_failure_reasons
        self._topics = topics
        self._groups = groups
        self._builder = builder
        self._put = put
        self._read_message = read_message
        self._choose = choose
        self._stored = stored

    def send_message_back(self, request: SendBackRequest) -> None:
        """Store a message again; see Broker.send_message_back.

        A group without retry queues drops its message without an error, as in RocketMQ.
        """
        (refusal,) = self.send_messages_back((request,))
        if refusal is not None:
            raise refusal

    def send_messages_back(self, requests: Sequence[SendBackRequest]) -> list[RocketMQError | None]:
        """Store messages again; see Broker.send_messages_back."""
        refusals: list[RocketMQError | None] = [None] * len(requests)
        targets: dict[str, _Target] = {}
        inners: list[MessageInner] = []
        numbers: list[int] = []
        size = 0
        for number, request in enumerate(requests):
            try:
                inner = self._again(request, targets)
            except RocketMQError as error:
                refusals[number] = error
                continue
            if inner is None:
                continue
            inners.append(inner)
            numbers.append(number)
            size += len(inner.body)
            if size > BATCH_BYTES:
                self._store(inners, numbers, refusals)
                inners, numbers, size = [], [], 0
        self._store(inners, numbers, refusals)
        return refusals

    def _store(
        self,
        inners: Sequence[MessageInner],
        numbers: Sequence[int],
        refusals: list[RocketMQError | None],
    ) -> None:
        """Put records as one batch; an error is noted for each of ``numbers``.

        If one of them causes it, each is put alone.
        """
        if not inners:
            return
        refusal, one_is_to_blame = self._refusal(inners)
        for number, inner in zip(numbers, inners, strict=True):
            alone = one_is_to_blame and len(inners) > 1
            refusals[number] = self._refusal((inner,))[0] if alone else refusal

    def _refusal(self, inners: Sequence[MessageInner]) -> tuple[RocketMQError | None, bool]:
        """Put all records or none; gives the error, and whether one record's content causes it."""
        assert self._put is not None  # _target has checked
        try:
            result = self._put(prepared(inners))
        except MessageIllegalError as error:
            return error, True
        except RocketMQError as error:
            return error, False
        if result.status.stored:
            self._stored()
            return None, False
        reason = result.reason or f"the store answered {result.status}"
        return BrokerSystemError(reason), result.status.illegal

    def _target(self, name: str) -> _Target:
        """Find a group and its retry topic; new ones are created."""
        group = self._groups.for_use(name)
        if self._put is None:
            raise NoPermissionError(READ_ONLY)
        if not self._writeable:
            raise NoPermissionError("this broker may not be written")
        if group.retry_queue_nums <= 0:
            return _Target(group, None)
        topic = self._topics.for_own_use(retry_topic(name), group.retry_queue_nums)
        if not topic.writeable:
            raise NoPermissionError(f"topic {topic.topic_name} may not be written")
        return _Target(group, topic)

    def _again(self, request: SendBackRequest, targets: dict[str, _Target]) -> MessageInner | None:
        """Make the record of a request; None if the message is dropped.

        ``targets`` are those of the requests before it: permissions are checked once for all.
        """
        target = targets.get(request.group)
        if target is None:
            target = targets[request.group] = self._target(request.group)
        group, topic = target
        if topic is None:
            return None
        queues = group.retry_queue_nums
        queue_id = self._choose(queues) if queues > 1 else 0
        try:
            message = self._read_message(request.commitlog_offset)
        except OSError as error:  # the other messages go back all the same
            what = f"the message at {request.commitlog_offset} of the commit log"
            raise BrokerSystemError(f"{what} cannot be read: {error}") from error
        if message is None:
            raise BrokerSystemError(
                f"no message begins at {request.commitlog_offset} of the commit log; "
                "it has expired, or never was"
            )
        properties = dict(message.properties)
        for name in FAILURE_PROPERTIES:  # they describe the failure before
            properties.pop(name, None)
        properties.setdefault(PROPERTY_RETRY_TOPIC, message.topic)
        properties[PROPERTY_WAIT_STORE_MSG_OK] = "false"
        if not properties.get(PROPERTY_ORIGIN_MESSAGE_ID, "").strip():
            properties[PROPERTY_ORIGIN_MESSAGE_ID] = message.offset_msg_id
        most = request.max_reconsume_times
        if message.reconsume_times >= (group.retry_max_times if most is None else most) or (
            request.delay_level < 0
        ):
            topic = self._topics.for_own_use(dlq_topic(request.group), DLQ_NUMS_PER_GROUP)
            queue_id, level = 0, 0
        else:
            level = request.delay_level or FIRST_RETRY_LEVEL + message.reconsume_times
        properties[PROPERTY_DELAY_TIME_LEVEL] = str(level)
        try:
            return self._inner(request, message, topic.topic_name, queue_id, properties)
        except MessageIllegalError as error:
            if not level:
                return self._without_room(message, request.group, topic.topic_name)
            raise MessageIllegalError(
                f"the message at {request.commitlog_offset} of the commit log has no room for a "
                f"retry: {error}"
            ) from error

    def _without_room(self, message: MessageExt, group: str, topic: str) -> MessageInner:
        """Make a dead letter of a message that has no room for the properties of one.

        It has those of the message and RETRY_TOPIC, or only those of the message. A broker of 4.9
        refuses it each time. Raises MessageIllegalError if it fits into no log file even so.
        """
        times = next_java_int(message.reconsume_times)
        properties = dict(message.properties)
        properties.setdefault(PROPERTY_RETRY_TOPIC, message.topic)
        if PROPERTY_DELAY_TIME_LEVEL in properties:
            properties[PROPERTY_DELAY_TIME_LEVEL] = "0"
        try:
            return self._that_fits(
                self._builder.again(message, topic, 0, properties, reconsume_times=times)
            )
        except MessageIllegalError:
            pass
        try:
            return self._that_fits(stored_again(message, topic, 0, reconsume_times=times))
        except MessageIllegalError as error:
            raise MessageIllegalError(
                f"the message at {message.commitlog_offset} of the commit log has no room as a "
                "dead letter, so its queue waits for it; 'rmqctl offset reset' moves group "
                f"{group} past it: {error}"
            ) from error

    def _that_fits(self, inner: MessageInner) -> MessageInner:
        """Give a record back; MessageIllegalError if no log file has room for it."""
        self._builder.check_later_size(record_size(inner), inner.topic, inner.topic)
        return inner

    def _inner(
        self,
        request: SendBackRequest,
        message: MessageExt,
        topic: str,
        queue_id: int,
        properties: dict[str, str],
    ) -> MessageInner:
        """Make the record; a reason that does not fit is left out, not the message."""
        times = next_java_int(message.reconsume_times)
        if request.failure and self._keep_reasons:
            reasons = request.failure
            if not RESERVED_PROPERTIES.isdisjoint(reasons):
                reasons = {
                    name: value
                    for name, value in reasons.items()
                    if name not in RESERVED_PROPERTIES
                }
            try:
                check_properties(reasons)
                return self._that_fits(
                    self._builder.again(
                        message, topic, queue_id, {**properties, **reasons}, reconsume_times=times
                    )
                )
            except MessageIllegalError:
                pass
        return self._that_fits(
            self._builder.again(message, topic, queue_id, properties, reconsume_times=times)
        )
