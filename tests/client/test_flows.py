"""One message, followed from the producer to the progress on disk; and its traces."""

from __future__ import annotations

import json
import logging
import threading

import pytest

from client.consumer.consumer_config import ConsumerConfig
from client.listener.listener import ConsumeConcurrentlyStatus
from client.offset_store.offset_store import ReadOffsetType
from client.producer.producer import Producer
from storage.configs.topics import TopicConfig
from storage.format.message import Message, MessageQueue
from tests.support.consumers import (
    Heard,
    eventually,
    fill,
    pull_until,
    pull_what_is_there,
    rebalance,
    turn,
)
from tests.support.failing_broker import FailingBroker

QUEUE = MessageQueue("T", "broker-a", 0)
SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
LATER = ConsumeConcurrentlyStatus.RECONSUME_LATER


@pytest.mark.conformance("I1", "E23")
def test_the_nine_steps_of_the_client(broker, clock, make_consumer, scheduler):
    fill(broker, 1, queues=1)
    go_on = threading.Event()
    heard = Heard(lambda messages, context: go_on.wait(20) and SUCCESS)
    recorded = FailingBroker(broker, clock)
    recorded.always("pull_async", None)
    consumer = make_consumer(listener=heard, brokers=[recorded])
    consumer.start()
    pull_service = consumer.instance.pull_service
    # 1. rebalance: the queue is ours
    assert QUEUE not in consumer.process_queues
    rebalance(consumer)
    process_queue = consumer.process_queues[QUEUE]
    # 2. its pull request, with the first offset, goes to the pull service
    assert pull_service.waiting == 2, "T and the retry topic"
    # 3. the pull thread takes it, 4. checks and pulls
    while QUEUE.topic not in [arguments[0].topic for _, arguments in recorded.calls]:
        assert pull_service.run_once()
    # 5. the answer: the message stands in the process queue, the request is back
    assert process_queue.msg_count == 1
    assert pull_service.waiting >= 1
    # 6. it was submitted, 7. a thread of the pool calls the listener
    heard.wait_for(1)
    (message,) = heard.messages
    assert message.get_property("CONSUME_START_TIME") == str(clock.now_ms())
    assert consumer.offset_store.read_offset(QUEUE, ReadOffsetType.READ_FROM_MEMORY) == 0
    # 8. its result takes it out of the process queue, and the offset in memory moves
    go_on.set()
    eventually(lambda: process_queue.msg_count == 0)
    assert consumer.consumer_status("T") == {QUEUE: 1}
    # 9. the offset goes to the broker
    assert broker.query_consumer_offset("g", "T", 0).offset == 0
    scheduler.advance(10_000)
    assert broker.query_consumer_offset("g", "T", 0).offset == 1


@pytest.mark.conformance("I2", "H1", "H15")
def test_the_eight_steps_with_the_broker_and_a_failure(broker, make_consumer, scheduler):
    fill(broker, 0, queues=1)
    heard = Heard(lambda messages, context: LATER if len(heard.messages) == 1 else SUCCESS)
    consumer = make_consumer(listener=heard)
    consumer.start()
    # 1. the queues are divided, 2. the pull finds nothing and is held by the broker
    turn(consumer)
    assert consumer.instance.pull_service.waiting == 0
    # 3. a message is stored: log, queue, index
    sent = broker.send(Message("T", b"body", keys="k"), 0)
    assert broker.max_offset("T", 0) == 1
    assert [m.body for m in broker.query_message("T", "k").messages] == [b"body"]
    # 4. that wakes the held pull, 5. the answer is put into the process queue
    # 6. and consumed, 7. in vain: it goes back, to wait in the topic of delayed messages
    pull_until(consumer, lambda: heard.messages)
    eventually(lambda: consumer.process_queues[QUEUE].msg_count == 0)
    assert broker.max_offset("SCHEDULE_TOPIC_XXXX", 2) == 1, "level 3"
    (waits,) = broker.view.get_message("SCHEDULE_TOPIC_XXXX", 2, 0, 1, tags=None).messages
    assert waits.get_property("REAL_TOPIC") == "%RETRY%g"
    # 8. for this queue it is done: progress moves past it
    scheduler.advance(10_000)
    assert broker.query_consumer_offset("g", "T", 0).offset == 1
    # and again from 2., by the retry topic
    delivered = Message("%RETRY%g", waits.body, properties=waits.properties)
    del delivered.properties["DELAY"]
    broker.send(delivered, 0)
    pull_until(consumer, lambda: len(heard.messages) == 2)
    assert [m.topic for m in heard.messages] == ["T", "T"]
    assert {m.msg_id for m in heard.messages} == {sent.msg_id}
    assert [c.message_queue.topic for c in heard.contexts] == ["T", "%RETRY%g"]


