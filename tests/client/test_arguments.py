"""What a program passes is checked by name: what was given, what is allowed, what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker.api.members import MessageModel
from broker.api.offsets import ConsumeFromWhere
from broker.config import BrokerConfig
from broker.errors import MessageIllegalError, SubscriptionParseError
from client.consumer.consumer_config import ConsumerConfig
from client.consumer.subscription import MessageSelector
from client.errors import (
    ClientArgumentError,
    ClientConfigError,
    ClientError,
    ClientStateError,
    RouteNotFoundError,
)
from client.listener.listener import ConsumeConcurrentlyStatus
from client.offset_store.local_offset_store import LocalFileOffsetStore
from client.offset_store.offset_store import OffsetStore
from client.producer.config import ProducerConfig
from client.producer.producer import Producer
from client.producer.transaction_producer import TransactionProducer
from client.pull.lite_pull_consumer import LitePullConfig, LitePullConsumer
from client.pull.pull_consumer import PullConsumer
from client.push.push_consumer import PushConsumer
from client.runtime.client_config import ClientConfig
from storage.config import SMALL_STORE
from storage.errors import RocketMQError
from storage.format.message import Message, MessageQueue
from storage.store import MessageStore

CONSUMERS = (PushConsumer, LitePullConsumer, PullConsumer)
QUEUE = MessageQueue("T", "broker-a", 0)


class _Transactions:
    def execute_local_transaction(self, message: Message, arg: object) -> None: ...

    def check_local_transaction(self, message: Message) -> None: ...


def _transactional(group: str, **arguments: Any) -> TransactionProducer:
    return TransactionProducer(group, _Transactions(), **arguments)


MAKERS: tuple[Callable[..., Any], ...] = (Producer, _transactional, *CONSUMERS)


@pytest.mark.parametrize("make", MAKERS)
def test_a_path_in_place_of_a_broker_is_named_with_both_ways_to_open_it(
    make: Callable[..., Any], tmp_path: Path
) -> None:
    for brokers in (["store"], "store", [tmp_path], tmp_path, [b"store"]):
        with pytest.raises(
            ClientArgumentError,
            match=r"^brokers (is|holds) .*; use \w+\.open\(.*, 'g'\), or pass "
            r"brokers=\[EmbeddedBroker\.open\(.*\)\]$",
        ):
            make("g", brokers=brokers)


@pytest.mark.parametrize("make", MAKERS)
def test_other_objects_in_place_of_brokers(
    make: Callable[..., Any], broker: Any, tmp_path: Path
) -> None:
    with pytest.raises(ClientArgumentError, match=r"a list of brokers: brokers=\[broker\]"):
        make("g", brokers=broker)
    for brokers in (None, 5, [None], [broker.store], [broker.view], [broker, 5]):
        with pytest.raises(ClientArgumentError, match=r"; pass brokers=\[EmbeddedBroker\.open\("):
            make("g", brokers=brokers)


@pytest.mark.parametrize("make", MAKERS)
def test_settings_of_another_class_are_refused_at_once(
    make: Callable[..., Any], broker: Any
) -> None:
    wrong = ConsumerConfig() if make in (Producer, _transactional) else ProducerConfig()
    for config in ({"a": 1}, wrong, BrokerConfig()):
        with pytest.raises(ClientArgumentError, match=r"^config is .*; it is a \w+Config: config="):
            make("g", brokers=[broker], config=config)
    with pytest.raises(ClientArgumentError, match=r"^client_config is .*; it is a ClientConfig"):
        make("g", brokers=[broker], client_config=wrong)


@pytest.mark.parametrize("make", CONSUMERS)
@pytest.mark.parametrize("method", [name for name in vars(OffsetStore) if name[0] != "_"])
def test_an_offset_store_without_one_of_its_methods_is_refused(
    make: Callable[..., Any], method: str, broker: Any, tmp_path: Path
) -> None:
    store = LocalFileOffsetStore("client", "g", tmp_path)
    make("g", brokers=[broker], offset_store=store)
    setattr(store, method, None)
    with pytest.raises(
        ClientArgumentError, match=rf"^offset_store is .* is an OffsetStore, .* {method}\b"
    ):
        make("g", brokers=[broker], offset_store=store)


def test_a_lite_pull_consumer_needs_its_own_settings(broker: Any) -> None:
    with pytest.raises(ClientArgumentError, match="it is a LitePullConfig"):
        LitePullConsumer("g", brokers=[broker], config=ConsumerConfig())
    for settings in ({"auto_commit_interval_ms": "x"}, {"pull_threshold_for_all": -5}):
        with pytest.raises(ClientConfigError, match=next(iter(settings))):
            LitePullConfig(**settings)
    with pytest.raises(ClientConfigError, match="consumeThreadMin is 0; it must be 1 to 1000"):
        LitePullConfig(consume_thread_min=0)
    with pytest.raises(ClientConfigError, match=r"pullBatchSize is 1\.5; it is a whole number"):
        ConsumerConfig(pull_batch_size=1.5)  # type: ignore[arg-type]


def test_a_client_without_a_broker_says_how_to_give_it_one(manager: Any) -> None:
    with (
        Producer("p", manager=manager) as producer,
        pytest.raises(RouteNotFoundError, match=r"the client has no broker .*; pass brokers=\["),
    ):
        producer.send(Message("T", b"x"))


@pytest.mark.parametrize("make", [Producer, *CONSUMERS])
def test_open_takes_the_path_of_a_folder(
    make: Any, broker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for store in (None, 5, b"store"):
        with pytest.raises(ClientArgumentError, match="; it is the path of a folder"):
            make.open(store, "g", create=True)
    with pytest.raises(ClientArgumentError, match=r"pass the broker as brokers=\[broker\]"):
        make.open(broker, "g")
    with pytest.raises(ClientArgumentError, match="config is"):
        make.open("store", "g", {"a": 1}, create=True)
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("make", [Producer, LitePullConsumer, PullConsumer])
@pytest.mark.slow
def test_open_makes_the_store_where_that_is_requested(make: Any, tmp_path: Path) -> None:
    with make.open(tmp_path / "new", "g", create=True) as client:
        assert client.state == "RUNNING"
    with make.open(tmp_path / "new", "g") as client:
        assert client.state == "RUNNING"


def test_a_refused_setting_leaves_no_store_open(tmp_path: Path) -> None:
    MessageStore.create(tmp_path / "s", SMALL_STORE)
    with pytest.raises(TypeError, match="nothing"):
        PushConsumer.open(tmp_path / "s", "g", nothing=1)
    with MessageStore.open(tmp_path / "s", exclusive=True):
        pass  # no other writer is in


def test_a_transaction_producer_needs_its_listener(broker: Any, tmp_path: Path) -> None:
    for listener in (None, lambda message, arg: None, _Transactions):
        said = "execute_local_transaction and check_local_transaction"
        with pytest.raises(ClientArgumentError, match=said):
            TransactionProducer("g", listener, brokers=[broker])  # type: ignore[arg-type]
        with pytest.raises(ClientArgumentError, match=said):
            TransactionProducer.open(tmp_path / "s", "g", create=True, listener=listener)  # type: ignore[arg-type]
    assert not (tmp_path / "s").exists()
    made = TransactionProducer.open(tmp_path / "s", "g", create=True, listener=_Transactions())
    with made as producer:
        assert producer.state == "RUNNING"
        for wrong in (None, "x", ["x"]):
            with pytest.raises(MessageIllegalError, match="is no message; make a Message of it"):
                producer.send_message_in_transaction(wrong)  # type: ignore[arg-type]


# -- a producer's life and calls


def test_each_state_says_what_to_do(manager: Any, broker: Any) -> None:
    producer = Producer("p", brokers=[broker], manager=manager)
    sends: tuple[Callable[[], Any], ...] = (
        lambda: producer.send(Message("T", b"x")),
        lambda: producer.send_async(Message("T", b"x")),
        lambda: producer.send_oneway(Message("T", b"x")),
    )
    for send in (*sends, lambda: producer.fetch_publish_message_queues("T")):
        with pytest.raises(ClientStateError, match=r"CREATE_JUST; call start\(\) first, or use it"):
            send()
    with producer, pytest.raises(ClientStateError, match=r"RUNNING; it was started already"):
        producer.start()
    for send in (*sends, producer.start):
        with pytest.raises(ClientStateError, match="SHUTDOWN_ALREADY; it was shut down; make ano"):
            send()


@pytest.mark.parametrize("make", CONSUMERS)
def test_each_state_of_a_consumer_says_what_to_do(make: Any, manager: Any, broker: Any) -> None:
    consumer = make("g", brokers=[broker], manager=manager)
    if isinstance(consumer, PushConsumer):
        consumer.subscribe("T")
        consumer.register_message_listener(lambda messages, context: None)
        with pytest.raises(ClientStateError, match=r"CREATE_JUST; call start\(\) first"):
            _ = consumer.client_id
    else:
        for call in (lambda: consumer.max_offset(QUEUE), lambda: consumer.search_offset(QUEUE, 0)):
            with pytest.raises(ClientStateError, match=r"CREATE_JUST; call start\(\) first"):
                call()
    if isinstance(consumer, LitePullConsumer):
        assert consumer.assignment() == []
    with consumer:
        with pytest.raises(ClientStateError, match="RUNNING; it was started already"):
            consumer.start()
        if isinstance(consumer, PushConsumer):
            with pytest.raises(ClientStateError, match="register a listener before start"):
                consumer.register_message_listener(lambda messages, context: None)
    with pytest.raises(ClientStateError, match="SHUTDOWN_ALREADY; it was shut down; make another"):
        consumer.start()


def test_a_text_body_is_to_be_encoded(manager: Any, broker: Any) -> None:
    with Producer("p", brokers=[broker], manager=manager) as producer:
        for body, said in (
            ("hello", r"the message body is 'hello' \(str\); it is bytes; encode it: text"),
            ("", r"the message body is '' \(str\); it is bytes; encode it: text\.encode\(\)"),
            (None, "the message body is None; it is bytes$"),
            ({}, r"the message body is \{\} \(dict\); it is bytes$"),
        ):
            for send in (producer.send, producer.send_oneway):
                with pytest.raises(MessageIllegalError, match=said):
                    send(Message("T", body))  # type: ignore[arg-type]


@pytest.mark.parametrize("level", ["3", "x", 1.5, b"1", [1]])
def test_a_delay_level_that_is_no_number(level: Any) -> None:
    with pytest.raises(TypeError, match=r"delay_time_level is .*; it is a whole number, 0 for no"):
        Message("T", b"x", delay_time_level=level)


def test_a_negative_delay_level() -> None:
    with pytest.raises(ValueError, match="delay_time_level is -1; levels begin at 1, 0 is no"):
        Message("T", b"x", delay_time_level=-1)
    message = Message("T", b"x", delay_time_level=3)
    message.delay_time_level = 0
    assert message.properties == {}


def test_arguments_of_a_send(manager: Any, broker: Any) -> None:
    with Producer("p", brokers=[broker], manager=manager) as producer:
        message = Message("T", b"x")
        for arguments, said in (
            ({"selector": "x"}, r"selector is 'x' \(str\); it is a function"),
            ({"arg": 1}, "arg is for a selector, and there is none; pass selector= too"),
            ({"queue": "T"}, r"'T' \(str\) is no MessageQueue; take one of fetch_publish_mess"),
            ({"queue": 0}, r"0 \(int\) is no MessageQueue"),
            ({"queue": QUEUE, "selector": print}, "not both; pass one of them"),
            ({"timeout_ms": "1"}, r"timeout_ms is '1' \(str\); it is a whole number"),
        ):
            for send in (producer.send, producer.send_async):
                with pytest.raises(ClientConfigError, match=said):
                    send(message, **arguments)
        for name in ("on_success", "on_exception"):
            with pytest.raises(ClientConfigError, match=rf"{name} is 5 \(int\); it is a function"):
                producer.send_async(message, **{name: 5})  # type: ignore[arg-type]
        with pytest.raises(ClientError, match=r"the selector gave 1 \(int\); it gives one of the"):
            producer.send(message, selector=lambda queues, message, arg: 1)  # type: ignore[arg-type]
    assert broker.topic("T") is None


# -- consumers


@pytest.mark.parametrize(
    "listener", [None, 5, "x", ConsumeConcurrentlyStatus.CONSUME_SUCCESS, object(), _Transactions]
)
def test_what_is_no_listener_is_refused_when_it_is_registered(listener: Any, broker: Any) -> None:
    consumer = PushConsumer("g", brokers=[broker])
    for register in (
        consumer.register_message_listener,
        consumer.register_message_listener_orderly,
    ):
        with pytest.raises(ClientArgumentError, match=r"^the listener is .*; it is a function of"):
            register(listener)


@pytest.mark.parametrize("make", [PushConsumer, LitePullConsumer])
@pytest.mark.parametrize(
    ("selector", "said"),
    [
        (5, r"the selector is 5 \(int\); it is tags such as 'a \|\| b', or MessageSelector"),
        (["a"], "the selector is"),
        (b"a", "the selector is"),
        (MessageSelector.by_sql(""), "the SQL92 expression for topic T is empty; give one, or"),
        (MessageSelector(5), "the selector's expression is 5"),  # type: ignore[arg-type]
        (MessageSelector("x", "JS"), r"expression_type is 'JS' \(str\); it is TAG or SQL92"),
    ],
    ids=str,
)
def test_a_selector_of_another_type(make: Any, selector: Any, said: str, broker: Any) -> None:
    consumer = make("g", brokers=[broker])
    with pytest.raises(ClientConfigError, match=said):
        consumer.subscribe("T", selector)


@pytest.mark.parametrize("make", [PushConsumer, LitePullConsumer])
def test_an_expression_is_checked_although_its_topic_does_not_exist_yet(
    make: Any, manager: Any, broker: Any
) -> None:
    consumer = make("g", brokers=[broker], manager=manager)
    consumer.subscribe("NotThere", MessageSelector.by_sql("a >"))
    if isinstance(consumer, PushConsumer):
        consumer.register_message_listener(lambda messages, context: None)
    with pytest.raises(SubscriptionParseError), consumer:
        pass


def test_an_unknown_setting_has_its_nearest_name(broker: Any) -> None:
    consumer = PushConsumer("g", brokers=[broker])
    with pytest.raises(ClientConfigError, match="'pull_batchsize'; do you mean pull_batch_size?"):
        consumer.configure(pull_batchsize=5)


def test_a_running_consumer_keeps_its_message_model(manager: Any, broker: Any) -> None:
    consumer = PushConsumer("g", brokers=[broker], manager=manager)
    consumer.configure(message_model="BROADCASTING")
    consumer.configure(message_model=MessageModel.CLUSTERING)
    consumer.subscribe("T")
    consumer.register_message_listener_orderly(lambda messages, context: None)
    with consumer:
        with pytest.raises(ClientStateError, match="keeps its message_model CLUSTERING from its"):
            consumer.configure(message_model="BROADCASTING", pull_batch_size=5)
        assert consumer.message_model is MessageModel.CLUSTERING
        assert consumer.config.pull_batch_size == 32, "nothing was changed"
        consumer.configure(message_model="CLUSTERING", pull_batch_size=5)
        assert consumer.config.pull_batch_size == 5


def test_queues_and_offsets_of_other_types(manager: Any, broker: Any) -> None:
    lite = LitePullConsumer("g", brokers=[broker], manager=manager)
    wrong_queues: tuple[Any, ...] = (5, "T", QUEUE, [5], ["T"])
    for queues in wrong_queues:
        for call in (lite.assign, lite.pause, lite.resume):
            with pytest.raises(ClientArgumentError, match=r"the queues are|is no MessageQueue"):
                call(queues)
    lite.assign([QUEUE])
    with pytest.raises(ClientStateError, match="mutually exclusive: consumer g has assigned"):
        lite.subscribe("T")
    with lite:
        for wrong in (5, "T", None, ("T", "broker-a", 0)):
            calls: tuple[Callable[[Any], Any], ...] = (
                lite.committed,
                lite.max_offset,
                lite.min_offset,
                lambda queue: lite.seek(queue, 0),
            )
            for one in calls:
                with pytest.raises(ClientArgumentError, match="is no MessageQueue; take one of"):
                    one(wrong)
        with pytest.raises(ClientArgumentError, match=r"the offset is 'x' \(str\)"):
            lite.seek(QUEUE, "x")  # type: ignore[arg-type]
        with pytest.raises(ClientConfigError, match="timeout_ms is 'x'; it is a number"):
            lite.poll("x")  # type: ignore[arg-type]
    other = LitePullConsumer("g2", brokers=[broker], manager=manager)
    other.subscribe("T")
    with pytest.raises(ClientStateError, match="mutually exclusive: consumer g2 subscribes to T"):
        other.assign([QUEUE])


def test_arguments_of_a_pull_consumer(manager: Any, broker: Any) -> None:
    with PullConsumer("g", brokers=[broker], manager=manager) as consumer:
        refused: tuple[tuple[Callable[[], Any], str], ...] = (
            (lambda: consumer.pull(5, 0), "5 .int. is no MessageQueue"),  # type: ignore[arg-type]
            (lambda: consumer.pull(QUEUE, "x"), "the offset is 'x'"),  # type: ignore[arg-type]
            (lambda: consumer.pull(QUEUE, -1), "the offset is -1; it must be 0 or more"),
            (lambda: consumer.pull(QUEUE, 0, 0), "max_nums is 0; it must be 1 or more"),
            (lambda: consumer.pull(QUEUE, 0, 1, 5), "the selector is 5"),  # type: ignore[arg-type]
            (lambda: consumer.update_consume_offset(QUEUE, "x"), "the offset is"),  # type: ignore[arg-type]
            (lambda: consumer.update_consume_offset(5, 1), "is no MessageQueue"),  # type: ignore[arg-type]
            (lambda: consumer.fetch_consume_offset(5), "is no MessageQueue"),  # type: ignore[arg-type]
            (lambda: consumer.search_offset(QUEUE, "x"), "the timestamp is 'x'"),  # type: ignore[arg-type]
            (
                lambda: consumer.search_offset(QUEUE, 1_767_225_600),
                "the timestamp is 1767225600 ms",
            ),
            (lambda: consumer.search_offset(QUEUE, -1), "must lie between 1990 and 2200"),
            (lambda: consumer.send_message_back("x", QUEUE), "'x' .str. is no message that was"),  # type: ignore[arg-type]
        )
        for call, said in refused:
            with pytest.raises(ClientConfigError, match=said):
                call()
        assert consumer.search_offset(QUEUE, 0) == 0


@pytest.mark.parametrize("timestamp", [1_767_225_600, 1_767_225_600_000_000])
def test_a_start_in_another_unit_is_refused(timestamp: int) -> None:
    with pytest.raises(ClientConfigError, match=r"consumeTimestamp is \d+ ms, .* 1990 and 2200"):
        ConsumerConfig(
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_TIMESTAMP, consume_timestamp=timestamp
        )
    ConsumerConfig(consume_timestamp=timestamp)  # it has no effect then


def test_a_clients_name_is_a_text() -> None:
    with pytest.raises(ClientArgumentError, match="instance_name is None; it is a str"):
        ClientConfig(instance_name=None)  # type: ignore[arg-type]


def test_every_refusal_is_caught_as_an_error_of_rmqctl() -> None:
    assert issubclass(ClientArgumentError, RocketMQError)
    assert issubclass(ClientArgumentError, TypeError)
    assert issubclass(ClientArgumentError, ValueError)
