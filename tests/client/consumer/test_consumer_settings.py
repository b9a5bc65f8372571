"""Settings of consumers: RocketMQ's names, defaults and ranges."""

from __future__ import annotations

import time
from typing import Any

import pytest

from broker.api.members import MessageModel
from broker.api.offsets import ConsumeFromWhere
from client.consumer.consumer_config import HALF_AN_HOUR_MS, ConsumerConfig
from client.consumer.consumer_settings import consumer_settings, set_by_name
from client.errors import ClientConfigError
from client.pull.lite_pull_consumer import LitePullConfig
from client.runtime.client_config import ClientConfig

RANGES = {
    "consumeThreadMin": (1, 1000),
    "consumeThreadMax": (1, 1000),
    "consumeConcurrentlyMaxSpan": (1, 65535),
    "pullThresholdForQueue": (1, 65535),
    "pullThresholdSizeForQueue": (1, 1024),
    "pullThresholdForTopic": (1, 6553500),
    "pullThresholdSizeForTopic": (1, 102400),
    "pullInterval": (0, 65535),
    "consumeMessageBatchMaxSize": (1, 1024),
    "pullBatchSize": (1, 1024),
}


def test_defaults_are_those_of_the_real_consumer() -> None:
    config = ConsumerConfig()
    assert config.message_model is MessageModel.CLUSTERING
    assert config.consume_from_where is ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    assert (config.consume_thread_min, config.consume_thread_max) == (20, 20)
    assert config.adjust_thread_pool_nums_threshold == 100_000
    assert config.consume_concurrently_max_span == 2000
    assert (config.pull_threshold_for_queue, config.pull_threshold_size_for_queue) == (1000, 100)
    assert (config.pull_threshold_for_topic, config.pull_threshold_size_for_topic) == (-1, -1)
    assert (config.pull_interval_ms, config.pull_batch_size) == (0, 32)
    assert config.consume_message_batch_max_size == 1
    assert config.max_reconsume_times == -1
    assert config.suspend_current_queue_time_millis == 1000
    assert config.consume_timeout_minutes == 15
    assert config.await_termination_millis_when_shutdown == 0
    assert not config.post_subscription_when_pull
    now = time.time_ns() // 1_000_000
    assert now - HALF_AN_HOUR_MS - 5000 <= config.consume_timestamp <= now - HALF_AN_HOUR_MS


@pytest.mark.parametrize(("name", "bounds"), RANGES.items())
def test_a_value_just_outside_of_its_range_is_refused_by_name(
    name: str, bounds: tuple[int, int]
) -> None:
    low, high = bounds
    others = ["consumeThreadMax=1000"] if name == "consumeThreadMin" else []
    others += ["consumeThreadMin=1"] if name == "consumeThreadMax" else []
    for good in (low, high):
        set_by_name([*others, f"{name}={good}"])
    for bad in (low - 1 if low else -2, high + 1):
        if name.endswith("ForTopic") and bad == -1:
            continue
        with pytest.raises(
            ClientConfigError,
            match=rf"^{name} is -?\d+; it must be {low} to {high}(, or -1 for none)?$",
        ):
            set_by_name([*others, f"{name}={bad}"])


def test_more_threads_at_least_than_at_most_are_refused() -> None:
    with pytest.raises(ClientConfigError, match=r"consumeThreadMin \(21\) is larger than"):
        ConsumerConfig(consume_thread_min=21)


def test_settings_of_the_consumer_and_of_its_client_are_set_by_their_names() -> None:
    config, client_config = set_by_name(
        [
            "consumeTimeout=5",
            "messageModel=broadcasting",
            "instanceName=one",
            "pullInterval = 20",
            "postSubscriptionWhenPull=TRUE",
            "consumeTimestamp=20240102030405",
            "allocateMessageQueueStrategy=AVG_BY_CIRCLE",
        ]
    )
    assert config.consume_timeout_minutes == 5
    assert config.message_model is MessageModel.BROADCASTING
    assert config.pull_interval_ms == 20
    assert config.post_subscription_when_pull
    assert config.allocate_message_queue_strategy == "AVG_BY_CIRCLE"
    local = time.localtime(config.consume_timestamp / 1000)
    assert time.strftime("%Y-%m-%d %H:%M:%S", local) == "2024-01-02 03:04:05"
    assert client_config.client_id == "127.0.0.1@one"


@pytest.mark.parametrize(
    ("assignment", "said"),
    [
        ("consumeTimout=5", "do you mean consumeTimeout?"),
        ("consume_timeout=5", "do you mean consumeTimeout?"),
        ("pullbatchsize=5", "do you mean pullBatchSize?"),
        ("consumeTimeout", "is no NAME=VALUE"),
        ("consumeTimeout=soon", "it is a whole number"),
        ("consumeLog=yes", "it is true or false"),
        ("messageModel=ALL", "it is one of BROADCASTING, CLUSTERING"),
        ("consumeTimestamp=2024", "the valid format is yyyyMMddHHmmss"),
        ("consumeTimestamp=20241302030405", "the valid format is yyyyMMddHHmmss"),
    ],
)
def test_what_can_not_be_set_is_told_with_a_remedy(assignment: str, said: str) -> None:
    with pytest.raises(ClientConfigError) as raised:
        set_by_name([assignment])
    assert said in str(raised.value)


def test_every_setting_has_a_name_of_its_own_and_a_way_to_read_it() -> None:
    settings = consumer_settings()
    fields = len(ConsumerConfig.__dataclass_fields__) + len(ClientConfig.__dataclass_fields__)
    assert len(settings) == fields
    assert settings["suspendCurrentQueueTimeMillis"].default == 1000


@pytest.mark.conformance("B6")
def test_a_client_id_is_made_of_ip_instance_and_unit() -> None:
    config = ClientConfig(instance_name="i", unit_name="u", enable_stream_request_type=True)
    assert config.client_id == "127.0.0.1@i@u@STREAM"
    own = ClientConfig().with_own_instance_name()
    other = ClientConfig().with_own_instance_name()
    assert own.client_id != other.client_id
    assert ClientConfig(instance_name="mine").with_own_instance_name().instance_name == "mine"


@pytest.mark.parametrize("kind", [ConsumerConfig, LitePullConfig])
def test_a_setting_may_be_given_by_the_name_of_its_value(kind: type[ConsumerConfig]) -> None:
    config = kind(
        message_model="CLUSTERING",  # type: ignore[arg-type]
        consume_from_where="CONSUME_FROM_FIRST_OFFSET",  # type: ignore[arg-type]
    )
    assert config.message_model is MessageModel.CLUSTERING
    assert config.consume_from_where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (
            {"message_model": "clustered"},
            r"messageModel is 'clustered'; it is one of BROADCASTING, CLUSTERING",
        ),
        ({"message_model": None}, "messageModel is None; it is one of"),
        ({"consume_from_where": 7}, "consumeFromWhere is 7; it is one of CONSUME_FROM_LAST_OFFSET"),
        ({"consume_from_where": []}, r"consumeFromWhere is \[\]; it is one of"),
    ],
)
def test_what_is_no_value_of_a_setting_is_refused_by_name(
    setting: dict[str, Any], said: str
) -> None:
    with pytest.raises(ClientConfigError, match=said):
        ConsumerConfig(**setting)
