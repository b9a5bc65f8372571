"""Producers and consumers of a broker.

This package talks to a ``Broker`` (the Protocol in :mod:`broker.api`) and cannot tell whether
that is the store in this process or something behind a socket. It is where RocketMQ's client
lives in Python's form: the producer with its queue selectors, the push consumer with
rebalancing, process queues, concurrent and orderly listeners and retries, and the pull consumer.

    from client import Message, Producer

    with Producer.open("demo-store", "order-service") as producer:
        producer.send(Message("OrderEvent", b"created", keys="order-1001"))

Names are imported when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker.port.members import MessageModel as MessageModel
    from broker.port.progress import ConsumeFromWhere as ConsumeFromWhere
    from broker.port.sending import SendResult as SendResult, SendStatus as SendStatus
    from broker.port.transactions import LocalTransactionState as LocalTransactionState
    from client.consuming.listener import (
        ConsumeConcurrentlyContext as ConsumeConcurrentlyContext,
        ConsumeConcurrentlyStatus as ConsumeConcurrentlyStatus,
        ConsumeOrderlyContext as ConsumeOrderlyContext,
        ConsumeOrderlyStatus as ConsumeOrderlyStatus,
        MessageListenerConcurrently as MessageListenerConcurrently,
        MessageListenerOrderly as MessageListenerOrderly,
    )
    from client.polling.lite_pull_consumer import (
        LitePullConfig as LitePullConfig,
        LitePullConsumer as LitePullConsumer,
    )
    from client.polling.pull_consumer import PullConsumer as PullConsumer
    from client.producing.batch import split_batch as split_batch
    from client.producing.config import ProducerConfig as ProducerConfig
    from client.producing.producer import Producer as Producer
    from client.producing.selector import (
        MessageQueueSelector as MessageQueueSelector,
        SelectByMachineRoom as SelectByMachineRoom,
        select_by_hash as select_by_hash,
        select_by_random as select_by_random,
    )
    from client.producing.transaction_producer import (
        TransactionListener as TransactionListener,
        TransactionProducer as TransactionProducer,
        TransactionSendResult as TransactionSendResult,
    )
    from client.pushing.push_consumer import PushConsumer as PushConsumer
    from client.runtime.client_config import ClientConfig as ClientConfig
    from client.runtime.service_state import ServiceState as ServiceState
    from client.subscribing.allocate import (
        AllocateAveragely as AllocateAveragely,
        AllocateAveragelyByCircle as AllocateAveragelyByCircle,
        AllocateByConfig as AllocateByConfig,
        AllocateMessageQueueStrategy as AllocateMessageQueueStrategy,
    )
    from client.subscribing.consistent_hash import AllocateConsistentHash as AllocateConsistentHash
    from client.subscribing.consumer_config import ConsumerConfig as ConsumerConfig
    from client.subscribing.machine_room import (
        AllocateByMachineRoom as AllocateByMachineRoom,
        AllocateMachineRoomNearby as AllocateMachineRoomNearby,
    )
    from client.subscribing.subscription import MessageSelector as MessageSelector
    from client.tracing.trace import query_traces as query_traces
    from storage.model import (
        Message as Message,
        MessageExt as MessageExt,
        MessageQueue as MessageQueue,
    )

    from .errors import ClientError as ClientError

_NAMES = {
    "broker.port.members": ("MessageModel",),
    "broker.port.progress": ("ConsumeFromWhere",),
    "broker.port.sending": ("SendResult", "SendStatus"),
    "broker.port.transactions": ("LocalTransactionState",),
    "storage.model": ("Message", "MessageExt", "MessageQueue"),
    "client.subscribing.allocate": (
        "AllocateAveragely",
        "AllocateAveragelyByCircle",
        "AllocateByConfig",
        "AllocateMessageQueueStrategy",
    ),
    "client.runtime.client_config": ("ClientConfig",),
    "client.subscribing.consistent_hash": ("AllocateConsistentHash",),
    "client.subscribing.consumer_config": ("ConsumerConfig",),
    "client.errors": ("ClientError",),
    "client.consuming.listener": (
        "ConsumeConcurrentlyContext",
        "ConsumeConcurrentlyStatus",
        "ConsumeOrderlyContext",
        "ConsumeOrderlyStatus",
        "MessageListenerConcurrently",
        "MessageListenerOrderly",
    ),
    "client.polling.lite_pull_consumer": ("LitePullConfig", "LitePullConsumer"),
    "client.subscribing.machine_room": ("AllocateByMachineRoom", "AllocateMachineRoomNearby"),
    "client.producing.producer": ("Producer",),
    "client.producing.batch": ("split_batch",),
    "client.producing.config": ("ProducerConfig",),
    "client.polling.pull_consumer": ("PullConsumer",),
    "client.pushing.push_consumer": ("PushConsumer",),
    "client.producing.selector": (
        "MessageQueueSelector",
        "SelectByMachineRoom",
        "select_by_hash",
        "select_by_random",
    ),
    "client.runtime.service_state": ("ServiceState",),
    "client.subscribing.subscription": ("MessageSelector",),
    "client.tracing.trace": ("query_traces",),
    "client.producing.transaction_producer": (
        "TransactionListener",
        "TransactionProducer",
        "TransactionSendResult",
    ),
}
_WHERE = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    module = _WHERE.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(module), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
