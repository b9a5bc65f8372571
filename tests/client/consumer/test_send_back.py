"""Messages that a listener could not consume, on both ways back to the broker."""

from __future__ import annotations

import random

import pytest

from broker.api.failure_reason import (
    FAILURE_CLASS,
    FAILURE_CLIENT,
    FAILURE_MESSAGE,
    FAILURE_PROPERTIES,
    FAILURE_STACK,
    FAILURE_TIME,
)
from broker.embedded.broker import EmbeddedBroker
from broker.errors import BrokerBusyError
from client.consumer.consumer_config import ConsumerConfig
from client.listener.listener import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus
from storage.config import StoreConfig
from storage.configs.topics import TopicConfig
from storage.format.layout import BLANK_SIZE
from storage.format.message import Message, MessageExt, MessageQueue
from storage.store import MessageStore
from tests.support.consumers import Heard, eventually, turn
from tests.support.consuming import full_of_properties
from tests.support.failing_broker import DOWN, FailingBroker

LATER = ConsumeConcurrentlyStatus.RECONSUME_LATER
QUEUE = MessageQueue("T", "broker-a", 0)


def waiting(broker) -> list[MessageExt]:
    """Messages that wait for their next attempt, level 3 for the first."""
    return [
        message
        for queue_id in range(18)
        for message in broker.view.get_message(
            "SCHEDULE_TOPIC_XXXX", queue_id, 0, 32, tags=None
        ).messages
    ]


def failed_once(broker, make_consumer, failing=None, **settings):
    broker.update_topic(TopicConfig("T", 1, 1))
    sent = broker.send(Message("T", b"body", tags="A", properties={"mine": "1"}), 0)
    heard = Heard(lambda messages, context: LATER)
    consumer = make_consumer(listener=heard, brokers=[failing or broker], **settings)
    consumer.start()
    turn(consumer)
    heard.wait_for(1)
    return sent, consumer, heard


@pytest.mark.conformance("H2", "H3", "H15")
def test_a_failed_message_goes_back_to_its_broker_by_its_offset(broker, clock, make_consumer):
    failing = FailingBroker(broker, clock)
    failing.always("send_message_back", None)
    failing.always("send", None)
    sent, consumer, _ = failed_once(broker, make_consumer, failing)
    eventually(lambda: waiting(broker))
    ((_, (request,)),) = failing.calls
    assert request.group == "g"
    assert request.origin_topic == "T"
    assert request.origin_msg_id == sent.msg_id
    assert request.delay_level == 0
    assert request.max_reconsume_times == 16
    (message,) = waiting(broker)
    assert message.queue_id == 2
    assert message.get_property("REAL_TOPIC") == "%RETRY%g"
    assert message.reconsume_times == 1
    eventually(lambda: consumer.process_queues[QUEUE].msg_count == 0)
    assert failing.called("send") == 0


@pytest.mark.conformance("B18", "H3")
@pytest.mark.parametrize("refusal", [DOWN, BrokerBusyError("overloaded")])
def test_if_its_broker_will_not_the_inner_producer_sends_it_anew(
    broker, clock, make_consumer, refusal
):
    failing = FailingBroker(broker, clock)
    failing.always("send_message_back", refusal)
    sent, consumer, _ = failed_once(
        broker, make_consumer, failing, config=ConsumerConfig(max_reconsume_times=5)
    )
    eventually(lambda: waiting(broker))
    (message,) = waiting(broker)
    assert message.queue_id == 2, "level 3"
    assert message.body == b"body"
    assert message.msg_id == sent.msg_id
    assert message.reconsume_times == 1
    properties = message.properties
    assert properties["REAL_TOPIC"] == "%RETRY%g"
    assert properties["RETRY_TOPIC"] == "T"
    assert properties["RECONSUME_TIME"] == "1"
    assert properties["MAX_RECONSUME_TIMES"] == "5"
    assert properties["mine"] == "1"
    assert properties["TAGS"] == "A"
    assert "ORIGIN_MESSAGE_ID" not in properties, "lost on this way, as in 4.9"
    eventually(lambda: consumer.process_queues[QUEUE].msg_count == 0)
    assert broker.consumer_connection("g")


BEFORE = {FAILURE_CLASS: "ValueError", FAILURE_MESSAGE: "boom", FAILURE_STACK: "0123456789ab"}


def reason_on_the_other_way(broker, clock, make_consumer, orderly, **settings) -> dict[str, str]:
    """Why a message failed that is sent back as a new one; it failed for another reason before."""
    broker.update_topic(TopicConfig("T", 1, 1))
    broker.send(Message("T", b"body", properties={"mine": "1", **BEFORE}), 0)
    failing = FailingBroker(broker, clock)
    failing.always("send_message_back", DOWN)
    suspend = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
    heard = Heard(lambda messages, context: suspend if orderly else LATER)
    config = ConsumerConfig(max_reconsume_times=0 if orderly else -1, **settings)
    consumer = make_consumer(listener=heard, brokers=[failing], config=config)
    if orderly:
        consumer.register_message_listener_orderly(heard)
    consumer.start()
    turn(consumer)
    eventually(lambda: waiting(broker))
    (message,) = waiting(broker)
    assert message.properties["mine"] == "1"
    return {name: value for name, value in message.properties.items() if name in FAILURE_PROPERTIES}


