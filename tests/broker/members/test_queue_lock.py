"""Locks on queues: one client has a queue, and a dead process has none."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.errors import BrokerSystemError, InvalidNameError, NoPermissionError
from broker.members.queue_lock import QueueLocks
from storage.format.message import MessageQueue
from tests.support.broker_puppet import broker_puppet
from tests.support.recording_client import RecordingClient, consumer, heartbeat


def queue(queue_id: int, topic: str = "T") -> MessageQueue:
    return MessageQueue(topic, "broker-a", queue_id)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def locks(tmp_path: Path, clock: Clock) -> Iterator[QueueLocks]:
    made = QueueLocks(tmp_path, clock)
    yield made
    made.close()


@pytest.mark.conformance("F3")
def test_a_queue_is_locked_by_one_client_that_may_lock_it_again(locks):
    wanted = [queue(0), queue(1)]
    assert locks.lock("g", "a", wanted, remote=False) == set(wanted)
    assert locks.lock("g", "a", wanted, remote=False) == set(wanted)
    assert locks.lock("g", "b", [queue(1), queue(2)], remote=False) == {queue(2)}
    assert locks.lock("h", "b", wanted, remote=False) == set(wanted)
    assert not locks.unlock("g", "b", [queue(0)])
    assert locks.unlock("g", "a", [queue(0)])
    assert locks.lock("g", "b", wanted, remote=False) == {queue(0)}


@pytest.mark.conformance("F3")
def test_a_client_that_is_no_process_here_loses_its_locks_after_a_silent_minute(locks, clock):
    locks.lock("g", "far", [queue(0)], remote=True)
    clock.now += 30_000
    locks.lock("g", "far", [queue(0)], remote=True)
    clock.now += 60_000
    assert locks.lock("g", "b", [queue(0)], remote=False) == set()
    clock.now += 1
    assert locks.lock("g", "b", [queue(0)], remote=False) == {queue(0)}
    assert not locks.unlock("g", "far", [queue(0)])
    clock.now += 1_000_000
    assert locks.lock("g", "far", [queue(0)], remote=True) == set()


def test_another_process_may_lock_what_is_free_and_nothing_else(tmp_path, locks, clock):
    other = QueueLocks(tmp_path, clock)
    locks.lock("g", "a", [queue(3), queue(4, "U")], remote=False)
    wanted = [queue(2), queue(3), queue(4), queue(4, "U")]
    assert other.lock("g", "a", wanted, remote=False) == {queue(2), queue(4)}
    locks.unlock_all("a", "h")
    assert other.lock("g", "b", [queue(3)], remote=False) == set()
    assert locks.unlock_all("a") == {"g"}
    assert other.lock("g", "b", wanted, remote=False) == {queue(3), queue(4, "U")}
    other.close()
    assert locks.lock("g", "a", wanted, remote=False) == set(wanted)


def test_a_thousand_queues_are_locked_quickly(locks):
    wanted = [queue(number, topic) for topic in ("T", "U") for number in range(500)]
    took = []
    for _ in range(3):  # on a busy machine one of them may take long for other reasons
        started = time.monotonic()
        assert locks.lock("g", "a", wanted, remote=False) == set(wanted)
        took.append(time.monotonic() - started)
        locks.unlock_all("a")
    assert min(took) < 1


def test_no_file_is_made_for_what_can_not_be_a_group(tmp_path, locks):
    with pytest.raises(InvalidNameError):
        locks.lock("../g", "a", [queue(0)], remote=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.crash
@pytest.mark.conformance("F3")
def test_a_killed_process_holds_no_queue(broker):
    here = RecordingClient()
    broker.connect("a", here)
    broker.heartbeat(heartbeat("a", consumer("g", "T")))
    wanted = [queue(number) for number in range(4)]
    with broker_puppet(broker.view.root) as other:
        other.call("join", client_id="b", group="g")
        assert here.wait_for("changed", "g", times=2)
        assert other.call("lock", group="g", client_id="b", queues=[0, 1]) == [0, 1]
        assert broker.lock_queues("g", "a", wanted) == {queue(2), queue(3)}
        other.kill()
        assert here.wait_for("changed", "g", times=3)
        assert broker.lock_queues("g", "a", wanted) == set(wanted)


@pytest.mark.conformance("F3")
def test_who_was_refused_is_told_when_a_queue_is_free(broker, open_broker):
    other = open_broker()
    here, there = RecordingClient(), RecordingClient()
    for each, client_id, client in ((broker, "a", here), (other, "b", there)):
        each.connect(client_id, client)
        each.heartbeat(heartbeat(client_id, consumer("g", "T")))
    assert here.wait_for("changed", "g", times=2)
    broker.lock_queues("g", "a", [queue(0)])
    assert other.lock_queues("g", "b", [queue(0)]) == set()
    assert there.wait_for("changed", "g")
    broker.unlock_queues("g", "a", [queue(0)])
    assert there.wait_for("changed", "g", times=2)
    assert other.lock_queues("g", "b", [queue(0)]) == {queue(0)}
    broker.unlock_queues("g", "a", [queue(0)])  # not its own any more
    other.disconnect("b")
    assert broker.lock_queues("g", "a", [queue(0)]) == {queue(0)}


def test_only_connected_clients_of_a_writable_store_lock(broker, open_broker):
    with pytest.raises(BrokerSystemError, match="not connected"):
        broker.lock_queues("g", "a", [queue(0)])
    with pytest.raises(NoPermissionError):
        open_broker(read_only=True).lock_queues("g", "a", [queue(0)])


def test_only_a_member_of_the_group_locks_its_queues(broker, open_broker):
    """A round of rebalance may still run when its consumer has left and its client goes on."""
    here, other = RecordingClient(), open_broker()
    broker.connect("a", here)
    with pytest.raises(BrokerSystemError, match="client a does not consume in group g"):
        broker.lock_queues("g", "a", [queue(0)])
    broker.heartbeat(heartbeat("a", consumer("g", "T"), consumer("h", "T"), producers=("i",)))
    for group in ("g", "h"):
        assert broker.lock_queues(group, "a", [queue(0)]) == {queue(0)}
    broker.unregister_client("a", None, "g")
    for group in ("g", "i"):
        with pytest.raises(BrokerSystemError, match=f"does not consume in group {group}"):
            broker.lock_queues(group, "a", [queue(0)])
    assert broker.lock_queues("h", "a", [queue(0)]) == {queue(0)}
    other.connect("b", RecordingClient())
    other.heartbeat(heartbeat("b", consumer("g", "T"), consumer("h", "T")))
    assert other.lock_queues("g", "b", [queue(0)]) == {queue(0)}
    assert other.lock_queues("h", "b", [queue(0)]) == set()


def test_a_client_that_is_gone_holds_no_queue_of_any_group(broker, open_broker):
    other, there = open_broker(), RecordingClient()
    broker.connect("a", RecordingClient())
    other.connect("b", there)
    other.heartbeat(heartbeat("b", consumer("g", "T")))
    assert there.wait_for("changed", "g")
    locks = broker.members._queue_locks
    assert locks.lock("g", "a", [queue(0)], remote=False) == {queue(0)}, "as before it left g"
    broker.disconnect("a")
    assert there.wait_for("changed", "g", times=2)
    assert other.lock_queues("g", "b", [queue(0)]) == {queue(0)}
