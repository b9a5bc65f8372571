"""Members of a group in several processes on one store: sharing, dying, being reset."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from broker.embedded.broker import EmbeddedBroker
from storage.config import SMALL_STORE
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from storage.store import MessageStore
from tests.support.consumer_puppet import consumer_puppet
from tests.support.consumers import eventually, fill
from tests.support.tries import best_below

pytestmark = [pytest.mark.crash, pytest.mark.slow]

QUEUES = 8
TAKE_OVER_S = 1.5


@contextmanager
def broker_of_a_new_store(root: Path) -> Iterator[EmbeddedBroker]:
    MessageStore.create(root, SMALL_STORE)
    with EmbeddedBroker.open(root) as broker:
        broker.update_topic(TopicConfig("T", QUEUES, QUEUES))
        yield broker


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def real_broker(root: Path) -> Iterator[EmbeddedBroker]:
    with broker_of_a_new_store(root) as broker:
        yield broker


def send_one_a_queue(broker: EmbeddedBroker, count: int = QUEUES) -> None:
    for n in range(count):
        broker.send(Message("T", b"%d" % n), n % QUEUES)


@pytest.mark.conformance("A7", "A8", "C7", "G6", "B14")
def test_two_processes_share_a_group_and_two_groups_both_get_everything(root, real_broker):
    fill(real_broker, 80, queues=QUEUES)
    with (
        consumer_puppet(root, "g", "a") as one,
        consumer_puppet(root, "g", "b") as two,
        consumer_puppet(root, "other", "c") as alone,
    ):
        one.call("wait_for_queues", queues=[0, 1, 2, 3])
        two.call("wait_for_queues", queues=[4, 5, 6, 7])
        begun = len(one.call("heard"))
        send_one_a_queue(real_broker, 160)
        everything = {(q, o) for q in range(QUEUES) for o in range(30)}
        eventually(
            lambda: (
                {tuple(m) for m in one.call("heard")} | {tuple(m) for m in two.call("heard")}
                == everything
            )
        )
        late = [m for m in two.call("heard") if m[1] >= 10] + [
            m for m in one.call("heard")[begun:] if m[1] >= 10
        ]
        assert len(late) == len({tuple(m) for m in late}) == 160, "each to one member of the group"
        assert {tuple(m) for m in alone.call("wait_for", count=240)} == everything
        assert [c.pid for c in real_broker.consumer_connection("g")] == [one.pid, two.pid]
        for puppet in (one, two, alone):
            puppet.call("shutdown")


@pytest.mark.conformance("C6", "A19", "G13")
@pytest.mark.parametrize("orderly", [False, True])
def test_the_queues_of_a_killed_process_have_another_owner_within_1_5_s(tmp_path, orderly):
    numbers = count()
    best_below(TAKE_OVER_S, lambda: take_over(tmp_path / f"store{next(numbers)}", orderly))


def take_over(root: Path, orderly: bool) -> float:
    """Have a process killed; the seconds until another one has its queues."""
    with (
        broker_of_a_new_store(root) as broker,
        consumer_puppet(root, "g", "a", orderly=orderly) as one,
        consumer_puppet(root, "g", "b", orderly=orderly) as two,
    ):
        one.call("wait_for_queues", queues=[0, 1, 2, 3])
        two.call("wait_for_queues", queues=[4, 5, 6, 7])
        send_one_a_queue(broker)
        one.call("wait_for", count=4)
        two.call("wait_for", count=4)
        one.call("persist")
        killed = time.monotonic()
        os.kill(one.pid, signal.SIGKILL)
        has_all: float = two.call("wait_for_queues", queues=list(range(QUEUES)))
        send_one_a_queue(broker)
        heard = {tuple(m) for m in two.call("wait_for", count=12)}
        assert heard == {(q, 1) for q in range(QUEUES)} | {(q, 0) for q in range(4, 8)}
        two.call("shutdown")
    return has_all - killed


@pytest.mark.conformance("G12")
def test_a_running_consumer_follows_a_reset_from_another_process_within_a_second(root, real_broker):
    fill(real_broker, 80, queues=QUEUES)
    with consumer_puppet(root, "g", "a") as one:
        one.call("wait_for", count=80)
        before = count(80, 7)

        def follow() -> float:
            one.call("persist")
            moved = time.monotonic()
            real_broker.progress.move("g", {("T", 3): 5, ("T", 4): 8})
            came = next(before)
            heard = one.call("wait_for", count=came + 7)
            took = time.monotonic() - moved
            again = sorted(tuple(m) for m in heard[came:])
            assert again == [(3, o) for o in range(5, 10)] + [(4, 8), (4, 9)]
            return took

        best_below(1.0, follow)
        one.call("shutdown")
    offsets = real_broker.consumer_offsets("g")["g", "T"]
    assert offsets == dict.fromkeys(range(QUEUES), 10)
