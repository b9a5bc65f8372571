"""Progress outside of its queue: the queue is given up, and taken again where it goes on."""

from __future__ import annotations

import pytest

from broker.api.offsets import ConsumeFromWhere, OffsetCommit, OffsetQuery
from client.consumer.consumer_config import ConsumerConfig
from storage.configs.progress import ProgressFile
from storage.configs.topics import TopicConfig
from storage.format.message import MessageQueue
from tests.support.consumers import Heard, aged_broker, eventually, fill, pull_until, turn
from tests.support.failing_broker import THEN, FailingBroker

QUEUE = MessageQueue("T", "broker-a", 0)


def only_queue(consumer):
    return consumer.process_queues[QUEUE]


@pytest.mark.conformance("D11", "D3")
def test_progress_behind_the_end_is_put_right_in_10_s_and_the_queue_taken_again(
    broker, make_consumer, scheduler
):
    fill(broker, 20, queues=1)
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 500)])
    heard = Heard()
    consumer = make_consumer(listener=heard)
    consumer.start()
    turn(consumer)
    illegal = only_queue(consumer)
    assert illegal.dropped
    scheduler.advance(9_999)
    assert only_queue(consumer) is illegal
    scheduler.advance(1)
    assert QUEUE not in consumer.process_queues, "the next rebalance takes it, in up to 20 s"
    assert broker.query_consumer_offset("g", "T", 0).offset == 20
    turn(consumer)
    assert not only_queue(consumer).dropped
    fill(broker, 1, queues=1)
    pull_until(consumer, lambda: heard.bodies)
    heard.wait_for(1)


@pytest.mark.conformance("D11", "D3")
@pytest.mark.parametrize(("progress", "stored"), [(500, 3), (21, 3), (21, 1)])
def test_what_is_stored_before_the_progress_is_put_right_is_consumed(
    broker, make_consumer, scheduler, progress, stored
):
    fill(broker, 20, queues=1)
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, progress)])
    heard = Heard()
    consumer = make_consumer(listener=heard)
    consumer.start()
    turn(consumer)
    assert only_queue(consumer).dropped
    fill(broker, stored, queues=1)
    scheduler.advance(10_000)
    assert broker.query_consumer_offset("g", "T", 0).offset == 20
    turn(consumer)
    heard.wait_for(stored)
    eventually(lambda: only_queue(consumer).msg_count == 0)
    consumer.persist_consumer_offset()
    assert broker.query_consumer_offset("g", "T", 0).offset == 20 + stored
    assert [m.queue_offset for m in heard.messages] == [*range(20, 20 + stored)]


@pytest.mark.conformance("D11")
def test_a_commit_during_the_repair_is_not_taken_for_a_reset(
    broker, clock, make_consumer, scheduler, caplog
):
    fill(broker, 20, queues=1)
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 500)])
    failing = FailingBroker(broker, clock)
    consumer = make_consumer(brokers=[failing], listener=Heard())
    commit = THEN(lambda: consumer.offset_store.persist_all([QUEUE]))
    failing.plan("correct_consumer_offset", commit)
    consumer.start()
    turn(consumer)
    scheduler.advance(10_000)
    assert failing.called("correct_consumer_offset") == 1
    assert "progress was moved" not in caplog.text
    assert broker.query_consumer_offset("g", "T", 0) == OffsetQuery(20, 1)


@pytest.mark.conformance("D11")
def test_a_queue_that_was_empty_is_consumed_from_its_start(broker, make_consumer, scheduler):
    broker.update_topic(TopicConfig("T", 1, 1))
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 500)])
    heard = Heard()
    consumer = make_consumer(listener=heard)
    consumer.start()
    turn(consumer)
    assert only_queue(consumer).dropped
    fill(broker, 3, queues=1)
    scheduler.advance(10_000)
    turn(consumer)
    heard.wait_for(3)
    assert [m.queue_offset for m in heard.messages] == [0, 1, 2]


def test_a_broker_that_can_not_correct_is_asked_again(
    broker, clock, make_consumer, scheduler, caplog
):
    failing = FailingBroker(broker, clock)
    fill(broker, 20, queues=1)
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 500)])
    failing.plan("correct_consumer_offset", OSError("no answer"))
    heard = Heard()
    consumer = make_consumer(listener=heard, brokers=[failing])
    consumer.start()
    turn(consumer)
    fill(broker, 3, queues=1)
    scheduler.advance(10_000)
    assert "could not be put right" in caplog.text
    assert broker.query_consumer_offset("g", "T", 0) == OffsetQuery(500)
    turn(consumer)  # it finds no later end
    scheduler.advance(consumer.instance.config.pull_time_delay_mills_when_exception)
    turn(consumer)
    heard.wait_for(3)
    assert [m.queue_offset for m in heard.messages] == [20, 21, 22]


@pytest.mark.conformance("G12", "D11")
def test_a_reset_before_the_progress_is_put_right_holds(broker, make_consumer, scheduler):
    fill(broker, 20, queues=1)
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 500)])
    heard = Heard()
    consumer = make_consumer(listener=heard)
    consumer.start()
    turn(consumer)
    fill(broker, 5, queues=1)
    ProgressFile(broker.view.root).move({("T@g", 0): 22})  # without a notice
    scheduler.advance(10_000)
    assert broker.query_consumer_offset("g", "T", 0).offset == 22
    turn(consumer)
    heard.wait_for(3)
    assert [m.queue_offset for m in heard.messages] == [22, 23, 24]


@pytest.mark.conformance("D11", "G9", "A18")
def test_from_the_first_offset_is_from_0_and_put_right_where_that_is_gone(
    tmp_path, clock, make_consumer, scheduler
):
    with aged_broker(tmp_path / "aged", clock) as aged:
        first = aged.min_offset("T", 0)
        heard = Heard()
        where = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
        config = ConsumerConfig(consume_from_where=where)
        consumer = make_consumer(listener=heard, brokers=[aged], config=config)
        consumer.start()
        turn(consumer)
        assert only_queue(consumer).dropped
        scheduler.advance(10_000)
        turn(consumer)
        heard.wait_for(60 - first)
        assert sorted(m.queue_offset for m in heard.messages) == list(range(first, 60))
        consumer.shutdown()
