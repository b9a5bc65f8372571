"""Targets of the units of a rebuilt queue: a comparison with the old ones, or new files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from storage.format.cq_unit import CQ_STORE_UNIT_SIZE
from storage.format.names import file_name

from .queue_build import OldUnits, Units

if TYPE_CHECKING:
    from storage.files.fs import FileSystem

_UNIT: Final = CQ_STORE_UNIT_SIZE


class ComparedUnits:
    """Compares units with those of the existing files."""

    def __init__(self, old: OldUnits) -> None:
        self._old = old
        self.changed = 0
        """Units that are missing in the old files or differ there."""
        self.files: set[int] = set()
        """First bytes of the files of the queue, according to the units put."""
        self.differing: set[int] = set()
        """Files that are missing or differ."""

    def put(self, first: int, units: Units, store_timestamp: int) -> None:
        """Compare units from queue offset ``first`` on."""
        per_file = self._old.per_file
        done = 0
        while done < len(units):
            number = first + done
            file = (number - number % per_file) * _UNIT
            count = min(len(units) - done, per_file - number % per_file)
            old = self._old.read(number, count)
            changed = count - len(old) + _differing(old, units[done : done + len(old)])
            self.changed += changed
            self.files.add(file)
            if changed:
                self.differing.add(file)
            done += count


def _differing(old: Units, new: Units) -> int:
    if old.tobytes() == new.tobytes():
        return 0
    rows = np.frombuffer(old.tobytes(), np.uint8) != np.frombuffer(new.tobytes(), np.uint8)
    return int(rows.reshape(len(old), _UNIT).any(axis=1).sum())


class WrittenUnits:
    """Writes units into new files, as long as the store's queue files; blocks, zeros after them.

    A file's modification time becomes the store time of its last record: RocketMQ's search by time
    chooses files by it (MappedFileQueue.getMappedFileByTime).
    """

    def __init__(self, fs: FileSystem, folder: Path, file_size: int) -> None:
        self._fs = fs
        self.folder = folder
        """The folder of the new files, with their final names."""
        self._file_size = file_size
        self._modified: dict[int, int] = {}

    def put(self, first: int, units: Units, store_timestamp: int) -> None:
        """Write units from queue offset ``first`` on; raises OSError."""
        data = memoryview(units.tobytes())
        offset = first * _UNIT
        while data:
            within = offset % self._file_size
            block = data[: self._file_size - within]
            self._write(offset - within, within, block, store_timestamp)
            data = data[len(block) :]
            offset += len(block)

    def _write(self, file: int, within: int, block: memoryview, store_timestamp: int) -> None:
        fs = self._fs
        is_new = file not in self._modified
        if is_new and not self._modified:
            fs.make_dirs(self.folder)
        fd = fs.open(self.folder / file_name(file), writable=True, create=True)
        try:
            if is_new:
                fs.set_length(fd, 0)
                fs.set_length(fd, self._file_size)
            fs.write(fd, block, within)
        finally:
            fs.close(fd)
        self._modified[file] = max(store_timestamp, self._modified.get(file, 0))

    def finish(self, wanted: set[int]) -> None:
        """Sync the files named by their first bytes; the others are removed."""
        fs = self._fs
        for file, store_timestamp in self._modified.items():
            path = self.folder / file_name(file)
            if file not in wanted:
                fs.unlink(path)
                continue
            if store_timestamp > 0:
                fs.set_modified(path, store_timestamp)
            fd = fs.open(path, writable=True)
            try:
                fs.sync(fd)
            finally:
                fs.close(fd)
        if wanted:
            fs.sync_dir(self.folder)