@pytest.mark.conformance("I6", "A7", "A17")
def test_a_message_goes_through_log_queue_listener_and_progress_file(
    broker, manager, make_consumer
):
    broker.update_topic(TopicConfig("T", 1, 1))
    heard = Heard()
    with Producer("p", brokers=[broker], manager=manager) as producer:
        sent = producer.send(Message("T", b"followed"))
    root = broker.view.root
    (record,) = broker.query_unique("T", sent.msg_id)
    log = (root / "commitlog" / f"{0:020}").read_bytes()
    assert b"followed" in log[record.commitlog_offset : record.commitlog_offset + record.store_size]
    unit = (root / "consumequeue" / "T" / "0" / f"{0:020}").read_bytes()[:20]
    assert int.from_bytes(unit[:8], "big") == record.commitlog_offset
    assert int.from_bytes(unit[8:12], "big") == record.store_size
    consumer = make_consumer(listener=heard)
    consumer.start()
    turn(consumer)
    heard.wait_for(1)
    assert heard.messages[0].msg_id == sent.msg_id
    eventually(lambda: not consumer.consume_service.pool.waiting, "the listener has not ended")
    consumer.shutdown()
    broker.do_own_work()
    offsets = (root / "config" / "consumerOffset.json").read_text()
    assert json.loads(offsets.replace("{0:", '{"0":'))["offsetTable"]["T@g"] == {"0": 1}


@pytest.mark.conformance("E27", "D6", "E18", "E19")
def test_the_span_stops_the_pulls_and_giving_the_stuck_message_back_lets_them_go_on(
    broker, make_consumer, scheduler
):
    broker.update_topic(TopicConfig("T", 1, 1))
    for _ in range(21):
        broker.send_batch([Message("T", b"x") for _ in range(100)], 0)
    head, tail = threading.Event(), threading.Event()

    def listen(messages, context):
        if messages[0].queue_offset == 0:
            head.wait(30)
        if messages[0].queue_offset >= 2000:
            tail.wait(30)
        return SUCCESS

    heard = Heard(listen)
    config = ConsumerConfig(consume_timeout_minutes=1)
    consumer = make_consumer(listener=heard, config=config)
    consumer.start()
    rebalance(consumer)
    process_queue = consumer.process_queues[QUEUE]

    def look_again(ms: int = 50) -> int:
        pull_what_is_there(consumer)
        scheduler.advance(ms)
        return int(process_queue.queue_offset_max)

    eventually(lambda: look_again() == 2015 and len(heard.bodies) >= 2000)
    for _ in range(3):
        look_again(20_000)
    assert look_again() == 2015, "pulls have stopped"
    eventually(lambda: look_again(20_000) == 2099)
    assert broker.max_offset("SCHEDULE_TOPIC_XXXX", 2) >= 1, "the stuck one was given back"
    tail.set()
    eventually(lambda: process_queue.msg_count == 0)
    consumer.persist_consumer_offset()
    assert broker.query_consumer_offset("g", "T", 0).offset == 2100, "past the one that is stuck"
    head.set()


@pytest.mark.conformance("B21")
def test_each_call_of_the_listener_is_logged_if_that_is_wanted(broker, make_consumer, caplog):
    caplog.set_level(logging.INFO)
    fill(broker, 5, queues=1)
    config = ConsumerConfig(consume_log=True, consume_message_batch_max_size=2)
    heard = Heard()
    consumer = make_consumer(listener=heard, config=config)
    consumer.start()
    turn(consumer)
    heard.wait_for(5)
    eventually(lambda: consumer.process_queues[QUEUE].msg_count == 0)
    lines = [r.getMessage() for r in caplog.records if "CONSUME_SUCCESS" in r.getMessage()]
    assert len(lines) == 3
    assert all("group=g" in line for line in lines)
    for message in heard.messages:
        assert sum(message.msg_id in line for line in lines) == 1
