"""Small reads of many files, each kind in one step: a store may have tens of thousands of queues.

What is unusual is None, and left to :class:`.read_files.ReadOnlyFiles`: a link, a folder or a file
that cannot be read, a file system that does not say what it lists.
"""

from __future__ import annotations

import os
from typing import Final

from storage import native
from storage.format.names import parse_file_name

# a pipe must not block until its other end is open
_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK


def _list_offsets(folders: list[str], file_size: int, /) -> list[list[int] | None]:
    return [_offsets_in(folder, file_size) for folder in folders]


def _offsets_in(folder: str, file_size: int) -> list[int] | None:
    found: list[int] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                offset = parse_file_name(entry.name)
                if offset is None or offset % file_size:
                    continue
                if entry.is_file(follow_symlinks=False):
                    found.append(offset)
                elif not entry.is_dir(follow_symlinks=False):
                    return None
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError:
        return None
    return sorted(found)


def _read_each(paths: list[str], positions: list[int], counts: list[int], /) -> list[bytes | None]:
    return [*map(_read, paths, positions, counts)]


def _read(path: str, position: int, count: int) -> bytes | None:
    try:
        fd = os.open(path, _FLAGS)
        try:
            return os.pread(fd, count, position)
        finally:
            os.close(fd)
    except OSError:
        return None


list_offsets: Final = native.form("list_offsets", _list_offsets)
"""List the files of each folder: their first offsets, ascending; see ReadOnlyFiles.offsets."""
read_each: Final = native.form("read_each", _read_each)
"""Read a part of each file, from a position on at most so many bytes."""
