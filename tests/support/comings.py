"""Short-lived openers, killed or not, and a rival that locks as Java does, all at once.

Each has a file while it is inside, so that the others see which are in beside them.
Runs in a slim interpreter (tests.support.slim).
"""

from __future__ import annotations

import fcntl
import os
import random
from contextlib import suppress
from pathlib import Path

from storage.errors import StoreInUseError
from storage.files.fs import FileSystem
from storage.store import MessageStore, now_ms
from tests.support.crash import Acknowledge, Acknowledged, Child, inspect, missing
from tests.support.samples import TINY, Sample, new_store, prepared

ROUNDS = 4
"""Times that an opener that lives comes and goes."""


def come_and_go(folder: str, seed: int, openers: int) -> dict[str, object]:
    """``openers`` writers, four at a time, two of three killed; gives what went wrong."""
    chance = random.Random(seed)
    root = new_store(Path(folder) / f"store-{seed}", TINY)
    inside = Path(folder) / f"inside-{seed}"
    inside.mkdir()
    complaints = Path(folder) / f"complaints-{seed}"
    complaints.touch()
    rival = _Rival(root, inside, complaints)
    acknowledged: list[Acknowledged] = []
    running: list[tuple[str, Child]] = []

    def end(name: str, child: Child) -> None:
        _, answers = child.wait()
        for number, (places, offsets) in answers.items():
            acknowledged.append(Acknowledged(_sample(name, number), places[0], offsets[0]))

    for number in range(openers):
        name = f"o{number}"

        def run(acknowledge: Acknowledge, name: str = name) -> None:
            _open_and_close(root, inside, complaints, name, acknowledge)

        running.append((name, Child(run)))
        if len(running) < 4:
            continue
        name, child = running.pop(chance.randrange(len(running)))
        if chance.random() < 0.67:
            child.kill_within(chance.random() * 0.01)
        end(name, child)
    for name, child in running:
        end(name, child)
    rival.end()
    store = MessageStore(
        root, TINY, exclusive=False, clock=now_ms, fs=FileSystem(), gate_timeout_ms=5_000
    )
    store.close()
    found = inspect(root, TINY)
    problems = complaints.read_text().splitlines() + found.problems
    return {"failures": problems + missing(found, acknowledged), "messages": len(acknowledged)}


def _sample(name: str, number: int) -> Sample:
    return Sample(f"{name}-{number}", "ABC"[number % 3], number % 2, keys=("k",))


def _open_and_close(
    root: Path, inside: Path, complaints: Path, name: str, acknowledge: Acknowledge
) -> None:
    me = inside / f"{os.getpid()}"
    for number in range(ROUNDS):
        try:
            store = MessageStore(
                root, TINY, exclusive=False, clock=now_ms, fs=FileSystem(), gate_timeout_ms=10_000
            )
        except StoreInUseError as error:
            if "a Java broker" not in str(error):
                _complain(complaints, f"{name}: {error}")
            continue
        me.touch()
        acknowledge(number, store.put(prepared([_sample(name, number)])))
        if not (root / "abort").exists():
            _complain(complaints, f"{name}: no abort file while it was in")
        if (inside / "java").exists():
            _complain(complaints, f"{name}: beside a Java broker")
        me.unlink()
        store.close()


def _complain(complaints: Path, what: str) -> None:
    fd = os.open(complaints, os.O_WRONLY | os.O_APPEND)
    os.write(fd, f"{what}\n".encode())
    os.close(fd)


class _Rival:
    """A process that again and again takes Java's lock if it can, and then writes to the file."""

    def __init__(self, root: Path, inside: Path, complaints: Path) -> None:
        self._stop, self._stopping = os.pipe()
        os.set_blocking(self._stop, False)

        def run(_: Acknowledge) -> None:
            fd = os.open(root / "lock", os.O_RDWR)
            while not _readable(self._stop):
                try:
                    fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
                except BlockingIOError:
                    os.sched_yield()
                    continue
                (inside / "java").touch()
                os.pwrite(fd, b"lock", 0)
                for other in inside.iterdir():
                    if other.name != "java" and _has_open(other.name, root / "lock"):
                        _complain(complaints, f"the rival is in beside {other.name}")
                (inside / "java").unlink()
                fcntl.lockf(fd, fcntl.LOCK_UN, 1, 0)
                os.sched_yield()

        self._child = Child(run)

    def end(self) -> None:
        os.write(self._stopping, b"!")
        self._child.wait()


def _has_open(pid: str, lock: Path) -> bool:
    """Whether the process has the lock file open: a dying one closes it before its lock."""
    with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
        for fd in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                if fd.readlink() == lock:
                    return True
    return False


def _readable(fd: int) -> bool:
    try:
        return bool(os.read(fd, 1))
    except BlockingIOError:
        return False