@pytest.mark.parametrize("orderly", [False, True])
def test_the_reason_on_the_other_way_is_that_of_the_last_failure_alone(
    broker, clock, make_consumer, orderly
):
    reason = reason_on_the_other_way(broker, clock, make_consumer, orderly)
    assert reason.keys() == {FAILURE_CLASS, FAILURE_TIME, FAILURE_CLIENT}
    answer = "SUSPEND_CURRENT_QUEUE_A_MOMENT" if orderly else "RECONSUME_LATER"
    assert reason[FAILURE_CLASS] == answer


@pytest.mark.parametrize("orderly", [False, True])
def test_a_consumer_that_gives_no_reason_leaves_no_older_one_on_the_other_way(
    broker, clock, make_consumer, orderly
):
    settings = {"record_failure_reason": False}
    assert reason_on_the_other_way(broker, clock, make_consumer, orderly, **settings) == {}


@pytest.mark.parametrize("orderly", [False, True])
def test_a_broker_that_keeps_no_reasons_keeps_none_on_the_other_way(
    open_broker, clock, make_consumer, orderly
):
    broker = open_broker("broker-b", keep_failure_reasons=False)
    assert reason_on_the_other_way(broker, clock, make_consumer, orderly) == {}


@pytest.mark.conformance("E17", "H17")
def test_if_neither_way_works_it_is_consumed_again_here_and_progress_waits(
    broker, clock, make_consumer, scheduler
):
    failing = FailingBroker(broker, clock)
    failing.always("send_message_back", DOWN)
    failing.always("send", DOWN)
    _, consumer, heard = failed_once(broker, make_consumer, failing)
    process_queue = consumer.process_queues[QUEUE]
    eventually(lambda: heard.messages[0].reconsume_times == 1)
    assert process_queue.msg_count == 1
    consumer.persist_consumer_offset()
    assert broker.query_consumer_offset("g", "T", 0).offset == 0
    failing.heal()
    eventually(lambda: scheduler.advance(5_000) or len(heard.messages) == 2)
    eventually(lambda: process_queue.msg_count == 0)
    consumer.persist_consumer_offset()
    assert broker.query_consumer_offset("g", "T", 0).offset == 1
    assert len(waiting(broker)) == 1, "sent back once, nothing is lost"


@pytest.mark.conformance("H7")
def test_a_message_without_room_for_a_retry_is_a_dead_letter_after_as_many_attempts(
    broker, make_consumer, scheduler
):
    broker.update_topic(TopicConfig("T", 1, 1))
    broker.send(full_of_properties(broker), 0)
    broker.send(Message("T", b"after"), 0)

    def answer(messages, context):
        return LATER if messages[0].body == b"full" else ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    heard = Heard(answer)
    consumer = make_consumer(listener=heard, config=ConsumerConfig(max_reconsume_times=2))
    consumer.start()
    turn(consumer)
    process_queue = consumer.process_queues[QUEUE]
    eventually(lambda: scheduler.advance(5_000) or process_queue.msg_count == 0)
    consumer.persist_consumer_offset()
    assert broker.query_consumer_offset("g", "T", 0).offset == 2
    (letter,) = broker.view.get_message("%DLQ%g", 0, 0, 32, tags=None).messages
    assert (letter.body, letter.msg_id) == (b"full", "id")
    assert heard.bodies.count(b"full") == 3
    assert not waiting(broker)


@pytest.mark.parametrize("orderly", [False, True])
def test_a_message_too_large_for_a_retry_is_a_dead_letter_and_those_behind_it_arrive(
    tmp_path, make_consumer, scheduler, clock, orderly
):
    failed, done = (
        (ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT, ConsumeOrderlyStatus.SUCCESS)
        if orderly
        else (LATER, ConsumeConcurrentlyStatus.CONSUME_SUCCESS)
    )
    topic, file_size = "L" * 100, 1 << 16
    config = StoreConfig(
        mapped_file_size_commit_log=file_size,
        mapped_file_size_consume_queue=20_000,
        max_hash_slot_num=100,
        max_index_num=400,
    )
    MessageStore.create(tmp_path / "tight", config)
    with EmbeddedBroker.open(tmp_path / "tight", clock=clock.now_ms) as tight:
        tight.update_topic(TopicConfig(topic, 1, 1))
        body = random.Random(0).randbytes(file_size)  # does not get smaller as a new message
        tight.send(Message(topic, body[:100]), 0)
        added = tight.view.get_message(topic, 0, 0, 1).messages[0].store_size - 100
        large = body[: file_size - BLANK_SIZE - added]
        tight.send(Message(topic, large), 0)
        tight.send(Message(topic, b"after"), 0)

        def answer(messages, context):
            return failed if messages[0].body == large else done

        def pass_time():
            if not orderly:  # its message is sent at once, and time that passes would end that
                scheduler.advance(5_000)

        heard = Heard(answer)
        consumer = make_consumer(
            topic=topic,
            brokers=[tight],
            listener=heard,
            config=ConsumerConfig(max_reconsume_times=0 if orderly else 2),
        )
        if orderly:
            consumer.register_message_listener_orderly(heard)
        consumer.start()
        turn(consumer)
        process_queue = only_queue(consumer, topic)
        eventually(lambda: pass_time() or process_queue.msg_count == 0)
        consumer.shutdown()
        assert tight.query_consumer_offset("g", topic, 0).offset == 3
        (letter,) = tight.view.get_message("%DLQ%g", 0, 0, 32, tags=None).messages
        assert letter.body == large
        assert heard.bodies.count(large) == (1 if orderly else 3)
        assert heard.bodies.count(b"after") == 1


def only_queue(consumer, topic):
    (queue,) = [it for it in consumer.process_queues if it.topic == topic]
    return consumer.process_queues[queue]
