"""The broker's locks on orderly queues: no member keeps one without its queue."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from broker.api.offsets import ConsumeFromWhere
from client.consumer.consumer_config import ConsumerConfig
from client.listener.listener import ConsumeOrderlyStatus
from client.listener.process_queue import ProcessQueue
from client.offset_store.local_offset_store import LocalFileOffsetStore
from client.rebalance.allocate import AllocateAveragely
from client.runtime.client_config import ClientConfig
from storage.format.message import MessageQueue
from tests.support.consumers import Heard, eventually, fill, rebalance, turn
from tests.support.consuming import QUEUE, Door, locked_elsewhere, queue_of
from tests.support.failing_broker import DOWN, FailingBroker

SUCCESS = ConsumeOrderlyStatus.SUCCESS
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


@pytest.fixture
def make_member(make_consumer):
    """Make orderly members of the group; of one queue, whose name sorts first has it."""

    def make(name: str, answer=None, *, brokers=None, offset_store=None, **settings):
        more = {} if brokers is None else {"brokers": brokers}
        consumer = make_consumer(
            client_config=ClientConfig(instance_name=name),
            config=ConsumerConfig(**settings),
            offset_store=offset_store,
            **more,
        )
        heard = Heard(answer or (lambda messages, context: SUCCESS))
        consumer.register_message_listener_orderly(heard)
        return consumer, heard

    return make


def has_lock(consumer) -> bool:
    """Whether no other client gets the lock of the queue."""
    broker = consumer.instance.routes.broker("broker-a")
    with locked_elsewhere(getattr(broker, "broker", broker), QUEUE) as gotten:
        return not gotten


@pytest.mark.conformance("F3")
def test_a_queue_that_is_locked_and_not_taken_after_all_is_let_go_of(broker, clock, make_member):
    queue_of(broker, 1)
    failing = FailingBroker(broker, clock)
    failing.plan("query_consumer_offset", DOWN)
    consumer, heard = make_member("b", brokers=[failing])
    consumer.start()
    rebalance(consumer)
    assert QUEUE not in consumer.process_queues
    assert not has_lock(consumer)
    turn(consumer)
    assert has_lock(consumer)
    heard.wait_for(1)


class Refusing(LocalFileOffsetStore):
    """A store of the user's own: its errors are none of ours."""

    def __init__(self, folder: Path) -> None:
        super().__init__("client", "g", folder)
        self.refused: set[str] = set()
        self.error: type[BaseException] = ValueError

    def _refuse(self, method: str, queue: MessageQueue) -> None:
        if method in self.refused and queue == QUEUE:
            raise self.error(f"{method}: the backend is down")

    def read_offset(self, queue, read_type):
        self._refuse("read_offset", queue)
        return super().read_offset(queue, read_type)

    def remove_offset(self, queue):
        self._refuse("remove_offset", queue)
        super().remove_offset(queue)

    def persist(self, queue):
        self._refuse("persist", queue)
        super().persist(queue)


@pytest.mark.parametrize("error", [ValueError, SystemExit])
@pytest.mark.parametrize("method", ["read_offset", "remove_offset"])
def test_a_queue_is_let_go_of_whatever_error_a_store_of_the_users_own_raises(
    broker, make_member, tmp_path, caplog, method, error
):
    fill(broker, 2, queues=2)
    store = Refusing(tmp_path / "offsets")
    store.error = error
    store.refused.add(method)
    consumer, heard = make_member(
        "b", offset_store=store, consume_from_where=FIRST, pull_threshold_for_topic=800
    )
    consumer.start()
    turn(consumer)
    heard.wait_for(1)
    assert [m.queue_id for m in heard.messages] == [1]
    assert QUEUE not in consumer.process_queues
    assert not has_lock(consumer)
    assert f"{method}: the backend is down" in caplog.text
    (member,) = broker.consumer_connection("g")
    assert [*member.consumer.queues] == consumer.rebalance.queues(), "brokers know its queues"
    taken = len(consumer.process_queues)
    assert consumer.pull_loop.flow_control.pull_threshold_for_queue == 800 // taken
    store.refused.clear()
    turn(consumer)
    heard.wait_for(2)
    assert has_lock(consumer)


@pytest.mark.parametrize("error", [ValueError, SystemExit])
def test_a_queue_that_a_store_of_the_users_own_does_not_let_go_of_holds_up_no_other(
    broker, make_member, tmp_path, caplog, error
):
    fill(broker, 2, queues=2)
    store = Refusing(tmp_path / "offsets")
    store.error = error
    consumer, heard = make_member("b", offset_store=store, consume_from_where=FIRST)
    consumer.start()
    turn(consumer)
    heard.wait_for(2)
    store.refused.add("persist")
    consumer.unsubscribe("T")
    rebalance(consumer)
    assert [queue for queue in consumer.process_queues if queue.topic == "T"] == [QUEUE]
    assert "persist: the backend is down" in caplog.text
    assert has_lock(consumer), "its progress is not stored yet"
    store.refused.clear()
    rebalance(consumer)
    assert QUEUE not in consumer.process_queues
    assert not has_lock(consumer)


