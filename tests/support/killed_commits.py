"""Processes that commit, move and export progress, and die: at an instant, at a time, or with the
power.

Runs in a slim interpreter (tests.support.slim).
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from traceback import format_exc
from typing import Any, Final

import storage.configs.progress_log as log_module
from storage.configs.checksummed_json import seal
from storage.configs.consumer_offsets import load_consumer_offsets
from storage.configs.progress import OFFSETS_MARK, ProgressFile
from storage.configs.progress_reader import check_mark
from storage.configs.progress_table import QueueProgress
from storage.files.fs import FileSystem
from tests.support.crash import die
from tests.support.durable_fs import DurableFileSystem
from tests.support.watched_fs import Instant, WatchedFileSystem

KEY: Final = "T@g"
QUEUES: Final = 3
SMALL_LOG: Final = 700
"""Bytes of changes after which a table is written here."""

Known = dict[int, QueueProgress]


@contextmanager
def small_logs() -> Iterator[None]:
    """Have a table take the place of a log after a few changes."""
    before, log_module._LEAST_LOG = log_module._LEAST_LOG, SMALL_LOG  # type: ignore[misc]
    try:
        yield
    finally:
        log_module._LEAST_LOG = before  # type: ignore[misc]


def new_root(folder: Path, *, old: bool) -> Path:
    """A store that was never written, or one of version 1 with progress."""
    (folder / "config").mkdir(parents=True)
    (folder / "lock").touch()
    if old:
        (folder / "rmqctl").mkdir()
        rows = {KEY: {"0": [1, 4]}, "T@other": {"0": [0, 9]}}
        entry: dict[str, Any] = {"version": 1}
        entry["lock_mtime_ns"] = (folder / "lock").stat().st_mtime_ns
        entry |= {"change_id": 3, "queues": rows, "exported": {}}
        (folder / "rmqctl" / OFFSETS_MARK).write_bytes(seal(entry))
    return folder


def work(root: Path, fs: FileSystem, acknowledge: Callable[[Known], None]) -> None:
    """Commit, move and export, by two openers in turn; each change once it is acknowledged."""
    files = [ProgressFile(root, fs), ProgressFile(root, fs)]
    for number in range(14):
        file = files[number % 3 % 2]
        if number == 5:
            moves = file.move({(KEY, 0): 2, (KEY, 1): None}, lambda *_: 7)
            acknowledge({q: new for (_, q), (_, new) in moves.items()})
        elif number in (3, 9):
            file.export()
        else:
            known = file.read()
            offered = {
                (KEY, q): QueueProgress(known.get(KEY, q).generation, 10 * number + q)
                for q in range(number % 2, QUEUES)
            }
            acknowledge({q: now for (_, q), now in file.commit(offered).items()})


def problems_of(root: Path, acknowledged: Known, *, others: bool) -> list[str]:
    """What is wrong with a store after a death: progress that is lost, and a next commit."""
    reader = ProgressFile(root)
    found = []
    before = reader.read()
    for queue_id, known in acknowledged.items():
        now = before.get(KEY, queue_id)
        if now < known if None not in (now.offset, known.offset) else now[0] < known[0]:
            found.append(f"queue {queue_id} has {now}, acknowledged was {known}")
    if others and before.get("T@other", 0) != (0, 9):
        found.append(f"another group has {before.get('T@other', 0)}")
    generation = before.get(KEY, 2).generation
    writer = ProgressFile(root)
    next_one = QueueProgress(generation, 1_000)
    writer.commit({(KEY, 2): next_one})
    started = (root / "lock").stat().st_mtime_ns + 5_000_000
    os.utime(root / "lock", ns=(0, started))  # Java runs, and changes no progress
    in_force = ProgressFile(root).read().queues.get(KEY, {})
    wanted = {**before.queues.get(KEY, {}), 2: next_one}
    if in_force != wanted:
        found.append(f"after a run of Java: {in_force}, not {wanted}")
    writer.export()
    for file in (reader, writer, ProgressFile(root)):
        now = file.read().get(KEY, 2)
        if now != next_one:
            found.append(f"after a commit of {next_one}: {now}")
    if load_consumer_offsets(root) != ProgressFile(root).read().offsets():
        found.append("Java's file differs")
    check_mark(root)
    return found


def killed_at_every_instant(folder: str, shard: int, shards: int, old: bool) -> dict[str, Any]:
    """A process dies at each instant of ``work``, one after the other."""
    failures: list[str] = []
    instants: list[Instant] = []
    with small_logs():
        root = new_root(Path(folder) / f"dry-{shard}", old=old)
        work(root, WatchedFileSystem(instants.append), lambda known: None)
        for number in range(1 + shard, len(instants) + 1, shards):
            root = new_root(Path(folder) / f"{shard}-{number}", old=old)
            acknowledged = _die_at(root, number)
            try:
                bad = problems_of(root, acknowledged, others=old)
            except Exception:  # noqa: BLE001 - progress that cannot be read is a finding as well
                bad = [format_exc(limit=-4)]
            failures += [f"killed at {instants[number - 1]}: {each}" for each in bad]
            shutil.rmtree(root)
    return {"instants": len(instants), "failures": failures}


def _die_at(root: Path, number: int) -> Known:
    """Work in a forked process that dies at an instant; gives what it acknowledged."""

    def watch(instant: Instant) -> None:
        if instant.number == number:
            die()

    acknowledged: Known = {}
    with _forked(lambda say: work(root, WatchedFileSystem(watch), say)) as child:
        acknowledged |= child.said()
    return acknowledged


class _Forked:
    """A forked process, and what it acknowledges on a pipe."""

    def __init__(self, run: Callable[[Callable[[Known], None]], None]) -> None:
        self._pipe, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                run(lambda known: _say(writing, known))
                code = 0
            except BaseException:  # noqa: BLE001 - it must not run on as the parent
                os.write(2, format_exc().encode())
            finally:
                os._exit(code)
        os.close(writing)

    def said(self) -> Known:
        """What it acknowledges until it ends, the last of each queue."""
        text = b""
        while piece := os.read(self._pipe, 1 << 16):
            text += piece
        found: Known = {}
        for line in text.decode().splitlines():
            queue_id, generation, offset = line.split()
            progress = QueueProgress(int(generation), None if offset == "-" else int(offset))
            found[int(queue_id)] = max(found.get(int(queue_id), progress), progress, key=_rank)
        return found

    def close(self) -> None:
        os.close(self._pipe)
        _, status = os.waitpid(self.pid, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        assert killed or status == 0, f"the process ended with status {status}"


def _rank(progress: QueueProgress) -> tuple[int, int]:
    return progress.generation, -1 if progress.offset is None else progress.offset


@contextmanager
def _forked(run: Callable[[Callable[[Known], None]], None]) -> Iterator[_Forked]:
    child = _Forked(run)
    try:
        yield child
    finally:
        child.close()


def _say(fd: int, known: Known) -> None:
    for queue_id, (generation, offset) in known.items():
        text = "-" if offset is None else str(offset)
        os.write(fd, f"{queue_id} {generation} {text}\n".encode())


def cut_at_every_sync(folder: str, shard: int, shards: int, seed: int, old: bool) -> dict[str, Any]:
    """The power goes before and after each sync; the device has all, some or none of what was not
    synced. A writer that was killed before its sync has left a line, too."""
    chance = random.Random(seed)
    failures: list[str] = []
    acknowledged: Known = {}
    cuts = 0
    root = new_root(Path(folder) / f"power-{shard}", old=old)

    def cut(what: str) -> None:
        nonlocal cuts
        cuts += 1
        if cuts % shards != shard or len(failures) > 20:
            return
        for share in (None, 0.0, 0.5, 0.9, 1.0):
            image = fs.buffer(
                Path(folder) / f"image-{shard}", None if share is None else chance, share or 0
            )
            # A start of Java is known by this time.
            os.utime(image / "lock", ns=(0, (root / "lock").stat().st_mtime_ns))
            try:
                bad = problems_of(image, acknowledged, others=old)
            except Exception:  # noqa: BLE001 - progress that cannot be read is a finding as well
                bad = [format_exc(limit=-4)]
            failures.extend(f"cut {cuts}, {what}, {share} kept: {each}" for each in bad)
            shutil.rmtree(image)

    fs = DurableFileSystem(root, cut)
    with small_logs():
        work(root, fs, acknowledged.update)
        for number in range(12):
            with _forked(partial(_die_before_sync, root, number)):
                pass
            known = ProgressFile(root, fs).read().get(KEY, 1)
            offered = QueueProgress(known.generation, 5_000 + 10 * number)
            merged = ProgressFile(root, fs).commit({(KEY, 1): offered})
            acknowledged[1] = merged[KEY, 1]
    fs.forget()
    return {"cuts": cuts, "failures": failures}


def _die_before_sync(root: Path, number: int, _: Callable[[Known], None]) -> None:
    class Dies(FileSystem):
        def sync(self, fd: int) -> None:
            die()

    keys = {(f"T@long-{'x' * (60 * number)}-{n}", 0): QueueProgress(0, number) for n in range(3)}
    ProgressFile(root, Dies()).commit(keys)


def killed_at_any_time(
    folder: str, shard: int, kills: int, seed: int, export: bool = True
) -> dict[str, Any]:
    """Two processes on one store are killed again and again, at any time.

    Without ``export`` Java's file is as old as they have left it.
    """
    chance = random.Random(seed + shard)
    root = Path(folder)
    if not (root / "lock").exists():
        new_root(root / "new", old=False)
        for path in (root / "new").iterdir():
            path.rename(root / path.name)
    failures: list[str] = []
    best: Known = {}
    reader = ProgressFile(root)
    with small_logs():
        for number in range(kills):
            child = _Forked(lambda say: _go_on(root, chance.random(), say))
            rival = _Forked(lambda say: _go_on(root, chance.random(), say))
            time.sleep(chance.random() * 0.004)
            os.kill(child.pid, signal.SIGKILL)
            acknowledged = child.said()
            child.close()
            os.kill(rival.pid, signal.SIGKILL)
            for queue_id, known in [*acknowledged.items(), *rival.said().items()]:
                best[queue_id] = max(best.get(queue_id, known), known, key=_rank)
            rival.close()
            for file in (reader, ProgressFile(root)):
                now = file.read()
                failures += [
                    f"kill {number}: queue {queue_id} has {now.get(KEY, queue_id)}, not {known}"
                    for queue_id, known in best.items()
                    if _rank(now.get(KEY, queue_id)) < _rank(known)
                ]
            if failures:
                break
    if export:
        ProgressFile(root).export()
    return {"best": {str(q): list(known) for q, known in best.items()}, "failures": failures}


def _go_on(root: Path, seed: float, say: Callable[[Known], None]) -> None:
    chance = random.Random(seed)
    file = ProgressFile(root)
    known: Known = {q: file.read().get(KEY, q) for q in range(QUEUES)}
    while True:
        queue_id = chance.randrange(QUEUES)
        generation, offset = known[queue_id]
        what = chance.random()
        if what < 0.05:
            moves = file.move({(KEY, queue_id): chance.randrange(5)})
            now = moves[KEY, queue_id][1]
        elif what < 0.1:
            file.export()
            continue
        else:
            offered = QueueProgress(generation, (offset or 0) + chance.randrange(3))
            now = file.commit({(KEY, queue_id): offered})[KEY, queue_id]
        known[queue_id] = now
        say({queue_id: now})
