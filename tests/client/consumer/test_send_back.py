"""Messages that a listener could not consume, on both ways back to the broker."""

from __future__ import annotations

import pytest

from broker.errors import BrokerBusyError
from client.consumer.consumer_config import ConsumerConfig
from client.listener.listener import ConsumeConcurrentlyStatus
from storage.configs.topics import TopicConfig
from storage.format.message import Message, MessageExt, MessageQueue
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