@pytest.mark.conformance("F3", "G12")
def test_a_queue_that_is_reset_while_another_member_comes_is_let_go_of(broker, make_member):
    queue_of(broker, 3)
    first, heard = make_member("b")
    first.start()
    turn(first)
    heard.wait_for(3)
    newcomer, other = make_member("a")
    newcomer.start()
    broker.progress.move("g", {("T", 0): 1})
    first.rules.begin_anew({QUEUE: 1})
    rebalance(first)
    assert QUEUE not in first.process_queues
    turn(newcomer)
    other.wait_for(2)
    assert [m.queue_offset for m in other.messages] == [1, 2]


@pytest.mark.conformance("F3", "C13")
def test_queues_of_a_topic_that_is_wanted_no_more_are_let_go_of(broker, make_member):
    queue_of(broker, 1)
    consumer, heard = make_member("a")
    consumer.start()
    turn(consumer)
    heard.wait_for(1)
    assert has_lock(consumer)
    consumer.unsubscribe("T")
    rebalance(consumer)
    assert QUEUE not in consumer.process_queues
    assert not has_lock(consumer)


@pytest.mark.conformance("F3")
def test_a_queue_that_was_given_up_meanwhile_is_not_locked_again(broker, make_member):
    queue_of(broker, 1)
    consumer, heard = make_member("b")
    consumer.start()
    turn(consumer)
    heard.wait_for(1)
    newcomer, _ = make_member("a")
    newcomer.start()
    rebalance(consumer)
    assert not consumer.lock_queue(QUEUE), "what a task does that has found its lock too old"
    consumer.lock_all_queues()
    rebalance(newcomer)
    assert QUEUE in newcomer.process_queues


@pytest.mark.conformance("F3")
def test_the_refresh_of_locks_waits_for_a_rebalance(broker, clock, make_member):
    """Or it would lock again, for good, what the rebalance is about to release."""
    queue_of(broker, 1)
    failing = FailingBroker(broker, clock)
    consumer, heard = make_member("b", brokers=[failing])
    consumer.start()
    turn(consumer)
    heard.wait_for(1)
    failing.always("lock_queues", None)
    refreshing = threading.Thread(target=consumer.lock_all_queues)
    with consumer.rebalance.lock:
        refreshing.start()
        refreshing.join(0.2)
        assert failing.called("lock_queues") == 0
    refreshing.join()
    assert failing.called("lock_queues") == 1


@pytest.mark.slow
@pytest.mark.conformance("F3")
def test_a_queue_that_comes_back_is_not_let_go_of_by_the_delayed_unlock(
    broker, make_member, scheduler
):
    queue_of(broker, 3)
    door = Door(1, answer=SUCCESS)
    first, heard = make_member("b", door, unlock_delay_time_mills=20_000)
    first.start()
    turn(first)
    heard.wait_for(2)
    newcomer, _ = make_member("a")
    newcomer.start()
    rebalance(first)
    door.opened.set()
    eventually(lambda: not first.consume_service.pool.waiting)
    rebalance(first)
    assert QUEUE not in first.process_queues
    newcomer.shutdown()
    turn(first)
    heard.wait_for(3)
    scheduler.advance(20_000)
    assert has_lock(first)


@pytest.mark.slow
@pytest.mark.conformance("F7", "C6")
def test_a_queue_in_work_is_given_away_as_soon_as_its_listener_has_ended(
    broker, make_member, monkeypatch
):
    queue_of(broker, 3)
    door = Door(1, answer=SUCCESS)
    first, heard = make_member("b", door)
    first.start()
    turn(first)
    heard.wait_for(2)
    newcomer, other = make_member("a")
    newcomer.start()
    asked = threading.Event()
    monkeypatch.setattr(first, "rebalance_immediately", asked.set)
    rebalance(first)
    assert QUEUE in first.process_queues, "in work"
    assert not asked.is_set()
    door.opened.set()
    assert asked.wait(20), "the next round is not before 20 s"
    rebalance(first)
    turn(newcomer)
    other.wait_for(1)
    assert [m.queue_offset for m in other.messages] == [2]


@pytest.mark.slow
@pytest.mark.conformance("F7", "C8")
def test_a_queue_that_could_not_be_given_away_and_is_ours_again_is_consumed_on(
    broker, make_member, scheduler
):
    queue_of(broker, 3)
    door = Door(1, answer=SUCCESS)
    first, heard = make_member("b", door)
    first.start()
    turn(first)
    heard.wait_for(2)
    newcomer, _ = make_member("a")
    newcomer.start()
    rebalance(first)
    newcomer.shutdown()
    rebalance(first)
    assert first.process_queues[QUEUE].dropped, "still in work"
    door.opened.set()
    eventually(lambda: not first.consume_service.pool.waiting)
    turn(first)
    heard.wait_for(3)
    assert [m.queue_offset for m in heard.messages] == [0, 1, 2]


