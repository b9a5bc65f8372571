"""Messages that failed go back several at once, and none waits for the listener's next call."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from broker.api.offsets import ConsumeFromWhere
from broker.embedded.broker import EmbeddedBroker
from client.consumer.consumer_config import ConsumerConfig
from client.listener.listener import ConsumeConcurrentlyStatus
from client.listener.send_back_batcher import LATEST_MS
from client.offset_store.local_offset_store import LocalFileOffsetStore
from storage.format.message import MessageExt, MessageQueue
from tests.support.consumers import PATIENCE_S, Heard, eventually, turn
from tests.support.consuming import QUEUE, Door, consume, in_work, progress, queue_of, sent_back
from tests.support.failing_broker import DOWN, LOST, FailingBroker

SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
LATER = ConsumeConcurrentlyStatus.RECONSUME_LATER
AGAIN_MS = 5_000


def later(messages: Sequence[MessageExt], context: Any) -> Any:
    return LATER


def watched(broker: Any, clock: Any) -> FailingBroker:
    """Note how messages are given back."""
    failing = FailingBroker(broker, clock)
    failing.always("send_message_back", None)
    failing.always("send_messages_back", None)
    return failing


def sizes(failing: FailingBroker) -> list[int]:
    """How many messages each call gave back."""
    return [
        len(request) if name == "send_messages_back" else 1 for name, (request,) in failing.calls
    ]


def refused_at(*offsets: int) -> Any:
    """An answer that fails each message once; at these offsets its broker does not find it."""

    def answer(messages: Sequence[MessageExt], context: Any) -> Any:
        if messages[0].reconsume_times:
            return SUCCESS
        for message in messages:
            if message.queue_offset in offsets:
                message.commitlog_offset = 1
        return LATER

    return answer


def rates(consumer: Any) -> tuple[int, int]:
    """Messages that were counted as consumed and as failed."""
    stats = consumer.stats
    return tuple(
        sum(item.value for item in stats_set._items.values())
        for stats_set in (stats.consume_ok_tps, stats.consume_failed_tps)
    )


def calls_counted(consumer: Any) -> int:
    return sum(item.times for item in consumer.stats.consume_rt._items.values())


def test_what_fails_quickly_goes_back_in_one_call_and_leaves_as_it_came(
    broker, make_consumer, clock
):
    queue_of(broker, 20)
    failing = watched(broker, clock)
    consumer, _ = consume(make_consumer, later, brokers=[failing], consume_thread_min=1)
    eventually(lambda: progress(consumer) == 20)
    assert sizes(failing) == [20]
    back = sent_back(broker)
    assert [message.body for message in back] == [b"%d" % n for n in range(20)]
    assert {message.reconsume_times for message in back} == {1}
    assert rates(consumer) == (0, 20)
    assert calls_counted(consumer) == 20


def test_each_goes_back_at_the_level_that_its_own_call_wanted(broker, make_consumer):
    queue_of(broker, 3)

    def answer(messages: Sequence[MessageExt], context: Any) -> Any:
        context.delay_level_when_next_consume = (1, 0, -1)[messages[0].queue_offset]
        return LATER

    consumer, _ = consume(make_consumer, answer, consume_thread_min=1)
    eventually(lambda: progress(consumer) == 3)
    assert [message.body for message in sent_back(broker, 1)] == [b"0"]
    assert [message.body for message in sent_back(broker, 3)] == [b"1"]
    dead = broker.view.get_message("%DLQ%g", 0, 0, 32).messages
    assert [message.body for message in dead] == [b"2"]


def test_failures_and_successes_of_a_pull_are_counted_apart(broker, make_consumer):
    queue_of(broker, 12)

    def every_third(messages: Sequence[MessageExt], context: Any) -> Any:
        return SUCCESS if messages[0].queue_offset % 3 else LATER

    consumer, _ = consume(make_consumer, every_third, consume_thread_min=1)
    eventually(lambda: progress(consumer) == 12)
    assert sorted(message.body for message in sent_back(broker)) == [b"0", b"3", b"6", b"9"]
    assert rates(consumer) == (8, 4)
    assert calls_counted(consumer) == 12


class Breaking(LocalFileOffsetStore):
    """An offset store as a user may write one: it breaks, once."""

    broke = False
    error: type[BaseException] = LookupError

    def update_offset(self, queue: MessageQueue, offset: int, increase_only: bool) -> None:
        if offset == 1 and not self.broke:
            self.broke = True
            raise self.error("no such table")
        super().update_offset(queue, offset, increase_only)


@pytest.mark.parametrize("error", [LookupError, SystemExit])
def test_an_offset_store_that_breaks_keeps_no_other_message_in_work(
    broker, make_consumer, scheduler, tmp_path, error
):
    queue_of(broker, 4)
    door = Door(3)
    store = Breaking("client", "g", tmp_path)
    store.error = error
    consumer, heard = consume_with(
        store, make_consumer, lambda messages, context: door(messages, context) and LATER
    )
    heard.wait_for(4)
    scheduler.advance(LATEST_MS)
    assert store.broke
    assert [message.body for message in sent_back(broker)] == [b"0", b"1", b"2"]
    assert in_work(consumer) == 1
    assert progress(consumer) == 3
    door.opened.set()


def consume_with(store, make_consumer, answer):
    """Make a consumer of one thread and a given offset store, and let it pull what is there."""
    heard = Heard(answer)
    config = ConsumerConfig(
        consume_thread_min=1, consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    )
    consumer = make_consumer(listener=heard, config=config, offset_store=store)
    consumer.start()
    turn(consumer)
    return consumer, heard


@pytest.mark.parametrize(
    "answers",
    [(SUCCESS, LATER, SUCCESS), (SUCCESS, LATER, LATER), (SUCCESS, LATER)],
    ids=["a success takes long", "a failure takes long", "the pull ends"],
)
def test_an_offset_store_that_breaks_in_a_thread_that_gives_back_costs_no_message(
    broker, make_consumer, clock, tmp_path, answers
):
    queue_of(broker, len(answers))
    pulled = threading.Event()

    def answer(messages: Sequence[MessageExt], context: Any) -> Any:
        assert pulled.wait(PATIENCE_S)
        offset = messages[0].queue_offset
        if offset == 2:
            clock.advance(2)
        return answers[offset]

    store = Breaking("client", "g", tmp_path)
    consumer, heard = consume_with(store, make_consumer, answer)
    pulled.set()
    eventually(lambda: store.broke)
    eventually(lambda: not consumer.consume_service.pool.waiting)
    assert progress(consumer) == len(answers)
    assert in_work(consumer) == 0
    failed = [b"%d" % n for n, status in enumerate(answers) if status is LATER]
    assert [message.body for message in sent_back(broker)] == failed
    assert len(heard.messages) == len(answers)


def test_a_thread_that_cannot_keep_what_was_refused_has_ended_all_the_same(
    broker, make_consumer, clock, monkeypatch
):
    queue_of(broker, 1)
    failing = FailingBroker(broker, clock)
    failing.always("send", DOWN)
    heard = Heard(refused_at(0))
    consumer = make_consumer(
        listener=heard, config=ConsumerConfig(consume_thread_min=1), brokers=[failing]
    )
    consumer.start()

    def no_thread(*_: Any) -> None:
        raise RuntimeError("the system gives no thread")

    batcher = consumer.consume_service._send_back_batcher
    monkeypatch.setattr(batcher, "_again_later", no_thread)
    turn(consumer)
    heard.wait_for(1)
    eventually(lambda: not consumer.consume_service.pool.waiting)
    assert in_work(consumer) == 1
    assert not consumer.process_queues[QUEUE].finished


def test_what_failed_in_an_earlier_millisecond_does_not_wait_for_the_rest(
    broker, make_consumer, clock
):
    queue_of(broker, 6)
    failing = watched(broker, clock)

    def slowly(messages: Sequence[MessageExt], context: Any) -> Any:
        if messages[0].queue_offset == 3:
            clock.advance(1)
        return LATER

    consumer, _ = consume(make_consumer, slowly, brokers=[failing], consume_thread_min=1)
    eventually(lambda: progress(consumer) == 6)
    assert sizes(failing) == [3, 1, 2]


def test_what_failed_does_not_wait_for_a_listener_that_takes_long(broker, make_consumer, scheduler):
    queue_of(broker, 6)
    door = Door(2)

    def answer(messages: Sequence[MessageExt], context: Any) -> Any:
        door(messages, context)
        return LATER

    consumer, heard = consume(make_consumer, answer, consume_thread_min=1)
    heard.wait_for(3)
    scheduler.advance(LATEST_MS - 1)
    assert sent_back(broker) == []
    assert progress(consumer) is None or progress(consumer) == 0
    scheduler.advance(1)
    assert [message.body for message in sent_back(broker)] == [b"0", b"1"]
    assert progress(consumer) == 2
    door.opened.set()
    eventually(lambda: progress(consumer) == 6)
    assert [message.body for message in sent_back(broker)] == [b"%d" % n for n in range(6)]
    assert in_work(consumer) == 0
    scheduler.advance(10 * LATEST_MS)
    assert len(sent_back(broker)) == 6


def test_a_consumer_that_ends_leaves_nothing_noted_behind(broker, make_consumer):
    queue_of(broker, 4)
    door = Door(3)
    consumer, heard = consume(
        make_consumer,
        lambda messages, context: door(messages, context) and LATER,
        consume_thread_min=1,
    )
    heard.wait_for(4)
    assert sent_back(broker) == []
    consumer.consume_service.shutdown(0)
    assert [message.body for message in sent_back(broker)] == [b"0", b"1", b"2"]
    door.opened.set()


def test_of_a_dropped_queue_nothing_that_was_noted_goes_back(broker, make_consumer, scheduler):
    queue_of(broker, 4)
    door = Door(3)
    consumer, heard = consume(
        make_consumer,
        lambda messages, context: door(messages, context) and LATER,
        consume_thread_min=1,
    )
    heard.wait_for(4)
    consumer.rebalance.process_queues[QUEUE].dropped = True
    scheduler.advance(LATEST_MS)
    door.opened.set()
    eventually(lambda: not consumer.consume_service.pool.waiting)
    assert sent_back(broker) == []


@pytest.mark.conformance("H3")
@pytest.mark.parametrize("outcome", [DOWN, LOST], ids=["down", "lost"])
def test_if_their_broker_does_not_answer_each_is_sent_anew(broker, make_consumer, clock, outcome):
    queue_of(broker, 5)
    failing = FailingBroker(broker, clock)
    failing.always("send_messages_back", outcome)
    consumer, _ = consume(make_consumer, later, brokers=[failing], consume_thread_min=1)
    eventually(lambda: progress(consumer) == 5)
    anew = [m for m in sent_back(broker) if m.get_property("RECONSUME_TIME") == "1"]
    assert [message.body for message in anew] == [b"%d" % n for n in range(5)]


@pytest.mark.conformance("E17", "H17")
def test_what_neither_way_takes_comes_again_and_the_others_are_done(
    broker, make_consumer, scheduler, clock
):
    queue_of(broker, 6)
    failing = FailingBroker(broker, clock)
    failing.always("send", DOWN)

    answer = refused_at(2)
    consumer, heard = consume(make_consumer, answer, brokers=[failing], consume_thread_min=1)
    eventually(lambda: in_work(consumer) == 1)
    assert [m.body for m in sent_back(broker)] == [b"0", b"1", b"3", b"4", b"5"]
    assert progress(consumer) == 2
    scheduler.advance(AGAIN_MS)
    eventually(lambda: progress(consumer) == 6)
    assert [message.body for message in heard.messages[6:]] == [b"2"]
    assert len(sent_back(broker)) == 5


def test_of_a_request_of_several_only_the_refused_ones_stay(
    broker, make_consumer, scheduler, clock
):
    queue_of(broker, 6)
    failing = FailingBroker(broker, clock)
    failing.always("send", DOWN)

    consumer, heard = consume(
        make_consumer,
        refused_at(1, 2),
        brokers=[failing],
        consume_thread_min=1,
        consume_message_batch_max_size=3,
    )
    eventually(lambda: in_work(consumer) == 2)
    assert [m.body for m in sent_back(broker)] == [b"0", b"3", b"4", b"5"]
    scheduler.advance(AGAIN_MS)
    eventually(lambda: progress(consumer) == 6)
    assert [message.body for message in heard.messages[6:]] == [b"1", b"2"]


def test_many_threads_give_back_everything_once(broker, make_consumer):
    count = 30
    queue_of(broker, count)
    consumer, heard = consume(make_consumer, later, consume_thread_min=8)
    eventually(lambda: progress(consumer) == count)
    assert sorted(int(message.body) for message in sent_back(broker)) == list(range(count))
    assert len(heard.messages) == count
    assert rates(consumer) == (0, count)


@pytest.mark.parametrize("odd", ["no number", None])
def test_a_level_that_is_none_is_the_trouble_of_its_own_message(broker, make_consumer, odd):
    queue_of(broker, 5)

    def answer(messages: Sequence[MessageExt], context: Any) -> Any:
        if messages[0].queue_offset == 2:
            context.delay_level_when_next_consume = odd
        return LATER

    consumer, _ = consume(make_consumer, answer, consume_thread_min=1)
    eventually(lambda: in_work(consumer) == 1)
    assert [m.body for m in sent_back(broker)] == [b"0", b"1", b"3", b"4"]
    assert progress(consumer) == 2


def survives(broker: Any) -> int | None:
    """The progress that another process would begin at if this one was killed now."""
    found = EmbeddedBroker.open(broker.view.root, read_only=True)
    with found:
        offset = found.query_consumer_offset("g", "T", 0).offset
    assert offset is None or isinstance(offset, int)
    return offset


@pytest.mark.parametrize("quick", [True, False])
def test_the_progress_of_what_was_given_back_survives_a_kill(broker, make_consumer, clock, quick):
    """Nothing is committed and nothing is pulled any more: what comes next is a kill."""
    queue_of(broker, 20)

    def answer(messages: Sequence[MessageExt], context: Any) -> Any:
        if not quick:
            clock.advance(50)
        return LATER

    consume(make_consumer, answer, consume_thread_min=1)
    eventually(lambda: survives(broker) == 20)
    assert len(sent_back(broker)) == 20


def test_what_took_too_long_and_was_given_back_survives_a_kill(broker, make_consumer, scheduler):
    queue_of(broker, 1)
    door = Door(0)
    _, heard = consume(make_consumer, door, resend_after_if_still_un_ack_ms=1_000)
    heard.wait_for(1)
    scheduler.advance(1_000)
    eventually(lambda: survives(broker) == 1)
    assert [message.body for message in sent_back(broker)] == [b"0"]
    door.opened.set()
