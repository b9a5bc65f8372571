"""How a push consumer sends messages back (DefaultMQPushConsumerImpl.sendMessageBack).

The broker that has the message stores it once more for its next attempt. If it refuses, or does not
answer, the message is sent like any other to the group's retry topic, to any broker. One that has
no room for a retry, in its properties or in a log file, fails on both ways, is tried here as often
as a retry would be, and then becomes a dead letter.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from broker.api.failure_reason import FAILURE_PROPERTIES
from broker.api.send_back import SendBackRequest
from broker.errors import BrokerError, MessageIllegalError
from client.errors import UNANSWERED, ClientError
from client.listener.service import (
    DEAD_LETTER_LEVEL,
    MAX_RECONSUME_TIMES_ORDERLY,
    ListenerResult,
)
from storage.format.errors import BodyError
from storage.format.java_numbers import next_java_int
from storage.format.message import (
    PROPERTY_MAX_RECONSUME_TIMES,
    PROPERTY_ORIGIN_MESSAGE_ID,
    PROPERTY_RECONSUME_TIME,
    PROPERTY_RETRY_TOPIC,
    PROPERTY_TRANSACTION_PREPARED,
    Message,
    retry_topic,
)

from .consumer_config import MAX_RECONSUME_TIMES_CONCURRENTLY

if TYPE_CHECKING:
    from client.runtime.instance import ClientInstance
    from storage.format.message import MessageExt, MessageQueue

logger = logging.getLogger("rmqctl.client.send_back")

FIRST_DELAY_LEVEL = 3


class SendBack:
    """Sends messages of one group back. Safe for threads."""

    def __init__(self, group: str, instance: ClientInstance) -> None:
        self._group = group
        self._instance = instance

    def send_message_back(
        self,
        message: MessageExt,
        delay_level: int,
        queue: MessageQueue,
        max_reconsume_times: int,
        failure: Mapping[str, str],
    ) -> None:
        """Send a message back; see ConsumerContext. ``max_reconsume_times`` -1: 16."""
        returned = ListenerResult(message, delay_level, failure)
        (error,) = self.send_messages_back((returned,), queue, max_reconsume_times)
        if error is not None:
            raise error

    def send_messages_back(
        self, returned: Sequence[ListenerResult], queue: MessageQueue, max_reconsume_times: int
    ) -> list[Exception | None]:
        """Send messages back; see ConsumerContext. ``max_reconsume_times`` -1: 16."""
        if max_reconsume_times == -1:
            max_reconsume_times = MAX_RECONSUME_TIMES_CONCURRENTLY
        requests = [
            SendBackRequest(
                self._group,
                message.topic,
                message.commitlog_offset,
                message.msg_id,
                delay_level,
                max_reconsume_times,
                failure,
            )
            for message, delay_level, failure in returned
        ]
        refusals = list(self._ask(requests, queue))
        for number, refusal in enumerate(refusals):
            tried = returned[number].message.reconsume_times
            if isinstance(refusal, MessageIllegalError) and tried >= max_reconsume_times:
                logger.warning("a message becomes a dead letter: %s", refusal)
                dead = requests[number]._replace(delay_level=DEAD_LETTER_LEVEL)
                (refusals[number],) = self._ask((dead,), queue)
        return [
            None if refusal is None else self._the_other_way(one, max_reconsume_times, refusal)
            for one, refusal in zip(returned, refusals, strict=True)
        ]

    def _ask(
        self, requests: Sequence[SendBackRequest], queue: MessageQueue
    ) -> Sequence[Exception | None]:
        """Ask the broker of the queue to take messages; gives the error of each that it refuses."""
        try:
            broker = self._instance.routes.broker(queue.broker_name)
            if len(requests) > 1:
                return broker.send_messages_back(requests)
            for request in requests:
                broker.send_message_back(request)
        except (*UNANSWERED, ClientError, BrokerError) as error:
            return [error] * len(requests)
        return [None] * len(requests)

    def _the_other_way(
        self, returned: ListenerResult, max_reconsume_times: int, refusal: Exception
    ) -> Exception | None:
        """Send a message as a new one, because its broker refuses it; gives the error of that,
        too."""
        message = returned.message
        try:
            message.body  # noqa: B018 - a body that cannot be decompressed cannot be sent as a new one
        except BodyError:
            return refusal
        logger.warning("a message is sent back the other way: %r: %s", message, refusal)
        again = self._retry(message, max_reconsume_times, returned.failure)
        again.properties[PROPERTY_RECONSUME_TIME] = str(next_java_int(message.reconsume_times))
        try:
            self._send_anew(again)
        except Exception as error:  # noqa: BLE001 - an answer like any other
            return error
        return None

    def _send_anew(self, message: Message) -> None:
        from client.producer.producer import Producer  # most consumers never need one

        self._instance.inner_producer(Producer.inner).send(message)

    def send_orderly_to_retry(
        self, message: MessageExt, max_reconsume_times: int, failure: Mapping[str, str]
    ) -> None:
        """Send an orderly message to the retry topic; see ConsumerContext. -1: no limit."""
        if max_reconsume_times == -1:
            max_reconsume_times = MAX_RECONSUME_TIMES_ORDERLY
        again = self._retry(message, max_reconsume_times, failure)
        again.properties.setdefault(PROPERTY_ORIGIN_MESSAGE_ID, message.msg_id)
        again.properties[PROPERTY_RECONSUME_TIME] = str(message.reconsume_times)
        self._send_anew(again)

    def _retry(
        self, message: MessageExt, max_reconsume_times: int, failure: Mapping[str, str]
    ) -> Message:
        """Make the message that both ways send. As in 4.9, ORIGIN_MESSAGE_ID is only set if it was
        before. Reasons of the failure before are left out."""
        again = Message(retry_topic(self._group), message.body, flag=message.flag)
        kept = {k: v for k, v in message.properties.items() if k not in FAILURE_PROPERTIES}
        properties = again.properties = {**kept, **failure}
        properties[PROPERTY_RETRY_TOPIC] = message.topic
        properties[PROPERTY_MAX_RECONSUME_TIMES] = str(max_reconsume_times)
        properties.pop(PROPERTY_TRANSACTION_PREPARED, None)
        again.delay_time_level = FIRST_DELAY_LEVEL + message.reconsume_times
        return again
