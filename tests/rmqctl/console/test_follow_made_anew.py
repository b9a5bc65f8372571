"""Following a topic whose queues are made anew, or lose messages that wait to be looked at, and
the time that it leaves to other work."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from rmqctl.console.looks import walks
from rmqctl.console.looks.look import Place, Source
from storage.clock import now_ms
from storage.config import SMALL_STORE
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from tests.support.cli import run


class Following:
    """A look that goes on; each round gives the bodies of its rows."""

    def __init__(self, store, *filters):
        self.notices: list[str] = []
        self.advanced: list[Any] = []
        self._broker = EmbeddedBroker.open(store, read_only=True)
        self.advances: list[Callable[[Any], object]] = [self.advanced.append]
        source = Source(self._broker, 0, self.notices.append, {}, self._advance)
        self._rows: Any = walks.FOLLOW.read(source, Place("follow", ("orders", "*", *filters)))
        self.round()

    def _advance(self, progress):
        for take in self.advances:
            take(progress)

    def round(self):
        bodies = []
        while (row := next(self._rows)) is not None:
            bodies.append(row.body)
        return bodies

    def rounds(self, count):
        """Rounds until so many rows have come."""
        bodies = []
        for _ in range(40):
            bodies += self.round()
            if len(bodies) >= count:
                break
        return bodies

    def close(self):
        self._rows.close()
        self._broker.close()


@pytest.fixture
def orders(tmp_path):
    """A store with a queue of 10 messages."""
    root = tmp_path / "s"
    create_store(root, SMALL_STORE.with_(mapped_file_size_commit_log=8192))
    with EmbeddedBroker.open(root) as broker:
        broker.update_topic(TopicConfig("orders", 1, 1))
    send(root, *(f"old {n}" for n in range(10)))
    return root


def send(root, *bodies):
    with EmbeddedBroker.open(root) as broker:
        for body in bodies:
            broker.send(Message("orders", body.encode()), 0)


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, 10, 12])
def test_all_messages_of_a_topic_that_was_made_anew_are_shown_and_counted(orders, count):
    following = Following(orders)
    send(orders, "one more")
    assert following.rounds(1) == ["one more"]
    assert run("topic", "delete", "orders", "--confirm", "orders", "--yes", "-S", orders).code == 0
    with EmbeddedBroker.open(orders) as broker:
        broker.update_topic(TopicConfig("orders", 1, 1))
    new = [f"new {n}" for n in range(count)]
    send(orders, *new)
    assert following.rounds(count) == new
    assert following.notices == ["queue 0 of orders was made anew: all its messages are new"]
    assert following.advanced[-1].total == following.advanced[-1].done == count + 1
    assert min(progress.total for progress in following.advanced) >= 0
    following.close()


@pytest.mark.slow
def test_messages_that_are_deleted_while_they_wait_behind_a_filter_are_counted(orders, monkeypatch):
    monkeypatch.setattr(walks, "_AT_ONCE", 1)
    following = Following(orders, "--where 'queue_id = 0'")
    send(orders, *(f"{n} {'x' * 1000}" for n in range(12)))
    assert following.rounds(1) == ["0 " + "x" * 1000]
    later = now_ms() + 7_200_000
    with EmbeddedBroker.open(orders, clock=lambda: later) as broker:
        assert broker.store is not None
        while broker.store.clean(manual=True, reserved_ms=0).log_files:
            pass
        low, high = broker.min_offset("orders", 0), broker.max_offset("orders", 0)
    assert 11 < low < high
    bodies = following.rounds(high - low)
    assert len(bodies) == high - low
    last = following.advanced[-1]
    assert (last.total, last.done, last.left_out) == (12, 1 + high - low, low - 11)
    following.close()


@pytest.fixture
def naps(monkeypatch):
    """The seconds of each sleep; none is slept."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    return slept


def test_the_time_that_a_round_was_held_is_no_work(orders, naps):
    following = Following(orders)
    held = [True]

    def hold(progress):
        if progress.total and held:  # before the rows, as p holds the reader
            held.clear()
            threading.Event().wait(1)

    following.advances.append(hold)
    send(orders, "one more")
    assert following.rounds(1) == ["one more"]
    assert not held
    following.round()
    assert 0 < sum(naps) < 1
    following.close()


def test_after_a_long_round_it_can_be_stopped_within_its_pause(orders, naps, monkeypatch):
    following = Following(orders)
    seconds = iter(range(0, 10_000, 1_000))
    monkeypatch.setattr(time, "thread_time", lambda: next(seconds))
    send(orders, "one more")
    assert following.rounds(1) == ["one more"]
    before = len(following.advanced)
    following.round()
    assert sum(naps) == walks._LONGEST_PAUSE_S
    assert max(naps) <= 0.25
    assert len(following.advanced) - before >= len(naps)
    following.close()
