"""Queue files of another length than those of the store: a Java broker does not start with one.

The units of such a file and of later ones are written again from the log; the files are set aside,
the odd one last, so that after a death in between the next recovery finds it again. Before that the
checkpoint says that the device has no unit for certain: the next recovery then begins at the first
file of the log.

Where the log has none of these messages any more, it cannot tell where the queue ends, and a new
message would get an offset that consumers have passed. Then each file gets the store's length, and
keeps its units; what it had is set aside.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from storage.configs.config_file import give_up
from storage.files.checkpoint_file import StoreCheckpoint
from storage.format.cq_unit import CQ_STORE_UNIT_SIZE, PRE_BLANK, PRE_BLANK_SIZE
from storage.format.names import OURS, SET_ASIDE_FOLDER, file_name

from .queues import read_units

if TYPE_CHECKING:
    from numpy import ndarray

    from storage.files.fs import FileSystem


class QueueLengths:
    """Gives each file of a queue the store's length, or sets it aside."""

    def __init__(
        self,
        fs: FileSystem,
        root: Path,
        file_size: int,
        log_min: int,
        notes: list[str],
        made_anew: set[tuple[str, int]],
    ) -> None:
        """Take the length of the store's queue files and the log's first offset; a sentence for
        each queue that is changed is added to ``notes``, and a queue of which units are to be
        written again from the log to ``made_anew``."""
        self._fs = fs
        self._root = root
        self._made_anew = made_anew
        self._ours = root / OURS
        self._file_size = file_size
        self._per_file = file_size // CQ_STORE_UNIT_SIZE
        self._log_min = log_min
        self._notes = notes

    def whole_files(self, folder: Path, files: list[int]) -> list[int]:
        """The files of a queue that count, all of the store's length when this returns."""
        for number, first in enumerate(files):
            path = folder / file_name(first)
            if path.stat().st_size == self._file_size:
                continue
            later = files[number:]
            kept, end = self._kept(folder, later, is_all=number == 0)
            for place in kept:
                self._make_whole(folder, place, end)
            if not kept:
                self._made_anew.add((folder.parent.name, int(folder.name)))
                self._distrust_queues()
            self._set_aside(folder, [place for place in later if place not in kept])
            what = (
                "its end kept: the log has no message of it" if kept else "made anew from the log"
            )
            self._notes.append(f"{path}: not {self._file_size} bytes long, {what}")
            return files[:number] + kept
        return files

    def _kept(self, folder: Path, files: list[int], *, is_all: bool) -> tuple[list[int], int]:
        """The files that keep the queue's end, and the queue offset after its last unit.

        None if the log has one of the messages, or no unit is left. Where these are all files of
        the queue, and old messages were deleted, the last one's name tells that so many were there.
        """
        kept, end = [], 0
        if is_all and self._log_min and files[-1]:
            kept, end = files[-1:], files[-1] // CQ_STORE_UNIT_SIZE
        for number, first in enumerate(files, 1):
            units = self._read(folder, first)
            present = (units["offset"] >= 0) & (units["size"] > 0)
            present &= units["size"] != PRE_BLANK_SIZE
            deleted = self._are_deleted(units)
            if (present & ~deleted).any():
                return [], 0
            if deleted.any():
                kept = files[:number]
                end = first // CQ_STORE_UNIT_SIZE + len(units) - int(deleted[::-1].argmax())
        return kept, end

    def _are_deleted(self, units: ndarray) -> ndarray:
        """Which units point before the log's first byte."""
        offsets, sizes = units["offset"], units["size"]
        inside: ndarray = (sizes > 0) & (offsets >= 0) & (offsets + sizes <= self._log_min)
        return inside

    def _make_whole(self, folder: Path, first: int, end: int) -> None:
        """Give a file the store's length; fillers replace units before ``end`` that it lacks."""
        import numpy as np

        path = folder / file_name(first)
        is_file = path.is_file()
        old = path.read_bytes() if is_file else b""
        count = max(0, min(self._per_file, end - first // CQ_STORE_UNIT_SIZE))
        units = self._read(folder, first)[:count]
        whole = np.frombuffer(PRE_BLANK * count, units.dtype).copy()
        good = self._are_deleted(units)
        whole[: len(units)][good] = units[good]
        data = whole.tobytes()
        if len(old) == self._file_size and old.startswith(data):
            return
        modified = path.stat().st_mtime_ns // 1_000_000
        if is_file:
            self._write(self._free_name(path), old, len(old), modified)
        else:
            self._set_aside(folder, [first])
        self._write(path, data, self._file_size, modified)

    def _write(self, path: Path, data: bytes, length: int, modified: int) -> None:
        """Make or replace a file: it is whole or not there, on the device when this returns."""
        fs = self._fs
        fd, staged = fs.create_beside(path, folder=self._ours)
        try:
            try:
                fs.set_length(fd, length)
                fs.write(fd, data, 0)
                fs.set_modified(staged, modified)
                fs.sync(fd)
            finally:
                fs.close(fd)
            fs.rename(staged, path)
        except BaseException:
            give_up(fs, staged)
            raise
        fs.sync_dir(path.parent)

    def _distrust_queues(self) -> None:
        """Have the checkpoint say that the device has no unit for certain."""
        checkpoint = StoreCheckpoint(self._fs, self._root)
        data = checkpoint.read()
        if data.logics_msg_timestamp:
            checkpoint.write(data._replace(logics_msg_timestamp=0), self._fs.sync)

    def _set_aside(self, folder: Path, files: list[int]) -> None:
        for first in reversed(files):
            path = folder / file_name(first)
            self._fs.rename(path, self._free_name(path))
            self._fs.sync_dir(folder)

    def _free_name(self, path: Path) -> Path:
        """A name for what a queue file had."""
        aside = self._ours / SET_ASIDE_FOLDER
        self._fs.make_dirs(aside)
        topic, queue_id = path.parts[-3:-1]
        number = 0
        while (target := aside / f"{topic}-{queue_id}-{path.name}.{number}").exists():
            number += 1
        return target

    def _read(self, folder: Path, first: int) -> ndarray:
        """The units of a file; none of what is no file."""
        path = folder / file_name(first)
        return read_units(path if path.is_file() else Path(os.devnull))[: self._per_file]
