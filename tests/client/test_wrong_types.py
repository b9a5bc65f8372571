"""A value of a wrong type is refused by name, with its type and the right one."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from broker.api.members import MessageModel
from broker.errors import InvalidNameError, MessageIllegalError
from client.consumer.consumer_config import ConsumerConfig, rocketmq_name
from client.errors import ClientArgumentError, ClientConfigError
from client.producer.config import ProducerConfig
from client.producer.producer import Producer
from client.pull.lite_pull_consumer import LitePullConfig, LitePullConsumer
from client.pull.pull_consumer import PullConsumer
from client.push.push_consumer import PushConsumer
from client.runtime.client_config import ClientConfig
from storage.format.message import Message

DEADLINE_S = 20


@pytest.fixture
def producer(manager: Any, broker: Any) -> Any:
    with Producer("p", brokers=[broker], manager=manager) as made:
        yield made


def told(message: Message, said: str, kind: type[Exception], producer: Any, broker: Any) -> None:
    for send in (
        lambda: producer.send(message),
        lambda: producer.send([message, message]),
        lambda: producer.send_async(message).result(DEADLINE_S),
        lambda: producer.send_oneway(message),
    ):
        with pytest.raises(kind, match=said):
            send()
    assert broker.topic("T") is None or not sum(broker.max_offset("T", q) for q in range(4))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"body": "x"}, r"the message body is 'x' \(str\); it is bytes"),
        ({"body": 3}, r"the message body is 3 \(int\); it is bytes"),
        ({"body": ["x" * 99]}, r"the message body is \['x{38}\.\.\. \(list\); it is bytes"),
        ({"flag": 1 << 31}, r"the message's flag is 2147483648 \(int\); .* of 32 bits"),
        ({"flag": "a"}, r"the message's flag is 'a' \(str\)"),
        ({"flag": None}, r"the message's flag is None"),
        ({"tags": b"x"}, r"the value of property 'TAGS' is b'x' \(bytes\); it is a str"),
        ({"properties": {"a": 1}}, r"the value of property 'a' is 1 \(int\); it is a str"),
        ({"properties": {1: "a"}}, r"a property's name is 1 \(int\); it is a str"),
    ],
    ids=str,
)
def test_a_message_with_a_part_of_another_type(
    producer: Any, broker: Any, fields: dict[str, Any], said: str
) -> None:
    message = Message("T", **{"body": b"x", **fields})
    told(message, said, MessageIllegalError, producer, broker)


def test_a_message_whose_properties_are_none(producer: Any, broker: Any) -> None:
    message = Message("T", b"x")
    message.properties = None  # type: ignore[assignment]
    told(message, "properties are None; they are a dict", MessageIllegalError, producer, broker)


@pytest.mark.parametrize("topic", [None, b"T", 3, ["T"]])
def test_a_topic_that_is_no_text(producer: Any, broker: Any, topic: Any) -> None:
    said = r"the topic is .*; it is a str"
    told(Message(topic, b"x"), said, InvalidNameError, producer, broker)
    for call in (
        producer.fetch_publish_message_queues,
        PushConsumer("c", brokers=[broker]).subscribe,
        LitePullConsumer("c", brokers=[broker]).subscribe,
        PullConsumer("c", brokers=[broker]).register_topic,
    ):
        with pytest.raises(InvalidNameError, match=said):
            call(topic)


@pytest.mark.parametrize("group", [None, b"g"])
def test_a_group_that_is_no_text(group: Any) -> None:
    for make in (Producer, PushConsumer, LitePullConsumer, PullConsumer):
        with pytest.raises(InvalidNameError, match="the group is .*; it is a str"):
            make(group)


@pytest.mark.parametrize("what", [None, 5, b"x", "x", [b"x"], [Message("T", b"x"), None]])
def test_what_is_no_message(producer: Any, what: Any) -> None:
    with pytest.raises(MessageIllegalError, match=r"is no message; make a Message of it"):
        producer.send(what)
    with pytest.raises(MessageIllegalError, match=r"is no message; make a Message of it"):
        producer.send_async(what).result(DEADLINE_S)


@pytest.mark.parametrize("keys", [b"abc", 5, ["a", 1]])
def test_keys_that_are_no_texts(keys: Any) -> None:
    with pytest.raises(TypeError, match="keys are .*; they are a str, or several"):
        Message("T", b"x", keys=keys)


@pytest.mark.parametrize("properties", [5, "ab"])
def test_properties_that_are_no_dict(properties: Any) -> None:
    with pytest.raises(TypeError, match="properties are .*; they are a dict"):
        Message("T", b"x", properties=properties)


def test_a_message_shows_itself_whatever_its_body_is() -> None:
    body: Any = None
    assert repr(Message("T", body)) == "Message(topic='T', body=None)"
    assert repr(Message("T", b"xy")) == "Message(topic='T', 2 bytes)"


def test_a_queue_that_is_none(producer: Any) -> None:
    with pytest.raises(TypeError, match=r"3 \(int\) is no MessageQueue"):
        producer.send(Message("T", b"x"), queue=3)


def test_a_setting_that_is_no_number() -> None:
    with pytest.raises(ClientConfigError, match="consumeThreadMin is '5'; it is a number"):
        ConsumerConfig(consume_thread_min="5")  # type: ignore[arg-type]
    with pytest.raises(ClientConfigError, match="send_msg_timeout_ms is None; it is a number"):
        ProducerConfig(send_msg_timeout_ms=None)  # type: ignore[arg-type]
    with pytest.raises(ClientConfigError, match="rebalance_interval_ms is 'a'; it is a number"):
        ClientConfig(rebalance_interval_ms="a")  # type: ignore[arg-type]


SWITCHES = [
    (kind, field.name)
    for kind in (ConsumerConfig, LitePullConfig, ProducerConfig, ClientConfig)
    for field in fields(kind)
    if isinstance(field.default, bool)
]


@pytest.mark.parametrize(("kind", "name"), SWITCHES)
@pytest.mark.parametrize("value", ["false", 0, None])
def test_a_switch_that_is_no_bool_is_refused(kind: Any, name: str, value: Any) -> None:
    spelled = f"{name}|{rocketmq_name(name)}"
    with pytest.raises(ClientArgumentError, match=rf"({spelled}) is .*; it is True or False"):
        kind(**{name: value})
    for right in (True, False):
        assert getattr(kind(**{name: right}), name) is right


@pytest.mark.parametrize(
    ("kind", "settings", "said"),
    [
        (ConsumerConfig, {"pull_batch_size": True}, "pullBatchSize is True; it is a number"),
        (ConsumerConfig, {"message_model": 1}, "messageModel is 1; it is one of"),
        (ConsumerConfig, {"message_model": "clustering"}, "it is one of BROADCASTING, CLUSTERING"),
        (ConsumerConfig, {"customized_trace_topic": 5}, "customizedTraceTopic is 5; it is a str"),
        (
            LitePullConfig,
            {"customized_trace_topic": ""},
            "customizedTraceTopic is .*; it must not be empty",
        ),
        (LitePullConfig, {"pull_threshold_for_all": 1 << 31}, "it must be 1 to 2147483647"),
        (ProducerConfig, {"create_topic_key": b"x"}, "create_topic_key is b'x'; it is a str"),
        (ProducerConfig, {"customized_trace_topic": None}, "it is a str"),
        (ProducerConfig, {"retry_response_codes": 1}, "it is a frozenset of numbers"),
        (ProducerConfig, {"retry_response_codes": {"1"}}, "a number of retry_response_codes is"),
        (ProducerConfig, {"latency_max": "1234567"}, "latency_max is '1234567'; it is a tuple of"),
        (ProducerConfig, {"latency_max": ("a",) * 7}, "a number of latency_max is 'a'"),
        (ProducerConfig, {"not_available_duration": (-1,) * 7}, "is -1; it must be 0 to"),
        (ProducerConfig, {"send_msg_timeout_ms": 1 << 31}, "it must be 1 to 2147483647"),
        (ProducerConfig, {"send_msg_timeout_ms": float("inf")}, "it is a whole number"),
        (ClientConfig, {"unit_name": None}, "unit_name is None; it is a str"),
        (ClientConfig, {"rebalance_interval_ms": 1 << 63}, "it must be 1 to 9223372036854775807"),
    ],
    ids=str,
)
def test_a_setting_of_another_kind_is_refused(
    kind: Any, settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(ClientConfigError, match=said):
        kind(**settings)


def test_settings_are_put_as_the_code_compares_them() -> None:
    consumer = ConsumerConfig(message_model="BROADCASTING")  # type: ignore[arg-type]
    assert consumer.message_model is MessageModel.BROADCASTING
    producer = ProducerConfig(
        retry_response_codes={1, 2},  # type: ignore[arg-type]
        latency_max=[1, 2],  # type: ignore[arg-type]
        not_available_duration=[0, 9],  # type: ignore[arg-type]
        send_msg_timeout_ms=3e3,  # type: ignore[arg-type]
    )
    assert producer.retry_response_codes == frozenset({1, 2})
    assert isinstance(producer.retry_response_codes, frozenset)
    assert (producer.latency_max, producer.not_available_duration) == ((1, 2), (0, 9))
    assert type(producer.send_msg_timeout_ms) is int


def test_a_switch_is_no_number_of_a_call(manager: Any, broker: Any) -> None:
    with (
        LitePullConsumer("g", brokers=[broker], manager=manager) as consumer,
        pytest.raises(ClientConfigError, match="timeout_ms is True; it is a number"),
    ):
        consumer.poll(True)
