"""How many bytes are stored through a map at once. Runs without NumPy (tests.support.slim)."""

from __future__ import annotations

import mmap
import sys
from pathlib import Path
from typing import Any

from storage.files.fs import FileSystem
from storage.index.pending_keys import MOST_PENDING
from tests.support.samples import SMALL, Sample, open_store

ROOMY = SMALL.with_(
    mapped_file_size_commit_log=4 << 20,
    mapped_file_size_consume_queue=20 * 4000,
    max_index_num=100_000,
)


class _Map(mmap.mmap):
    largest = 0

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            _Map.largest = max(_Map.largest, len(value))
        super().__setitem__(index, value)


class _Measured(FileSystem):
    def map(self, fd: int, length: int, *, writable: bool) -> mmap.mmap:
        return _Map(fd, length, access=mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ)


def largest_store(root: str, keys: int) -> dict[str, object]:
    """Put as many single messages as may be pending, with so many keys each."""
    with open_store(Path(root), ROOMY, fs=_Measured()) as store:
        for number in range(MOST_PENDING + 10):
            several = tuple(f"key-{number}-{other}" for other in range(keys))
            store.put_message(Sample(f"m{number}", "T", keys=several).inner())
    return {"largest": _Map.largest, "numpy": "numpy" in sys.modules}
