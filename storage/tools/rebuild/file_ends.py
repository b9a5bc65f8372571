"""Bytes after the end of a file's content."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from storage.files.fs import FileSystem

_STEP: Final = 1 << 20


def is_zero(fs: FileSystem, path: Path, start: int, end: int) -> bool:
    """Whether a part of a file holds nothing but zeros; holes are not read."""
    fd = fs.open(path, writable=False)
    try:
        for first, data_end in fs.data_ranges(fd, start, end):
            for at in range(first, data_end, _STEP):
                if any(fs.read(fd, min(_STEP, data_end - at), at)):
                    return False
    finally:
        fs.close(fd)
    return True
