"""Killing a repair, or filling its disk, at every instant.

Runs in a slim interpreter (tests.support.slim): it forks once for each instant.
"""

from __future__ import annotations

import errno
import shutil
from contextlib import suppress
from itertools import count
from pathlib import Path

import numpy  # noqa: F401 - once, before the forks

import storage.tools.repair.execution
import storage.tools.repair.plan
from storage.errors import StoreNotWritableError
from storage.files.fs import FileSystem
from storage.store import MessageStore
from tests.support import golden
from tests.support.crash import Acknowledge, Child
from tests.support.damages import damage
from tests.support.every_instant import die_at
from tests.support.faulty_fs import FaultyFileSystem
from tests.support.mended import Held, Key, copy_of, held, repair, wrong
from tests.support.watched_fs import WatchedFileSystem

LOADED = (storage.tools.repair.execution, storage.tools.repair.plan)


class _Damaged:
    """A damaged golden store, and what can be read of it before and after a repair."""

    def __init__(self, folder: Path, name: str, kind: str) -> None:
        self.root = golden.extract(name, folder)
        whole = held(self.root)
        lost = damage(self.root, kind).lost
        self.readable = held(self.root)
        self.whole = {
            place: message
            for place, message in whole.items()
            if message.commitlog_offset not in lost
        }


def killed_while_repairing(
    folder: str, name: str, kind: str, shard: int, shards: int
) -> dict[str, object]:
    """At every instant all that could be read can be read; repairing once more finishes the job.

    Every other time the store is opened for writing before that.
    """
    place = Path(folder) / f"{shard}"
    place.mkdir()
    damaged = _Damaged(place, name, kind)
    failures: list[str] = []
    for number in count(1 + shard, shards):
        root = copy_of(damaged.root, place / "copy")

        def run(_: Acknowledge, root: Path = root, number: int = number) -> None:
            repair(root, WatchedFileSystem(lambda instant: die_at(number, instant)))

        was_killed, _ = Child(run).wait()
        problems = _lost(root, damaged.readable)
        if number // shards % 2 and not _refuses_writers(root):
            problems += _lost(root, damaged.readable)
        problems += _finish(root, damaged)
        failures += [f"{kind}, killed at instant {number}: {problem}" for problem in problems]
        if not was_killed or len(failures) > 20:
            break
    shutil.rmtree(place)
    return {"instants": number, "failures": failures}


def full_while_repairing(
    folder: str, name: str, kind: str, shard: int, shards: int
) -> dict[str, object]:
    """The same with a disk that is full from an instant on."""
    place = Path(folder) / f"full-{shard}"
    place.mkdir()
    damaged = _Damaged(place, name, kind)
    failures: list[str] = []
    for number in count(1 + shard, shards):
        root = copy_of(damaged.root, place / "copy")
        fs = FaultyFileSystem(number, errno.ENOSPC, lasting=True)
        with suppress(StoreNotWritableError):
            repair(root, fs)
        problems = _lost(root, damaged.readable) + _finish(root, damaged)
        failures += [f"{kind}, full at {fs.failed} ({number}): {one}" for one in problems]
        if not fs.failed or len(failures) > 20:
            break
    shutil.rmtree(place)
    return {"instants": number, "failures": failures}


def _lost(root: Path, before: dict[Key, Held]) -> list[str]:
    now = held(root)
    return [f"{place} was lost" for place, message in before.items() if now.get(place) != message]


def _finish(root: Path, damaged: _Damaged) -> list[str]:
    repair(root, FileSystem())
    return [f"left: {finding}" for finding in wrong(root)] + _lost(root, damaged.whole)


def _refuses_writers(root: Path) -> bool:
    """Open and close the store as a writer; some damage makes that impossible."""
    from storage.errors import CorruptFileError

    try:
        MessageStore.open(root).close()
    except CorruptFileError:
        return True
    return False
