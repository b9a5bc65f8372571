"""The life of a producer: starting, sharing a client, leaving."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from broker.api.send import SendStatus
from broker.errors import InvalidNameError
from client.errors import ClientConfigError, ClientStateError, GroupRegisteredError
from client.producer.config import ProducerConfig
from client.producer.producer import INNER_PRODUCER_GROUP, Producer
from client.runtime.client_config import ClientConfig
from client.runtime.service_state import ServiceState
from storage.errors import StoreClosedError
from storage.format.message import Message
from tests.support.consumers import PATIENCE_S, eventually
from tests.support.failing_broker import FailingBroker


def test_a_producer_is_started_once_and_shut_down_once(manager, broker):
    producer = Producer("group", brokers=[broker], manager=manager)
    states = [producer.state]
    producer.shutdown()
    with pytest.raises(ClientStateError, match="is not running: its state is CREATE_JUST"):
        producer.send(Message("T", b"x"))
    producer.start()
    states.append(producer.state)
    assert states == [ServiceState.CREATE_JUST, ServiceState.RUNNING]
    with pytest.raises(ClientStateError, match="cannot be started: its state is RUNNING"):
        producer.start()
    producer.shutdown()
    producer.shutdown()
    with pytest.raises(ClientStateError, match="SHUTDOWN_ALREADY"):
        producer.send_async(Message("T", b"x"))
    with pytest.raises(ClientStateError, match="SHUTDOWN_ALREADY"):
        producer.start()


def test_two_producers_of_one_group_do_not_fit_into_one_client(manager, broker):
    client = ClientConfig(instance_name="shared")
    with Producer("group", brokers=[broker], client_config=client, manager=manager) as first:
        second = Producer("group", brokers=[broker], client_config=client, manager=manager)
        with pytest.raises(GroupRegisteredError, match="group has been created before"):
            second.start()
        with Producer("other", brokers=[broker], client_config=client, manager=manager) as other:
            assert other.instance is first.instance
    second.start()
    second.shutdown()


def test_producers_get_a_client_of_their_own_by_default(manager, broker):
    with (
        Producer("group", brokers=[broker], manager=manager) as first,
        Producer("group", brokers=[broker], manager=manager) as second,
    ):
        assert first.instance is not second.instance
        assert first.instance.client_id != second.instance.client_id


@pytest.mark.conformance("B18")
def test_the_inner_producer_is_part_of_a_client_and_does_not_keep_it_alive(manager, broker):
    with Producer("group", brokers=[broker], manager=manager) as producer:
        inner = Producer.within(producer.instance, INNER_PRODUCER_GROUP)
        assert inner.instance is producer.instance
        assert inner.send(Message("T", b"x")).send_status is SendStatus.SEND_OK
        assert producer.instance.heartbeat_data().producers == ("group",)
    assert producer.instance.state is ServiceState.SHUTDOWN_ALREADY


def test_a_group_without_a_proper_name_is_refused():
    for group in ("", "DEFAULT_PRODUCER", "with blank"):
        with pytest.raises(InvalidNameError):
            Producer(group)


def test_a_producer_says_hello_and_goodbye(manager, broker):
    client = ClientConfig(instance_name="one")
    with Producer("group", brokers=[broker], client_config=client, manager=manager) as producer:
        data = producer.instance.heartbeat_data()
        assert (data.client_id, data.producers) == ("127.0.0.1@one", ("group",))
        with pytest.raises(Exception, match="one"):
            broker.connect("127.0.0.1@one", None)
    broker.connect("127.0.0.1@one", None)
    broker.disconnect("127.0.0.1@one")


def test_a_producer_whose_start_is_broken_off_leaves_its_client(manager, broker, clock):
    failing = FailingBroker(broker, clock)
    failing.plan("heartbeat", KeyboardInterrupt())
    client = ClientConfig(instance_name="shared")
    producer = Producer("group", brokers=[failing], client_config=client, manager=manager)
    with pytest.raises(KeyboardInterrupt), producer:
        pass
    assert producer.state is ServiceState.START_FAILED
    assert producer.instance.producer("group") is None
    assert producer.instance.state is ServiceState.SHUTDOWN_ALREADY
    with Producer("group", brokers=[failing], client_config=client, manager=manager) as again:
        assert again.send(Message("T", b"x")).send_status is SendStatus.SEND_OK


@contextmanager
def ctrl_c_by_another_signal() -> Iterator[None]:
    """A process that runs in the background of a shell may ignore SIGINT."""
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_shutdown_that_is_interrupted_while_it_waits_for_sends_ends_all(broker):
    producer = Producer.open(broker.view.root, "group")
    producer.start()
    owned, opened = producer._owned, threading.Event()
    assert owned is not None

    def interrupt(result: Any) -> None:
        eventually(lambda: producer._async_sender._stopped)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
        assert opened.wait(PATIENCE_S)

    future = producer.send_async(Message("T", b"x"), on_success=interrupt)
    with ctrl_c_by_another_signal(), pytest.raises(KeyboardInterrupt):
        producer.shutdown()
    opened.set()
    assert future.result(PATIENCE_S).send_status is SendStatus.SEND_OK
    assert producer.state is ServiceState.SHUTDOWN_ALREADY
    assert producer.instance.state is ServiceState.SHUTDOWN_ALREADY
    with pytest.raises(StoreClosedError):
        owned.topic("")
    producer.shutdown()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"send_msg_timeout_ms": 0}, "send_msg_timeout_ms is 0; it must be 1 to 2147483647"),
        ({"retry_times_when_send_failed": -1}, "it must be 0 to 2147483647"),
        ({"default_topic_queue_nums": 0}, "default_topic_queue_nums is 0"),
        ({"latency_max": (1, 2)}, "differ in length"),
    ],
)
def test_settings_out_of_their_range_are_refused(settings, words):
    with pytest.raises(ClientConfigError, match=words):
        ProducerConfig(**settings)


def test_the_defaults_are_those_of_rocketmq():
    config = ProducerConfig()
    assert config.send_msg_timeout_ms == 3_000
    assert config.retry_times_when_send_failed == config.retry_times_when_send_async_failed == 2
    assert not config.retry_another_broker_when_not_store_ok
    assert config.max_message_size == 4_194_304
    assert config.compress_msg_body_over_howmuch == 4_096
    assert (config.create_topic_key, config.default_topic_queue_nums) == ("TBW102", 4)
    assert config.retry_response_codes == {17, 14, 1, 16, 204, 205}
    assert not config.send_latency_fault_enable
    assert not config.enable_msg_trace
