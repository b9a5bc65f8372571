"""Settings are changed without opening the store, and still by one process at a time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from storage.config import SMALL_STORE
from storage.coordination.config_lock import config_lock
from storage.errors import StoreInUseError, StoreNotWritableError, WriteLockTimeoutError
from storage.store import MessageStore

JAVA = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
    except OSError:
        sys.exit(9)
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    MessageStore.create(tmp_path / "s", SMALL_STORE)
    return tmp_path / "s"


def java(root: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", JAVA, root / "lock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def test_no_process_opens_the_store_or_changes_settings_meanwhile(root: Path) -> None:
    with config_lock(root):
        with pytest.raises(WriteLockTimeoutError):
            MessageStore.open(root, gate_timeout_ms=20)
        with pytest.raises(WriteLockTimeoutError), config_lock(root, timeout_ms=20):
            pass


def test_it_works_beside_a_writer_and_leaves_it_alone(root: Path) -> None:
    with MessageStore.open(root), config_lock(root):
        assert (root / "abort").exists()


def test_who_opens_the_store_next_is_the_first_one(root: Path) -> None:
    with config_lock(root):
        pass
    (root / "abort").touch()
    with MessageStore.open(root) as store:
        assert store.recovery is not None


def test_a_java_broker_is_kept_out_while_it_is_held_and_no_longer(root: Path) -> None:
    with config_lock(root), java(root) as broker:
        assert broker.wait(10) == 9
    with java(root) as broker:
        assert broker.stdout is not None
        assert broker.stdout.readline() == b"locked\n"
        with pytest.raises(StoreInUseError), config_lock(root):
            pass
        broker.communicate()


def test_without_a_folder_it_can_not_be_held(tmp_path: Path) -> None:
    with pytest.raises(StoreNotWritableError), config_lock(tmp_path / "none"):
        pass
