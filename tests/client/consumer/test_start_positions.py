"""Where a group begins, what moves it, and what it skips."""

from __future__ import annotations

import pytest

from broker.api.offsets import ConsumeFromWhere, OffsetCommit
from client.consumer.consumer_config import ConsumerConfig
from client.listener.listener import ConsumeConcurrentlyStatus
from storage.format.message import MessageQueue
from tests.support.consumers import Heard, aged_broker, eventually, fill, turn

FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
LAST = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
TIMESTAMP = ConsumeFromWhere.CONSUME_FROM_TIMESTAMP
QUEUE = MessageQueue("T", "broker-a", 0)


def begins_at(consumer, queue: MessageQueue = QUEUE) -> int:
    """Start, rebalance, and give the offset of the queue's first pull."""
    consumer.start()
    consumer.instance.rebalance_service.run_once()
    requests = consumer.instance.pull_service._requests
    found = {}
    while not requests.empty():
        request = requests.get_nowait()
        found[request.message_queue] = request.next_offset
    offset: int = found[queue]
    return offset


def settings(where: ConsumeFromWhere, timestamp: int = 0) -> ConsumerConfig:
    return ConsumerConfig(consume_from_where=where, consume_timestamp=timestamp)


@pytest.mark.conformance("G9", "C12")
@pytest.mark.parametrize("where", [FIRST, LAST, TIMESTAMP])
def test_a_new_group_reads_a_young_queue_from_0_whatever_it_asks_for(broker, make_consumer, where):
    fill(broker, 5, queues=1)
    assert begins_at(make_consumer(config=settings(where))) == 0


@pytest.mark.conformance("G9", "C12")
@pytest.mark.parametrize(("where", "offset"), [(FIRST, 0), (LAST, 6), (TIMESTAMP, 4)])
def test_without_the_rule_of_young_queues_the_policy_decides(
    open_broker, make_consumer, clock, where, offset
):
    broker = open_broker(zero_when_young=False)
    fill(broker, 3, queues=1)
    clock.advance(60_000)
    fill(broker, 1, queues=1)
    clock.advance(60_000)
    timestamp = clock.now_ms()
    fill(broker, 1, queues=1)
    clock.advance(60_000)
    fill(broker, 1, queues=1)
    config = settings(where, timestamp)
    assert begins_at(make_consumer(brokers=[broker], config=config)) == offset


@pytest.mark.conformance("G9")
@pytest.mark.parametrize(("where", "offset"), [(FIRST, 0), (LAST, 60)])
def test_an_aged_queue_is_not_young(tmp_path, clock, make_consumer, where, offset):
    with aged_broker(tmp_path / "aged", clock) as broker:
        consumer = make_consumer(brokers=[broker], config=settings(where))
        assert begins_at(consumer) == offset
        consumer.shutdown()


@pytest.mark.conformance("G9")
@pytest.mark.parametrize(("where", "offset"), [(FIRST, 0), (LAST, 0), (TIMESTAMP, 3)])
def test_a_retry_topic_begins_at_0_but_under_timestamp_at_its_end(
    open_broker, make_consumer, where, offset
):
    broker = open_broker(zero_when_young=False)
    fill(broker, 1, queues=1)
    fill(broker, 3, topic="%RETRY%g", queues=1)
    consumer = make_consumer(brokers=[broker], config=settings(where))
    assert begins_at(consumer, MessageQueue("%RETRY%g", "broker-a", 0)) == offset


@pytest.mark.conformance("G10", "G6")
@pytest.mark.parametrize("where", [FIRST, LAST, TIMESTAMP])
def test_a_group_with_progress_goes_on_from_it_whatever_it_asks_for(
    broker, make_consumer, clock, where
):
    fill(broker, 5, queues=1)
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 2)])
    broker.update_consumer_offsets("other", [OffsetCommit("T", 0, 4)])
    assert begins_at(make_consumer(config=settings(where, clock.now_ms()))) == 2
    assert begins_at(make_consumer("other", config=settings(where))) == 4


@pytest.mark.conformance("G11")
def test_history_is_skipped_by_date_in_the_listener(broker, make_consumer, clock):
    fill(broker, 4, queues=1)
    clock.advance(86_400_000)
    today = clock.now_ms()
    fill(broker, 2, queues=1)
    done: list[int] = []

    def listen(messages, context):
        done.extend(m.queue_offset for m in messages if m.born_timestamp >= today)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    heard = Heard(listen)
    consumer = make_consumer(listener=heard)
    consumer.start()
    turn(consumer)
    heard.wait_for(6)
    eventually(lambda: sorted(done) == [4, 5])


@pytest.mark.conformance("G11", "G12")
def test_history_is_skipped_by_moving_the_progress_first(broker, make_consumer):
    fill(broker, 4, queues=1)
    broker.progress.move("g", {("T", 0): 4})
    fill(broker, 2, queues=1)
    heard = Heard()
    consumer = make_consumer(listener=heard)
    consumer.start()
    turn(consumer)
    heard.wait_for(2)
    eventually(lambda: [m.queue_offset for m in heard.messages] in ([4, 5], [5, 4]))
