"""What is finished becomes progress: at once for a caller that asks, a moment later for a pull."""

from __future__ import annotations

import threading

import pytest

from broker.api.offsets import ConsumeFromWhere
from client.consumer.consumer_config import ConsumerConfig
from client.listener.ack_collector import AckCollector
from client.listener.listener import ConsumeConcurrentlyStatus
from client.listener.process_queue import ProcessQueue
from client.listener.pull_batch import PullBatch, WorkerAcks
from client.offset_store.local_offset_store import LocalFileOffsetStore
from client.offset_store.offset_store import ReadOffsetType
from storage.configs.topics import TopicConfig
from storage.format.message import Message, MessageQueue
from tests.support.consumers import Heard, fill, pull_until, turn
from tests.support.consuming import sent_back
from tests.support.messages import pulled

QUEUE = MessageQueue("T", "broker-a", 0)


@pytest.fixture
def half_way(broker, make_consumer):
    """A consumer whose one thread has finished two of four messages, and is in the third.

    It finished them after the queue was pulled for the last time.
    """
    broker.update_topic(TopicConfig("T", 1, 1))
    for _ in range(4):
        broker.send(Message("T", b"x"), 0)
    in_third, pulled, go_on = threading.Event(), threading.Event(), threading.Event()
    seen = []

    def listen(messages, context):
        seen.extend(messages)
        pulled.wait(20)
        if len(seen) == 3:
            in_third.set()
            go_on.wait(20)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    config = ConsumerConfig(
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        consume_thread_min=1,
        consume_thread_max=1,
        pull_threshold_for_queue=4,
    )
    consumer = make_consumer(listener=Heard(listen), config=config)
    consumer.start()
    turn(consumer)
    pulled.set()
    assert in_third.wait(20)
    yield consumer
    go_on.set()


def settled(consumer, pulled_ms=None):
    """How many are in work, and the progress, after what has finished was settled."""
    held = consumer.process_queues[QUEUE]
    consumer.consume_service.settle(held, QUEUE, pulled_ms)
    progress = consumer.offset_store.read_offset(QUEUE, ReadOffsetType.READ_FROM_MEMORY)
    return held.msg_count, progress


def test_who_asks_for_progress_has_all_that_is_finished(half_way):
    half_way.process_queues[QUEUE].settled_ms = 1_000
    assert settled(half_way) == (2, 2)


def test_a_pull_takes_parts_now_and_then(half_way):
    held = half_way.process_queues[QUEUE]
    held.settled_ms = 1_000
    before = half_way.offset_store.read_offset(QUEUE, ReadOffsetType.READ_FROM_MEMORY)
    assert settled(half_way, 1_000) == (4, before)
    assert settled(half_way, 1_019) == (4, before)
    assert settled(half_way, 1_020) == (2, 2)
    assert held.settled_ms == 1_020


def test_a_clock_that_went_back_keeps_no_part(half_way):
    held = half_way.process_queues[QUEUE]
    held.settled_ms = 1_000
    assert settled(half_way, 900) == (2, 2)
    assert held.settled_ms == 900


def test_pulling_does_not_pause_for_what_is_finished(half_way, broker):
    held, loop = half_way.process_queues[QUEUE], half_way.pull_loop
    held.settled_ms = half_way.instance.clock.now_ms()  # which stands still
    broker.send(Message("T", b"fifth"), 0)
    # The answer comes from another thread; the next pull, which settles, is done by this one.
    pull_until(half_way, lambda: held.queue_offset_max == 4 and held.msg_count == 3)
    assert loop.flow_control.times == 0


def counted(consumer):
    """Values and times of the statistics of the topic."""
    stats = consumer.stats
    sets = (stats.consume_rt, stats.consume_ok_tps, stats.consume_failed_tps)
    items = [one.item("T@g") for one in sets]
    return [None if item is None else (item.value, item.times) for item in items]


def memory(consumer):
    return consumer.offset_store.read_offset(QUEUE, ReadOffsetType.READ_FROM_MEMORY)


def test_finished_requests_are_counted_once_with_their_messages(half_way):
    assert settled(half_way) == (2, 2)
    assert counted(half_way) == [(0, 2), (2, 2), None]
    assert settled(half_way) == (2, 2)
    assert counted(half_way) == [(0, 2), (2, 2), None]


def test_times_successes_and_failures_are_counted_apart(half_way):
    acks = AckCollector(half_way)
    acks.count(QUEUE, 7)
    assert counted(half_way) == [(7, 1), None, None]
    acks.count(QUEUE, 5, ok=3, times=4)
    assert counted(half_way) == [(12, 5), (3, 4), None]
    acks.count(QUEUE, 1, failed=2)
    assert counted(half_way) == [(13, 6), (3, 4), (2, 1)]


