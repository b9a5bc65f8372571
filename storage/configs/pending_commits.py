"""Progress in a process's memory, shown to other processes: ``rmqctl/members/NAME.notes``.

A commit with a pull reaches ``offsets.log`` within 5 s. Until then it is here, in a file of the
process (of its process entry, storage.coordination.processes), written without a lock and without a
sync: it survives the process, not the machine. So a process that takes a queue over goes on where
the last owner really was.

    boot id (16 bytes), zeros to 1,024; then a slot of 1,024 bytes for each queue and generation:
    offset (8), generation (8), queue id (4), length of the key (4), the key ``topic@group`` (UTF-8)

The file is mapped. A new slot gets its offset last; later only its offset changes, by one aligned
store of 8 bytes, so that readers see the old one or the new one. 0 is no offset: offsets are stored
+ 1. A file of another boot is ignored: its progress may be of messages that were lost at the log's
end.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from storage.errors import CorruptFileError
from storage.files.bounded import read_bounded
from storage.files.creating import open_or_create
from storage.platform.boot import boot_id
from storage.platform.space import reserve

from .progress_table import QueueProgress

NOTES_SUFFIX: Final = ".notes"
_SLOT_SIZE: Final = 1_024
_GROWTH: Final = 64 * _SLOT_SIZE
_OFFSET: Final = struct.Struct("=q")
_REST: Final = struct.Struct("=qii")
_KEY_AT: Final = _OFFSET.size + _REST.size

ProgressKey = tuple[str, int]


class PendingCommits:
    """The file of one process; made with the first commit. Safe for threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()  # guards all below
        self._map: mmap.mmap | None = None
        self._words = memoryview(b"").cast("q")
        self._slots: dict[tuple[str, int, int], int] = {}  # key, queue id, generation
        self._closed = False

    def write(self, key: ProgressKey, progress: QueueProgress) -> None:
        """Show the progress of a queue; OSError if that is not possible."""
        generation, offset = progress
        name = (*key, generation)
        with self._lock:
            if offset is None or self._closed:
                return
            at = self._slots.get(name)
            if at is None:
                text = key[0].encode("utf-8", "surrogateescape")
                if len(text) > _SLOT_SIZE - _KEY_AT:
                    return
                at = (len(self._slots) + 1) * _SLOT_SIZE
                mapped = self._mapped(at + _SLOT_SIZE)
                rest = _REST.pack(generation, key[1], len(text)) + text
                mapped[at + _OFFSET.size : at + _OFFSET.size + len(rest)] = rest
                self._slots[name] = at
            self._words[at // _OFFSET.size] = offset + 1

    def _mapped(self, size: int) -> mmap.mmap:
        """Map the file; its blocks are reserved, so that a full disk is no SIGBUS."""
        known = self._map
        if known is not None and len(known) >= size:
            return known
        fd = open_or_create(self.path)
        try:
            reserve(fd, 0, max(_GROWTH, 2 * size))
            mapped = mmap.mmap(fd, 0)
        finally:
            os.close(fd)
        head = _head()
        mapped[: len(head)] = head
        # Last, and at once: an interrupted call leaves the old state, and is repeated.
        self._map, self._words = mapped, memoryview(mapped).cast("q")
        return mapped

    def close(self) -> None:
        """Write no more; the file stays."""
        with self._lock:
            self._closed = True
            self._words = memoryview(b"").cast("q")
            self._map = None


def read_notes(
    path: Path, key: ProgressKey | None = None
) -> list[tuple[ProgressKey, QueueProgress]]:
    """Give the pending commits of a process, of one queue or all; nothing if the file is gone or
    too old."""
    with suppress(FileNotFoundError, NotADirectoryError, CorruptFileError):
        data = read_bounded(path)
        if data[: len(_head())] == _head():
            return list(_slots_of(data, key))
    return []


def notes_in(folder: Path) -> list[Path]:
    """List the files of all processes in a folder of process entries, of dead ones too."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return [path for path in folder.iterdir() if path.suffix == NOTES_SUFFIX]
    return []


def _slots_of(data: bytes, key: ProgressKey | None) -> Iterator[tuple[ProgressKey, QueueProgress]]:
    wanted = None if key is None else key[0].encode("utf-8", "surrogateescape")
    for at in range(_SLOT_SIZE, len(data) - _SLOT_SIZE + 1, _SLOT_SIZE):
        (following,) = _OFFSET.unpack_from(data, at)
        if following <= 0:
            continue
        generation, queue_id, length = _REST.unpack_from(data, at + _OFFSET.size)
        text = data[at + _KEY_AT : at + _KEY_AT + length]
        if generation < 0 or queue_id < 0 or not 0 < length <= _SLOT_SIZE - _KEY_AT:
            continue
        if text and (wanted is None or key is None or (text, queue_id) == (wanted, key[1])):
            name = text.decode("utf-8", "surrogateescape")
            yield (name, queue_id), QueueProgress(generation, following - 1)


def _head() -> bytes:
    high, low = boot_id() or (0, 0)
    return struct.pack("<qq", high, low)
