"""Progress that a pull consumer notes, beside moves of it."""

from __future__ import annotations

import threading

import pytest

from broker.api.offsets import OffsetCommit, OffsetQuery
from broker.api.pull import PullStatus
from broker.embedded.broker import EmbeddedBroker
from client.errors import BrokerNotExistError, ProgressMovedError
from client.pull.pull_consumer import PullConsumer
from storage.configs.journal import Journal
from storage.configs.progress import ProgressFile
from storage.format.message import MessageQueue
from tests.support.consumers import eventually, fill
from tests.support.failing_broker import DOWN, THEN, FailingBroker

QUEUE = MessageQueue("T", "broker-a", 0)


@pytest.fixture
def consumer(broker, manager):
    fill(broker, 50, queues=1)
    with PullConsumer("g", brokers=[broker], manager=manager) as made:
        yield made


def committed(broker: EmbeddedBroker, consumer: PullConsumer, offset: int) -> OffsetQuery:
    """Note an offset, and commit it; gives what the broker has then."""
    consumer.update_consume_offset(QUEUE, offset)
    consumer.persist_consumer_offset()
    return broker.query_consumer_offset("g", "T", 0)


def move_in_silence(broker, offset: int | None) -> None:
    """Move progress as if the notice of it was lost."""
    ProgressFile(broker.view.root).move({("T@g", 0): offset})


@pytest.mark.conformance("G12")
@pytest.mark.parametrize("target", [0, None])
def test_progress_of_a_group_that_was_once_moved_is_taken(broker, consumer, target):
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 3)])
    broker.progress.move("g", {("T", 0): target})
    for offset in (5, 10, 20):
        assert committed(broker, consumer, offset) == OffsetQuery(offset, 1)
    assert committed(broker, consumer, 7) == OffsetQuery(20, 1), "brokers keep the larger one"


@pytest.mark.conformance("G12")
def test_progress_that_is_not_noted_for_long_is_taken_after_it_was_read(
    broker, consumer, scheduler
):
    broker.progress.move("g", {("T", 0): 2})
    assert consumer.fetch_consume_offset(QUEUE) == 2
    scheduler.advance(60_000)  # several rounds of commits
    assert committed(broker, consumer, 9) == OffsetQuery(9, 1)


@pytest.mark.conformance("G12")
@pytest.mark.parametrize(("is_noticed", "target"), [(True, 2), (False, 2), (False, None)])
def test_a_move_is_not_overwritten_and_the_program_is_told(
    broker, consumer, scheduler, is_noticed, target
):
    assert consumer.fetch_consume_offset(QUEUE) == 0
    assert committed(broker, consumer, 30) == OffsetQuery(30)
    if is_noticed:
        broker.progress.move("g", {("T", 0): target})

        def is_told() -> bool:
            scheduler.advance(0)
            return not consumer.offset_store.clone_offset_table()

        eventually(is_told)
    else:
        move_in_silence(broker, target)
        consumer.update_consume_offset(QUEUE, 31)
        consumer.persist_consumer_offset()
    for offset in (31, 32):
        with pytest.raises(ProgressMovedError, match="fetch_consume_offset") as raised:
            consumer.update_consume_offset(QUEUE, offset)
        assert (raised.value.queue, raised.value.group) == (QUEUE, "g")
    consumer.persist_consumer_offset()
    assert broker.consumer_offsets("g").get(("g", "T"), {}) == ({} if target is None else {0: 2})
    assert consumer.fetch_consume_offset(QUEUE) == (target or 0)
    assert committed(broker, consumer, 4) == OffsetQuery(4, 1)


@pytest.mark.parametrize("target", [0, 2])
def test_a_notice_that_comes_after_the_move_was_read_is_no_move(
    broker, consumer, scheduler, target
):
    move_in_silence(broker, target)
    assert consumer.fetch_consume_offset(QUEUE) == target
    consumer.reset_offset({QUEUE: target})
    scheduler.advance(0)
    assert committed(broker, consumer, 4) == OffsetQuery(4, 1)
    consumer.reset_offset({QUEUE: target})
    scheduler.advance(0)
    assert committed(broker, consumer, 5) == OffsetQuery(5, 1)


