"""A broker's requests to a client instance, passed on to its consumer or producer."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from broker.api.members import ConsumeDirectlyResult, ConsumeDirectlyStatus
from storage.format.message import MessageQueue

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from broker.api.transactions import CheckTransactionState
    from storage.format.message import MessageExt

    from .instance import ClientInstance

logger = logging.getLogger("rmqctl.client")


class BrokerConnection:
    """Requests that one broker may send to the instance (ClientHandler)."""

    def __init__(self, instance: ClientInstance, broker: Broker) -> None:
        self._instance = instance
        self._broker = broker

    def notify_consumer_ids_changed(self, group: str) -> None:
        """See ClientHandler."""
        logger.info("members have changed: group=%s broker=%s", group, self._broker.name)
        self._instance.rebalance_immediately()

    def reset_offset(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """See ClientHandler."""
        consumer = self._instance.consumer(group)
        if consumer is not None:
            name = self._broker.name
            consumer.reset_offset({MessageQueue(topic, name, i): o for i, o in offsets.items()})

    def check_transaction_state(self, request: CheckTransactionState) -> None:
        """See ClientHandler."""
        producer = self._instance.producer(request.producer_group)
        if producer is None:
            logger.warning("a check for a group that is not here: %s", request.producer_group)
            return
        producer.check_transaction_state(self._broker, request)

    def consumer_status(self, group: str, topic: str) -> Mapping[MessageQueue, int]:
        """See ClientHandler."""
        consumer = self._instance.consumer(group)
        return {} if consumer is None else consumer.consumer_status(topic)

    def consumer_running_info(self, group: str) -> Mapping[str, Any]:
        """See ClientHandler."""
        consumer = self._instance.consumer(group)
        return {} if consumer is None else consumer.running_info()

    def consume_message_directly(self, group: str, message: MessageExt) -> ConsumeDirectlyResult:
        """See ClientHandler."""
        consumer = self._instance.consumer(group)
        if consumer is None:
            return ConsumeDirectlyResult(
                order=False,
                auto_commit=True,
                consume_result=ConsumeDirectlyStatus.CR_THROW_EXCEPTION,
                remark=f"the client has no consumer of group {group}",
                spent_time_mills=0,
            )
        return consumer.consume_message_directly(message, self._broker.name)
