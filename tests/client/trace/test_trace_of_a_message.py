"""The trace of one message, from its sender to its consumers."""

from __future__ import annotations

import pytest

from client.consumer.consumer_settings import set_by_name
from client.listener.listener import ConsumeConcurrentlyStatus
from client.producer.config import ProducerConfig
from client.producer.producer import Producer
from client.trace.trace import query_traces
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from tests.support.consumers import Heard, eventually, turn

TRACED, _ = set_by_name(["enableMsgTrace=true", "customizedTraceTopic=Traces"])


@pytest.mark.conformance("E9")
@pytest.mark.parametrize(
    ("answer", "success", "code"),
    [
        (ConsumeConcurrentlyStatus.CONSUME_SUCCESS, True, 0),
        (ConsumeConcurrentlyStatus.RECONSUME_LATER, False, 4),
        (None, False, 3),
    ],
)
def test_a_message_is_followed_by_its_id(manager, broker, make_consumer, answer, success, code):
    broker.update_topic(TopicConfig("T", 1, 1))
    config = ProducerConfig(enable_msg_trace=True, customized_trace_topic="Traces")
    with Producer("senders", brokers=[broker], config=config, manager=manager) as producer:
        sent = producer.send(Message("T", b"x", keys="order-7"))
    heard = Heard(lambda messages, context: answer)
    consumer = make_consumer(listener=heard, config=TRACED)
    consumer.start()
    turn(consumer)
    heard.wait_for(1)
    eventually(lambda: not consumer.consume_service.pool.waiting, "the listener has not ended")
    consumer.shutdown()
    views = query_traces([broker], sent.msg_id, "Traces")
    assert [(view.trace_type, view.group_name) for view in views] == [
        ("Pub", "senders"),
        ("SubBefore", "g"),
        ("SubAfter", "g"),
    ]
    assert (views[2].success, views[2].context_code) == (success, code)
    assert views[1].request_id == views[2].request_id
    assert views[1].keys == "order-7"
    assert len(query_traces([broker], sent.msg_id)) == 0
