"""Notices between processes and their entries, also under kills."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from broker.api.offsets import OffsetCommit
from broker.members import notices
from storage.configs.topics import TopicConfig
from storage.coordination.failure_detector import FailureDetector
from storage.coordination.processes import ProcessEntries, ProcessEntry
from storage.files.bounded import read_bounded
from tests.support.broker_puppet import broker_puppet
from tests.support.consumers import eventually
from tests.support.recording_client import RecordingClient, consumer, heartbeat
from tests.support.tries import best_below

PROJECT = Path(__file__).parents[3]


@pytest.mark.conformance("G12")
@pytest.mark.slow
def test_a_running_consumer_is_told_of_a_reset_from_another_process(broker):
    client = RecordingClient()
    broker.update_topic(TopicConfig("T", 2, 2))
    broker.connect("a", client)
    broker.heartbeat(heartbeat("a", consumer("g", "T")))
    broker.update_consumer_offsets("g", [OffsetCommit("T", 1, 40)])
    with broker_puppet(broker.view.root) as other:
        other.call("move_progress", group="g", topic="T", queue_id=1, offset=7)
        assert client.wait_for("reset", "g", "T", {1: 7})
        (late,) = broker.update_consumer_offsets("g", [OffsetCommit("T", 1, 41)])
        assert (late.offset, late.generation) == (7, 1)
        offsets = count(8)

        def be_notified() -> float:
            offset = next(offsets)
            started = time.monotonic()
            other.call("move_progress", group="g", topic="T", queue_id=1, offset=offset)
            assert client.wait_for("reset", "g", "T", {1: offset})
            return time.monotonic() - started

        best_below(1, be_notified)  # of a process that has moved progress before


def test_a_reset_is_told_to_members_of_its_group_only(broker, open_broker):
    mine, others = RecordingClient(), RecordingClient()
    broker.connect("a", mine)
    broker.heartbeat(heartbeat("a", consumer("g", "T")))
    broker.connect("b", others)
    broker.heartbeat(heartbeat("b", consumer("h", "T")))
    open_broker().progress.move("g", {("T", 0): 3, ("T", 2): 5, ("U", 0): 1})
    assert mine.wait_for("reset", "g", "T", {0: 3, 2: 5})
    assert mine.wait_for("reset", "g", "U", {0: 1})
    assert [call for call in others.calls if call[0] == "reset"] == []


def test_letters_come_whole_in_order_and_to_living_stations_only(tmp_path):
    processes = ProcessEntries(tmp_path)
    process_entry = ProcessEntry(processes, {"says": 1})
    assert [said.content for said in processes.living()] == [{"says": 1}]
    for number in range(30):  # more than a socket holds
        assert processes.send(process_entry.name, {"number": number, "text": "x" * 300_000})
    process_entry.sleep()
    assert [
        control_message["number"] for control_message in process_entry.control_messages()
    ] == list(range(30))
    assert process_entry.control_messages() == []
    process_entry.say({"says": 2})
    assert [said.content for said in processes.living()] == [{"says": 2}]
    process_entry.close()
    assert not processes.send(process_entry.name, {})
    assert processes.living() == processes.dead() == []
    assert list(processes.folder.iterdir()) == []
    processes.close()


def test_a_folder_with_a_long_name_has_stations(tmp_path):
    folder = tmp_path / ("x" * 120) / ("y" * 120)
    processes = ProcessEntries(folder)
    process_entry = ProcessEntry(processes, {})
    processes.send(process_entry.name, {"a": 1})
    process_entry.sleep()
    assert process_entry.control_messages() == [{"a": 1}]
    process_entry.close()
    processes.close()


DIE_EARLY = """
import os, sys
from pathlib import Path
from storage.coordination.processes import ProcessEntry, ProcessEntries
from storage.coordination.locks import LockFile
steps = int(sys.argv[2])
count = 0
def step(real):
    def call(*args, **more):
        global count
        count += 1
        if count > steps:
            os.kill(os.getpid(), 9)
        return real(*args, **more)
    return call
