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
    from storage.model import (
        Message as Message,
        MessageExt as MessageExt,
        MessageQueue as MessageQueue,
    )

    from .allocate import (
        AllocateAveragely as AllocateAveragely,
        AllocateAveragelyByCircle as AllocateAveragelyByCircle,
        AllocateByConfig as AllocateByConfig,
        AllocateMessageQueueStrategy as AllocateMessageQueueStrategy,
    )
    from .client_config import ClientConfig as ClientConfig
    from .consistent_hash import AllocateConsistentHash as AllocateConsistentHash
    from .consumer_config import ConsumerConfig as ConsumerConfig
    from .errors import ClientError as ClientError
    from .listener import (
        ConsumeConcurrentlyContext as ConsumeConcurrentlyContext,
        ConsumeConcurrentlyStatus as ConsumeConcurrentlyStatus,
        ConsumeOrderlyContext as ConsumeOrderlyContext,
        ConsumeOrderlyStatus as ConsumeOrderlyStatus,
        MessageListenerConcurrently as MessageListenerConcurrently,
        MessageListenerOrderly as MessageListenerOrderly,
    )
    from .lite_pull_consumer import (
        LitePullConfig as LitePullConfig,
        LitePullConsumer as LitePullConsumer,
    )
    from .machine_room import (
        AllocateByMachineRoom as AllocateByMachineRoom,
        AllocateMachineRoomNearby as AllocateMachineRoomNearby,
    )
    from .producer import Producer as Producer
    from .producer_batch import split_batch as split_batch
    from .producer_config import ProducerConfig as ProducerConfig
    from .pull_consumer import PullConsumer as PullConsumer
    from .push_consumer import PushConsumer as PushConsumer
    from .selector import (
        MessageQueueSelector as MessageQueueSelector,
        SelectByMachineRoom as SelectByMachineRoom,
        select_by_hash as select_by_hash,
        select_by_random as select_by_random,
    )
    from .service_state import ServiceState as ServiceState
    from .subscription import MessageSelector as MessageSelector
    from .trace import query_traces as query_traces
    from .transaction_producer import (
        TransactionListener as TransactionListener,
        TransactionProducer as TransactionProducer,
        TransactionSendResult as TransactionSendResult,
    )

_NAMES = {
    "broker.port.members": ("MessageModel",),
    "broker.port.progress": ("ConsumeFromWhere",),
    "broker.port.sending": ("SendResult", "SendStatus"),
    "broker.port.transactions": ("LocalTransactionState",),
    "storage.model": ("Message", "MessageExt", "MessageQueue"),
    "client.allocate": (
        "AllocateAveragely",
        "AllocateAveragelyByCircle",
        "AllocateByConfig",
        "AllocateMessageQueueStrategy",
    ),
    "client.client_config": ("ClientConfig",),
    "client.consistent_hash": ("AllocateConsistentHash",),
    "client.consumer_config": ("ConsumerConfig",),
    "client.errors": ("ClientError",),
    "client.listener": (
        "ConsumeConcurrentlyContext",
        "ConsumeConcurrentlyStatus",
        "ConsumeOrderlyContext",
        "ConsumeOrderlyStatus",
        "MessageListenerConcurrently",
        "MessageListenerOrderly",
    ),
    "client.lite_pull_consumer": ("LitePullConfig", "LitePullConsumer"),
    "client.machine_room": ("AllocateByMachineRoom", "AllocateMachineRoomNearby"),
    "client.producer": ("Producer",),
    "client.producer_batch": ("split_batch",),
    "client.producer_config": ("ProducerConfig",),
    "client.pull_consumer": ("PullConsumer",),
    "client.push_consumer": ("PushConsumer",),
    "client.selector": (
        "MessageQueueSelector",
        "SelectByMachineRoom",
        "select_by_hash",
        "select_by_random",
    ),
    "client.service_state": ("ServiceState",),
    "client.subscription": ("MessageSelector",),
    "client.trace": ("query_traces",),
    "client.transaction_producer": (
        "TransactionListener",
        "TransactionProducer",
        "TransactionSendResult",
    ),
}
_WHERE = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    module = _WHERE.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(module), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
