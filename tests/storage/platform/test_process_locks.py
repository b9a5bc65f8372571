"""Locks of processes do what locks of open files do: for owners, for processes, after any death."""

from __future__ import annotations

import fcntl
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from storage.platform import process_locks
from storage.platform.process_locks import OURS
from tests.support.cli import ROOT
from tests.support.java_lock import java_lock
from tests.support.linux_forms import needs_linux_forms

BYTES: Final = 6
OTHER = """
import fcntl, os, sys
from storage.platform import file_locks
owner = object()
path = sys.argv[1]
fd = file_locks.open_locked(path, owner, lambda: os.open(path, os.O_RDWR), writable=True)
for line in sys.stdin:
    what, kind, start, length = line.split()
    kind = getattr(fcntl, kind)
    try:
        if what == "set":
            file_locks.set_lock(fd, owner, kind, int(start), int(length))
            print("done", flush=True)
        else:
            print(file_locks.conflicting(fd, owner, kind, int(start), int(length)), flush=True)
    except BlockingIOError:
        print("busy", flush=True)
"""


class Owner:
    """An owner in this process, of the form for any POSIX system."""

    def __init__(self, path: Path, flags: int = os.O_RDWR) -> None:
        writable = flags == os.O_RDWR
        self.fd = process_locks.open_locked(
            str(path), self, lambda: os.open(path, flags), writable=writable
        )

    def set(self, kind: int, start: int, length: int = 1) -> bool:
        try:
            process_locks.set_lock(self.fd, self, kind, start, length)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        process_locks.close_locked(self.fd, self)