def test_what_is_removed_becomes_progress_that_never_goes_back(half_way):
    acks, held = AckCollector(half_way), half_way.process_queues[QUEUE]
    acks.remove(pulled([0, 1]), held, QUEUE)
    assert (held.msg_count, memory(half_way)) == (2, 2)
    half_way.offset_store.update_offset(QUEUE, 9, increase_only=True)
    acks.remove(pulled([2]), held, QUEUE)
    assert (held.msg_count, memory(half_way)) == (1, 9)


def test_nothing_is_noted_of_an_empty_queue_or_of_one_that_was_given_up(half_way):
    acks, held = AckCollector(half_way), half_way.process_queues[QUEUE]
    before = memory(half_way)
    acks.remove(pulled([0]), ProcessQueue(), QUEUE)
    held.dropped = True
    acks.remove(pulled([0, 1]), held, QUEUE)
    assert (held.msg_count, memory(half_way)) == (2, before)


def test_progress_is_noted_where_it_survives_unless_the_queue_was_given_up(half_way, broker):
    acks, held = AckCollector(half_way), half_way.process_queues[QUEUE]
    held.dropped = True
    acks.note(held, QUEUE)
    assert broker.query_consumer_offset("g", "T", 0).offset in (None, 0)
    held.dropped = False
    half_way.offset_store.update_offset(QUEUE, 2, increase_only=True)
    acks.note(held, QUEUE)
    assert broker.query_consumer_offset("g", "T", 0).offset == 2


def test_noting_takes_all_that_is_finished(half_way):
    acks, held = AckCollector(half_way), half_way.process_queues[QUEUE]
    acks.note(held, QUEUE)
    assert (held.msg_count, memory(half_way)) == (2, 2)


def test_a_thread_that_goes_on_hinders_no_other(half_way):
    queue = ProcessQueue()
    parts = []
    for offsets in ([10], [11]):
        messages = tuple(pulled(offsets))
        queue.put_message(messages)
        parts.append(WorkerAcks(PullBatch(messages, 1, queue, QUEUE, lambda batch: None)))
    running, ended = parts
    ended.requests.append(tuple(pulled([11])))
    ended.ended = True
    queue.finished.extend(parts)
    queue.settled_ms = 1_000
    AckCollector(half_way).settle(queue, QUEUE, 1_000)
    assert (queue.msg_count, list(queue.finished)) == (1, [running])


class BreaksOnce(LocalFileOffsetStore):
    """An offset store as a user may write one: it breaks once, when it is to."""

    breaks = False

    def update_offset(self, queue: MessageQueue, offset: int, increase_only: bool) -> None:
        if self.breaks:
            self.breaks = False
            raise LookupError("no such table")
        super().update_offset(queue, offset, increase_only)


@pytest.fixture
def half_of_two(broker, make_consumer, tmp_path):
    """A consumer of two queues that has finished the first message of each, and is in the second;
    with an offset store that breaks at its next update."""
    fill(broker, 4, queues=2)
    all_pulled, in_second, go_on = threading.Event(), threading.Semaphore(0), threading.Event()

    def listen(messages, context):
        if messages[0].queue_offset == 0:
            all_pulled.wait(20)
        else:
            in_second.release()
            go_on.wait(20)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    config = ConsumerConfig(
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        consume_thread_min=2,
        consume_timeout_minutes=1,
    )
    store = BreaksOnce("client", "g", tmp_path)
    consumer = make_consumer(listener=Heard(listen), config=config, offset_store=store)
    consumer.start()
    turn(consumer)
    all_pulled.set()
    for _ in range(2):
        assert in_second.acquire(timeout=20)
    store.breaks = True
    yield consumer
    go_on.set()


def test_an_offset_store_that_breaks_for_one_queue_stores_the_progress_of_the_others(
    half_of_two, tmp_path
):
    with pytest.raises(LookupError):
        half_of_two.persist_consumer_offset()
    stored = LocalFileOffsetStore("client", "g", tmp_path)
    stored.load()
    assert [*stored.clone_offset_table("T").values()] == [1]


def test_an_offset_store_that_breaks_for_one_queue_keeps_no_message_that_is_stuck(
    half_of_two, broker, clock
):
    clock.advance(60_001)
    half_of_two.consume_service.clean_expire_msg()
    assert sorted(message.body for message in sent_back(broker)) == [b"2", b"3"]
