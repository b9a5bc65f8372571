"""Finding the processes that have a store open, without touching its locks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from storage.coordination.lock_owners import describe_holder, find_holders
from storage.info import store_info
from storage.readonly import StoreView
from tests.support.samples import SMALL, new_store, open_store

HOLD = "import sys; print('held', flush=True); sys.stdin.read()"
JAVA_LIKE = "import fcntl; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX, 1, 0)"
WRITER = (
    "sys.path.insert(0, sys.argv[2]); from storage.store import MessageStore; "
    "store = MessageStore.open(sys.argv[1])"
)


def held_by(code: str, argument: Path) -> subprocess.Popen[bytes]:
    """Run ``code`` in another process until its stdin closes; returns when it holds its lock."""
    here = Path(__file__).resolve().parents[3]
    process = subprocess.Popen(
        [sys.executable, "-c", f"import sys; {code}; {HOLD}", argument, here],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


def test_a_store_that_no_process_has_open_has_no_holder(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", SMALL)
    assert find_holders(root) == ((), False)
    assert find_holders(tmp_path) == ((), False)


@pytest.mark.slow
def test_our_writers_are_found_by_pid(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", SMALL)
    with held_by(WRITER, root) as other:
        with open_store(root, SMALL), StoreView.open(root) as view:
            assert find_holders(root).writers == tuple(sorted((os.getpid(), other.pid)))
            assert not store_info(view).java_locked
        assert find_holders(root).describe() == f"rmqctl (pid {other.pid})"
    assert find_holders(root) == ((), False)


def test_a_java_brokers_lock_is_told_from_ours(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", SMALL)
    with held_by(JAVA_LIKE, root / "lock"):
        assert find_holders(root) == ((), True)
        with StoreView.open(root) as view:
            info = store_info(view)
            assert (info.java_locked, info.writers) == (True, ())


@pytest.mark.parametrize("pid", [1 << 22, os.getpid()], ids=["none", "one that has no lock"])
def test_a_pid_that_cannot_have_the_lock_is_not_named(tmp_path: Path, pid: int) -> None:
    """Another process is asked to be ended by that sentence."""
    root = new_store(tmp_path / "store", SMALL)
    assert describe_holder(root / "lock", 0, pid) == "another rmqctl process"
