"""The broker's timed work: in one process at a time, and in another as soon as that one dies."""

from __future__ import annotations

import os
import threading
import time

import pytest

from broker.api.offsets import OffsetCommit
from broker.api.pull import PullRequest
from broker.config import BrokerConfig
from broker.embedded import timed_services
from broker.embedded.broker import _OwnWork
from broker.embedded.timed_services import TimedServiceThread
from storage.configs.consumer_offsets import load_consumer_offsets
from storage.configs.topics import TopicConfig
from storage.coordination.leadership import BROKER_SERVICES, Leadership
from storage.format.message import Message
from tests.support.broker_puppet import broker_puppet
from tests.support.tries import best_below

WAIT = 10


def eventually(happened) -> bool:
    deadline = time.monotonic() + WAIT
    while not happened():
        if time.monotonic() > deadline:
            return False
        os.sched_yield()
    return True


class Service:
    """Notes its ticks; the next one is due when the test says."""

    def __init__(self, pause_ms: int = 10_000) -> None:
        self.ticks: list[int] = []
        self.pause_ms = pause_ms
        self.ticked = threading.Semaphore(0)
        self.fails = False

    def tick(self, now_ms: int) -> int:
        self.ticks.append(now_ms)
        self.ticked.release()
        if self.fails:
            raise ValueError("broken")
        return now_ms + self.pause_ms


@pytest.mark.crash
@pytest.mark.conformance("H12")
def test_another_process_takes_over_at_once_when_the_elected_one_is_killed(open_broker):
    best_below(1, lambda: take_over(open_broker()))


def take_over(broker):
    """Have the elected process killed; the seconds until the broker is elected."""
    with broker_puppet(broker.view.root) as other:
        other.call("serve")
        assert eventually(lambda: other.call("is_elected"))
        broker.start_services()
        broker.send(Message("T", b"x", delay_time_level=1))
        threading.Event().wait(0.05)  # long enough to be elected by mistake
        assert not broker.elected
        killed = time.monotonic()
        other.kill()
        assert eventually(lambda: broker.elected)
        took = time.monotonic() - killed
        assert eventually(
            lambda: (
                broker.topic("T") and sum(broker.max_offset("T", queue_id) for queue_id in range(4))
            )
        )
        broker.close()
        return took


@pytest.mark.slow
def test_a_broker_that_only_writes_does_not_keep_another_from_delivering(open_broker):
    writer, broker = open_broker(), open_broker()
    writer.send(Message("T", b"x"))
    assert eventually(lambda: writer.store.services.elected)  # of the store's own services
    broker.start_services()
    assert eventually(lambda: broker.elected)
    assert not writer.elected


def test_closing_hands_over_after_the_last_word(tmp_path):
    (tmp_path / "rmqctl").mkdir()
    order: list[object] = []
    leader = Leadership(tmp_path, BROKER_SERVICES)
    first = TimedServiceThread(
        [Service()], leader, now=lambda: 0, before_handover=lambda: order.append("saved")
    )
    first.start()
    assert eventually(lambda: first.elected)
    second = Leadership(tmp_path, BROKER_SERVICES)
    waiting = threading.Thread(target=lambda: order.append(second.wait()))
    waiting.start()
    first.stop()
    waiting.join(WAIT)
    assert order == ["saved", True]
    second.close()


def test_a_tick_that_does_not_end_holds_up_no_closing_and_no_other_process_takes_over(
    tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(timed_services, "MAX_WAIT_S", 0.05)
    (tmp_path / "rmqctl").mkdir(exist_ok=True)
    begun, go_on = threading.Event(), threading.Event()

    class Stuck:
        def tick(self, now_ms: int) -> int:
            begun.set()
            go_on.wait()
            return now_ms + 10_000

    said = []
    leader = Leadership(tmp_path, BROKER_SERVICES)
    thread = TimedServiceThread(
        [Stuck()], leader, now=lambda: 0, before_handover=lambda: said.append("handed over")
    )
    thread.start()
    assert begun.wait(WAIT)
    start = time.monotonic()
    thread.stop()
    assert time.monotonic() - start < 3
    assert "Stuck has not ended" in caplog.text
    assert leader.elected
    assert said == []
    go_on.set()
    assert eventually(lambda: not leader.elected)


def test_who_was_never_elected_ends_without_waiting(tmp_path):
    (tmp_path / "rmqctl").mkdir()
    holder = Leadership(tmp_path, BROKER_SERVICES)
    assert holder.wait()
    service = Service()
    never = TimedServiceThread(
        [service],
        Leadership(tmp_path, BROKER_SERVICES),
        now=lambda: 0,
        before_handover=lambda: service.ticks.append(-1),
    )
    never.start()
    never.stop()
    holder.close()
    third = Leadership(tmp_path, BROKER_SERVICES)
    assert third.wait()  # the one that gave up does not keep it
    third.close()
    assert service.ticks == []


def test_services_are_called_when_they_are_due_although_one_fails(caplog):
    now = [1_000]
    quick, slow, broken = Service(10), Service(100), Service()
    broken.fails = True
    thread = TimedServiceThread([quick, slow, broken], None, now=lambda: now[0])
    assert thread.run_due() == 1_010
    for now[0] in (1_005, 1_010, 1_100, 10_999, 11_000):
        thread.run_due()
    assert quick.ticks == [1_000, 1_010, 1_100, 10_999]
    assert slow.ticks == [1_000, 1_100, 10_999]
    assert broken.ticks == [1_000, 11_000]
    assert "broken" in caplog.text
    now[0] = 500  # the clock was moved back by far: no wait for the old time
    quick.pause_ms = 100_000
    now[0] = 12_000
    thread.run_due()
    now[0] = 13_000
    thread.run_due()
    assert quick.ticks[-2:] == [12_000, 13_000]


@pytest.mark.conformance("G8", "A17")
def test_progress_that_came_with_pulls_reaches_the_brokers_file(open_broker):
    broker = open_broker(BrokerConfig(flush_consumer_offset_interval_ms=50))
    broker.update_topic(TopicConfig("T", 1, 1))
    broker.send(Message("T", b"x"))
    broker.start_services()
    broker.pull(PullRequest("g", "T", 0, 0, commit=OffsetCommit("T", 0, 1)))
    assert eventually(lambda: load_consumer_offsets(broker.view.root) == {"T@g": {0: 1}})


@pytest.mark.conformance("G8", "A17")
def test_progress_is_written_each_five_seconds_unless_set(open_broker):
    assert _OwnWork(open_broker()).tick(7) == 5_007
    assert BrokerConfig().flush_delay_offset_interval_ms == 10_000
    assert _OwnWork(open_broker(BrokerConfig(flush_consumer_offset_interval_ms=50))).tick(7) == 57


def test_nothing_runs_by_itself_before_it_is_started(open_broker):
    broker = open_broker()
    names = {thread.name for thread in threading.enumerate()}
    broker.send(Message("T", b"x"))
    broker.pull(PullRequest("g", "T", 0, 0))
    assert {thread.name for thread in threading.enumerate()} - names <= {"flush"}
    broker.start_services()
    broker.start_services()
    running = [thread.name for thread in threading.enumerate() if thread.name == "timed-services"]
    assert len(running) == 3