class Other:
    """Another process, of either form."""

    def __init__(self, path: Path, posix: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", OTHER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "RMQCTL_POSIX": posix},
        )

    def ask(self, line: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()


@contextmanager
def other(path: Path, posix: str = "1") -> Iterator[Other]:
    made = Other(path, posix)
    with made.process:
        try:
            yield made
        finally:
            made.process.kill()


either_form = pytest.mark.parametrize(
    "posix", ["1", pytest.param("", marks=needs_linux_forms)], ids=["posix", "linux"]
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "lock"
    made.touch()
    return made


def test_owners_of_one_process_exclude_one_another(path: Path) -> None:
    one, two = Owner(path), Owner(path)
    assert one.fd == two.fd, "a descriptor of its own would release the other's locks"
    assert one.set(fcntl.F_WRLCK, 0)
    assert not two.set(fcntl.F_RDLCK, 0)
    assert two.set(fcntl.F_WRLCK, 1)
    assert not one.set(fcntl.F_RDLCK, 0, 2)
    assert one.set(fcntl.F_RDLCK, 0)
    assert two.set(fcntl.F_RDLCK, 0)
    assert not one.set(fcntl.F_WRLCK, 0), "another one shares it"
    assert not two.set(fcntl.F_WRLCK, 0)
    two.set(fcntl.F_UNLCK, 0)
    assert one.set(fcntl.F_WRLCK, 0)
    one.close()
    two.close()


@either_form
def test_a_closed_owner_takes_no_lock_of_another_with_it(path: Path, posix: str) -> None:
    with other(path, posix) as process:
        one, two, reader = Owner(path), Owner(path), Owner(path, os.O_RDONLY)
        assert one.set(fcntl.F_WRLCK, 0)
        assert two.set(fcntl.F_RDLCK, 1)
        assert reader.set(fcntl.F_RDLCK, 1)
        two.close()
        process_locks.close_unlocked(os.open(path, os.O_RDONLY))
        reader.close()
        assert process.ask("set F_WRLCK 0 1") == "busy"
        assert process.ask("set F_WRLCK 1 1") == "done"
        one.close()
        assert process.ask("set F_WRLCK 0 1") == "done"


def test_no_descriptor_is_left_open(path: Path) -> None:
    def opened() -> set[str]:
        return set(os.listdir("/dev/fd"))  # noqa: PTH208 - numbers, not files

    before = opened()
    owners = [Owner(path), Owner(path), Owner(path, os.O_RDONLY)]
    for owner in owners:
        owner.set(fcntl.F_RDLCK, 3)
    process_locks.close_unlocked(os.open(path, os.O_RDONLY))
    for owner in owners:
        owner.close()
    assert opened() == before


@either_form
def test_a_killed_process_has_no_locks(path: Path, posix: str) -> None:
    one = Owner(path)
    with other(path, posix) as process:
        assert process.ask("set F_WRLCK 0 1") == "done"
        assert not one.set(fcntl.F_WRLCK, 0)
        process.process.kill()
        process.process.wait()
        assert one.set(fcntl.F_WRLCK, 0)
    one.close()


@either_form
def test_rmqctl_of_either_form_is_told_from_java(path: Path, posix: str) -> None:
    one = Owner(path)
    with other(path, posix) as process:
        assert process.ask("set F_RDLCK 0 1") == "done"
        assert process_locks.conflicting(one.fd, one, fcntl.F_WRLCK, 0, 1) == OURS
        assert process.ask("set F_UNLCK 0 1") == "done"
        assert one.set(fcntl.F_RDLCK, 0)
        assert process.ask("conflicting F_WRLCK 0 1") == str(OURS)
        one.close()
        one = Owner(path)
        assert process.ask("conflicting F_WRLCK 0 1") == "None"
        with java_lock(path.parent) as pid:
            assert process_locks.conflicting(one.fd, one, fcntl.F_WRLCK, 0, 1) == pid
            assert process.ask("conflicting F_WRLCK 0 1") == str(pid)
    one.close()


def test_a_forked_child_has_no_lock_and_takes_none_away(path: Path) -> None:
    one = Owner(path)
    assert one.set(fcntl.F_WRLCK, 0)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            one.close()
            mine = Owner(path)
            busy = not mine.set(fcntl.F_WRLCK, 0)
            free = mine.set(fcntl.F_WRLCK, 1)
            mine.close()
            code = 0 if busy and free else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with other(path) as process:
        assert process.ask("set F_WRLCK 0 1") == "busy"
        one.close()
        assert process.ask("set F_WRLCK 0 1") == "done"


def test_a_wait_ends_when_its_owner_is_closed(path: Path) -> None:
    import threading

    one, two = Owner(path), Owner(path)
    assert one.set(fcntl.F_WRLCK, 0)
    ended: list[int | None] = []

    def wait() -> None:
        try:
            process_locks.wait_lock(two.fd, two, fcntl.F_WRLCK, 0, 1)
        except OSError as error:
            ended.append(error.errno)

    thread = threading.Thread(target=wait)
    thread.start()
    two.close()
    thread.join(10)
    assert len(ended) == 1
    assert one.set(fcntl.F_WRLCK, 0), "what the thread waited for is this owner's still"
    one.close()


@either_form
@pytest.mark.parametrize("seed", range(4))
def test_any_steps_leave_what_a_table_of_bytes_says(path: Path, seed: int, posix: str) -> None:
    """Three owners here lock and unlock ranges; another process sees exactly their union."""
    steps = random.Random(seed)
    owners: list[Owner | None] = [None, None, None]
    held: list[dict[int, bool]] = [{}, {}, {}]
    with other(path, posix) as process:
        for _ in range(150):
            number = steps.randrange(3)
            owner = owners[number]
            if owner is None:
                owners[number] = Owner(path)
                continue
            if steps.random() < 0.1:
                owner.close()
                owners[number], held[number] = None, {}
            else:
                kind = steps.choice([fcntl.F_RDLCK, fcntl.F_WRLCK, fcntl.F_UNLCK])
                start = steps.randrange(BYTES)
                at = range(start, start + steps.randint(1, BYTES - start))
                rivals = [one for index, one in enumerate(held) if index != number]
                busy = kind != fcntl.F_UNLCK and any(
                    byte in one and (kind == fcntl.F_WRLCK or one[byte])
                    for one in rivals
                    for byte in at
                )
                assert owner.set(kind, start, len(at)) == (not busy)
                for byte in () if busy else at:
                    held[number].pop(byte, None)
                    if kind != fcntl.F_UNLCK:
                        held[number][byte] = kind == fcntl.F_WRLCK
            for byte in range(BYTES):
                kinds = [one[byte] for one in held if byte in one]
                seen = [
                    process.ask(f"conflicting {kind} {byte} 1") == str(OURS)
                    for kind in ("F_WRLCK", "F_RDLCK")
                ]
                assert seen == [bool(kinds), any(kinds)]
    for owner in owners:
        if owner is not None:
            owner.close()
