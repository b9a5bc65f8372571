"""The sync of all files each minute: other writers do not wait while the device takes them."""

from __future__ import annotations

import threading
from pathlib import Path

from storage.files.fs import FileSystem
from tests.support.samples import TINY, Sample, new_store, open_store, prepared

NOW = TINY.with_(flush_consume_queue_thorough_interval_ms=0)
QUEUES = 5


class _SlowDevice(FileSystem):
    """A device that takes a queue file only when another writer has put a message meanwhile."""

    def __init__(self) -> None:
        self.put = threading.Event()
        self.put_during_sync: dict[str, bool] = {}

    def sync(self, fd: int) -> None:
        path = str(Path(f"/proc/self/fd/{fd}").readlink())
        if "/consumequeue/Many/" in path and path not in self.put_during_sync:
            self.put.clear()
            writer = threading.Thread(target=self.write_beside, args=(f"beside {path}",))
            writer.start()
            self.put_during_sync[path] = self.put.wait(10)
        super().sync(fd)

    def write_beside(self, name: str) -> None:
        """Put a message by another store object, and set ``put``."""
        raise NotImplementedError


def test_a_put_does_not_wait_for_the_sync_of_many_queues(tmp_path: Path) -> None:
    root = new_store(tmp_path / "s", NOW)
    fs = _SlowDevice()
    with open_store(root, NOW) as other, open_store(root, NOW, fs=fs) as store:

        def write(name: str) -> None:
            other.put(prepared([Sample(name, "Other", 0)]))
            fs.put.set()

        fs.write_beside = write  # type: ignore[method-assign]
        store.put(prepared([Sample(f"m{number}", "Many", number) for number in range(QUEUES)]))
        store._flush_service.tick()
    assert [*fs.put_during_sync.values()] == [True] * QUEUES