OTHER = QUEUE._replace(queue_id=1)


@pytest.fixture
def reading(open_broker, manager, scheduler):
    """A consumer that noted progress of one queue, and only read that of another, long ago."""

    def make(progress: int | None) -> tuple[EmbeddedBroker, PullConsumer]:
        broker = open_broker(zero_when_young=False)
        fill(broker, 100, queues=2)
        if progress is not None:
            broker.update_consumer_offsets("g", [OffsetCommit("T", 0, progress)])
        consumer = PullConsumer("g", brokers=[broker], manager=manager)
        consumer.start()
        made.append(consumer)
        assert consumer.fetch_consume_offset(QUEUE) == progress
        consumer.update_consume_offset(OTHER, 5)
        scheduler.advance(60_000)
        return broker, consumer

    made: list[PullConsumer] = []
    yield make
    for consumer in made:
        consumer.shutdown()


@pytest.mark.conformance("G12")
@pytest.mark.parametrize("progress", [7, None])
@pytest.mark.parametrize("noted", [3, 30])
def test_a_move_of_a_queue_that_was_read_long_ago_is_told_without_a_notice(
    reading, progress, noted
):
    broker, consumer = reading(progress)
    move_in_silence(broker, 20)

    def note_and_go_on() -> None:
        committed(broker, consumer, noted)
        consumer.update_consume_offset(QUEUE, noted + 1)

    with pytest.raises(ProgressMovedError, match="was moved to 20"):
        note_and_go_on()
    assert broker.query_consumer_offset("g", "T", 0) == OffsetQuery(20, 1)
    assert consumer.fetch_consume_offset(QUEUE) == 20
    consumer.update_consume_offset(QUEUE, 21)
    consumer.persist_consumer_offset()
    assert broker.query_consumer_offset("g", "T", 0) == OffsetQuery(21, 1)


@pytest.mark.parametrize("progress", [7, None])
def test_a_late_notice_for_a_queue_that_was_read_long_ago_is_no_move(reading, scheduler, progress):
    broker, consumer = reading(progress)
    consumer.reset_offset({QUEUE: 7})
    scheduler.advance(0)
    consumer.update_consume_offset(QUEUE, 8)
    consumer.persist_consumer_offset()
    assert broker.query_consumer_offset("g", "T", 0) == OffsetQuery(8)


def test_progress_that_was_only_read_is_not_committed(broker, manager, scheduler):
    fill(broker, 100, queues=2)  # a young queue, whose progress is derived
    with PullConsumer("g", brokers=[broker], manager=manager) as consumer:
        assert consumer.fetch_consume_offset(QUEUE) == 0
        consumer.update_consume_offset(OTHER, 5)
        scheduler.advance(60_000)
    assert broker.consumer_offsets("g") == {("g", "T"): {1: 5}}


def test_a_notice_waits_for_no_broker_and_for_no_call_of_the_program(
    broker, clock, manager, scheduler
):
    fill(broker, 50, queues=1)
    failing = FailingBroker(broker, clock)
    with PullConsumer("g", brokers=[failing], manager=manager) as consumer:
        notice = threading.Thread(target=consumer.reset_offset, args=({QUEUE: 3},))

        def told_meanwhile() -> None:
            move_in_silence(broker, 3)
            notice.start()
            notice.join(5)  # it would wait for the end of the call
            assert not notice.is_alive()

        failing.plan("query_consumer_offset", THEN(told_meanwhile))
        assert consumer.fetch_consume_offset(QUEUE) == 0
        notice.join()
        assert failing.called("query_consumer_offset") == 1, "it asks on the timer's thread"
        scheduler.advance(0)
        with pytest.raises(ProgressMovedError, match="was moved to 3"):
            consumer.update_consume_offset(QUEUE, 4)


def test_a_move_of_a_queue_that_the_program_never_read_is_no_error(broker, consumer, scheduler):
    move_in_silence(broker, 2)
    consumer.reset_offset({QUEUE: 2})
    scheduler.advance(0)
    assert committed(broker, consumer, 9) == OffsetQuery(9, 1)


