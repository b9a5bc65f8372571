"""A sync that failed in another process: the kernel reports lost pages once, perhaps there."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.coordination.shared_state import SharedState, Word
from storage.errors import StoreBrokenError
from storage.files.fs import FileSystem
from tests.support.samples import TINY, Sample, new_store, open_store, prepared, sync_flush


class _FailsElsewhere(FileSystem):
    """Another process's sync fails while ours goes well."""

    def __init__(self) -> None:
        self.elsewhere: SharedState | None = None

    def sync(self, fd: int) -> None:
        super().sync(fd)
        if self.elsewhere is not None:
            self.elsewhere.words[Word.FAILED] = 1


def test_a_put_is_not_acknowledged_if_the_sync_of_another_fails_meanwhile(tmp_path: Path) -> None:
    config = sync_flush(TINY)
    root = new_store(tmp_path / "s", config)
    fs = _FailsElsewhere()
    store = open_store(root, config, fs=fs)
    store.put(prepared([Sample("m0", "T")]))
    other = fs.elsewhere = SharedState(FileSystem(), root, writable=True)
    with pytest.raises(StoreBrokenError):
        store.put(prepared([Sample("m1", "T")]))
    store.close()
    assert (root / "abort").exists()
    other.close()
