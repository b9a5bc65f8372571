"""Orderly consumption: one thread a queue, three locks, and a failure that blocks its queue."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from broker.api.failure_reason import FAILURE_CLASS
from broker.api.members import ConsumeDirectlyStatus, MessageModel
from broker.api.offsets import ConsumeFromWhere
from client.consumer.consumer_config import ConsumerConfig
from client.listener.listener import ConsumeOrderlyContext, ConsumeOrderlyStatus
from client.producer.selector import select_by_hash
from client.runtime.client_config import ClientConfig
from storage.configs.topics import TopicConfig
from storage.format.message import Message, MessageExt, MessageQueue
from tests.support.consumers import PATIENCE_S, Heard, eventually, fill, pull_until, turn
from tests.support.consuming import (
    QUEUE,
    Door,
    full_of_properties,
    in_work,
    locked_elsewhere,
    progress,
    queue_of,
    sent_back,
)
from tests.support.failing_broker import DOWN, FailingBroker

SUCCESS = ConsumeOrderlyStatus.SUCCESS
COMMIT = ConsumeOrderlyStatus.COMMIT
ROLLBACK = ConsumeOrderlyStatus.ROLLBACK
SUSPEND = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT


def succeed(messages: Sequence[MessageExt], context: Any) -> Any:
    return SUCCESS


def consume(
    make_consumer: Callable[..., Any],
    scheduler: Any,
    answer: Callable[..., Any] = succeed,
    *,
    group: str = "g",
    brokers: Any = None,
    **settings: Any,
) -> tuple[Any, Heard]:
    """Start an orderly consumer and let it pull what is there."""
    heard = Heard(answer)
    more = {} if brokers is None else {"brokers": brokers}
    consumer = make_consumer(group, listener=heard, config=ConsumerConfig(**settings), **more)
    consumer.register_message_listener_orderly(heard)
    consumer.start()
    scheduler.advance(7)  # so that no timer of the client is due with one of the service
    turn(consumer)
    return consumer, heard


# -- order


@pytest.mark.conformance("F1", "F4", "E2")
def test_a_queue_is_consumed_in_its_order_and_committed(broker, make_consumer, scheduler):
    queue_of(broker, 200)
    consumer, heard = consume(make_consumer, scheduler)
    heard.wait_for(200)
    assert [m.queue_offset for m in heard.messages] == list(range(200))
    eventually(lambda: progress(consumer) == 200)
    assert in_work(consumer) == 0


@pytest.mark.conformance("F1", "F2", "F5")
def test_each_order_is_seen_created_paid_and_finished_in_this_order(
    broker, make_consumer, scheduler
):
    broker.update_topic(TopicConfig("T", 4, 4))
    queues = [MessageQueue("T", "broker-a", n) for n in range(4)]
    rng = random.Random(7)
    steps = {f"order-{n}": ["create", "pay", "finish"] for n in range(40)}
    while steps:
        order = rng.choice(sorted(steps))
        message = Message("T", steps[order].pop(0).encode(), keys=order)
        broker.send(message, select_by_hash(queues, message, order).queue_id)
        if not steps[order]:
            del steps[order]
    seen: defaultdict[str, list[bytes]] = defaultdict(list)
    running: defaultdict[int, int] = defaultdict(int)
    overlaps: list[int] = []

    def note(messages: Sequence[MessageExt], context: Any) -> Any:
        queue_id = context.message_queue.queue_id
        running[queue_id] += 1
        if running[queue_id] > 1:
            overlaps.append(queue_id)
        for message in messages:
            seen[message.keys[0]].append(message.body)
        time.sleep(0)
        running[queue_id] -= 1
        return SUCCESS

    _, heard = consume(make_consumer, scheduler, note)
    heard.wait_for(120)
    eventually(lambda: sum(map(len, seen.values())) == 120)
    assert all(bodies == [b"create", b"pay", b"finish"] for bodies in seen.values())
    assert overlaps == []


@pytest.mark.conformance("F6")
@pytest.mark.parametrize("error", [OSError, SystemExit])
def test_what_a_failed_task_had_taken_is_consumed_in_a_moment_in_order(
    broker, make_consumer, scheduler, monkeypatch, error
):
    """The task fails outside of the listener, with messages taken and not committed."""
    queue_of(broker, 4)
    consumer = make_consumer(config=ConsumerConfig(consume_message_batch_max_size=2))
    heard = Heard(succeed)
    consumer.register_message_listener_orderly(heard)
    consumer.start()
    count, failures = consumer.stats.consume_rt.add_value, iter((error("once"),))

    def fail_once(*args: Any) -> None:
        for failure in failures:
            raise failure
        count(*args)

    monkeypatch.setattr(consumer.stats.consume_rt, "add_value", fail_once)
    scheduler.advance(7)
    turn(consumer)
    eventually(lambda: len(heard.messages) == 2)
    eventually(lambda: scheduler.advance(1000) or progress(consumer) == 4)
    assert [m.queue_offset for m in heard.messages] == [0, 1, 0, 1, 2, 3]
    assert in_work(consumer) == 0


@pytest.mark.conformance("F1")
def test_interleaved_orders_keep_their_own_order_in_one_queue(broker, make_consumer, scheduler):
    broker.update_topic(TopicConfig("T", 1, 1))
    for body in (b"A1", b"B1", b"A2", b"A3", b"B2", b"B3"):
        broker.send(Message("T", body), 0)
    _, heard = consume(make_consumer, scheduler)
    heard.wait_for(6)
    assert heard.bodies == [b"A1", b"B1", b"A2", b"A3", b"B2", b"B3"]


@pytest.mark.conformance("F5")
def test_two_tasks_for_one_queue_never_call_the_listener_at_once(broker, make_consumer, scheduler):
    queue_of(broker, 300)
    inside = threading.Lock()
    clashes: list[int] = []

    def alone(messages: Sequence[MessageExt], context: Any) -> Any:
        if not inside.acquire(blocking=False):
            clashes.append(messages[0].queue_offset)
            return SUCCESS
        try:
            time.sleep(0)
        finally:
            inside.release()
        return SUCCESS

    consumer, heard = consume(make_consumer, scheduler, alone)
    process_queue = consumer.rebalance.process_queues[QUEUE]
    for _ in range(20):
        consumer.consume_service.submit([], process_queue, QUEUE, True)
    heard.wait_for(300)
    assert clashes == []
    assert [m.queue_offset for m in heard.messages] == list(range(300))


@pytest.mark.slow
@pytest.mark.conformance("F11")
def test_many_queues_are_consumed_beside_each_other_one_queue_is_not(
    broker, make_consumer, scheduler
):
    met = threading.Event()
    counting = threading.Lock()
    inside = 0
    most: Counter[str] = Counter()

    def meet(messages: Sequence[MessageExt], context: Any) -> Any:
        nonlocal inside
        topic = messages[0].topic
        with counting:
            inside += 1
            most[topic] = max(most[topic], inside)
            if inside > 1:
                met.set()
        assert topic == "Global" or met.wait(PATIENCE_S)
        with counting:
            inside -= 1
        return SUCCESS

    for topic, queues in (("Global", 1), ("Partitioned", 8)):
        fill(broker, 160, topic, queues)
        heard = Heard(meet)
        consumer = make_consumer(f"of-{topic}", topic, listener=heard)
        consumer.register_message_listener_orderly(heard)
        consumer.start()
        turn(consumer)
        heard.wait_for(160)
    assert most["Global"] == 1
    assert most["Partitioned"] > 1


@pytest.mark.conformance("F4", "E12")
def test_a_pull_starts_a_task_only_if_none_is_at_work(broker, make_consumer, scheduler):
    queue_of(broker, 64)
    opened = threading.Event()

    def hold(messages: Sequence[MessageExt], context: Any) -> Any:
        assert opened.wait(PATIENCE_S)
        return SUCCESS

    consumer, heard = consume(make_consumer, scheduler, hold)
    heard.wait_for(1)
    assert consumer.consume_service.pool.threads == 1, "two pulls, one task"
    opened.set()
    heard.wait_for(64)
    assert [m.queue_offset for m in heard.messages] == list(range(64))


@pytest.mark.conformance("F4")
def test_after_a_minute_a_task_makes_room_and_comes_back(broker, make_consumer, scheduler, clock):
    queue_of(broker, 5)

    def long(messages: Sequence[MessageExt], context: Any) -> Any:
        clock.advance(25_000)
        process_queue = consumer.rebalance.process_queues[QUEUE]
        process_queue.last_lock_timestamp = clock.now_ms()
        return SUCCESS

    heard = Heard(long)
    consumer = make_consumer(listener=heard)
    consumer.register_message_listener_orderly(heard)
    consumer.start()
    turn(consumer)
    heard.wait_for(3)
    eventually(lambda: not consumer.consume_service.pool.waiting)
    assert len(heard.messages) == 3, "75 s are over"
    scheduler.advance(10)
    heard.wait_for(5)


# -- what the listener says


@pytest.mark.conformance("F9", "F8", "H16", "E2", "F6")
def test_a_failing_message_blocks_its_queue_and_no_other(broker, make_consumer, scheduler):
    fill(broker, 6)  # 0 2 4 in queue 0, 1 3 5 in queue 1
    answers = [SUSPEND, SUSPEND, SUCCESS]

    def answer(messages: Sequence[MessageExt], context: Any) -> Any:
        return answers.pop(0) if messages[0].body == b"0" else SUCCESS

    consumer, heard = consume(make_consumer, scheduler, answer)
    heard.wait_for(4)
    eventually(lambda: 1_000 in scheduler.pending_ms)
    other = MessageQueue("T", "broker-a", 1)
    eventually(lambda: progress(consumer, other) == 3)
    assert sorted(heard.bodies) == [b"0", b"1", b"3", b"5"]
    assert progress(consumer) in (None, 0)

    def blocked_times(times: int) -> bool:
        return heard.bodies.count(b"0") == times

    for attempt in (2, 3):
        scheduler.advance(999)
        assert blocked_times(attempt - 1)
        scheduler.advance(1)
        eventually(partial(blocked_times, attempt))
        if attempt == 2:
            eventually(lambda: 1_000 in scheduler.pending_ms)
    eventually(lambda: progress(consumer) == 3)
    assert [m.body for m in heard.messages if m.queue_id == 0] == [b"0", b"0", b"0", b"2", b"4"]
    assert sent_back(broker) == []
    assert [m.reconsume_times for m in heard.messages if m.body == b"0"] == [2, 2, 2], "one object"


@pytest.mark.conformance("F8", "E3")
@pytest.mark.parametrize("kind", ["none", "exception", "no status"])
def test_whatever_is_no_status_suspends_the_queue(broker, make_consumer, scheduler, kind):
    queue_of(broker, 1)
    calls: list[int] = []

    def answer(messages: Sequence[MessageExt], context: Any) -> Any:
        calls.append(1)
        if len(calls) > 1:
            return SUCCESS
        if kind == "exception":
            raise ValueError("broken")
        return None if kind == "none" else "CONSUME_SUCCESS"

    consumer, _ = consume(make_consumer, scheduler, answer)
    eventually(lambda: 1_000 in scheduler.pending_ms)
    assert progress(consumer) in (None, 0)
    scheduler.advance(1_000)
    eventually(lambda: progress(consumer) == 1)


@pytest.mark.conformance("F9")
@pytest.mark.parametrize(
    ("asked", "waits"), [(-1, 1_000), (0, 10), (1, 10), (500, 500), (99_999, 30_000)]
)
def test_the_listener_may_set_the_pause(broker, make_consumer, scheduler, asked, waits):
    queue_of(broker, 1)
    answers = [SUSPEND, SUCCESS]

    def answer(messages: Sequence[MessageExt], context: ConsumeOrderlyContext) -> Any:
        context.suspend_current_queue_time_millis = asked
        return answers.pop(0)

    heard = Heard(answer)
    consumer = make_consumer(listener=heard)
    consumer.register_message_listener_orderly(heard)
    consumer.start()
    scheduler.advance(7)
    turn(consumer)
    eventually(lambda: waits in scheduler.pending_ms)
    assert len(heard.messages) == 1


@pytest.mark.conformance("F8", "E2")
def test_with_auto_commit_commit_and_rollback_mean_success(
    broker, make_consumer, scheduler, caplog
):
    queue_of(broker, 2)
    answers = [COMMIT, ROLLBACK]
    consumer, _ = consume(make_consumer, scheduler, lambda messages, context: answers.pop(0))
    eventually(lambda: progress(consumer) == 2)
    assert caplog.text.count("means SUCCESS with auto_commit") == 2


@pytest.mark.conformance("F8", "E2")
def test_without_auto_commit_only_commit_moves_progress_and_rollback_repeats(
    broker, make_consumer, scheduler
):
    queue_of(broker, 4)
    answers = [SUCCESS, COMMIT, SUCCESS, ROLLBACK, SUCCESS, COMMIT]
    known: list[int | None] = []

    def answer(messages: Sequence[MessageExt], context: ConsumeOrderlyContext) -> Any:
        context.auto_commit = False
        known.append(progress(consumer))
        return answers.pop(0)

    heard = Heard(answer)
    consumer = make_consumer(listener=heard)
    consumer.register_message_listener_orderly(heard)
    consumer.start()
    scheduler.advance(7)
    turn(consumer)
    heard.wait_for(4)
    eventually(lambda: 1_000 in scheduler.pending_ms)
    scheduler.advance(1_000)
    eventually(lambda: progress(consumer) == 4)
    assert [m.queue_offset for m in heard.messages] == [0, 1, 2, 3, 2, 3]
    assert known[2:] == [2, 2, 2, 2]


@pytest.mark.conformance("F8", "H7")
def test_a_message_with_a_limit_goes_to_the_retry_topic_and_the_queue_goes_on(
    broker, make_consumer, scheduler
):
    queue_of(broker, 2)

    def answer(messages: Sequence[MessageExt], context: Any) -> Any:
        return SUSPEND if messages[0].queue_offset == 0 else SUCCESS

    consumer, heard = consume(make_consumer, scheduler, answer, max_reconsume_times=3)
    for attempt in range(1, 4):
        heard.wait_for(attempt)
        eventually(lambda: 1_000 in scheduler.pending_ms)
        assert progress(consumer) in (None, 0)
        scheduler.advance(1_000)
    eventually(lambda: progress(consumer) == 2)
    assert [m.queue_offset for m in heard.messages] == [0, 0, 0, 0, 1]
    dead = broker.view.get_message("%DLQ%g", 0, 0, 32, tags=None).messages
    waiting = sent_back(broker, level=6)
    (letter,) = list(dead) + waiting + dlq_waiting(broker, 6)
    assert letter.get_property("RETRY_TOPIC") == "T"
    assert letter.get_property("ORIGIN_MESSAGE_ID") == heard.messages[0].msg_id
    assert letter.get_property(FAILURE_CLASS) == SUSPEND


def dlq_waiting(broker: Any, level: int) -> list[MessageExt]:
    """Dead letters that travel through the delay topic first, as in 4.9.8."""
    found = broker.view.get_message("SCHEDULE_TOPIC_XXXX", level - 1, 0, 32, tags=None).messages
    return [m for m in found if m.get_property("REAL_TOPIC") == "%DLQ%g"]


@pytest.mark.conformance("F8", "H17")
def test_a_message_over_the_limit_that_can_not_be_sent_stays_at_the_head(
    broker, make_consumer, scheduler, clock
):
    queue_of(broker, 2)
    failing = FailingBroker(broker, clock)
    failing.always("send", DOWN)

    def answer(messages: Sequence[MessageExt], context: Any) -> Any:
        return SUSPEND if messages[0].queue_offset == 0 else SUCCESS

    consumer, heard = consume(
        make_consumer, scheduler, answer, brokers=[failing], max_reconsume_times=0
    )
    eventually(lambda: 1_000 in scheduler.pending_ms)
    assert [m.queue_offset for m in heard.messages] == [0]
    assert heard.messages[0].reconsume_times == 1
    failing.heal()
    scheduler.advance(1_000)
    eventually(lambda: progress(consumer) == 2)


def dead_letters(broker: Any) -> list[bytes]:
    """The bodies of all dead letters, those that wait for a delay, too."""
    found = list(broker.view.get_message("%DLQ%g", 0, 0, 32, tags=None).messages)
    found += [letter for level in range(1, 19) for letter in dlq_waiting(broker, level)]
    return sorted(letter.body for letter in found)


@pytest.mark.conformance("F8")
def test_of_a_batch_a_message_over_the_limit_goes_once_and_the_others_come_again(
    broker, make_consumer, scheduler
):
    queue_of(broker, 1)
    tried: list[list[bytes]] = []

    def answer(messages: Sequence[MessageExt], context: Any) -> Any:
        tried.append([message.body for message in messages])
        return SUSPEND

    def has_tried(times: int) -> bool:
        return len(tried) == times

    def has_progress(offset: int) -> bool:
        return progress(consumer) == offset

    def waits_unless(ended: bool) -> bool:
        return ended or 1_000 in scheduler.pending_ms

    consumer, _ = consume(
        make_consumer, scheduler, answer, max_reconsume_times=2, consume_message_batch_max_size=2
    )
    eventually(lambda: 1_000 in scheduler.pending_ms)
    broker.send(Message("T", b"1"), 0)
    pull_until(consumer, lambda: in_work(consumer) == 2)
    for end, dead in ((0, []), (1, [b"0"]), (2, [b"0", b"1"])):
        calls = len(tried) + 1
        scheduler.advance(1_000)
        eventually(partial(has_tried, calls))
        eventually(partial(has_progress, end))
        eventually(partial(waits_unless, end == 2))
        assert dead_letters(broker) == dead
    assert tried == [[b"0"], [b"0", b"1"], [b"0", b"1"], [b"1"]]
    assert broker.query_consumer_offset("g", "T", 0).offset == 2
    assert in_work(consumer) == 0


@pytest.mark.conformance("F8")
def test_what_went_to_the_retry_topic_is_not_rolled_back(broker, make_consumer, scheduler):
    queue_of(broker, 2)
    answers = [SUCCESS, SUSPEND, ROLLBACK, COMMIT]
    heard = Heard(lambda messages, context: answers.pop(0))

    def answer(messages: Sequence[MessageExt], context: ConsumeOrderlyContext) -> Any:
        context.auto_commit = False
        return heard.consume_message(messages, context)

    consumer, _ = consume(make_consumer, scheduler, answer, max_reconsume_times=0)
    eventually(lambda: heard.bodies == [b"0", b"1"])
    broker.send(Message("T", b"2"), 0)
    pull_until(consumer, lambda: len(heard.bodies) == 3)
    eventually(lambda: 1_000 in scheduler.pending_ms)
    answers.append(COMMIT)
    scheduler.advance(1_000)
    eventually(lambda: progress(consumer) == 3)
    assert heard.bodies == [b"0", b"1", b"2", b"0", b"2"]
    assert dead_letters(broker) == [b"1"]


@pytest.mark.conformance("F8")
def test_a_message_over_the_limit_without_room_for_a_retry_is_a_dead_letter(
    broker, make_consumer, scheduler
):
    broker.update_topic(TopicConfig("T", 1, 1))
    broker.send(full_of_properties(broker), 0)
    broker.send(Message("T", b"after"), 0)

    def answer(messages: Sequence[MessageExt], context: Any) -> Any:
        return SUSPEND if messages[0].queue_offset == 0 else SUCCESS

    consumer, heard = consume(make_consumer, scheduler, answer, max_reconsume_times=0)
    eventually(lambda: progress(consumer) == 2)
    assert heard.bodies == [b"full", b"after"]
    (letter,) = broker.view.get_message("%DLQ%g", 0, 0, 32, tags=None).messages
    assert letter.body == b"full"


# -- locks


@pytest.mark.conformance("F3")
def test_without_the_brokers_lock_nothing_is_consumed_until_it_is_there(
    broker, make_consumer, scheduler
):
    queue_of(broker, 2)
    consumer, heard = consume(make_consumer, scheduler)
    heard.wait_for(2)
    process_queue = consumer.rebalance.process_queues[QUEUE]
    eventually(lambda: not consumer.consume_service.pool.waiting)
    scheduler.advance(1_000)  # the next refresh of all locks is far off now
    broker.unlock_queues("g", consumer.client_id, [QUEUE])
    with locked_elsewhere(broker, QUEUE) as gotten:
        assert gotten == {QUEUE}
        process_queue.locked = False
        process_queue.put_message(heard.messages[:1])
        consumer.consume_service.submit([], process_queue, QUEUE, True)
        eventually(lambda: 100 in scheduler.pending_ms)
        scheduler.advance(100)
        eventually(lambda: 3_000 in scheduler.pending_ms, "not got: again in 3 s")
        assert len(heard.messages) == 2
    scheduler.advance(3_000)
    eventually(lambda: 100 in scheduler.pending_ms)
    scheduler.advance(100)
    scheduler.advance(10)
    heard.wait_for(3)


@pytest.mark.conformance("F3")
def test_a_lock_that_was_not_refreshed_for_30_s_is_not_relied_upon(
    broker, make_consumer, scheduler, clock
):
    queue_of(broker, 2)
    process_queues: list[Any] = []

    def age(messages: Sequence[MessageExt], context: Any) -> Any:
        if messages[0].queue_offset == 0:
            clock.advance(30_001)
        return SUCCESS

    consumer, heard = consume(make_consumer, scheduler, age)
    heard.wait_for(1)
    process_queues.append(consumer.rebalance.process_queues[QUEUE])
    eventually(lambda: 10 in scheduler.pending_ms)
    assert len(heard.messages) == 1
    scheduler.advance(10)  # the lock is taken again
    scheduler.advance(10)
    heard.wait_for(2)


@pytest.mark.conformance("F3", "B14")
def test_locks_are_refreshed_each_20_s_and_let_go_at_the_end(broker, make_consumer, scheduler):
    queue_of(broker, 1)
    consumer, heard = consume(make_consumer, scheduler)
    heard.wait_for(1)
    process_queue = consumer.rebalance.process_queues[QUEUE]
    began = process_queue.last_lock_timestamp
    scheduler.advance(1_000)
    assert process_queue.last_lock_timestamp == began + 993, "1 s after the start"
    scheduler.advance(19_992)
    assert process_queue.last_lock_timestamp == began + 993
    scheduler.advance(1)
    assert process_queue.last_lock_timestamp == began + 20_993
    with locked_elsewhere(broker, QUEUE) as gotten:
        assert gotten == set()
    consumer.consume_service.shutdown(0)
    with locked_elsewhere(broker, QUEUE) as gotten:
        assert gotten == {QUEUE}


@pytest.mark.conformance("F7", "C10")
def test_a_queue_is_not_given_away_while_its_listener_runs(broker, make_consumer, scheduler):
    queue_of(broker, 2)
    opened = threading.Event()

    def hold(messages: Sequence[MessageExt], context: Any) -> Any:
        assert opened.wait(PATIENCE_S)
        return SUCCESS

    consumer, heard = consume(make_consumer, scheduler, hold)
    heard.wait_for(1)
    process_queue = consumer.rebalance.process_queues[QUEUE]
    assert not process_queue.consume_lock.acquire(timeout=0.01)
    process_queue.dropped = True
    opened.set()
    assert process_queue.consume_lock.acquire(timeout=PATIENCE_S)
    process_queue.consume_lock.release()
    eventually(lambda: not consumer.consume_service.pool.waiting)
    assert [m.queue_offset for m in heard.messages] == [0], "dropped: not taken any further"
    assert progress(consumer) == 1, "and what was consumed under the lock counts"


@pytest.mark.conformance("G12")
def test_what_ends_after_the_progress_was_moved_counts_no_more(broker, make_consumer, scheduler):
    queue_of(broker, 3)
    door = Door(1, answer=SUCCESS)
    consumer, heard = consume(make_consumer, scheduler, door)
    heard.wait_for(2)
    old = consumer.rebalance.process_queues[QUEUE]
    consumer.persist_consumer_offset()
    broker.progress.move("g", {("T", 0): 0})
    consumer.rules.begin_anew({QUEUE: 0})
    door.opened.set()
    eventually(lambda: not old.consume_lock.locked())
    eventually(lambda: not consumer.consume_service.pool.waiting)
    assert progress(consumer) is None
    turn(consumer)
    heard.wait_for(5)
    assert [m.queue_offset for m in heard.messages] == [0, 1, 0, 1, 2]


@pytest.mark.conformance("F3", "E16")
def test_broadcasting_needs_no_lock(broker, make_consumer, scheduler, tmp_path):
    queue_of(broker, 3)
    heard = Heard(succeed)
    consumer = make_consumer(
        listener=heard,
        config=ConsumerConfig(
            message_model=MessageModel.BROADCASTING,
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        ),
        client_config=ClientConfig(local_offset_store_dir=str(tmp_path / "offsets")),
    )
    consumer.register_message_listener_orderly(heard)
    with locked_elsewhere(broker, QUEUE) as gotten:
        assert gotten == {QUEUE}
        consumer.start()
        turn(consumer)
        heard.wait_for(3)
        eventually(lambda: progress(consumer) == 3)


# -- the rest


@pytest.mark.parametrize(
    ("status", "result"),
    [
        (SUCCESS, ConsumeDirectlyStatus.CR_SUCCESS),
        (COMMIT, ConsumeDirectlyStatus.CR_COMMIT),
        (ROLLBACK, ConsumeDirectlyStatus.CR_ROLLBACK),
        (SUSPEND, ConsumeDirectlyStatus.CR_LATER),
        (None, ConsumeDirectlyStatus.CR_RETURN_NULL),
    ],
)
def test_direct_consumption_tells_what_the_listener_said(
    broker, make_consumer, scheduler, status, result
):
    queue_of(broker, 1, begin=1)

    def answer(messages: Sequence[MessageExt], context: ConsumeOrderlyContext) -> Any:
        context.auto_commit = False
        return status

    consumer, _ = consume(make_consumer, scheduler, answer)
    (message,) = broker.view.get_message("T", 0, 0, 1, tags=None).messages
    told = consumer.consume_service.consume_directly(message, "broker-a")
    assert (told.consume_result, told.order, told.auto_commit) == (result, True, False)


@pytest.mark.conformance("F10", "I4")
def test_after_a_kill_the_batch_that_was_not_committed_comes_again_in_order(
    broker, make_consumer, scheduler
):
    queue_of(broker, 6)
    opened = threading.Event()

    def stop_at_3(messages: Sequence[MessageExt], context: Any) -> Any:
        if messages[0].queue_offset == 3:
            assert opened.wait(PATIENCE_S)
        return SUCCESS

    consumer, heard = consume(make_consumer, scheduler, stop_at_3)
    heard.wait_for(4)
    consumer.persist_consumer_offset()
    # The kill: its results count no more.
    consumer.rebalance.drop_all()
    broker.unlock_queues("g", consumer.client_id, [QUEUE])
    opened.set()
    consumer.shutdown()
    again, heard_again = consume(make_consumer, scheduler)
    eventually(lambda: progress(again) == 6)
    assert [m.queue_offset for m in heard_again.messages] == [3, 4, 5]


@pytest.mark.conformance("E9")
def test_hooks_see_how_an_orderly_listener_came_back(broker, make_consumer, scheduler):
    queue_of(broker, 1)
    seen: list[tuple[str, bool, str]] = []
    answers = [SUSPEND, SUCCESS]

    class Hook:
        def consume_message_before(self, context: Any) -> None:
            seen.append(("before", context.success, context.status))

        def consume_message_after(self, context: Any) -> None:
            seen.append((context.props["ConsumeContextType"], context.success, context.status))

    heard = Heard(lambda messages, context: answers.pop(0))
    consumer = make_consumer(listener=heard)
    consumer.register_message_listener_orderly(heard)
    consumer.consume_hooks.append(Hook())
    consumer.start()
    scheduler.advance(7)
    turn(consumer)
    eventually(lambda: 1_000 in scheduler.pending_ms)
    scheduler.advance(1_000)
    eventually(lambda: progress(consumer) == 1)
    assert seen == [
        ("before", False, ""),
        ("FAILED", False, "SUSPEND_CURRENT_QUEUE_A_MOMENT"),
        ("before", False, ""),
        ("SUCCESS", True, "SUCCESS"),
    ]
