"""Settings of a broker: names and defaults of RocketMQ's BrokerConfig, in Python's form."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Self

from storage.config import FROM_ONE, FROM_ZERO, PER_CENT, recorded
from storage.format.host import pack_host
from storage.format.message_id import UniqueIds
from storage.frozen_settings import FrozenSettings


class BrokerConfig(FrozenSettings):
    """Settings of a broker over one store; immutable. Times are milliseconds, sizes bytes."""

    broker_cluster_name: str = "DefaultCluster"
    """Stored with each message as property CLUSTER (brokerClusterName)."""
    broker_name: str = "broker-a"
    """Part of a MessageQueue's identity (brokerName; the value of RocketMQ's own broker.conf)."""
    store_host: str = "127.0.0.1:10911"
    """Address (``ip:port``) in each message and its offsetMsgId (brokerIP1, listenPort)."""
    born_host: str = "127.0.0.1:0"
    """The address (``ip:port``) of the producers in this process."""

    auto_create_topic_enable: bool = True
    """Whether sending to an unknown topic creates it from TBW102 (autoCreateTopicEnable)."""
    auto_create_subscription_group: bool = True
    """Whether using an unknown group creates it (autoCreateSubscriptionGroup)."""
    broker_permission: int = 6
    """Sum of 4 (read) and 2 (write): what clients may do here at all (brokerPermission)."""
    reject_transaction_message: bool = False
    """Whether half messages are refused (rejectTransactionMessage)."""
    transaction_timeout_ms: int = 6_000
    """Youngest half message that is checked with its producer (transactionTimeOut)."""
    transaction_check_max: int = 15
    """Number of checks before a half message is put aside (transactionCheckMax)."""
    transaction_check_interval_ms: int = 60_000
    """Time between two rounds of questions (transactionCheckInterval)."""

    flush_delay_offset_interval_ms: int = 10_000
    """How often progress of delayed delivery is synced (flushDelayOffsetInterval); it is written
    with each batch."""
    enable_schedule_async_deliver: bool = False
    """Whether delayed messages are stored while the next ones are read
    (enableScheduleAsyncDeliver)."""
    schedule_async_deliver_max_pending_limit: int = 2_000
    """Puts of one level that may be pending then (scheduleAsyncDeliverMaxPendingLimit)."""
    schedule_async_deliver_max_resend_num_to_blocked: int = 3
    """Failed attempts of the first pending put after which its level waits for it
    (scheduleAsyncDeliverMaxResendNum2Blocked)."""

    enable_property_filter: bool | None = None
    """Whether SQL92 expressions are taken (enablePropertyFilter). None: in stores that rmqctl made;
    in others they are not, as is RocketMQ's default."""
    filter_support_retry: bool = False
    """Whether a group's expression holds for its retries too (filterSupportRetry)."""
    keep_failure_reasons: bool = True
    """Whether a message that is sent back carries its consumer's reason of the failure; RocketMQ
    has no such reason (broker.api.failure_reason)."""
    zero_when_young: bool = True
    """Whether a group without progress starts at 0 in a queue whose first message is still in
    memory, as the real broker has it (ConsumerManageProcessor.queryConsumerOffset)."""
    access_message_in_memory_max_ratio: int = 40
    """Per cent of the machine's memory that counts as "still in memory", from the log's end."""
    max_suspend_timeout_ms: int = 30_000
    """Longest time that a pull is held, whatever it requests (the client's own time-out)."""
    long_polling_enable: bool = True
    """Whether pulls that found nothing are answered when something comes (longPollingEnable);
    else they are answered after ``short_polling_time_mills``."""
    short_polling_time_mills: int = 1_000
    """How long pulls are held without long polling (shortPollingTimeMills)."""
    offset_moved_event_enable: bool = True
    """Whether a pull outside of its queue is noted as a message of topic OFFSET_MOVED_EVENT, as
    the real broker always does."""
    refuse_equal_client_ids: bool = True
    """Whether a group that divides its queues takes only one member of a client id. The real broker
    takes several; all of them consume the same queues and leave the others alone."""
    flush_consumer_offset_interval_ms: int = 5_000
    """How often progress is written to consumerOffset.json (flushConsumerOffsetInterval)."""

    RANGES = MappingProxyType(
        {
            "broker_permission": (0, 7),
            "transaction_timeout_ms": FROM_ZERO,
            "transaction_check_max": FROM_ZERO,
            "transaction_check_interval_ms": FROM_ONE,
            "flush_delay_offset_interval_ms": FROM_ONE,
            "schedule_async_deliver_max_pending_limit": FROM_ONE,
            "schedule_async_deliver_max_resend_num_to_blocked": FROM_ZERO,
            "access_message_in_memory_max_ratio": PER_CENT,
            "max_suspend_timeout_ms": FROM_ONE,
            "short_polling_time_mills": FROM_ONE,
            "flush_consumer_offset_interval_ms": FROM_ONE,
        }
    )

    def __post_init__(self) -> None:
        """Check addresses; raises ValueError that names the field."""
        for name in ("store_host", "born_host"):
            if name in self.__dict__:
                try:
                    pack_host(self.__dict__[name])
                except ValueError as error:
                    raise ValueError(f"{name}: {error}") from None

    @classmethod
    def from_record(cls, values: Mapping[str, Any]) -> Self:
        """Make one of recorded values; names unknown to this version are left out.

        Raises ValueError for a value of another type or out of its bounds.
        """
        return cls(**recorded(cls, values))


def unique_ids_of(host: str) -> UniqueIds:
    """Make a generator of UNIQ_KEYs for ``ip:port``; a random number separates it from others of
    this process. Raises ValueError if that is no address."""
    return UniqueIds(pack_host(host)[:-4], os.getpid(), int.from_bytes(os.urandom(4), "big"))
