"""Hooks around sending."""

from __future__ import annotations

import pytest

from broker.api.pull import PullRequest
from broker.api.send import SendStatus
from broker.errors import BrokerBusyError
from client.errors import BrokerNotExistError, ClientError, SendFailedError
from client.hooks import CommunicationMode, MessageType
from client.producer.producer import Producer
from storage.configs.topics import TopicConfig
from storage.format.message import Message, MessageQueue
from tests.support.failing_broker import DOWN, LOST, FailingBroker


class Noting:
    """A hook that notes what it sees."""

    def __init__(self, name="hook", log=None):
        self.name = name
        self.log = [] if log is None else log

    def send_message_before(self, context):
        self.log.append((self.name, "before", context.message_queue.broker_name))

    def send_message_after(self, context):
        result = context.send_result and context.send_result.send_status
        self.log.append((self.name, "after", result or type(context.error).__name__))


@pytest.fixture
def failing(broker, clock):
    broker.update_topic(TopicConfig("T", 1, 1))
    return FailingBroker(broker, clock)


@pytest.fixture
def producer(failing, manager):
    with Producer("group", brokers=[failing], manager=manager) as running:
        yield running


@pytest.mark.conformance("E9")
def test_hooks_are_called_in_their_order_before_and_after(producer):
    log: list[tuple[str, ...]] = []
    producer.send_message_hooks.extend([Noting("1", log), Noting("2", log)])
    producer.send(Message("T", b"x"))
    assert log == [
        ("1", "before", "broker-a"),
        ("2", "before", "broker-a"),
        ("1", "after", SendStatus.SEND_OK),
        ("2", "after", SendStatus.SEND_OK),
    ]


def test_each_synchronous_attempt_has_its_hooks_and_all_asynchronous_ones_together(
    producer, failing
):
    hook = Noting()
    producer.send_message_hooks.append(hook)
    failing.plan("send", DOWN, LOST)
    producer.send(Message("T", b"x"))
    assert [what for _, when, what in hook.log if when == "after"] == [
        "OutOfReachError",
        "RemotingTimeoutError",
        "SEND_OK",
    ]
    hook.log.clear()
    failing.plan("send", DOWN, LOST)
    producer.send_async(Message("T", b"x")).result(20)
    failing.plan("send", BrokerBusyError("busy"))
    producer.send_async(Message("T", b"x")).exception(20)
    failing.plan("send", DOWN, DOWN, DOWN)
    producer.send_async(Message("T", b"x")).exception(20)
    assert [(when, what) for _, when, what in hook.log] == [
        ("before", "broker-a"),
        ("after", "SEND_OK"),
        ("before", "broker-a"),
        ("after", "BrokerBusyError"),
        ("before", "broker-a"),
        ("after", "SendFailedError"),
    ]


def test_a_hook_that_fails_stops_neither_the_others_nor_the_message(producer, failing, caplog):
    class Failing(Noting):
        def send_message_before(self, context):
            raise ValueError("a bug in a hook")

        def send_message_after(self, context):
            raise ValueError("a bug in a hook")

    hook = Noting()
    producer.send_message_hooks.extend([Failing(), hook])
    assert producer.send(Message("T", b"x")).send_status is SendStatus.SEND_OK
    assert len(hook.log) == 2
    assert caplog.text.count("a hook failed") == 2


def test_a_hook_sees_what_goes_to_the_broker_and_may_add_properties(producer, failing):
    contexts = []

    class Adding:
        def send_message_before(self, context):
            contexts.append(context)
            context.message.properties["span"] = "7"

        def send_message_after(self, context):
            pass

    producer.send_message_hooks.append(Adding())
    producer.send(Message("T", b"x" * 5_000))
    producer.send([Message("T", b"1"), Message("T", b"22")])
    producer.send(Message("T", b"x", delay_time_level=1))
    producer.send_oneway(Message("T", b"x"), queue=MessageQueue("T", "broker-a", 0))
    packed, batch, delayed, oneway = contexts
    [stored] = failing.pull(PullRequest("reader", "T", 0, 0, 1)).messages
    assert stored.get_property("span") == "7"
    assert packed.body_length == len(stored.stored_body) < 100
    assert [it.body for it in batch.batch] == [b"1", b"22"]
    assert delayed.message_type is MessageType.Delay_Msg
    assert packed.communication_mode is CommunicationMode.SYNC
    assert (oneway.communication_mode, oneway.send_result) == (CommunicationMode.ONEWAY, None)
    assert packed.client_id == producer.instance.client_id


def test_a_message_may_be_forbidden(producer, failing):
    hook = Noting()

    class Forbidding:
        def check_forbidden(self, context):
            if context.message.tags == "secret":
                raise ClientError("secrets stay here")

    producer.send_message_hooks.append(hook)
    producer.check_forbidden_hooks.append(Forbidding())
    with pytest.raises(
        SendFailedError, match=r"sending to topic T failed after 3 attempts.* secrets stay here"
    ):
        producer.send(Message("T", b"x", tags="secret"))
    with pytest.raises(ClientError, match="secrets stay here"):
        producer.send(Message("T", b"x", tags="secret"), queue=MessageQueue("T", "broker-a", 0))
    assert hook.log == []
    assert failing.max_offset("T", 0) == 0
    producer.send(Message("T", b"x", tags="open"))
    assert failing.max_offset("T", 0) == 1


def test_a_broker_that_is_not_there_ends_an_attempt(producer):
    hook = Noting()
    producer.send_message_hooks.append(hook)
    with pytest.raises(BrokerNotExistError):
        producer.send(Message("T", b"x"), queue=MessageQueue("T", "gone", 0))
    assert [(when, what) for _, when, what in hook.log] == [
        ("before", "gone"),
        ("after", "BrokerNotExistError"),
    ]
