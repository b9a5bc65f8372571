"""RocketMQ stores without a broker process: the public names, and the ``rmqctl`` command.

    from rmqctl import Message, Producer

    with Producer.open("demo-store", "order-service", create=True) as producer:
        producer.send(Message("OrderEvent", b"created", keys="order-1001"))

``EmbeddedBroker`` is a broker over one store folder, ``StoreView`` reads a store and takes no lock,
and ``Producer``, ``PushConsumer``, ``LitePullConsumer`` and ``TransactionProducer`` are RocketMQ's
clients in Python's form. ``admin`` is the library of administration (rmqctl.admin), ``telemetry``
makes spans of OpenTelemetry (rmqctl.telemetry). Each name is
imported on first use, so importing the package costs nothing. All errors derive from
``RocketMQError``, except those of ``admin`` about its arguments (rmqctl.errors).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker.api.members import MessageModel as MessageModel
    from broker.api.offsets import ConsumeFromWhere as ConsumeFromWhere
    from broker.api.send import SendResult as SendResult, SendStatus as SendStatus
    from broker.api.transactions import LocalTransactionState as LocalTransactionState
    from broker.config import BrokerConfig as BrokerConfig
    from broker.embedded.broker import EmbeddedBroker as EmbeddedBroker
    from broker.errors import BrokerError as BrokerError
    from client.consumer.consumer_config import ConsumerConfig as ConsumerConfig
    from client.consumer.subscription import MessageSelector as MessageSelector
    from client.errors import ClientError as ClientError
    from client.listener.listener import (
        ConsumeConcurrentlyContext as ConsumeConcurrentlyContext,
        ConsumeConcurrentlyStatus as ConsumeConcurrentlyStatus,
        ConsumeOrderlyContext as ConsumeOrderlyContext,
        ConsumeOrderlyStatus as ConsumeOrderlyStatus,
        MessageListenerConcurrently as MessageListenerConcurrently,
        MessageListenerOrderly as MessageListenerOrderly,
    )
    from client.producer.batch import split_batch as split_batch
    from client.producer.config import ProducerConfig as ProducerConfig
    from client.producer.producer import Producer as Producer
    from client.producer.selector import (
        MessageQueueSelector as MessageQueueSelector,
        SelectByMachineRoom as SelectByMachineRoom,
        select_by_hash as select_by_hash,
        select_by_random as select_by_random,
    )
    from client.producer.transaction_producer import (
        TransactionListener as TransactionListener,
        TransactionProducer as TransactionProducer,
        TransactionSendResult as TransactionSendResult,
    )
    from client.pull.lite_pull_consumer import (
        LitePullConfig as LitePullConfig,
        LitePullConsumer as LitePullConsumer,
    )
    from client.pull.pull_consumer import PullConsumer as PullConsumer
    from client.push.push_consumer import PushConsumer as PushConsumer
    from client.rebalance.allocate import (
        AllocateAveragely as AllocateAveragely,
        AllocateAveragelyByCircle as AllocateAveragelyByCircle,
        AllocateByConfig as AllocateByConfig,
        AllocateByMachineRoom as AllocateByMachineRoom,
        AllocateConsistentHash as AllocateConsistentHash,
        AllocateMachineRoomNearby as AllocateMachineRoomNearby,
        AllocateMessageQueueStrategy as AllocateMessageQueueStrategy,
    )
    from client.runtime.client_config import ClientConfig as ClientConfig
    from client.runtime.service_state import ServiceState as ServiceState
    from client.trace.trace import query_traces as query_traces
    from storage.config import SMALL_STORE as SMALL_STORE, StoreConfig as StoreConfig
    from storage.configs.topics import TopicConfig as TopicConfig
    from storage.errors import RocketMQError as RocketMQError, StoreError as StoreError
    from storage.format.message import (
        PROPERTY_MAX_OFFSET as PROPERTY_MAX_OFFSET,
        Message as Message,
        MessageExt as MessageExt,
        MessageQueue as MessageQueue,
    )
    from storage.read.by_time import Boundary as Boundary
    from storage.readonly import StoreView as StoreView
    from storage.store import MessageStore as MessageStore

    from . import admin as admin, telemetry as telemetry


_NAMES = {
    "broker.api.members": ("MessageModel",),
    "broker.api.offsets": ("ConsumeFromWhere",),
    "broker.api.send": ("SendResult", "SendStatus"),
    "broker.api.transactions": ("LocalTransactionState",),
    "broker.config": ("BrokerConfig",),
    "broker.embedded.broker": ("EmbeddedBroker",),
    "broker.errors": ("BrokerError",),
    "storage.config": ("SMALL_STORE", "StoreConfig"),
    "storage.configs.topics": ("TopicConfig",),
    "storage.errors": ("RocketMQError", "StoreError"),
    "storage.format.message": ("PROPERTY_MAX_OFFSET", "Message", "MessageExt", "MessageQueue"),
    "storage.read.by_time": ("Boundary",),
    "storage.readonly": ("StoreView",),
    "storage.store": ("MessageStore",),
    "client.rebalance.allocate": (
        "AllocateAveragely",
        "AllocateAveragelyByCircle",
        "AllocateByConfig",
        "AllocateByMachineRoom",
        "AllocateConsistentHash",
        "AllocateMachineRoomNearby",
        "AllocateMessageQueueStrategy",
    ),
    "client.runtime.client_config": ("ClientConfig",),
    "client.consumer.consumer_config": ("ConsumerConfig",),
    "client.errors": ("ClientError",),
    "client.listener.listener": (
        "ConsumeConcurrentlyContext",
        "ConsumeConcurrentlyStatus",
        "ConsumeOrderlyContext",
        "ConsumeOrderlyStatus",
        "MessageListenerConcurrently",
        "MessageListenerOrderly",
    ),
    "client.pull.lite_pull_consumer": ("LitePullConfig", "LitePullConsumer"),
    "client.producer.producer": ("Producer",),
    "client.producer.batch": ("split_batch",),
    "client.producer.config": ("ProducerConfig",),
    "client.pull.pull_consumer": ("PullConsumer",),
    "client.push.push_consumer": ("PushConsumer",),
    "client.producer.selector": (
        "MessageQueueSelector",
        "SelectByMachineRoom",
        "select_by_hash",
        "select_by_random",
    ),
    "client.runtime.service_state": ("ServiceState",),
    "client.consumer.subscription": ("MessageSelector",),
    "client.trace.trace": ("query_traces",),
    "client.producer.transaction_producer": (
        "TransactionListener",
        "TransactionProducer",
        "TransactionSendResult",
    ),
}
_WHERE = {name: module for module, names in _NAMES.items() for name in names}
__version__ = "0.2.0"
_MODULES = ("admin", "telemetry")
__all__ = sorted({*_WHERE, *_MODULES})


def __getattr__(name: str) -> Any:
    module = _WHERE.get(name)
    if module is None and name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rmqctl.shadowed import refuse_shadowed_packages

    refuse_shadowed_packages()
    if module is None:
        return import_module(f"{__name__}.{name}")
    value = globals()[name] = getattr(import_module(module), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
