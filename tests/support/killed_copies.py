"""Killing snapshots and restores at every instant, and checking what is there then.

Runs in a slim interpreter (tests.support.slim): it forks once for each instant.
"""

from __future__ import annotations

import shutil
from itertools import count
from pathlib import Path
from traceback import format_exc
from typing import NamedTuple

from storage.files.fs import FileSystem
from storage.tools.snapshot.restore import ASIDE, restore_snapshot
from storage.tools.snapshot.snapshot import take_snapshot
from storage.tools.snapshot.snapshot_source import open_snapshot, verify
from storage.tools.snapshot.staging import staging_path
from tests.support.copies import copy_store
from tests.support.crash import Acknowledge, Child, inspect
from tests.support.every_instant import die_at
from tests.support.samples import TINY, Sample, Ticking, new_store, open_store, prepared
from tests.support.watched_fs import WatchedFileSystem

RUN = "then"


def killed_while_taking(folder: str, shard: int, shards: int) -> dict[str, object]:
    """The snapshot is there as a whole or not at all; the store is as it was; again goes well."""
    root = _store(Path(folder) / f"source-{shard}", "m", 12)
    store = open_store(root, TINY, clock=Ticking())  # a writer is there; it does nothing meanwhile
    before = contents(root)
    failures: list[str] = []
    for number in count(1 + shard, shards):
        target = Path(folder) / f"snapshot-{number}"

        def run(_: Acknowledge, number: int = number, target: Path = target) -> None:
            fs = WatchedFileSystem(lambda instant: die_at(number, instant))
            take_snapshot(root, target, now_ms=1, fs=fs)

        was_killed, _ = Child(run).wait()
        problems = []
        staged = staging_path(target)
        if not target.exists():
            take_snapshot(root, target, now_ms=2)
        elif staged.exists():
            staged.rmdir()  # empty: it was killed when all was done
        problems += [str(error) for error in verify(open_snapshot(target))]
        if staged.exists():
            problems.append("something is left beside it")
        if contents(root) != before:
            problems.append("the store has changed")
        shutil.rmtree(target)
        failures += [f"killed at instant {number}: {problem}" for problem in problems]
        if not was_killed or len(failures) > 20:
            break
    store.close()
    return {"instants": number, "failures": failures}


def killed_while_restoring(
    folder: str, shard: int, shards: int, occupied: bool
) -> dict[str, object]:
    """The target is the old store, none, or the restored one; nothing is lost; again finishes."""
    place = Path(folder)
    root = _store(place / f"source-{shard}", "m", 12)
    snapshot = place / f"snapshot-{shard}"
    store = open_store(root, TINY, clock=Ticking())
    take_snapshot(root, snapshot, now_ms=1)
    store.close()
    wanted = inspect(root, TINY).records
    old = _store(place / f"old-{shard}", "o", 3)
    old_contents = contents(old)
    failures: list[str] = []
    for number in count(1 + shard, shards):
        target = place / f"target-{number}" / "store"
        target.parent.mkdir()
        if occupied:
            copy_store(old, target)

        def run(_: Acknowledge, number: int = number, target: Path = target) -> None:
            fs = WatchedFileSystem(lambda instant: die_at(number, instant))
            restore_snapshot(open_snapshot(snapshot), target, run=RUN, fs=fs)

        was_killed, _ = Child(run).wait()
        case = _Case(target, occupied, old_contents)
        try:
            problems = case.look()
            if case.unfinished:
                restore_snapshot(open_snapshot(snapshot), target, run="again", fs=FileSystem())
            problems += case.look(finished=True)
            found = inspect(target, TINY, with_fsck=number // shards % 8 == 0)
            problems += found.problems
            if found.records != wanted:
                problems.append(f"{len(found.records)} of {len(wanted)} records are there")
        except Exception:  # noqa: BLE001 - what cannot be read is a finding as well
            problems = [format_exc(limit=-4)]
        failures += [f"killed at instant {number}: {problem}" for problem in problems]
        shutil.rmtree(target.parent)
        if not was_killed or len(failures) > 20:
            break
    return {"instants": number, "failures": failures}


class _Case(NamedTuple):
    target: Path
    occupied: bool
    old: dict[str, bytes]

    def look(self, *, finished: bool = False) -> list[str]:
        """What must hold at every moment."""
        asides = [p for p in self.target.parent.iterdir() if ASIDE in p.name]
        problems = []
        kept = [contents(path) for path in asides]
        if self.occupied and finished and kept != [self.old]:
            problems.append("the old store is not aside as it was")
        if self.occupied and not asides and contents(self.target) != self.old:
            problems.append("the old store is gone")
        if self.target.exists() and not self.unfinished and (self.target / "abort").exists():
            problems.append("the restored store is not closed")
        return problems

    @property
    def unfinished(self) -> bool:
        """Whether the target is not the restored store yet."""
        asides = any(ASIDE in path.name for path in self.target.parent.iterdir())
        return not self.target.exists() or (self.occupied and not asides)


def contents(root: Path) -> dict[str, bytes]:
    """All files of a folder, by path."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def _store(root: Path, name: str, messages: int) -> Path:
    with open_store(new_store(root), TINY, clock=Ticking()) as store:
        for number in range(messages):
            sample = Sample(f"{name}-{number}", "AB"[number % 2], number % 3, keys=("k",))
            store.put(prepared([sample]))
    return root
