"""A timer for each request: stuck messages are given back when their time is over, not later."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from typing import Any

import pytest

from broker.api.failure_reason import FAILURE_CLASS
from client.listener.listener import ConsumeConcurrentlyStatus
from client.listener.process_queue import ProcessQueue
from client.listener.timer import ConsumeTimer, WatchedRequest
from storage.format.message import MessageExt, MessageQueue
from tests.support.consumers import eventually
from tests.support.consuming import QUEUE, Door, consume, in_work, progress, queue_of, sent_back
from tests.support.failing_broker import DOWN, FailingBroker
from tests.support.manual_time import ManualScheduler
from tests.support.messages import pulled

LATER = ConsumeConcurrentlyStatus.RECONSUME_LATER
SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS


@pytest.mark.conformance("E22", "H17")
def test_a_stuck_message_is_sent_back_at_its_timeout_and_progress_moves_on(
    broker, make_consumer, scheduler
):
    queue_of(broker, 40)
    door = Door(7)
    consumer, heard = consume(make_consumer, door, resend_after_if_still_un_ack_ms=300)
    heard.wait_for(40)
    eventually(lambda: in_work(consumer) == 1)
    assert progress(consumer) == 7
    scheduler.advance(299)
    assert sent_back(broker) == []
    assert progress(consumer) == 7
    scheduler.advance(1)
    (back,) = sent_back(broker)
    assert (back.body, back.get_property(FAILURE_CLASS)) == (b"7", "TIME_OUT")
    assert in_work(consumer) == 0
    assert progress(consumer) == 40
    door.opened.set()


@pytest.mark.conformance("E22")
@pytest.mark.parametrize("answer", [LATER, SUCCESS])
def test_what_the_listener_says_afterwards_counts_no_more(broker, make_consumer, scheduler, answer):
    queue_of(broker, 2)
    door = Door(0, answer=answer)
    consumer, heard = consume(make_consumer, door, resend_after_if_still_un_ack_ms=10)
    heard.wait_for(2)
    scheduler.advance(10)
    eventually(lambda: progress(consumer) == 2)
    known = len(sent_back(broker))
    door.opened.set()
    eventually(lambda: not consumer.consume_service.pool.waiting)
    consumer.consume_service.shutdown(20_000)
    assert len([m for m in sent_back(broker) if m.body == b"0"]) == 1
    assert len(sent_back(broker)) == known


@pytest.mark.conformance("E22")
def test_a_request_that_ends_in_time_is_left_alone(broker, make_consumer, scheduler):
    queue_of(broker, 5)
    consumer, _ = consume(make_consumer, resend_after_if_still_un_ack_ms=12_345)
    eventually(lambda: progress(consumer) == 5)
    eventually(lambda: 12_345 not in scheduler.pending_ms, "the timers are cancelled")
    scheduler.advance(60_000)
    assert sent_back(broker) == []


@pytest.mark.conformance("E22", "H17")
def test_a_message_that_could_not_be_sent_back_is_not_acknowledged(
    broker, make_consumer, scheduler, clock
):
    queue_of(broker, 2)
    failing = FailingBroker(broker, clock)
    failing.always("send_message_back", DOWN)
    failing.always("send", DOWN)
    door = Door(0)
    consumer, heard = consume(
        make_consumer, door, brokers=[failing], resend_after_if_still_un_ack_ms=10
    )
    heard.wait_for(2)
    eventually(lambda: in_work(consumer) == 1)
    scheduler.advance(10)
    assert failing.called("send_message_back") == 1
    assert progress(consumer) == 0
    failing.heal()
    door.opened.set()  # what the listener says counts
    eventually(lambda: progress(consumer) == 2)
    assert sent_back(broker) == []


@pytest.mark.conformance("E22")
def test_a_new_timeout_holds_from_the_next_request_on(broker, make_consumer, scheduler):
    queue_of(broker, 1)
    door = Door(0, 1)
    consumer, heard = consume(make_consumer, door, resend_after_if_still_un_ack_ms=10_000)
    heard.wait_for(1)
    consumer.configure(resend_after_if_still_un_ack_ms=20)
    broker.send_column("T", [b"1"], 0)
    heard.wait_for(2)
    scheduler.advance(20)
    assert [m.body for m in sent_back(broker)] == [b"1"]
    door.opened.set()


@pytest.mark.conformance("E22")
def test_of_a_dropped_queue_nothing_is_sent_back(broker, make_consumer, scheduler):
    queue_of(broker, 1)
    door = Door(0)
    consumer, heard = consume(make_consumer, door, resend_after_if_still_un_ack_ms=10)
    heard.wait_for(1)
    consumer.rebalance.process_queues[QUEUE].dropped = True
    scheduler.advance(10)
    assert sent_back(broker) == []
    door.opened.set()


@pytest.mark.conformance("E22")
def test_all_that_is_stuck_is_sent_back_not_only_16_and_not_only_the_head(
    broker, make_consumer, scheduler
):
    queue_of(broker, 32)
    stuck = set(range(1, 32, 2)) | {2, 4, 6}
    door = Door(*stuck)
    consumer, heard = consume(
        make_consumer,
        door,
        consume_thread_min=32,
        consume_thread_max=32,
        resend_after_if_still_un_ack_ms=10,
    )
    heard.wait_for(32)
    eventually(lambda: in_work(consumer) == len(stuck))
    scheduler.advance(10)
    assert len(sent_back(broker)) == len(stuck) == 19
    assert progress(consumer) == 32
    door.opened.set()


@pytest.mark.conformance("E22")
def test_a_timer_does_not_keep_its_request_alive() -> None:
    scheduler = ManualScheduler()
    given_back: list[MessageExt] = []
    timer = ConsumeTimer(
        scheduler, lambda queue, message: given_back.append(message), lambda *removed: None
    )
    requests: list[weakref.ref[WatchedRequest]] = []

    def forget(request: WatchedRequest) -> None:
        requests.append(weakref.ref(request))
        raise SystemError("the thread dies without an end")

    def run() -> None:
        request = WatchedRequest(tuple(pulled([1])), ProcessQueue(), MessageQueue("T", "b", 0))
        with pytest.raises(SystemError):
            timer.run(request, 10, forget)

    run()
    gc.collect()
    assert requests[0]() is None
    scheduler.advance(10)
    assert given_back == []


def test_of_a_batch_only_what_was_sent_back_is_taken_out_of_the_listeners_say(
    broker, make_consumer, scheduler, clock
):
    queue_of(broker, 3)
    failing = FailingBroker(broker, clock)
    failing.plan("send_message_back", None, DOWN, None)
    failing.plan("send", DOWN, DOWN, DOWN)  # a send is tried three times
    door = Door(0, answer=LATER)

    def all_of(messages: Sequence[MessageExt], context: Any) -> Any:
        return door(messages, context)

    consumer, heard = consume(
        make_consumer,
        all_of,
        brokers=[failing],
        consume_message_batch_max_size=3,
        resend_after_if_still_un_ack_ms=10,
    )
    heard.wait_for(3)
    scheduler.advance(10)
    assert sorted(m.body for m in sent_back(broker)) == [b"0", b"2"]
    assert progress(consumer) == 1
    door.opened.set()
    eventually(lambda: progress(consumer) == 3)
    assert sorted(m.body for m in sent_back(broker)) == [b"0", b"1", b"2"]
