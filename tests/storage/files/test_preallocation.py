"""Blocks are there before bytes are stored to a map: a full disk is an error, never a SIGBUS."""

from __future__ import annotations

import os

from storage.files.fs import FileSystem
from storage.files.mapped_file import MappedFile

SIZE = 16 << 20
WINDOW = 1 << 20


def test_a_long_store_that_begins_in_another_ones_window_has_blocks_for_all_of_it(tmp_path):
    """Another process reserved the first window; we store from its end over most of the next."""
    path = tmp_path / "file"
    with path.open("wb") as made:
        made.truncate(SIZE)
        os.posix_fallocate(made.fileno(), 0, WINDOW)
    file = MappedFile(FileSystem(), path, SIZE, 0, writable=True)
    begin = WINDOW - 100
    end = begin + 600_000
    file.reserve(begin, end, WINDOW)
    assert file.reserved_to == 2 * WINDOW
    assert path.stat().st_blocks * 512 >= 2 * WINDOW
    file.close()
