"""Concurrent consumption: what listeners say, and what becomes of messages and progress."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from broker.api.failure_reason import FAILURE_CLASS, FAILURE_CLIENT, FAILURE_MESSAGE
from broker.api.members import ConsumeDirectlyStatus, MessageModel
from broker.api.offsets import ConsumeFromWhere
from client.consumer.consumer_config import ConsumerConfig
from client.listener.listener import ConsumeConcurrentlyStatus
from client.runtime.client_config import ClientConfig
from storage.format.message import PROPERTY_CONSUME_START_TIMESTAMP, MessageExt, MessageQueue
from tests.support.consumers import (
    PATIENCE_S,
    Heard,
    eventually,
    fill,
    pull_what_is_there,
    rebalance,
    turn,
)
from tests.support.consuming import QUEUE, Door, consume, in_work, progress, queue_of, sent_back
from tests.support.failing_broker import DOWN, FailingBroker

SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
LATER = ConsumeConcurrentlyStatus.RECONSUME_LATER
MINUTE_MS = 60_000


# -- what the listener says


@pytest.mark.conformance("E1", "E3")
def test_success_moves_progress_and_sends_nothing_back(broker, make_consumer):
    queue_of(broker, 10)
    consumer, heard = consume(make_consumer)
    eventually(lambda: progress(consumer) == 10)
    assert sorted(heard.bodies) == [b"%d" % n for n in range(10)]
    assert sent_back(broker) == []


def fail(messages: Sequence[MessageExt], context: Any) -> Any:
    raise ArithmeticError("insufficient balance")


@pytest.mark.conformance("E1", "E3", "E4", "H17")
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda messages, context: LATER, "RECONSUME_LATER"),
        (lambda messages, context: None, "None"),
        (lambda messages, context: "done", "done"),
        (fail, "ArithmeticError"),
    ],
    ids=["later", "none", "no status", "exception"],
)
def test_whatever_is_no_success_is_sent_back_and_then_done(broker, make_consumer, answer, reason):
    queue_of(broker, 3)
    consumer, _ = consume(make_consumer, answer)
    eventually(lambda: progress(consumer) == 3)
    back = sent_back(broker)
    assert sorted(m.body for m in back) == [b"0", b"1", b"2"]
    assert {m.reconsume_times for m in back} == {1}
    assert {m.get_property(FAILURE_CLASS) for m in back} == {reason}
    assert {m.get_property(FAILURE_CLIENT) for m in back} == {consumer.client_id}
    broker.send_column("T", [b"more"], 0)
    pull_what_is_there(consumer)
    eventually(lambda: progress(consumer) == 4, "the threads did not survive")


def test_a_model_given_by_its_name_loses_no_message(broker, make_consumer):
    queue_of(broker, 1)
    consumer, _ = consume(make_consumer, fail, message_model="CLUSTERING")
    eventually(lambda: progress(consumer) == 1)
    assert len(sent_back(broker)) == 1


@pytest.mark.parametrize("wrong", ["x", None, 1.5])
@pytest.mark.parametrize("batch", [1, 2])
def test_an_ack_index_that_is_no_number_fails_its_call_and_no_other(
    broker, make_consumer, wrong, batch
):
    queue_of(broker, 6)

    def answer(messages: Sequence[MessageExt], context: Any) -> Any:
        if messages[0].queue_offset in (0, 2):
            context.ack_index = wrong
        return SUCCESS

    consumer, heard = consume(make_consumer, answer, consume_message_batch_max_size=batch)
    eventually(lambda: progress(consumer) == 6)
    back = sent_back(broker)
    assert sorted(m.body for m in back) == [b"0", b"2"] if batch == 1 else [b"0", b"1", b"2", b"3"]
    assert {m.get_property(FAILURE_MESSAGE) for m in back} == {
        f"ack_index is {wrong!r}; it is a whole number"
    }
    assert sorted(heard.bodies) == [b"%d" % n for n in range(6)]


class Wordless:
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_an_answer_without_words_is_sent_back_like_any_other(broker, make_consumer):
    queue_of(broker, 2)
    consumer, _ = consume(make_consumer, lambda messages, context: Wordless())
    eventually(lambda: progress(consumer) == 2)
    assert len(sent_back(broker)) == 2


class Quitter:
    """A hook that ends its thread, or means to, before one message."""

    def consume_message_before(self, context: Any) -> None:
        if context.messages[0].queue_offset == 1:
            raise SystemExit(3)

    def consume_message_after(self, context: Any) -> None:
        pass


def test_a_hook_that_exits_keeps_no_message_from_being_consumed(broker, make_consumer):
    queue_of(broker, 5)
    heard = Heard()
    consumer = make_consumer(listener=heard, config=ConsumerConfig(consume_thread_min=1))
    consumer.consume_hooks.append(Quitter())
    consumer.start()
    turn(consumer)
    eventually(lambda: progress(consumer) == 5)
    assert sorted(heard.bodies) == [b"%d" % n for n in range(5)]


@pytest.mark.conformance("E4")
def test_even_an_exit_in_a_listener_ends_in_the_retry_topic(broker, make_consumer):
    def leave(messages: Sequence[MessageExt], context: Any) -> Any:
        raise SystemExit(1)

    queue_of(broker, 1)
    consumer, _ = consume(make_consumer, leave)
    eventually(lambda: progress(consumer) == 1)
    assert len(sent_back(broker)) == 1


def test_the_reason_of_a_failure_can_be_kept_out(broker, make_consumer):
    queue_of(broker, 1)
    consumer, _ = consume(make_consumer, fail, record_failure_reason=False)
    eventually(lambda: progress(consumer) == 1)
    (back,) = sent_back(broker)
    assert back.get_property(FAILURE_MESSAGE) is None


@pytest.mark.conformance("E5")
def test_a_pull_is_split_into_batches(broker, make_consumer):
    queue_of(broker, 10)
    sizes: list[int] = []

    def note(messages: Sequence[MessageExt], context: Any) -> Any:
        assert isinstance(messages, tuple)
        sizes.append(len(messages))
        return SUCCESS

    consumer, _ = consume(make_consumer, note, consume_message_batch_max_size=4)
    eventually(lambda: progress(consumer) == 10)
    assert sorted(sizes) == [2, 4, 4]


@pytest.mark.conformance("E6")
def test_what_is_behind_the_ack_index_comes_again(broker, make_consumer):
    queue_of(broker, 5)

    def partly(messages: Sequence[MessageExt], context: Any) -> Any:
        context.ack_index = 2
        return SUCCESS

    consumer, _ = consume(make_consumer, partly, consume_message_batch_max_size=5)
    eventually(lambda: progress(consumer) == 5)
    assert [m.body for m in sent_back(broker)] == [b"3", b"4"]
    assert consumer.stats.consume_ok_tps.item("T@g").value == 3
    assert consumer.stats.consume_failed_tps.item("T@g").value == 2


@pytest.mark.conformance("E6")
@pytest.mark.parametrize("consume_log", [False, True], ids=["quick", "each call noted"])
@pytest.mark.parametrize(("ack_index", "ok"), [(-1, 0), (-7, 0), (99, 5), (4, 5), (3, 4), (0, 1)])
def test_the_ack_index_tells_the_last_message_that_is_done(
    broker, make_consumer, ack_index, ok, consume_log
):
    """Outside of the batch it is taken for its ends."""
    queue_of(broker, 5)

    def partly(messages: Sequence[MessageExt], context: Any) -> Any:
        context.ack_index = ack_index
        return SUCCESS

    consumer, _ = consume(
        make_consumer, partly, consume_message_batch_max_size=5, consume_log=consume_log
    )
    eventually(lambda: progress(consumer) == 5)
    assert [message.body for message in sent_back(broker)] == [b"%d" % n for n in range(ok, 5)]


@pytest.mark.conformance("H5", "E1")
def test_the_listener_may_set_the_level_of_the_next_attempt(broker, make_consumer):
    queue_of(broker, 1)

    def soon(messages: Sequence[MessageExt], context: Any) -> Any:
        context.delay_level_when_next_consume = 1
        return LATER

    consumer, _ = consume(make_consumer, soon)
    eventually(lambda: progress(consumer) == 1)
    assert len(sent_back(broker, level=1)) == 1


@pytest.mark.conformance("E16", "A9")
def test_a_failure_in_broadcasting_is_logged_and_dropped(broker, make_consumer, tmp_path, caplog):
    queue_of(broker, 2)
    consumer = make_consumer(
        listener=Heard(fail),
        config=ConsumerConfig(
            message_model=MessageModel.BROADCASTING,
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        ),
        client_config=ClientConfig(local_offset_store_dir=str(tmp_path / "offsets")),
    )
    consumer.start()
    turn(consumer)
    eventually(lambda: progress(consumer) == 2)
    assert sent_back(broker) == []
    assert "BROADCASTING, consuming failed, dropped" in caplog.text


@pytest.mark.conformance("E9")
def test_hooks_are_called_around_the_listener_and_what_they_raise_is_swallowed(
    broker, make_consumer
):
    queue_of(broker, 2)
    calls: list[tuple[str, bool, str]] = []

    class Hook:
        def consume_message_before(self, context: Any) -> None:
            calls.append(("before", context.success, context.status))
            raise RuntimeError("a hook that fails")

        def consume_message_after(self, context: Any) -> None:
            calls.append((context.props["ConsumeContextType"], context.success, context.status))

    def by_offset(messages: Sequence[MessageExt], context: Any) -> Any:
        calls.append(("listener", False, ""))
        return SUCCESS if messages[0].queue_offset == 0 else None

    heard = Heard(by_offset)
    consumer = make_consumer(
        listener=heard, config=ConsumerConfig(consume_thread_min=1, consume_thread_max=1)
    )
    consumer.consume_hooks.append(Hook())
    consumer.start()
    turn(consumer)
    eventually(lambda: progress(consumer) == 2)
    assert calls == [
        ("before", False, ""),
        ("listener", False, ""),
        ("SUCCESS", True, "CONSUME_SUCCESS"),
        ("before", False, ""),
        ("listener", False, ""),
        ("RETURNNULL", False, "RECONSUME_LATER"),
    ]


@pytest.mark.conformance("E10")
def test_a_retried_message_shows_its_original_topic(broker, make_consumer):
    queue_of(broker, 1)
    consumer, heard = consume(make_consumer)
    retried = MessageExt("%RETRY%g", b"x", b"RETRY_TOPIC\x01T\x02", queue_offset=5)
    queue = MessageQueue("%RETRY%g", "broker-a", 0)
    process_queue = consumer.rebalance.process_queues[QUEUE].__class__()
    process_queue.put_message([retried])
    consumer.consume_service.submit([retried], process_queue, queue, True)
    heard.wait_for(2)
    assert [m.topic for m in heard.messages] == ["T", "T"]
    assert heard.contexts[1].message_queue == queue


# -- progress


@pytest.mark.conformance("E14", "E26", "E23")
def test_a_stuck_message_holds_progress_at_2101_and_2201_follows_when_it_is_done(
    broker, make_consumer
):
    queue_of(broker, 2201, begin=2101)
    door = Door(2101)
    consumer, heard = consume(make_consumer, door)
    heard.wait_for(100)
    eventually(lambda: in_work(consumer) == 1)
    assert progress(consumer) == 2101
    door.opened.set()
    eventually(lambda: progress(consumer) == 2201)


@pytest.mark.conformance("E15", "E24", "E3")
def test_with_1_2_and_7_done_a_kill_repeats_3_to_7(broker, make_consumer, open_broker):
    queue_of(broker, 8, begin=1)
    door = Door(3, 4, 5, 6)
    consumer, heard = consume(make_consumer, door)
    heard.wait_for(7)
    eventually(lambda: in_work(consumer) == 4)
    assert progress(consumer) == 3
    consumer.persist_consumer_offset()
    # The kill: its results count no more, and nothing is written.
    consumer.rebalance.drop_all()
    door.opened.set()
    consumer.shutdown()
    again, heard_again = consume(make_consumer)
    eventually(lambda: progress(again) == 8)
    assert sorted(m.queue_offset for m in heard_again.messages) == [3, 4, 5, 6, 7]


@pytest.mark.conformance("E8", "C9")
def test_a_queue_that_is_dropped_while_the_listener_runs_gets_no_ack_and_no_send_back(
    broker, make_consumer
):
    queue_of(broker, 2)
    door = Door(0, 1, answer=LATER)
    consumer, heard = consume(make_consumer, door)
    heard.wait_for(2)
    process_queue = consumer.rebalance.process_queues[QUEUE]
    process_queue.dropped = True
    before = progress(consumer)
    door.opened.set()
    eventually(lambda: not consumer.consume_service.pool.waiting)
    consumer.consume_service.shutdown(int(PATIENCE_S * 1000))
    assert progress(consumer) == before
    assert sent_back(broker) == []
    assert process_queue.msg_count == 2


@pytest.mark.conformance("E8")
def test_a_queue_that_is_dropped_before_is_not_consumed(broker, make_consumer):
    queue_of(broker, 1)
    consumer, heard = consume(make_consumer)
    heard.wait_for(1)
    process_queue = consumer.rebalance.process_queues[QUEUE]
    process_queue.dropped = True
    consumer.consume_service.submit(heard.messages, process_queue, QUEUE, True)
    eventually(lambda: not consumer.consume_service.pool.waiting)
    assert len(heard.messages) == 1


# -- sending back fails


@pytest.mark.conformance("E17", "E7", "H17")
def test_a_message_that_can_not_be_sent_back_is_consumed_again_in_5_s_and_holds_progress(
    broker, make_consumer, scheduler, clock
):
    queue_of(broker, 3)
    failing = FailingBroker(broker, clock)
    failing.always("send_message_back", DOWN)
    failing.always("send", DOWN)
    answers = {0: [LATER, LATER, SUCCESS], 1: [SUCCESS], 2: [SUCCESS]}
    attempts: list[int] = []

    def answer(messages: Sequence[MessageExt], context: Any) -> Any:
        (message,) = messages
        if message.queue_offset == 0:
            attempts.append(message.reconsume_times)
        return answers[message.queue_offset].pop(0)

    def attempted(times: int) -> bool:
        return len(attempts) == times

    consumer = make_consumer(listener=Heard(answer), brokers=[failing])
    consumer.start()
    scheduler.advance(7)  # so that no other timer is due when messages come again
    turn(consumer)
    for tries in (1, 2, 3):
        eventually(partial(attempted, tries))
        if tries < 3:
            eventually(lambda: in_work(consumer) == 1 and 5_000 in scheduler.pending_ms)
            assert progress(consumer) == 0
            scheduler.advance(4_999)
            assert attempted(tries)
            scheduler.advance(1)
    eventually(lambda: progress(consumer) == 3)
    assert attempts == [0, 1, 2]
    assert sent_back(broker) == []


@pytest.mark.conformance("H3")
def test_a_message_whose_broker_does_not_answer_is_sent_to_the_retry_topic_anew(
    broker, make_consumer, clock
):
    queue_of(broker, 1)
    failing = FailingBroker(broker, clock)
    failing.always("send_message_back", DOWN)
    consumer, _ = consume(make_consumer, fail, brokers=[failing])
    eventually(lambda: progress(consumer) == 1)
    assert failing.called("send_message_back") == 1
    (back,) = sent_back(broker)
    assert back.body == b"0"
    assert back.get_property("RETRY_TOPIC") == "T"
    assert back.reconsume_times == 1


# -- too long in the listener


@pytest.mark.conformance("E18", "E20", "H17")
def test_an_expired_message_is_sent_back_between_one_and_two_timeouts(
    broker, make_consumer, scheduler, clock
):
    queue_of(broker, 3)
    door = Door(0)
    heard = Heard(door)
    consumer = make_consumer(listener=heard, config=ConsumerConfig(consume_timeout_minutes=2))
    consumer.start()
    scheduler.advance(1)
    turn(consumer)
    heard.wait_for(3)
    eventually(lambda: in_work(consumer) == 1)
    begun = clock.now_ms()
    assert heard.messages[0].get_property(PROPERTY_CONSUME_START_TIMESTAMP) == str(begun)
    scheduler.advance(2 * MINUTE_MS)  # the scan comes 1 ms before the message is too old
    assert sent_back(broker) == []
    for _ in range(119):
        scheduler.advance(1_000)
    assert sent_back(broker) == [], "not before the next scan"
    scheduler.advance(1_000)
    (back,) = sent_back(broker)
    assert (back.body, back.reconsume_times) == (b"0", 1)
    assert 2 * MINUTE_MS < clock.now_ms() - begun <= 4 * MINUTE_MS
    assert in_work(consumer) == 0
    door.opened.set()


@pytest.mark.conformance("E21")
def test_a_timeout_that_is_changed_later_does_not_change_how_often_it_is_looked(
    broker, make_consumer, scheduler
):
    queue_of(broker, 1)
    door = Door(0)
    heard = Heard(door)
    consumer = make_consumer(listener=heard, config=ConsumerConfig(consume_timeout_minutes=10))
    consumer.start()
    turn(consumer)
    heard.wait_for(1)
    consumer.configure(consume_timeout_minutes=1)
    scheduler.advance(10 * MINUTE_MS - 1)
    assert sent_back(broker) == [], "nobody has looked although a minute is long over"
    scheduler.advance(1)
    assert len(sent_back(broker)) == 1
    door.opened.set()


@pytest.mark.slow
@pytest.mark.conformance("E25")
def test_without_the_scan_a_stuck_head_holds_progress_for_ever(broker, make_consumer, scheduler):
    queue_of(broker, 5)
    door = Door(0)
    consumer, heard = consume(make_consumer, door, clean_expired_messages=False)
    heard.wait_for(5)
    eventually(lambda: in_work(consumer) == 1)
    scheduler.advance(100 * MINUTE_MS)
    assert progress(consumer) == 0
    broker.send_column("T", [b"more"] * 5, 0)
    rebalance(consumer)
    scheduler.advance(MINUTE_MS)
    pull_what_is_there(consumer)
    heard.wait_for(10)
    eventually(lambda: in_work(consumer) == 1)
    assert progress(consumer) == 0
    door.opened.set()


@pytest.mark.conformance("E19")
def test_a_finished_head_is_not_taken_for_an_expired_one(broker, make_consumer, clock):
    queue_of(broker, 2)
    door = Door(1)  # the only thread stays in there, and has not turned 0 into progress
    heard = Heard(door)
    config = ConsumerConfig(consume_timeout_minutes=1, consume_thread_min=1, consume_thread_max=1)
    consumer = make_consumer(listener=heard, config=config)
    consumer.start()
    rebalance(consumer)
    while not consumer.rebalance.process_queues[QUEUE].msg_count:
        assert consumer.instance.pull_service.run_once()
    heard.wait_for(2)
    clock.advance(5 * MINUTE_MS)
    consumer.consume_service.clean_expire_msg()
    assert [m.body for m in sent_back(broker)] == [b"1"]
    door.opened.set()


@pytest.mark.conformance("E27", "D6")
def test_the_span_limit_stops_pulling_and_expiry_of_the_head_lets_it_go_on(
    broker, make_consumer, scheduler
):
    queue_of(broker, 2_100)
    door = Door(0, *range(2_000, 2_016))
    heard = Heard(door)
    consumer = make_consumer(listener=heard, config=ConsumerConfig(consume_timeout_minutes=1))
    consumer.start()
    rebalance(consumer)
    process_queue = consumer.rebalance.process_queues[QUEUE]

    def pulled_up_to(offset: int) -> bool:
        pull_what_is_there(consumer)
        scheduler.advance(50)
        return bool(process_queue.queue_offset_max == offset)

    eventually(lambda: pulled_up_to(2_015) and len(heard.messages) == 2_016)
    for _ in range(20):
        assert pulled_up_to(2_015)
    assert progress(consumer) == 0
    scheduler.advance(2 * MINUTE_MS)
    assert sent_back(broker)[0].body == b"0"
    eventually(lambda: pulled_up_to(2_099))
    eventually(lambda: (progress(consumer) or 0) >= 2_000, "it moves with what ends next")
    door.opened.set()
    eventually(lambda: progress(consumer) == 2_100)


# -- the rest


@pytest.mark.parametrize(
    ("answer", "result", "remark"),
    [
        (lambda messages, context: SUCCESS, ConsumeDirectlyStatus.CR_SUCCESS, ""),
        (lambda messages, context: LATER, ConsumeDirectlyStatus.CR_LATER, ""),
        (lambda messages, context: None, ConsumeDirectlyStatus.CR_RETURN_NULL, ""),
        (
            fail,
            ConsumeDirectlyStatus.CR_THROW_EXCEPTION,
            "ArithmeticError: insufficient balance",
        ),
    ],
)
def test_direct_consumption_tells_what_the_listener_said(
    broker, make_consumer, answer, result, remark
):
    queue_of(broker, 1, begin=1)
    consumer, heard = consume(make_consumer, answer)
    (message,) = broker.view.get_message("T", 0, 0, 1, tags=None).messages
    told = consumer.consume_service.consume_directly(message, "broker-a")
    assert (told.consume_result, told.remark, told.order, told.auto_commit) == (
        result, remark, False, True,
    )  # fmt: skip
    assert heard.bodies == [b"0"]
    assert progress(consumer) == 1
    assert sent_back(broker) == []


@pytest.mark.conformance("E7", "B15")
def test_there_are_never_more_threads_than_the_minimum(broker, make_consumer):
    queue_of(broker, 10)
    door = Door(*range(10))
    consumer, heard = consume(make_consumer, door, consume_thread_min=3, consume_thread_max=9)
    heard.wait_for(3)
    assert consumer.consume_service.pool.threads == 3
    assert len(heard.messages) == 3
    door.opened.set()
    eventually(lambda: progress(consumer) == 10)
    assert all(
        thread.name.startswith("ConsumeMessageThread_g_")
        for thread in threading.enumerate()
        if thread.name.startswith("ConsumeMessageThread_")
    )


@pytest.mark.conformance("E7")
def test_statistics_count_every_request_and_message(broker, make_consumer):
    fill(broker, 40)
    consumer, heard = consume(make_consumer)
    heard.wait_for(40)
    queues = [MessageQueue("T", "broker-a", n) for n in (0, 1)]
    eventually(lambda: sum(in_work(consumer, queue) for queue in queues) == 0)
    assert consumer.stats.consume_ok_tps.item("T@g").value == 40
    assert consumer.stats.consume_rt.item("T@g").times == 40


@pytest.mark.conformance("E7")
def test_what_was_not_begun_when_a_consumer_ends_comes_again(broker, make_consumer):
    queue_of(broker, 6)
    door = Door(0)
    consumer, heard = consume(make_consumer, door, consume_thread_min=1, consume_thread_max=1)
    heard.wait_for(1)
    consumer.shutdown()
    door.opened.set()
    again, heard_again = consume(make_consumer)
    eventually(lambda: progress(again) == 6)
    assert [m.queue_offset for m in heard.messages] == [0]
    assert sorted(m.queue_offset for m in heard_again.messages) == [0, 1, 2, 3, 4, 5]


def test_a_shutdown_that_waits_lets_the_queue_be_consumed(broker, make_consumer):
    queue_of(broker, 6)
    door = Door(0)
    consumer, heard = consume(
        make_consumer,
        door,
        consume_thread_min=1,
        consume_thread_max=1,
        await_termination_millis_when_shutdown=int(PATIENCE_S * 1000),
    )
    heard.wait_for(1)
    ending = threading.Thread(target=consumer.shutdown)
    ending.start()
    door.opened.set()
    ending.join(PATIENCE_S)
    assert len(heard.messages) == 6
    assert broker.query_consumer_offset("g", "T", 0).offset == 6
