"""Queues in turn, away from brokers that fail or are slow."""

from __future__ import annotations

import threading

import pytest

from client.producer.fault_strategy import (
    FaultItem,
    FaultStrategy,
    LatencyTable,
    QueueChoice,
    ThreadLocalIndex,
)
from storage.format.message import MessageQueue


def queues_of(*names, each=2):
    return [MessageQueue("T", name, queue_id) for name in names for queue_id in range(each)]


@pytest.mark.conformance("A3")
def test_queues_come_in_turn():
    queues = queues_of("a", "b")
    choice = QueueChoice(ThreadLocalIndex(start=6))
    assert [choice.select(queues) for _ in range(5)] == [*queues[3:], *queues[:4]]


@pytest.mark.conformance("A3")
def test_the_counter_starts_anywhere_and_wraps_at_31_bits():
    starts = {ThreadLocalIndex().increment_and_get("T") for _ in range(20)}
    assert len(starts) > 1
    index = ThreadLocalIndex(start=0x7FFFFFFF - 1)
    assert [index.increment_and_get("T") for _ in range(3)] == [0x7FFFFFFF, 0, 1]
    assert index.increment_and_get("Other topic") == 0x7FFFFFFF


@pytest.mark.conformance("A3")
def test_each_thread_counts_for_itself():
    index = ThreadLocalIndex(start=10)
    assert [index.increment_and_get("T") for _ in range(3)] == [11, 12, 13]
    seen = []
    thread = threading.Thread(target=lambda: seen.append(index.increment_and_get("T")))
    thread.start()
    thread.join()
    assert seen == [11]
    assert index.increment_and_get("T") == 14


@pytest.mark.conformance("A3")
def test_a_retry_goes_to_another_broker_than_the_last_one():
    queues = queues_of("a", "b", each=3)
    for start in range(12):
        choice = QueueChoice(ThreadLocalIndex(start=start))
        assert choice.select(queues, last_broker_name="a").broker_name == "b"


@pytest.mark.conformance("A3")
def test_with_one_broker_a_retry_goes_to_its_next_queue():
    queues = queues_of("a", each=3)
    choice = QueueChoice(ThreadLocalIndex(start=-1 & 0x7FFFFFFF))
    assert choice.select(queues) == queues[0]
    # Three steps in search of another broker, then one in turn.
    assert choice.select(queues, last_broker_name="a") == queues[1]


def strategy(clock, start=0, **options):
    choice = QueueChoice(ThreadLocalIndex(start=start))
    return FaultStrategy(clock, enabled=True, choice=choice, **options)


@pytest.mark.conformance("A3")
@pytest.mark.parametrize(
    ("latency", "left_alone"),
    [
        (0, 0),
        (49, 0),
        (50, 0),
        (549, 0),
        (550, 30_000),
        (999, 30_000),
        (1_000, 60_000),
        (2_000, 120_000),
        (3_000, 180_000),
        (14_999, 180_000),
        (15_000, 600_000),
        (99_999, 600_000),
    ],
)
def test_the_slower_a_broker_the_longer_it_is_left_alone(clock, latency, left_alone):
    faults = strategy(clock)
    assert faults.not_available_ms(latency) == left_alone
    faults.update("a", latency, isolation=False)
    assert faults.table.items() == [FaultItem("a", latency, clock.now_ms() + left_alone)]


@pytest.mark.conformance("A3")
def test_a_broker_that_failed_is_left_alone_for_ten_minutes(clock):
    faults = strategy(clock)
    queues = queues_of("a", "b")
    faults.update("a", 3, isolation=True)
    assert {faults.select(queues, None).broker_name for _ in range(8)} == {"b"}
    clock.advance(599_999)
    assert not faults.table.is_available("a")
    clock.advance(1)
    assert {faults.select(queues, None).broker_name for _ in range(8)} == {"a", "b"}


@pytest.mark.conformance("A3")
def test_if_no_broker_is_available_the_better_half_takes_turns(clock):
    faults = strategy(clock)
    names = ["a", "b", "c", "d"]
    queues = queues_of(*names, each=4)
    for name, latency in zip(names, (2_500, 600, 700, 16_000), strict=True):
        faults.update(name, latency, isolation=False)
    chosen = [faults.select(queues, None) for _ in range(16)]
    # The four are sorted b, c, a, d: the first two are the better half.
    assert {queue.broker_name for queue in chosen} == {"b", "c"}
    assert {queue.queue_id for queue in chosen} == {0, 1, 2, 3}
    clock.advance(30_000)  # b and c are back
    faults.update("b", 5_000, isolation=True)
    faults.update("c", 5_000, isolation=True)
    clock.advance(90_000)  # a is back
    assert {faults.select(queues, None).broker_name for _ in range(16)} == {"a"}


@pytest.mark.conformance("A3")
def test_a_least_bad_broker_without_a_queue_of_the_topic_is_forgotten(clock):
    faults = strategy(clock)
    faults.update("gone", 600, isolation=False)
    faults.update("a", 20_000, isolation=False)
    queues = queues_of("a", each=2)
    assert faults.select(queues, None) in queues
    assert [item.name for item in faults.table.items()] == ["a"]
    assert faults.select(queues, None) in queues


@pytest.mark.conformance("A3")
def test_better_is_who_is_available_then_who_is_faster_then_who_comes_back_earlier(clock):
    table = LatencyTable(clock)
    table.update("slow", 9_000, 0)
    table.update("quick", 10, 600_000)
    assert {table.pick_one_at_least() for _ in range(4)} == {"slow"}
    table.update("slow", 9_000, 600_000)
    assert {table.pick_one_at_least() for _ in range(4)} == {"quick"}
    table.update("slow", 10, 599_999)
    assert {table.pick_one_at_least() for _ in range(4)} == {"slow"}
    table.remove("slow")
    assert table.pick_one_at_least() == "quick"
    table.remove("quick")
    assert table.pick_one_at_least() is None


def test_a_strategy_that_is_off_learns_nothing(clock):
    faults = FaultStrategy(clock, choice=QueueChoice(ThreadLocalIndex(start=0)))
    faults.update("a", 99_999, isolation=True)
    assert faults.table.items() == []
    assert {faults.select(queues_of("a"), None).queue_id for _ in range(4)} == {0, 1}


def test_a_topic_may_have_one_queue(clock):
    (queue,) = queues_of("a", each=1)
    assert QueueChoice().select([queue]) == queue
    assert strategy(clock).select([queue], None) == queue


def test_the_next_queue_of_an_available_broker_is_taken(clock):
    queues = queues_of("a", "b", "c", each=1)
    faults = strategy(clock, start=2)
    faults.update("a", 3, isolation=True)
    assert faults.select(queues, None).broker_name == "b"  # its turn is the fourth: a again


def test_a_strategy_goes_on_where_its_choice_is(clock):
    queues = queues_of("a", each=5)
    faults = FaultStrategy(clock, choice=QueueChoice(ThreadLocalIndex(start=2)))
    assert faults.select(queues, None) == queues[3]


def test_a_failure_counts_as_thirty_seconds(clock):
    faults = strategy(clock, latency_max=(0, 30_001), not_available_duration=(7, 9))
    faults.update("a", 3, isolation=True)
    assert faults.table.items() == [FaultItem("a", 3, clock.now_ms() + 7)]
    assert faults.not_available_ms(30_001) == 9
