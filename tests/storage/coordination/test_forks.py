"""A fork beside threads that make a part, or that open or close a lock file.

Functions without ``test_`` run in a slim interpreter.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from storage.coordination import forks
from storage.coordination.forks import made_once
from storage.coordination.locks import LockFile, ProcessLock
from storage.platform import file_locks
from tests.support.forking import Held, is_code_of, status_of_child
from tests.support.linux_forms import needs_linux_forms
from tests.support.slim import Slim

PATIENCE_S = 20


class Whole:
    """An object with parts that are made late."""

    made = 0

    @made_once
    def outer(self) -> str:
        """Made of the inner part."""
        return f"outer of {self.inner}"

    @made_once
    def inner(self) -> str:
        """Made at the end of ``outer``."""
        self.made += 1
        return "inner"


def is_made(whole: Whole) -> bool:
    return whole.outer == "outer of inner" and whole.made == 1


# -- parts ----------------------------------------------------------------------------------------


def test_a_part_is_made_once_and_kept_like_an_attribute() -> None:
    whole = Whole()
    assert is_made(whole)
    assert is_made(whole)
    assert vars(whole) == {"made": 1, "inner": "inner", "outer": "outer of inner"}
    assert Whole.outer.__doc__ == "Made of the inner part."
    del whole.inner
    assert whole.inner == "inner"
    assert whole.made == 2


@pytest.mark.slow
def test_two_threads_do_not_make_a_part_twice() -> None:
    assert Slim(f"{__name__}:two_threads").result() == {"ends": [True, True], "made": 1}


def two_threads() -> dict[str, object]:
    whole = Whole()
    first = Held(lambda: whole.outer, at=is_code_of(Whole.inner._make))
    second = Held(lambda: whole.inner, at=is_code_of(made_once.__get__))
    second.go_on.set()  # it has to wait for the first one now
    return {"ends": [first.ends(), second.ends()], "made": whole.made}


@pytest.mark.slow
def test_a_fork_waits_for_a_thread_that_makes_a_part() -> None:
    found = Slim(f"{__name__}:fork_beside_a_thread_that_makes_a_part").result()
    assert found == {"made before the fork": True, "child": 0, "thread ends": True}


def fork_beside_a_thread_that_makes_a_part() -> dict[str, object]:
    whole = Whole()
    thread = Held(lambda: whole.outer, at=is_code_of(Whole.inner._make))
    thread.goes_on_with_a_fork()
    status = status_of_child(lambda: "outer" in vars(whole) and is_made(Whole()))
    return {"made before the fork": is_made(whole), "child": status, "thread ends": thread.ends()}


@pytest.mark.slow
def test_a_fork_goes_on_beside_a_thread_that_does_not_end_and_its_child_makes_parts() -> None:
    found = Slim(f"{__name__}:fork_beside_a_thread_that_is_stopped").result()
    assert found == {"child": 0, "parent": True, "thread ends": True}


def fork_beside_a_thread_that_is_stopped() -> dict[str, object]:
    forks.PATIENCE_S = 0.1  # type: ignore[misc]
    whole = Whole()
    thread = Held(lambda: whole.outer, at=is_code_of(Whole.inner._make))
    status = status_of_child(lambda: is_made(Whole()))
    return {"child": status, "thread ends": thread.ends(), "parent": is_made(whole)}


@pytest.mark.slow
def test_a_thread_that_makes_a_part_can_fork_without_a_wait() -> None:
    found = Slim(f"{__name__}:fork_inside_of_a_part").result()
    assert found == {"child": 0, "waited": False, "other thread": ["outer of inner"]}


class Forking(Whole):
    """Its part forks."""

    status = -1

    @made_once
    def forked(self) -> str:
        """Forks; the child makes another part, and this one of another object."""
        self.status = status_of_child(lambda: is_made(self) and is_made(Whole()))
        return "forked"


def fork_inside_of_a_part() -> dict[str, object]:
    whole, made = Forking(), []
    start = time.monotonic()
    assert whole.forked == "forked"
    waited = time.monotonic() - start >= forks.PATIENCE_S
    other = threading.Thread(target=lambda: made.append(Forking().outer), daemon=True)
    other.start()  # nothing is held now
    other.join(PATIENCE_S)
    return {"child": whole.status, "waited": waited, "other thread": made}


# -- lock files -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["opens a file", "opens for a block", "closes a file"])
def test_a_child_has_no_descriptor_that_a_thread_of_its_parent_opens_or_closes(
    tmp_path: Path, kind: str
) -> None:
    (tmp_path / "lock").touch()
    call = f"{__name__}:fork_beside_a_thread_with_a_lock_file"
    found = Slim(call, path=str(tmp_path / "lock"), kind=kind).result()
    assert found == {"child": 0, "thread ends": True}


def fork_beside_a_thread_with_a_lock_file(path: str, kind: str) -> dict[str, object]:
    def block() -> None:
        with ProcessLock(Path(path)).held():
            pass

    work, at = {
        "opens a file": (lambda: LockFile(Path(path)).close(), weakref.WeakSet.add),
        "opens for a block": (block, weakref.WeakSet.add),
        "closes a file": (lambda: LockFile(Path(path)).close(), file_locks.close_locked),
    }[kind]
    thread = Held(work, at=is_code_of(at))
    thread.goes_on_with_a_fork()
    status = status_of_child(lambda: not is_open(path))
    return {"child": status, "thread ends": thread.ends()}


@pytest.mark.slow
@needs_linux_forms
def test_a_child_has_no_descriptor_that_a_block_of_its_parent_is_just_closing(
    tmp_path: Path,
) -> None:
    (tmp_path / "lock").touch()
    call = f"{__name__}:fork_beside_the_end_of_a_block"
    found = Slim(call, path=str(tmp_path / "lock"), other=str(tmp_path / "other")).result()
    assert found == {"child": 0, "child with another file": 0}


def fork_beside_the_end_of_a_block(path: str, other: str) -> dict[str, object]:
    """A file that is being closed has no descriptor any more, and the process still has it."""
    file: Any = ProcessLock(Path(path)).held()
    fd = file.fileno()
    kept = os.dup(fd)
    file.close()
    os.dup2(kept, fd)
    os.close(kept)
    status = status_of_child(lambda: not is_open(path))
    os.close(fd)
    opened = os.open(other, os.O_CREAT | os.O_RDONLY)  # it is closed, and the number is used again
    assert opened == fd
    return {
        "child": status,
        "child with another file": status_of_child(lambda: is_open(other)),
    }


def is_open(path: str) -> bool:
    """Whether this process has a descriptor of the file."""
    for fd in range(256):
        with suppress(OSError):
            if os.path.samestat(os.fstat(fd), Path(path).stat()):
                return True
    return False