Path.rename = step(Path.rename)
Path.mkdir = step(Path.mkdir)
Path.write_bytes = step(Path.write_bytes)
ProcessEntry(ProcessEntries(Path(sys.argv[1])), {"clients": []})
os.kill(os.getpid(), 9)
"""


@pytest.mark.crash
@pytest.mark.parametrize("steps", range(6))
def test_who_dies_while_opening_leaves_nothing_that_counts(tmp_path, steps):
    subprocess.run([sys.executable, "-c", DIE_EARLY, str(tmp_path), str(steps)], cwd=PROJECT)
    processes = ProcessEntries(tmp_path)
    assert processes.living() == []
    for said in processes.dead():
        processes.remove(said.name)
    assert processes.dead() == []
    left = [path.name for path in processes.folder.glob("[!.]*")] if steps else []
    assert left == []


def test_a_watcher_follows_newcomers_and_ends_with_what_it_watches(tmp_path):
    processes = ProcessEntries(tmp_path)
    opened = sorted((ProcessEntry(processes, {}) for _ in range(3)), key=lambda each: each.name)
    first, second, third = opened
    deaths = threading.Semaphore(0)
    watch = FailureDetector(processes, first.name, deaths.release)
    before = threading.active_count()
    watch.follow([first.name])  # no other process to watch
    assert threading.active_count() == before
    watch.follow([first.name, third.name])
    watch.follow([first.name, third.name])
    assert threading.active_count() == before + 1
    watch.follow([first.name, second.name, third.name])
    second.close()
    assert deaths.acquire(timeout=10)
    third.close()
    assert deaths.acquire(timeout=10)
    watch.follow([first.name, third.name])  # gone before the look: noticed all the same
    assert deaths.acquire(timeout=10)
    watch.close()
    first.close()
    processes.close()


def test_each_station_is_watched_by_the_one_before_it(tmp_path):
    processes = ProcessEntries(tmp_path)
    opened = sorted((ProcessEntry(processes, {}) for _ in range(3)), key=lambda each: each.name)
    names = [each.name for each in opened]
    noticed: list[str] = []
    told = threading.Semaphore(0)

    def notice(name: str) -> None:
        noticed.append(name)
        told.release()

    watches = [FailureDetector(processes, name, partial(notice, name)) for name in names]
    for watch in watches:
        watch.follow(names)
    for gone, watcher in ((2, 1), (1, 0), (0, 2)):
        opened[gone].close()
        assert told.acquire(timeout=10)
        assert noticed == [names[watcher]]
        noticed.clear()
    for watch in watches:
        watch.close()
    processes.close()


@pytest.mark.crash
def test_a_forked_child_leaves_the_station_to_its_parent(tmp_path):
    program = """
import os, sys
from pathlib import Path
from storage.coordination.processes import ProcessEntry, ProcessEntries
processes = ProcessEntries(Path(sys.argv[1]))
process_entry = ProcessEntry(processes, {"says": 1})
pid = os.fork()
if pid == 0:
    process_entry.say({"says": 2})
    process_entry.close()
    os._exit(0)
os.waitpid(pid, 0)
(said,) = processes.living()
assert said.content == {"says": 1}, said
processes.send(process_entry.name, {"a": 1})
process_entry.sleep()
assert process_entry.control_messages() == [{"a": 1}]
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], cwd=PROJECT, check=True)
    assert ProcessEntries(tmp_path).living() == []


def test_a_stopped_station_has_one_letter_of_those_that_say_the_same(tmp_path):
    processes = ProcessEntries(tmp_path)
    process_entry = ProcessEntry(processes, {})
    for number in range(50):
        processes.send(process_entry.name, {"kind": "members", "groups": {"g": True}}, once=True)
        processes.send(process_entry.name, {"kind": "members", "groups": {"h": True}}, once=True)
        processes.send(process_entry.name, {"number": number % 2})
    control_messages = process_entry.control_messages()
    assert [control_message["number"] for control_message in control_messages[2:]] == [0, 1] * 25
    assert sorted(min(control_message["groups"]) for control_message in control_messages[:2]) == [
        "g",
        "h",
    ]
    processes.send(process_entry.name, {"kind": "members", "groups": {"g": True}}, once=True)
    assert len(process_entry.control_messages()) == 1, "what comes after the reading is told again"
    process_entry.close()
    processes.close()