class Waiting(AllocateAveragely):
    """Averagely, when it is let."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.let = threading.Event()

    def allocate(self, group, client_id, queues, client_ids):
        self.asked.set()
        assert self.let.wait(20)
        return super().allocate(group, client_id, queues, client_ids)


@pytest.mark.conformance("B4", "F3")
def test_a_rebalance_under_way_leaves_no_queue_behind_a_shutdown(
    broker, make_consumer, make_member
):
    fill(broker, 1, queues=1)
    strategy = Waiting()
    consumer, _ = make_member("a", allocate_message_queue_strategy=strategy)
    consumer.start()
    another = make_consumer("other", client_config=ClientConfig(instance_name="a"))
    another.start()
    assert another.instance is consumer.instance, "which goes on, and may lock queues"
    round_under_way = threading.Thread(target=rebalance, args=(consumer,))
    round_under_way.start()
    assert strategy.asked.wait(20)
    leaving = threading.Thread(target=consumer.shutdown)
    leaving.start()
    leaving.join(0.2)
    strategy.let.set()
    leaving.join()
    round_under_way.join()
    assert consumer.process_queues == {}
    assert not has_lock(consumer)


def test_a_rebalance_that_outlives_a_shutdown_locks_nothing(broker, make_consumer, make_member):
    """The shutdown does not wait for it any longer; the client goes on, for another group."""
    fill(broker, 1, queues=1)
    strategy = Waiting()
    consumer, _ = make_member("a", allocate_message_queue_strategy=strategy)
    consumer.start()
    another = make_consumer("other", client_config=ClientConfig(instance_name="a"))
    another.start()
    round_under_way = threading.Thread(target=rebalance, args=(consumer,))
    round_under_way.start()
    assert strategy.asked.wait(20)
    consumer.shutdown()
    assert round_under_way.is_alive()
    strategy.let.set()
    round_under_way.join()
    assert another.instance is consumer.instance
    assert consumer.process_queues == {}
    assert not has_lock(consumer)


def test_queues_that_were_taken_are_pulled_though_the_next_one_fails(
    broker, make_consumer, monkeypatch
):
    fill(broker, 4, queues=2)
    heard = Heard()
    consumer = make_consumer(listener=heard)
    consumer.start()
    compute = consumer.rules.compute_pull_from_where

    def fails_for_the_second(queue: MessageQueue) -> int:
        if queue.queue_id == 1:
            raise RuntimeError("a store of the user's own")
        return int(compute(queue))

    monkeypatch.setattr(consumer.rules, "compute_pull_from_where", fails_for_the_second)
    turn(consumer)
    eventually(lambda: heard.bodies)
    assert {m.queue_id for m in heard.messages} == {0}


def busy(broker, make_member, queues: int, listen):
    """Start a member that has all queues, each of them in a call of ``listen``; and a newcomer
    that gets the first half of them."""
    fill(broker, queues, queues=queues)
    first, heard = make_member("b", listen, consume_from_where=FIRST)
    first.start()
    turn(first)
    heard.wait_for(queues)
    newcomer, _ = make_member("a")
    newcomer.start()
    return first, [MessageQueue("T", "broker-a", n) for n in range(queues)]


def test_queues_in_work_that_are_given_away_together_are_all_dropped_first(broker, make_member):
    """So their listeners end beside each other, not each in the second of its own queue."""
    going: dict[MessageQueue, ProcessQueue] = {}

    def until_all_are_dropped(messages, context):
        eventually(lambda: going and all(one.dropped for one in going.values()))
        return SUCCESS

    first, queues = busy(broker, make_member, 8, until_all_are_dropped)
    going.update({queue: first.process_queues[queue] for queue in queues[:4]})
    rebalance(first)
    assert [queue for queue in queues if queue in first.process_queues] == queues[4:]


@pytest.mark.slow
def test_a_round_waits_a_second_for_all_queues_in_work_together_and_the_next_ones_not(
    broker, make_member
):
    """Meanwhile no lock is refreshed, and no kept queue goes on after a failure."""
    opened = threading.Event()
    first, queues = busy(broker, make_member, 12, lambda messages, context: opened.wait(60))
    try:
        rounds = []
        for _ in range(3):
            began = time.monotonic()
            rebalance(first)
            rounds.append(time.monotonic() - began)
        going = [first.process_queues[queue] for queue in queues[:6]]
        assert [one.try_unlock_times for one in going] == [3] * 6, "each was tried"
        assert sum(rounds) < 4, "six seconds in each round before"
    finally:
        opened.set()
