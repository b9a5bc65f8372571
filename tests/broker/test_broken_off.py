"""After a refused thread, a full disk or Ctrl-C a call can be repeated; nothing is left."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from broker.members.queue_lock import QueueLocks
from broker.offset import offset_manager as progress_module
from broker.schedule.schedule import ScheduleMessageService
from storage.configs.consumer_offsets import load_consumer_offsets
from storage.configs.progress import ProgressFile
from storage.coordination.leadership import BROKER_SERVICES, TRANSACTION_CHECKS, Leadership
from storage.coordination.locks import LockFile
from storage.coordination.processes import ProcessEntries, ProcessEntry
from storage.format.message import Message, MessageQueue
from tests.support.broken_off import BROKEN, broken_off, running
from tests.support.consumers import PATIENCE_S, eventually
from tests.support.recording_client import RecordingClient, consumer, heartbeat

FULL = os.strerror(errno.ENOSPC)


@contextmanager
def once(owner: type, name: str, error: BaseException) -> Iterator[None]:
    """The next call of a method does nothing and raises."""
    real = getattr(owner, name)
    errors = [error]

    def call(*args: Any, **more: Any) -> Any:
        if errors:
            raise errors.pop()
        return real(*args, **more)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(owner, name, call)
        yield
    assert not errors, "it was not called"


def full_disk() -> OSError:
    return OSError(errno.ENOSPC, FULL)


def join(
    broker: EmbeddedBroker, client_id: str, client: RecordingClient | None = None
) -> RecordingClient:
    client = client or RecordingClient()
    broker.connect(client_id, client)
    broker.heartbeat(heartbeat(client_id, consumer("g", "T")))
    return client


def queue(queue_id: int) -> MessageQueue:
    return MessageQueue("T", "broker-a", queue_id)


# -- threads that did not start -------------------------------------------------------------------


def test_a_station_whose_thread_did_not_start_is_opened_anew(open_broker, root, broken_starts):
    broker = open_broker()
    with broken_starts("notices"), pytest.raises(BROKEN):
        broker.connect("a", RecordingClient())
    assert ProcessEntries(root).living() == []
    eventually(lambda: running("notices") == 0)
    client = join(broker, "a")
    open_broker().progress.move("g", {("T", 0): 3})
    assert client.wait_for("reset", "g", "T", {0: 3}), "nobody reads the letters"
    broker.close()
    assert ProcessEntries(root).living() == []


def test_a_broker_whose_station_could_not_be_opened_closes(open_broker, root, broken_starts):
    broker = open_broker()
    with broken_starts("notices"), pytest.raises(BROKEN):
        broker.connect("a", RecordingClient())
    broker.close()
    assert ProcessEntries(root).living() == ProcessEntries(root).dead() == []


@pytest.mark.parametrize("well", range(3))
def test_services_that_did_not_start_are_left_to_others_and_start_later(
    open_broker, broken_starts, well
):
    broker, other = open_broker(), open_broker()
    with broken_starts("timed-services", well=well), pytest.raises(BROKEN, match="new thread|^$"):
        broker.start_services()
    assert not broker.elected
    eventually(lambda: running("timed-services") == 0)
    other.start_services()
    eventually(lambda: all(thread.elected for thread in other._service_threads))
    broker.start_services()
    other.close()
    eventually(lambda: all(thread.elected for thread in broker._service_threads))
    assert len(broker._service_threads) == 3
    broker.close()
    eventually(lambda: running("timed-services") == 0)


@pytest.mark.slow
def test_nothing_is_delivered_again_by_services_that_start_later(open_broker, monkeypatch):
    broker, other = open_broker(), open_broker()
    real = threading.Thread.start
    begun = broker.delayed

    def start(thread: threading.Thread) -> None:
        if thread.name == "timed-services" and running(thread.name) == 2:
            eventually(lambda: begun.progress() and begun._due is not None)
            raise RuntimeError("can't start new thread")
        real(thread)

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start)
        with pytest.raises(RuntimeError):
            broker.start_services()
    other.start_services()
    other.send(Message("T", b"x", delay_time_level=1))

    def delivered() -> int:
        return sum(other.max_offset("T", number) for number in range(4)) if other.topic("T") else 0

    eventually(delivered)
    broker.start_services()
    with broker:
        other.close()
        eventually(lambda: broker.delayed.progress()[0].offset == 1)
        assert sum(broker.max_offset("T", number) for number in range(4)) == 1


def test_a_service_that_can_not_say_its_last_word_keeps_none_of_the_others(open_broker, root):
    broker = open_broker()
    with once(ScheduleMessageService, "shutdown", full_disk()):
        broker.start_services()
        eventually(lambda: all(thread.elected for thread in broker._service_threads))
        with pytest.raises(OSError, match=FULL):
            broker.close()
    for place in (BROKER_SERVICES, TRANSACTION_CHECKS):
        heir = Leadership(root, place)
        waiting = threading.Thread(target=heir.wait, daemon=True)
        waiting.start()
        waiting.join(PATIENCE_S)
        assert heir.elected
        heir.close()


# -- a process entry that cannot be written ------------------------------------------------------


@pytest.mark.parametrize(
    "again",
    [lambda broker: broker.disconnect("a"), EmbeddedBroker.do_own_work],
    ids=["disconnect", "own work"],
)
def test_a_client_that_could_not_be_said_to_be_gone_goes_with_the_second_try(
    broker, open_broker, again
):
    other = open_broker()
    join(broker, "a")
    heir = join(other, "b")
    assert heir.wait_for("changed", "g")
    before = len(heir.calls)
    broker.lock_queues("g", "a", [queue(0)])
    with once(ProcessEntry, "say", full_disk()), pytest.raises(OSError, match=FULL):
        broker.disconnect("a")
    broker.connect("a", RecordingClient())  # it is free
    again(broker)
    assert other.consumer_ids("g") == ["b"]
    assert heir.wait_until(lambda calls: len(calls) > before), "nobody is told"
    assert other.lock_queues("g", "b", [queue(0)]) == {queue(0)}


def test_a_group_that_could_not_be_left_is_left_with_the_second_try(broker, open_broker):
    other = open_broker()
    join(broker, "a")
    heir = join(other, "b")
    assert heir.wait_for("changed", "g")
    before = len(heir.calls)
    with once(ProcessEntry, "say", full_disk()), pytest.raises(OSError, match=FULL):
        broker.unregister_client("a", None, "g")
    assert broker.consumer_ids("g") == ["a", "b"], "what is said is so"
    broker.unregister_client("a", None, "g")
    assert other.consumer_ids("g") == ["b"]
    assert heir.wait_until(lambda calls: len(calls) > before), "nobody is told"


def test_a_group_that_could_not_be_left_is_left_with_the_next_heartbeat(broker, open_broker):
    other = open_broker()
    broker.connect("a", RecordingClient())
    rest = heartbeat("a", consumer("h", "T"), producers=("q",))
    broker.heartbeat(heartbeat("a", consumer("g", "T"), *rest.consumers, producers=("p", "q")))
    heir = join(other, "b")
    assert heir.wait_for("changed", "g")
    broker.lock_queues("g", "a", [queue(0)])
    before = len(heir.calls)
    with once(ProcessEntry, "say", full_disk()), pytest.raises(OSError, match=FULL):
        broker.unregister_client("a", None, "g")
    broker.heartbeat(rest)
    assert (other.consumer_ids("g"), other.consumer_ids("h")) == (["b"], ["a"])
    assert other.lock_queues("g", "b", [queue(0)]) == {queue(0)}
    assert heir.wait_until(lambda calls: len(calls) > before), "the other member gets no notice"
    [said] = [
        one
        for one in ProcessEntries(broker.view.root).living()
        if one.content["clients"][0]["id"] == "a"
    ]
    assert said.content["clients"][0]["producers"] == ["q"]


def test_a_heartbeat_that_could_not_be_said_tells_the_others_with_the_second_try(
    broker, open_broker
):
    other = open_broker()
    there = join(other, "b")
    assert there.wait_for("changed", "g")
    before = len(there.calls)
    here = RecordingClient()
    broker.connect("a", here)
    beat = heartbeat("a", consumer("g", "T"), producers=("p",))
    with once(ProcessEntry, "say", full_disk()), pytest.raises(OSError, match=FULL):
        broker.heartbeat(beat)
    assert other.consumer_ids("g") == ["b"]
    broker.heartbeat(beat)
    assert other.consumer_ids("g") == ["a", "b"]
    assert there.wait_until(lambda calls: len(calls) > before), "nobody is told"
    assert here.wait_for("changed", "g")


def test_a_closing_on_a_full_disk_leaves_neither_a_member_nor_a_lock(
    open_broker, root, monkeypatch
):
    broker = open_broker()
    join(broker, "a")
    broker.lock_queues("g", "a", [queue(0)])
    real = Path.write_bytes

    def write(path: Path, data: bytes) -> int:
        if path.parent.is_relative_to(ProcessEntries(root).folder):
            raise full_disk()
        return real(path, data)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", write)
        broker.close()
    assert ProcessEntries(root).living() == ProcessEntries(root).dead() == []
    assert running("notices") == 0
    other = open_broker()
    join(other, "b")
    assert other.lock_queues("g", "b", [queue(0)]) == {queue(0)}


class _Looks(RecordingClient):
    """Reads the members at each notice of a change, and notes them as well."""

    def __init__(self, broker: EmbeddedBroker) -> None:
        super().__init__()
        self._broker = broker

    def notify_consumer_ids_changed(self, group: str) -> None:
        self.note("changed", group, self._broker.consumer_ids(group))


def test_a_broker_that_is_notified_of_a_closing_finds_the_members_gone(open_broker, root):
    broker, other = open_broker(), open_broker()
    join(broker, "a")
    heir = join(other, "b", _Looks(other))
    assert heir.wait_for("changed", "g", ["a", "b"])
    before = len(heir.calls)
    broker.close()
    assert heir.wait_until(lambda calls: len(calls) > before)
    assert heir.calls[before:] == [("changed", "g", ["b"])]


def test_a_closing_that_was_broken_off_is_ended_by_the_second(open_broker, root):
    broker, other = open_broker(), open_broker()
    join(broker, "a")
    heir = join(other, "b")
    assert heir.wait_for("changed", "g")
    before = len(heir.calls)
    with once(threading.Thread, "join", KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        broker.close()
    broker.close()
    assert [said.name for said in ProcessEntries(root).living()] == [other.members.notices.name]
    assert heir.wait_until(lambda calls: len(calls) > before), "nobody is told"
    other.close()
    assert running("notices") == 0


def test_a_closing_that_could_not_write_progress_writes_it_with_the_second(open_broker, root):
    broker = open_broker()
    broker.progress.note("g", OffsetCommit("T", 0, 5))
    with once(ProgressFile, "commit", full_disk()), pytest.raises(OSError, match=FULL):
        broker.close()
    broker.close()
    assert load_consumer_offsets(root) == {"T@g": {0: 5}}


# -- progress and locks ---------------------------------------------------------------------------


def test_noted_progress_is_not_lost_with_a_writing_that_was_interrupted(broker, root):
    progress = broker.progress
    instants = 0
    progress.note("g", OffsetCommit("T", 0, 0))
    for number in broken_off(progress.persist, progress_module):
        progress.persist()
        assert load_consumer_offsets(root) == {"T@g": {0: number}}
        progress.note("g", OffsetCommit("T", 0, number + 1))
        instants += 1
    assert instants > 5


def test_progress_that_is_noted_during_a_writing_is_written_with_the_next(
    broker, root, monkeypatch
):
    progress = broker.progress
    commit = ProgressFile.commit
    sizes: list[int] = []

    def late(file: ProgressFile, offered: Any) -> Any:
        sizes.append(len(offered))
        written = commit(file, offered)
        if len(sizes) == 1:
            progress.note("g", OffsetCommit("T", 0, 4))  # which is no news
            progress.note("g", OffsetCommit("T", 1, 9))
        return written

    monkeypatch.setattr(ProgressFile, "commit", late)
    for queue_id in range(3):
        progress.note("g", OffsetCommit("T", queue_id, 5))
    for _ in range(3):
        progress.persist()
    assert load_consumer_offsets(root) == {"T@g": {0: 5, 1: 9, 2: 5}}
    assert sizes == [3, 1], "what has not changed is written once"


@pytest.mark.parametrize("error", [full_disk(), KeyboardInterrupt()], ids=["failed", "interrupted"])
def test_a_queue_that_could_not_be_unlocked_is_with_the_second_try(tmp_path, error):
    locks, others = QueueLocks(tmp_path, lambda: 0), QueueLocks(tmp_path, lambda: 0)
    locks.lock("g", "a", [queue(0)], remote=False)
    with once(LockFile, "unlock", error), pytest.raises(type(error)):
        locks.unlock("g", "a", [queue(0)])
    assert others.lock("g", "b", [queue(0)], remote=False) == set()
    assert locks.unlock("g", "a", [queue(0)])
    assert others.lock("g", "b", [queue(0)], remote=False) == {queue(0)}
    locks.close()
    others.close()
