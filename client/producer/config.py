"""Settings of producers: names and defaults of RocketMQ's DefaultMQProducer, in Python's form."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from typing import Final

from broker.api.send import DEFAULT_TOPIC_QUEUE_NUMS
from broker.errors import ResponseCode
from broker.validation import MAX_MESSAGE_SIZE
from client.arguments import check_settings
from client.errors import ClientConfigError
from storage.config import FROM_ONE, FROM_ZERO
from storage.format.compress import COMPRESS_OVER_BYTES
from storage.format.message import AUTO_CREATE_TOPIC_KEY_TOPIC, TRACE_TOPIC

RETRY_RESPONSE_CODES: Final = frozenset(
    {
        ResponseCode.TOPIC_NOT_EXIST,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.NO_PERMISSION,
        204,  # NO_BUYER_ID
        205,  # NOT_IN_CURRENT_UNIT
    }
)
"""Answers after which a synchronous send is tried again; SYSTEM_BUSY is not among them."""

LATENCY_MAX: Final = (50, 100, 550, 1_000, 2_000, 3_000, 15_000)
NOT_AVAILABLE_DURATION: Final = (0, 0, 30_000, 60_000, 120_000, 180_000, 600_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig:
    """Settings of a producer; immutable. Times are milliseconds, sizes bytes.

    Raises ClientConfigError for a value out of its range.
    """

    send_msg_timeout_ms: int = 3_000
    """For the whole of a send, with all its retries (sendMsgTimeout)."""
    retry_times_when_send_failed: int = 2
    """How often a synchronous send is tried *again* (retryTimesWhenSendFailed)."""
    retry_times_when_send_async_failed: int = 2
    """How often an asynchronous send without an answer is tried again
    (retryTimesWhenSendAsyncFailed)."""
    retry_another_broker_when_not_store_ok: bool = False
    """Whether a message that is stored, but not SEND_OK, is sent once more: the consumer gets both
    (retryAnotherBrokerWhenNotStoreOK)."""
    retry_response_codes: frozenset[int] = RETRY_RESPONSE_CODES
    """Answers after which a synchronous send is tried again (retryResponseCodes)."""

    max_message_size: int = MAX_MESSAGE_SIZE
    """Of a body before compression, and of a batch's encoding (maxMessageSize)."""
    compress_msg_body_over_howmuch: int = COMPRESS_OVER_BYTES
    """From this size on a body is compressed (compressMsgBodyOverHowmuch)."""
    create_topic_key: str = AUTO_CREATE_TOPIC_KEY_TOPIC
    """The topic after which unknown ones are created (createTopicKey)."""
    default_topic_queue_nums: int = DEFAULT_TOPIC_QUEUE_NUMS
    """How many queues such a topic gets, if the other one has as many (defaultTopicQueueNums)."""

    send_latency_fault_enable: bool = False
    """Whether slow brokers are avoided for a while (sendLatencyFaultEnable)."""
    latency_max: tuple[int, ...] = LATENCY_MAX
    """Latencies from which on a broker is avoided (latencyMax), and for how long."""
    not_available_duration: tuple[int, ...] = NOT_AVAILABLE_DURATION

    async_sender_threads: int = os.cpu_count() or 1
    """Threads that send asynchronously (RocketMQ's AsyncSenderExecutor)."""
    async_sender_queue: int = 50_000
    """How many asynchronous sends may wait for a thread."""

    enable_msg_trace: bool = False
    """Whether each send leaves a trace message (enableMsgTrace)."""
    customized_trace_topic: str = TRACE_TOPIC
    """The trace topic (customizedTraceTopic)."""

    check_thread_pool_size: int = 1
    """Threads that answer a broker's questions about transactions (checkThreadPoolMaxSize)."""
    check_request_hold_max: int = 2_000
    """How many questions may wait; the broker repeats those that are dropped
    (checkRequestHoldMax)."""

    def __post_init__(self) -> None:
        check_settings(self, fields(ProducerConfig), _RANGES)
        latencies, durations = len(self.latency_max), len(self.not_available_duration)
        if latencies != durations:
            raise ClientConfigError(
                f"latency_max and not_available_duration differ in length: {latencies} and "
                f"{durations} numbers; each latency has one duration"
            )


_RANGES: Final = {
    "send_msg_timeout_ms": FROM_ONE,
    "retry_times_when_send_failed": FROM_ZERO,
    "retry_times_when_send_async_failed": FROM_ZERO,
    "retry_response_codes": FROM_ZERO,
    "max_message_size": FROM_ONE,
    "compress_msg_body_over_howmuch": FROM_ZERO,
    "default_topic_queue_nums": FROM_ONE,
    "latency_max": FROM_ZERO,
    "not_available_duration": FROM_ZERO,
    "async_sender_threads": FROM_ONE,
    "async_sender_queue": FROM_ONE,
    "check_thread_pool_size": FROM_ONE,
    "check_request_hold_max": FROM_ONE,
}