@pytest.mark.conformance("D11")
def test_progress_past_the_end_is_moved_to_what_is_noted(broker, consumer):
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 1_000)])
    offset = consumer.fetch_consume_offset(QUEUE)
    result = consumer.pull(QUEUE, offset)
    assert (result.pull_status, result.next_begin_offset) == (PullStatus.OFFSET_ILLEGAL, 50)
    assert broker.query_consumer_offset("g", "T", 0) == OffsetQuery(1_000), "a pull moves nothing"
    assert committed(broker, consumer, 50) == OffsetQuery(50, 1)
    [move] = [*Journal(broker.view.root).entries()][-1]["moves"]
    assert (move["old"], move["new"]) == (1_000, 50)
    fill(broker, 3, queues=1)
    assert committed(broker, consumer, 53) == OffsetQuery(53, 1)


def test_progress_past_the_end_is_moved_although_it_was_never_read(broker, consumer):
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 1_000)])
    assert committed(broker, consumer, 7) == OffsetQuery(7, 1)
    assert committed(broker, consumer, 8) == OffsetQuery(8, 1)


def test_progress_within_the_queue_stays_whatever_was_noted_before(broker, consumer):
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 30)])
    assert consumer.fetch_consume_offset(QUEUE) == 30
    consumer.update_consume_offset(QUEUE, 1_000)  # a mistake that is not committed yet
    assert committed(broker, consumer, 10) == OffsetQuery(30)
    assert committed(broker, consumer, 31) == OffsetQuery(31)
    assert "moves" not in [*Journal(broker.view.root).entries()][-1]


def test_progress_past_the_end_that_was_moved_again_is_not_corrected(broker, consumer):
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 1_000)])
    assert consumer.fetch_consume_offset(QUEUE) == 1_000
    move_in_silence(broker, 2_000)
    assert committed(broker, consumer, 7) == OffsetQuery(2_000, 1)
    with pytest.raises(ProgressMovedError):
        consumer.update_consume_offset(QUEUE, 8)


@pytest.mark.conformance("D11")
def test_a_commit_during_a_correction_is_not_taken_for_a_reset(broker, clock, manager, scheduler):
    fill(broker, 100, queues=1)
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 1_000)])
    failing = FailingBroker(broker, clock)
    with PullConsumer("g", brokers=[failing], manager=manager) as consumer:
        store = consumer.offset_store
        timer = threading.Thread(target=store.persist_all, args=([QUEUE],))

        def commit() -> None:
            timer.start()
            timer.join(5)  # it would wait for the correction if it took it for a reset

        failing.plan("correct_consumer_offset", THEN(commit))
        assert consumer.fetch_consume_offset(QUEUE) == 1_000
        consumer.update_consume_offset(QUEUE, 100)
        timer.join()
        fill(broker, 1, queues=1)
        assert committed(broker, consumer, 101) == OffsetQuery(101, 1)


@pytest.mark.conformance("G12", "D11")
def test_a_reset_just_before_a_correction_is_told(broker, clock, manager):
    fill(broker, 100, queues=1)
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 1_000)])
    failing = FailingBroker(broker, clock)
    reset = THEN(lambda: move_in_silence(broker, 3))
    with PullConsumer("g", brokers=[failing], manager=manager) as consumer:
        assert consumer.fetch_consume_offset(QUEUE) == 1_000
        failing.plan("max_offset", reset)  # the last look before the correction
        assert committed(broker, consumer, 100) == OffsetQuery(3, 1)
        with pytest.raises(ProgressMovedError, match="was moved to 3"):
            consumer.update_consume_offset(QUEUE, 101)


def test_a_broker_that_can_not_be_asked_raises_and_nothing_is_noted(broker, clock, manager):
    fill(broker, 50, queues=1)
    failing = FailingBroker(broker, clock)
    failing.plan("query_consumer_offset", DOWN)
    with PullConsumer("g", brokers=[failing], manager=manager) as consumer:
        with pytest.raises(type(DOWN)):
            consumer.update_consume_offset(QUEUE, 5)
        consumer.persist_consumer_offset()
        assert broker.consumer_offsets() == {}
        assert committed(broker, consumer, 5) == OffsetQuery(5)
        with pytest.raises(BrokerNotExistError):
            consumer.update_consume_offset(QUEUE._replace(broker_name="another"), 5)
