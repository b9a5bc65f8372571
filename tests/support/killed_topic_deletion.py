"""Killing a process that deletes a topic, at each instant, beside a writer that has it mapped.

Runs in a slim interpreter (tests.support.slim): it forks twice for each instant.
"""

from __future__ import annotations

import json
import os
import shutil
import traceback
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from storage.configs.deleted_topics import STAGED_FILE
from storage.format.names import OURS
from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.fsck import fsck
from tests.support.crash import Acknowledge, Child, die
from tests.support.every_instant import lose_page
from tests.support.samples import SMALL, Sample, new_store, open_store, prepared
from tests.support.watched_fs import WatchedFileSystem

TOPIC, OTHER = "Gone", "Stays"
CONFIG = SMALL.with_(mapped_file_size_consume_queue=10 * 20)
OLD = [f"old-{n}" for n in range(13)]  # two files of the queue


def killed_at_every_instant(folder: str, shard: int, shards: int) -> dict[str, object]:
    """Kill at the instants shard + 1, shard + 1 + shards, ... until the deletion survives."""
    failures: list[str] = []
    outcomes = {"deleted": 0, "kept": 0}
    answer: dict[str, Any]
    for number in count(1 + shard, shards):
        root = new_store(Path(folder) / f"at-{number}", CONFIG)
        peer, answer, was_killed = _Peer(root), {}, True
        try:
            with StoreView.open(root, CONFIG) as reader:
                names_of(reader, TOPIC)
                was_killed, _ = Child(partial(_delete, root, number)).wait()
                answer = peer.call()
                problems = _judge(root, answer, reader, outcomes, was_killed=was_killed)
        except Exception:  # noqa: BLE001 - a store that cannot be read is a finding as well
            problems = [traceback.format_exc(limit=-4)]
        finally:
            peer.end()
        problems += _after_the_end(root, answer, reboot=number % 2 == 0) if not problems else []
        failures += [f"killed at instant {number}: {problem}" for problem in problems]
        shutil.rmtree(root)
        if not was_killed or len(failures) > 10:
            break
    return {"instants": number, "outcomes": outcomes, "failures": failures}


class _Peer:
    """Another writer: it has the topic's files mapped, and writes on after the deletion."""

    def __init__(self, root: Path) -> None:
        (go_reading, self._go_writing), told = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._go_writing)
            try:
                _be_the_peer(root, go_reading, told[1])
            except BaseException:  # noqa: BLE001 - it must not run on as the parent
                os.write(told[1], json.dumps({"error": traceback.format_exc()}).encode() + b"\n")
            finally:
                os._exit(0)
        os.close(go_reading)
        os.close(told[1])
        self._told = os.fdopen(told[0])
        assert self._told.readline() == "ready\n"

    def call(self) -> dict[str, Any]:
        os.write(self._go_writing, b"g")
        answer: dict[str, Any] = json.loads(self._told.readline())
        assert "error" not in answer, answer["error"]
        return answer

    def end(self) -> None:
        os.close(self._go_writing)
        os.waitpid(self.pid, 0)
        self._told.close()


def _be_the_peer(root: Path, go: int, told: int) -> None:
    store = open_store(root, CONFIG)
    _put(store, OTHER, "first")
    for name in OLD:
        _put(store, TOPIC, name)
    assert names_of(store.view, TOPIC) == OLD
    os.write(told, b"ready\n")
    os.read(go, 1)
    offsets = [_put(store, TOPIC, name) for name in ("new-0", "new-1")]
    other = _put(store, OTHER, "second")
    answer = {
        "offsets": offsets,
        "names": names_of(store.view, TOPIC),
        "other": (other, names_of(store.view, OTHER)),
    }
    os.write(told, json.dumps(answer).encode() + b"\n")
    os.read(go, 1)  # until its end is closed
    store.close()


def _put(store: MessageStore, topic: str, name: str) -> int:
    return int(store.put(prepared((Sample(name, topic, 0),))).queue_offsets[0])


def names_of(view: StoreView, topic: str, queue_id: int = 0) -> list[str]:
    """The names of all messages of a queue, file by file."""
    found: list[str] = []
    while messages := view.get_message(topic, queue_id, len(found), 32).messages:
        found += [message.properties["UNIQ_KEY"] for message in messages]
    return found


def _delete(root: Path, number: int, _: Acknowledge) -> None:
    fs = WatchedFileSystem(lambda instant: die() if instant.number == number else None)
    store = open_store(root, CONFIG, fs=fs)
    assert store.delete_queues(TOPIC) == 1
    store.close()


def _judge(
    root: Path,
    answer: dict[str, Any],
    reader: StoreView,
    outcomes: dict[str, int],
    *,
    was_killed: bool,
) -> list[str]:
    """Compare what the peer put and read with all readers."""
    deleted = answer["offsets"] == [0, 1]
    outcomes["deleted" if deleted else "kept"] += 1
    if not deleted and not was_killed:
        return ["the deletion has ended, and nothing is deleted"]
    expected = ["new-0", "new-1"] if deleted else [*OLD, "new-0", "new-1"]
    problems = []
    if answer["offsets"] != [len(expected) - 2, len(expected) - 1]:
        problems.append(f"offsets {answer['offsets']}")
    if answer["other"] != [1, ["first", "second"]]:
        problems.append(f"the other topic has {answer['other']}")
    with StoreView.open(root, CONFIG) as fresh:
        for what, found in (
            ("the peer", answer["names"]),
            ("a reader from before", names_of(reader, TOPIC)),
            ("a new reader", names_of(fresh, TOPIC)),
        ):
            if found != expected:
                problems.append(f"{what} reads {found}")
        if fresh.queues() != [(TOPIC, 0), (OTHER, 0)]:
            problems.append(f"queues {fresh.queues()}")
    return problems


def _after_the_end(root: Path, answer: dict[str, Any], *, reboot: bool) -> list[str]:
    """Check the closed store, also after a reboot, and go on with it."""
    problems = []
    if reboot:
        lose_page(root)
        (root / "abort").touch()
    expected = answer["names"]

    def go_on(_: Any) -> None:
        store = open_store(root, CONFIG)
        assert names_of(store.view, TOPIC) == expected, names_of(store.view, TOPIC)
        assert _put(store, TOPIC, "last") == len(expected)
        assert names_of(store.view, OTHER) == ["first", "second"]
        store.close()

    try:
        Child(go_on).wait()
    except AssertionError as error:
        problems.append(f"after the end: {error}")
    with StoreView.open(root, CONFIG) as view:
        report = fsck(view)
        if report.errors or report.warnings:
            problems.append(f"fsck: {report.findings}")
        if names_of(view, TOPIC) != [*expected, "last"]:
            problems.append(f"at last {names_of(view, TOPIC)}")
    if reboot and (root / OURS / STAGED_FILE).exists():
        problems.append("a staged file is left")
    return problems
