"""The pull thread and the rebalance thread of a client."""

from __future__ import annotations

import sys
import threading

import pytest

from client.listener.process_queue import ProcessQueue
from client.runtime.pull_service import PullRequest, PullService
from client.runtime.rebalance_service import RebalanceService
from storage.format.message import MessageQueue
from tests.support.consumers import eventually
from tests.support.manual_time import ManualScheduler


def request(queue_id: int = 0, group: str = "g") -> PullRequest:
    return PullRequest(group, MessageQueue("T", "broker-a", queue_id), ProcessQueue(), 0)


class Puller:
    """Notes its pull requests, and their threads."""

    def __init__(self, error: type[BaseException] = RuntimeError) -> None:
        self._error = error
        self.pulled: list[int] = []
        self.threads: set[str] = set()
        self.handed_over: list[int] = []

    def hand_over(self) -> None:
        self.handed_over.append(len(self.pulled))
        raise self._error("no thread can be started")

    def pull_message(self, request: PullRequest) -> None:
        self.pulled.append(request.message_queue.queue_id)
        self.threads.add(threading.current_thread().name)
        if request.message_queue.queue_id == 13:
            raise self._error("unlucky")


@pytest.mark.conformance("B17")
def test_requests_are_pulled_at_once_or_after_their_delay(scheduler: ManualScheduler) -> None:
    puller = Puller()
    service = PullService("pulls", lambda _: puller, scheduler)
    service.execute_pull_request_later(request(2), 50)
    service.execute_pull_request_immediately(request(1))
    assert service.run_once()
    assert not service.run_once(), "the other one is not due"
    scheduler.advance(49)
    assert not service.run_once()
    scheduler.advance(1)
    assert service.run_once()
    assert puller.pulled == [1, 2]


@pytest.mark.conformance("B16")
@pytest.mark.parametrize("error", [RuntimeError, SystemExit])
def test_one_thread_pulls_for_all_queues_and_survives_what_goes_wrong(
    scheduler: ManualScheduler, caplog: pytest.LogCaptureFixture, error: type[BaseException]
) -> None:
    caplog.set_level("INFO")
    puller = Puller(error)
    service = PullService("pulls", {"g": puller}.get, scheduler)
    service.start()
    service.start()
    service.execute_pull_request_immediately(request(1, group="unknown"))
    for queue_id in (13, 2, 3):
        service.execute_pull_request_immediately(request(queue_id))
    eventually(lambda: puller.handed_over[-1:] == [3])
    service.shutdown()
    assert puller.pulled == [13, 2, 3]
    assert puller.threads == {"pulls"}
    assert puller.handed_over[-1] == 3, "what was pulled may lie until the thread says it rests"
    assert "what was pulled cannot be handed over" in caplog.text
    assert "no consumer of the group, pull request is dropped" in caplog.text
    assert not any(thread.name == "pulls" for thread in threading.enumerate())


@pytest.mark.conformance("B15")
def test_a_rebalance_comes_with_each_period_and_at_once_when_it_is_asked_for() -> None:
    rounds = threading.Semaphore(0)
    often = RebalanceService("often", 5, lambda: rounds.release())
    often.start()
    for _ in range(3):
        assert rounds.acquire(timeout=20), "the period is over"
    often.shutdown()
    seldom = RebalanceService("seldom", 20_000, lambda: rounds.release())
    while rounds.acquire(blocking=False):
        pass
    seldom.start()
    assert not rounds.acquire(blocking=False)
    seldom.wakeup()
    assert rounds.acquire(timeout=10), "far sooner than its period"
    seldom.shutdown()
    assert not any(thread.name in ("often", "seldom") for thread in threading.enumerate())


@pytest.mark.conformance("C16")
@pytest.mark.parametrize("error", [RuntimeError, SystemExit])
def test_wake_ups_during_a_round_lead_to_one_more_and_errors_end_nothing(
    caplog: pytest.LogCaptureFixture, error: type[BaseException]
) -> None:
    rounds: list[int] = []

    def divide() -> None:
        rounds.append(len(rounds))
        if len(rounds) == 1:
            for _ in range(3):
                service.wakeup()
        raise error("broken")

    service = RebalanceService("rebalance", 20_000, divide)
    service.wakeup()
    service.start()
    eventually(lambda: len(rounds) == 2)
    assert not service.wanted
    service.shutdown()
    assert rounds == [0, 1]
    assert caplog.text.count("a rebalance failed") == 2


@pytest.mark.parametrize("interval_ms", [10**13, sys.maxsize])
def test_an_interval_beyond_all_waits_still_takes_wake_ups(interval_ms: int) -> None:
    rounds = threading.Semaphore(0)
    service = RebalanceService("seldom", interval_ms, rounds.release)
    service.start()
    for _ in range(3):
        service.wakeup()
        assert rounds.acquire(timeout=10)
    service.shutdown()
