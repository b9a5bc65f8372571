"""Which held pulls are answered when: by what arrived, by the sweep, by time, by closing."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from broker.api.members import SubscriptionData
from broker.api.offsets import OffsetCommit
from broker.api.pull import PullRequest, PullResult, PullStatus
from broker.config import BrokerConfig
from broker.errors import TopicNotExistError
from broker.filter.subscription import parse_subscription
from broker.pull import pull_request_hold
from broker.pull.handoff_watchdog import LOOK_EVERY_S
from broker.pull.message_arrival import MessageArrivals
from broker.pull.pull_request_hold import IN_A_FLOW_MS, LOOK_IN_A_FLOW_MS, HeldPulls
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from storage.read.message_filter import MessageFilter
from storage.results import GetMessageStatus
from tests.support.broker_puppet import broker_puppet
from tests.support.consumers import eventually
from tests.support.recording_client import RecordingClient, consumer, heartbeat

WAIT = 10
_TRIES = 3
"""How often a time is taken: on a busy machine one of them may be long for other reasons."""
PULLED = PullResult(PullStatus.FOUND, 1, 0, 1, [], GetMessageStatus.FOUND)


class Answers:
    """Takes answers, from any thread."""

    def __init__(self) -> None:
        self.all: list[Any] = []
        self._more = threading.Condition()

    def __call__(self, answer: PullResult | Exception) -> None:
        with self._more:
            self.all.append(answer)
            self._more.notify_all()

    def wait(self, count: int = 1) -> list[Any]:
        with self._more:
            assert self._more.wait_for(lambda: len(self.all) >= count, WAIT)
        return self.all


def held(queue_id: int = 0, offset: int = 0, **more: Any) -> PullRequest:
    request = PullRequest("g", "T", queue_id, offset, suspend_timeout_ms=20_000)
    return request._replace(**more)


@pytest.fixture
def topic(broker):
    broker.update_topic(TopicConfig("T", 4, 4))
    return broker


@pytest.mark.conformance("D7", "D9")
def test_a_message_of_another_process_answers_in_milliseconds(topic):
    with broker_puppet(topic.view.root) as other:
        other.call("send", topic="warm", body="up")
        topic.update_topic(TopicConfig("T", 1, 1))
        took = []
        for offset in range(_TRIES):
            answers = Answers()
            topic.pull_async(held(offset=offset), answers)
            assert answers.all == []
            started = time.monotonic()
            other.call("send", topic="T", body="now")
            (result,) = answers.wait()
            took.append(time.monotonic() - started)
            assert [m.body for m in result.messages] == [b"now"]
        assert min(took) < 0.5


@pytest.mark.conformance("D7")
def test_what_can_be_answered_at_once_is_answered_in_the_callers_thread(topic):
    topic.send(Message("T", b"x"), 0)
    seen = []

    def answer(result: PullResult | Exception) -> None:
        seen.append((threading.current_thread(), result))

    topic.pull_async(held(), answer)
    topic.pull_async(held(3, suspend_timeout_ms=0), answer)
    topic.pull_async(held(topic="missing"), answer)
    assert {thread for thread, _ in seen} == {threading.current_thread()}
    assert [getattr(result, "pull_status", type(result)) for _, result in seen] == [
        PullStatus.FOUND,
        PullStatus.NO_NEW_MSG,
        TopicNotExistError,
    ]


@pytest.mark.conformance("D7", "D9")
def test_only_a_message_that_may_match_answers(topic):
    wanted, any_tag = Answers(), Answers()
    topic.pull_async(held(expression="A || B"), wanted)
    topic.pull_async(held(), any_tag)
    topic.send(Message("T", b"1", tags="C"), 0)
    assert [m.body for m in any_tag.wait()[0].messages] == [b"1"]
    topic.send(Message("T", b"2", tags="B"), 0)
    (result,) = wanted.wait()
    assert [m.body for m in result.messages] == [b"2"]
    assert result.next_begin_offset == 2


@pytest.mark.conformance("D9")
def test_a_pull_of_another_topic_is_not_kept_waiting_by_those_that_are_held_already(topic):
    topic.update_topic(TopicConfig("U", 1, 1))
    first, second = Answers(), Answers()
    topic.pull_async(held(), first)
    let_it_come_to_rest()
    topic.pull_async(held(topic="U"), second)
    let_it_come_to_rest()
    took = []
    for offset in range(1, _TRIES + 1):
        started = time.monotonic()
        topic.send(Message("U", b"x"), 0)
        assert second.wait()[0].pull_status is PullStatus.FOUND
        took.append(time.monotonic() - started)
        assert first.all == []
        second = Answers()
        topic.pull_async(held(topic="U", offset=offset), second)
        let_it_come_to_rest()
    assert min(took) < 0.5


def let_it_come_to_rest() -> None:
    """Give a thread time to fall asleep; either order must work."""
    threading.Event().wait(0.05)


class Quiet:
    """A log that says nothing, so that a test does the rounds itself."""

    def __init__(self) -> None:
        self._woken = threading.Event()

    def wait(self, known_log_end: int, timeout_ms: int, topics: Any = None) -> int:
        self._woken.wait(timeout_ms / 1000)
        self._woken.clear()
        return known_log_end

    def wake(self) -> None:
        self._woken.set()


class Noted(Quiet):
    """The same; notes for how long a waiter would sleep at most."""

    def __init__(self) -> None:
        super().__init__()
        self.end = 0
        self.timeouts_ms: list[int] = []

    def wait(self, known_log_end: int, timeout_ms: int, topics: Any = None) -> int:
        self.timeouts_ms.append(timeout_ms)
        super().wait(known_log_end, timeout_ms)
        return self.end


class Table:
    """A table of held pulls with a clock that stands still, over the queues of a store."""

    def __init__(self, broker: Any, log: Quiet, end: Callable[[], int] = lambda: 0) -> None:
        self.now = 1_000_000
        self.released: list[PullRequest] = []
        self.pulls = HeldPulls(
            lambda: broker.view,
            MessageArrivals(log, end),
            self._read,
            monotonic_ms=lambda: self.now,
        )

    def _read(self, request: PullRequest, tags: MessageFilter | None) -> PullResult:
        del tags
        self.released.append(request)
        return PULLED

    def hold(self, request: PullRequest, suspend_ms: int = 60_000) -> None:
        tags = parse_subscription(request.expression)
        self.pulls.hold(request, tags, lambda _: None, suspend_ms)


@pytest.fixture
def table(topic) -> Iterator[Table]:
    made = Table(topic, Quiet())
    yield made
    made.pulls.close()


@pytest.mark.conformance("D8")
def test_the_sweep_answers_whatever_the_subscription_if_the_queue_has_grown(topic, table):
    first, second = held(0, expression="A"), held(1, expression="A")
    table.hold(first)
    table.hold(second)
    topic.send(Message("T", b"1", tags="other"), 0)
    table.pulls.notify()
    assert table.released == []
    table.now += 4_999
    table.pulls.round(table.now)
    assert table.released == []
    table.now += 1
    table.pulls.round(table.now)
    assert table.released == [first]
    assert table.pulls.count == 1


@pytest.mark.conformance("D7", "D8")
def test_a_pull_is_answered_at_its_time_and_not_before(table):
    table.hold(held(0), 15_000)
    table.hold(held(1), 20_000)
    assert table.pulls.round(table.now) == 5_000
    table.now += 14_999
    assert table.pulls.round(table.now) == 1
    assert table.released == []
    table.now += 1
    assert table.pulls.round(table.now) == 4_999  # the sweep
    assert table.released == [held(0)]
    table.now += 5_000
    assert table.pulls.round(table.now) is None
    assert table.released == [held(0), held(1)]


def test_units_that_were_looked_at_are_not_looked_at_again(topic, table):
    table.hold(held(0, expression="A"))
    topic.send_column("T", [b"x"] * 2_500, 0, properties={"TAGS": "other"})
    table.pulls.notify()
    assert table.released == []
    ((_, (pull,)),) = table.pulls._snapshot()
    assert pull.observed == 2_500
    topic.send(Message("T", b"x", tags="A"), 0)
    table.pulls.notify()
    assert table.released == [held(0, expression="A")]


@pytest.mark.conformance("D10")
def test_without_long_polling_nothing_is_told_and_answers_come_after_a_second(open_broker):
    broker = open_broker(BrokerConfig(long_polling_enable=False, short_polling_time_mills=300))
    broker.update_topic(TopicConfig("T", 1, 1))
    answers = Answers()
    started = time.monotonic()
    broker.pull_async(held(), answers)
    broker.send(Message("T", b"x"))
    (result,) = answers.wait()
    assert time.monotonic() - started >= 0.29
    assert result.pull_status is PullStatus.FOUND


@pytest.mark.conformance("D12", "G7")
def test_a_commit_that_comes_along_is_taken_once_before_the_pull_is_held(topic):
    answers = Answers()
    topic.send(Message("T", b"0"), 0)
    topic.pull_async(held(0, 1, commit=OffsetCommit("T", 0, 1)), answers)
    assert topic.query_consumer_offset("g", "T", 0).offset == 1
    topic.update_consumer_offsets("g", [OffsetCommit("T", 0, 2)])  # the other entrance
    assert topic.query_consumer_offset("g", "T", 0).offset == 2
    topic.progress.move("g", {("T", 0): 0})
    topic.send(Message("T", b"1"), 0)
    assert len(answers.wait()[0].messages) == 1
    assert topic.query_consumer_offset("g", "T", 0).offset == 0


@pytest.mark.slow
def test_hundreds_of_held_pulls_have_one_thread_and_cause_no_wakeups(topic, open_broker):
    topic.update_topic(TopicConfig("T", 300, 300))
    answers = [Answers() for _ in range(300)]
    before = threading.active_count()
    for queue_id, answer in enumerate(answers):
        topic.pull_async(held(queue_id), answer)
    assert threading.active_count() <= before + 1
    assert topic._puller.held.count == 300
    thread = topic._puller.held._looks
    clock = time.pthread_getcpuclockid(thread.ident)
    busy = time.clock_gettime(clock)
    threading.Event().wait(1)  # nothing is waited for: this second is what is measured
    assert time.clock_gettime(clock) - busy < 0.1
    other = open_broker()
    for queue_id in (299, 0, 17):
        other.send(Message("T", b"%d" % queue_id), queue_id)
        assert [m.body for m in answers[queue_id].wait()[0].messages] == [b"%d" % queue_id]
    assert topic._puller.held.count == 297
    assert sum(len(answer.all) for answer in answers) == 3


def test_closing_answers_all_that_are_held(open_broker):
    broker = open_broker()
    broker.update_topic(TopicConfig("T", 2, 2))
    answers = Answers()
    for queue_id in (0, 1):
        broker.pull_async(held(queue_id), answers)
    blocked = Answers()
    thread = threading.Thread(target=lambda: blocked(broker.pull(held())), daemon=True)
    thread.start()
    deadline = time.monotonic() + WAIT
    while broker._puller.held.count < 3 and time.monotonic() < deadline:
        os.sched_yield()
    broker.close()
    thread.join(WAIT)
    assert [a.pull_status for a in answers.all + blocked.all] == [PullStatus.NO_NEW_MSG] * 3


@pytest.mark.parametrize("error", [ValueError, SystemExit])
def test_a_client_that_fails_to_take_its_answer_does_not_harm_others(topic, caplog, error):
    def fail(_: object) -> None:
        raise error("no")

    answers = Answers()
    topic.pull_async(held(), fail)
    topic.pull_async(held(), answers)
    topic.send(Message("T", b"x"), 0)
    assert answers.wait()[0].pull_status is PullStatus.FOUND
    assert "could not take the answer" in caplog.text


def test_a_wait_that_fails_does_not_end_the_thread(topic, monkeypatch):
    wait, calls = topic._arrivals.wait, iter(range(100))

    def fails_once(*arguments: object) -> int:
        if next(calls) == 0:
            raise OSError(24, "Too many open files")
        return int(wait(*arguments))

    monkeypatch.setattr(pull_request_hold, "AFTER_FAILURE_S", 0.01)
    monkeypatch.setattr(topic._arrivals, "wait", fails_once)
    answers = Answers()
    topic.pull_async(held(), answers)
    topic.send(Message("T", b"x"), 0)
    assert answers.wait()[0].pull_status is PullStatus.FOUND


def test_a_read_only_store_holds_pulls_too(topic, open_broker):
    topic.send(Message("T", b"0"), 0)
    reader = open_broker(read_only=True)
    answers = Answers()
    reader.pull_async(held(0, 1), answers)
    topic.send(Message("T", b"1"), 0)
    assert [m.body for m in answers.wait()[0].messages] == [b"1"]


class Slow:
    """An answer with more to do about it, which blocks until it may go on."""

    def __init__(self) -> None:
        self.begun, self.go_on, self.was_late, self.left = (threading.Event() for _ in range(4))
        self.thread = threading.current_thread()
        self.answered_at = self.late_at = 0.0

    def __call__(self, answer: PullResult | Exception | None = None) -> Any:
        if answer is not None:
            self.answered_at = time.monotonic()
            return self
        self.thread = threading.current_thread()
        self.begun.set()
        assert self.go_on.wait(WAIT)
        return None

    def late(self) -> None:
        self.late_at = time.monotonic()
        self.was_late.set()

    def leave(self) -> None:
        self.left.set()


def test_what_lasts_keeps_no_other_waiting(topic):
    slow, others = [Slow() for _ in range(3)], Answers()
    for queue_id, answer in enumerate(slow):
        topic.pull_async(held(queue_id), answer)
        topic.send(Message("T", b"x"), queue_id)
        assert answer.begun.wait(WAIT)
        assert answer.was_late.wait(WAIT)
    topic.pull_async(held(3), others)
    topic.send(Message("T", b"y"), 3)
    assert [m.body for m in others.wait()[0].messages] == [b"y"]
    assert [answer.thread.name for answer in slow] == ["held-pulls"] * 3
    for answer in slow:
        answer.go_on.set()
        answer.thread.join(WAIT)
        assert not answer.thread.is_alive(), "its place is taken"


def test_what_is_quick_is_done_by_the_same_thread_each_time(topic):
    threads = set()
    answers = [Slow() for _ in range(20)]
    for offset, quick in enumerate(answers):
        quick.go_on.set()
        topic.pull_async(held(0, offset), quick)
        topic.send(Message("T", b"x"), 0)
        assert quick.begun.wait(WAIT)
        threads.add(quick.thread)
    # Some are late on a machine that stood still meanwhile; a replaced thread is notified.
    eventually(lambda: len(threads) <= 1 + sum(quick.was_late.is_set() for quick in answers) < 20)


@pytest.mark.slow
def test_what_comes_while_the_watch_sleeps_is_watched_too(topic):
    once, again = Slow(), Slow()
    once.go_on.set()
    topic.pull_async(held(0), once)
    topic.send(Message("T", b"x"), 0)
    assert once.begun.wait(WAIT)
    eventually(lambda: topic._puller.held._watch._sleeps)
    topic.pull_async(held(0, 1), again)
    topic.send(Message("T", b"y"), 0)
    assert again.begun.wait(WAIT)
    assert again.was_late.wait(WAIT)
    assert again.late_at - again.answered_at > 0.9 * LOOK_EVERY_S, "not before its time"
    again.go_on.set()


def test_of_several_answers_at_once_all_but_one_are_left_to_others(topic, table):
    slow = [Slow(), Slow(), Slow()]
    table.pulls._looks = threading.current_thread()  # none of its own
    for queue_id, answer in enumerate(slow):
        table.pulls.hold(held(queue_id), None, answer, 60_000)
        topic.send(Message("T", b"x"), queue_id)
    assert table.pulls.notify() is slow[2]
    assert [answer.left.is_set() for answer in slow] == [True, True, False]


def test_who_always_finds_something_to_do_answers_others_at_their_time(topic, table):
    slow, late = Slow(), Answers()
    table.pulls._looks = threading.current_thread()  # none of its own
    table.pulls.hold(held(0), None, slow, 60_000)
    table.pulls.hold(held(1), None, late, 1_000)
    topic.send(Message("T", b"x"), 0)
    table.now += 1_000
    assert table.pulls._round_and_wait() is slow
    assert late.wait()


def test_closing_waits_for_nothing_that_may_block(open_broker):
    broker = open_broker()
    broker.update_topic(TopicConfig("T", 1, 1))
    slow, held_back = Slow(), Slow()
    broker.pull_async(held(0), slow)
    broker.send(Message("T", b"x"), 0)
    assert slow.begun.wait(WAIT)
    broker.pull_async(held(0, 1), held_back)
    broker.close()
    assert held_back.left.is_set()
    slow.go_on.set()
    slow.thread.join(WAIT)
    assert not slow.thread.is_alive()


@pytest.mark.parametrize("left", [1, 32, 33])
def test_while_messages_flow_to_few_queues_it_looks_often(topic, left):
    log = Noted()
    table = Table(topic, log, lambda: log.end)
    for queue_id in range(left + 1):
        table.hold(held(queue_id))
    eventually(lambda: log.timeouts_ms)
    assert log.timeouts_ms[-1] > LOOK_IN_A_FLOW_MS

    def often_after_a_look() -> bool:
        looks = len(log.timeouts_ms)
        log.end += 1
        log.wake()
        eventually(lambda: len(log.timeouts_ms) > looks)
        return log.timeouts_ms[-1] <= LOOK_IN_A_FLOW_MS

    assert not often_after_a_look(), "what came was for nobody here"
    topic.send(Message("T", b"x"), 0)
    assert often_after_a_look() == (left <= 32)
    table.now += IN_A_FLOW_MS
    log.wake()
    eventually(lambda: log.timeouts_ms[-1] > LOOK_IN_A_FLOW_MS)
    table.pulls.close()


def test_a_heartbeat_with_another_subscription_answers_the_pulls_by_the_former_one(topic):
    topic.connect("c", RecordingClient())

    def subscribe(version: int, expression: str = "A") -> None:
        tags = SubscriptionData("T", expression, sub_version=version)
        topic.heartbeat(heartbeat("c", consumer("g")._replace(subscriptions=(tags,))))

    subscribe(1)
    former, other = Answers(), Answers()
    topic.pull_async(held(client_id="c", sub_version=1, expression=None), former)
    topic.pull_async(held(1, client_id="d", sub_version=1, expression=None), other)
    subscribe(2)
    assert topic._puller.held.count == 2
    subscribe(3, "A || B")
    assert former.wait()[0].pull_status is PullStatus.NO_NEW_MSG
    assert topic._puller.held.count == 1
