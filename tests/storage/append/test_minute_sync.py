"""The sync of all files each minute: other writers do not wait while the device takes them."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from storage.coordination.shared_state import Word
from storage.errors import WriteLockTimeoutError
from storage.files.fs import FileSystem
from storage.store import MessageStore
from tests.support.samples import TINY, Sample, new_store, open_store, prepared

NOW = TINY.with_(flush_consume_queue_thorough_interval_ms=0)
QUEUES = 5


class _SlowDevice(FileSystem):
    """A device that takes a queue file only when another writer has put a message meanwhile."""

    def __init__(self) -> None:
        self.put = threading.Event()
        self.put_during_sync: dict[str, bool] = {}
        self.write_beside: Callable[[str], None] = print
        """Puts a message by another store object, and sets ``put``."""

    def sync(self, fd: int) -> None:
        path = str(Path(f"/proc/self/fd/{fd}").readlink())
        if "/consumequeue/Many/" in path and path not in self.put_during_sync:
            self.put.clear()
            writer = threading.Thread(target=self.write_beside, args=(f"beside {path}",))
            writer.start()
            self.put_during_sync[path] = self.put.wait(10)
        super().sync(fd)


def test_a_put_does_not_wait_for_the_sync_of_many_queues(tmp_path: Path) -> None:
    root = new_store(tmp_path / "s", NOW)
    fs = _SlowDevice()
    with open_store(root, NOW) as other, open_store(root, NOW, fs=fs) as store:

        def write(name: str) -> None:
            other.put(prepared([Sample(name, "Other", 0)]))
            fs.put.set()

        fs.write_beside = write
        store.put(prepared([Sample(f"m{number}", "Many", number) for number in range(QUEUES)]))
        store._flush_service.tick()
    assert [*fs.put_during_sync.values()] == [True] * QUEUES


class _NoDescriptors(FileSystem):
    """One queue file cannot be opened to be synced; counts the syncs of queue files."""

    def __init__(self) -> None:
        self.refused = ""
        self.syncs = 0

    def open(self, path: Path, *, writable: bool, create: bool = False) -> int:
        if self.refused and self.refused in path.parts:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))
        return super().open(path, writable=writable, create=create)

    def sync(self, fd: int) -> None:
        self.syncs += "/consumequeue/" in str(Path(f"/proc/self/fd/{fd}").readlink())
        super().sync(fd)


def test_what_cannot_be_synced_ahead_is_no_reason_to_hurry(tmp_path: Path) -> None:
    """The next rounds sync no queue until the sync of all has been tried."""
    root = new_store(tmp_path / "s", NOW)
    fs = _NoDescriptors()
    with (
        MessageStore.open(root, NOW, fs=fs, gate_timeout_ms=200) as store,
        open_store(root, NOW) as other,
    ):
        store.put(prepared([Sample(f"m{number}", "A", number) for number in range(QUEUES)]))
        store.put(prepared([Sample("last", "B", 0)]))
        fs.refused = "B"
        with other.write_lock(), pytest.raises(WriteLockTimeoutError):
            store._flush_service.tick()
        assert fs.syncs == QUEUES
        with other.write_lock(), pytest.raises(WriteLockTimeoutError):
            store._flush_service.tick()
        assert fs.syncs == QUEUES
        fs.refused = ""
        store._flush_service.tick()
        assert fs.syncs == 2 * QUEUES + 1


def test_the_log_is_synced_while_the_queues_are(tmp_path: Path) -> None:
    root = new_store(tmp_path / "s", NOW)
    fs = _SlowDevice()
    left: list[int] = []
    with open_store(root, NOW) as other, open_store(root, NOW, fs=fs) as store:

        def write(name: str) -> None:
            left.append(store.log_end - store._shared.words[Word.FLUSHED_TO])
            other.put(prepared([Sample(name, "Other", 0)]))
            fs.put.set()

        fs.write_beside = write
        store.put(prepared([Sample(f"m{number}", "Many", number) for number in range(QUEUES)]))
        store._flusher.sync_log()
        store._flusher.sync_ahead(0.0, lambda: None)
    assert left == [0] * QUEUES