@pytest.mark.slow
def test_comings_and_goings_leave_one_letter_with_a_process_that_is_stopped(broker):
    with broker_puppet(broker.view.root) as other:
        other.call("join", client_id="b", group="g", topics=["T"])
        broker.connect("a", RecordingClient())
        other.stop()
        try:
            for _ in range(20):
                broker.heartbeat(heartbeat("a", consumer("g", "T")))
                broker.unregister_client("a", None, "g")
            (control_messages,) = ProcessEntries(broker.view.root).folder.glob(f"{other.pid}-*.in")
            assert len(list(control_messages.iterdir())) <= 2, "of members, and of stations"
        finally:
            other.go_on()


def test_letters_that_can_not_be_read_now_are_read_later(tmp_path, monkeypatch):
    processes = ProcessEntries(tmp_path)
    process_entry = ProcessEntry(processes, {})
    for number in range(3):
        processes.send(process_entry.name, {"number": number})
    read, reads = read_bounded, iter(range(100))

    def fails_once(path: Path) -> bytes:
        if next(reads) == 1:
            raise OSError(24, "Too many open files")
        return read(path)

    monkeypatch.setattr("storage.coordination.processes.read_bounded", fails_once)
    with pytest.raises(OSError, match="Too many open files"):
        process_entry.control_messages()
    assert [control_message["number"] for control_message in process_entry.control_messages()] == [
        0,
        1,
        2,
    ]
    process_entry.close()
    processes.close()


def test_the_thread_for_notices_survives_what_it_can_not_read(broker, open_broker, monkeypatch):
    client = RecordingClient()
    broker.connect("a", client)
    broker.heartbeat(heartbeat("a", consumer("g", "T")))
    control_messages, calls = ProcessEntry.control_messages, iter(range(100))

    def fails_once(process_entry: ProcessEntry):
        if next(calls) == 0:
            raise OSError(24, "Too many open files")
        return control_messages(process_entry)

    monkeypatch.setattr(notices, "AFTER_FAILURE_S", 0.01)
    monkeypatch.setattr(ProcessEntry, "control_messages", fails_once)
    open_broker().progress.move("g", {("T", 0): 3})
    assert client.wait_for("reset", "g", "T", {0: 3})


def test_what_died_before_it_had_a_name_is_removed_in_the_end(broker):
    folder = ProcessEntries(broker.view.root).folder
    folder.mkdir(parents=True)
    old, new = folder / ".1-a.life", folder / ".2-b.life"
    old.touch()
    new.touch()
    os.utime(old, (time.time() - 61,) * 2)
    broker.connect("a", RecordingClient())
    assert not old.exists()
    assert new.exists(), "perhaps it is being made at this moment"


def test_stations_that_come_and_go_leave_no_threads_behind(tmp_path):
    """They all watch the one that stays, and a blocked thread cannot be called back."""
    processes = ProcessEntries(tmp_path)
    staying = ProcessEntry(processes, {})
    deaths = threading.Semaphore(0)
    before = threading.active_count()
    for number in range(20):
        watch = FailureDetector(processes, f"{number}", deaths.release)
        watch.follow([staying.name])
        watch.close()
    last = [FailureDetector(processes, f"last-{number}", deaths.release) for number in range(2)]
    for watch in last:
        watch.follow([staying.name])
        watch.follow([staying.name])
    assert threading.active_count() == before + 1
    staying.close()
    assert deaths.acquire(timeout=10)
    assert deaths.acquire(timeout=10)
    eventually(lambda: threading.active_count() == before)
    assert not deaths.acquire(blocking=False), "the closed ones are not told"
    processes.close()


def test_a_watcher_that_fails_does_not_keep_another_from_being_told(tmp_path):
    processes = ProcessEntries(tmp_path)
    watched = ProcessEntry(processes, {})
    told = threading.Event()

    def fail() -> None:
        raise OSError(28, "No space left on device")

    FailureDetector(processes, "a", fail).follow([watched.name])
    FailureDetector(processes, "b", told.set).follow([watched.name])
    watched.close()
    assert told.wait(10)
    processes.close()
