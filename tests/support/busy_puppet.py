"""A puppet that puts without a pause, in a thread of its own, until a test stops it."""

from __future__ import annotations

import threading
from pathlib import Path

from storage.detect import detect_config
from tests.support.puppet import Puppet, obey
from tests.support.samples import SMALL, Sample, open_store, prepared

MODULE = "tests.support.busy_puppet"
ROOMY = SMALL.with_(mapped_file_size_commit_log=1 << 20, max_hash_slot_num=500, max_index_num=5_000)
"""Files that hold thousands of messages, so that puts are quick."""


def busy_puppet() -> Puppet:
    return Puppet(MODULE)


class _Commands:
    def open(self, root: str, gate_timeout_ms: int = 5_000) -> None:
        config = detect_config(Path(root), ROOMY)  # files of the lengths that the store records
        self._store = open_store(Path(root), config, gate_timeout_ms=gate_timeout_ms)
        self._stop = threading.Event()
        self._acknowledged = 0
        self._thread = threading.Thread(target=self._put_on)

    def begin(self) -> None:
        """Put from now on; answers after the first one."""
        first = self._acknowledged + 1
        self._thread.start()
        while self._acknowledged < first and self._thread.is_alive():
            self._thread.join(0.001)

    def end(self) -> int:
        """Put no more; how many were acknowledged."""
        self._stop.set()
        self._thread.join()
        return self._acknowledged

    def close(self) -> None:
        self._store.close()

    def _put_on(self) -> None:
        while not self._stop.is_set():
            self._store.put(prepared([Sample(f"b{self._acknowledged}", "B")]))
            self._acknowledged += 1


if __name__ == "__main__":
    obey(_Commands())
