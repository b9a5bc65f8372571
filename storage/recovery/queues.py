"""Finding where each consume queue ends, and cutting units that point after the log's end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from storage.files.queue_folders import is_queue_number
from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE, PRE_BLANK_SIZE
from storage.format.dispatch import is_possible_topic
from storage.format.names import CONSUMEQUEUE, file_name, parse_file_name
from storage.queue.unit_holes import may_be_torn

if TYPE_CHECKING:
    from numpy import ndarray

    from storage.config import StoreConfig
    from storage.files.fs import FileSystem

_LOOK_BACK = 3
"""Files from the end that are read, as in ConsumeQueue.recover."""


class _Queue(NamedTuple):
    """Next offset of a queue, and the end of the record of its last unit (-1 = none)."""

    next_offset: int
    max_physic_offset: int


class QueueRecovery:
    """All consume queues of a store as files, without the shared state.

    Removed units are gone from the device before the log grows over the offsets that they named:
    after another power loss such a unit would be taken for one of a newer record.
    """

    def __init__(self, fs: FileSystem, root: Path, config: StoreConfig, log_min: int) -> None:
        self._fs = fs
        self._root = root / CONSUMEQUEUE
        self._queues: dict[tuple[str, int], _Queue] = {}
        self._store = root
        self._file_size = config.mapped_file_size_consume_queue
        self._log_min = log_min
        self.notes: list[str] = []
        self.made_anew: set[tuple[str, int]] = set()
        """Queues that lost whole files: their units are to be written again from the log."""

    def load(self, vouched: int | None) -> None:
        """Read the last units of every queue (ConsumeQueue.recover).

        After an abnormal exit ``vouched`` is the log offset up to which the device surely has all
        units. After it there may be holes in any file, not only in the last three: a queue then
        ends at the first hole, and the units after it are removed, to be written again from the
        log.
        """
        for topic, queue_id, folder in self._folders():
            files = self._whole_files(folder)
            if files:
                self._queues[topic, queue_id] = self._recover(folder, files, vouched)

    def max_physic_offset(self) -> int:
        """End of the newest record that any queue has a unit of, -1 if there are none."""
        return max((queue.max_physic_offset for queue in self._queues.values()), default=-1)

    def next_offsets(self) -> list[tuple[str, int, int]]:
        """Every queue with its next offset."""
        return [(*key, queue.next_offset) for key, queue in self._queues.items()]

    def next_offset(self, topic: str, queue_id: int) -> int:
        """Next offset of one queue, 0 if it has no file."""
        queue = self._queues.get((topic, queue_id))
        return 0 if queue is None else queue.next_offset

    def truncate(self, log_end: int) -> None:
        """Remove the units of records that end after ``log_end``."""
        for key, queue in list(self._queues.items()):
            if queue.max_physic_offset > log_end:
                folder = self._root / key[0] / str(key[1])
                self._queues[key] = self._truncate(folder, queue.next_offset, log_end)

    def units_from(self, commitlog_offset: int) -> ndarray:
        """Units of all queues that point at or after an offset, with queue id and offset."""
        import numpy as np

        row = np.dtype(
            [("offset", "i8"), ("size", "i8"), ("queue_id", "i8"), ("queue_offset", "i8")]
        )
        parts = [np.zeros(0, row)]
        for (topic, queue_id), queue in self._queues.items():
            folder = self._root / topic / str(queue_id)
            for first in reversed(self._files(folder)):
                number = first // CQ_STORE_UNIT_SIZE
                units = self._read(folder, first)[: max(0, queue.next_offset - number)]
                wanted = (units["offset"] >= commitlog_offset) & (units["size"] != PRE_BLANK_SIZE)
                part = np.zeros(int(wanted.sum()), row)
                part["offset"] = units["offset"][wanted]
                part["size"] = units["size"][wanted]
                part["queue_id"] = queue_id
                part["queue_offset"] = number + np.flatnonzero(wanted)
                parts.append(part)
                if len(units) and units["offset"][0] < commitlog_offset:
                    break
        return np.concatenate(parts)

    # -- one queue ----------------------------------------------------------------------------

    def _recover(self, folder: Path, files: list[int], vouched: int | None) -> _Queue:
        start = max(0, len(files) - _LOOK_BACK)
        if vouched is not None:
            start = self._last_vouched_file(folder, files, vouched)
        following, last = files[start] // CQ_STORE_UNIT_SIZE, -1
        for first in files[start:]:
            units = self._read(folder, first)
            offsets, sizes = units["offset"], units["size"]
            present = (offsets >= 0) & (sizes > 0)
            surely = 0
            if vouched is not None:
                old = present & (offsets + sizes <= vouched)
                surely = len(old) - int(old[::-1].argmax()) if old.any() else 0
                present[:surely] = True
            count = len(units) if present.all() else int(present.argmin())
            if vouched is not None and surely < count < len(units):
                # The lost sector may hold the last unit's tags code, or a part of it.
                count -= may_be_torn((count - 1) * CQ_STORE_UNIT_SIZE)
            if count == 0:
                break  # an all-zero file: Java would count one phantom unit here
            following = first // CQ_STORE_UNIT_SIZE + count
            if sizes[count - 1] != PRE_BLANK_SIZE:
                last = int(offsets[count - 1]) + int(sizes[count - 1])
            if count < len(units):
                break
        if vouched is not None:
            for first in reversed(files[start:]):
                self._keep(folder, first, max(0, following - first // CQ_STORE_UNIT_SIZE))
        return _Queue(following, last)

    def _last_vouched_file(self, folder: Path, files: list[int], vouched: int) -> int:
        """Number of the last file that begins with a unit that is surely on the device, or 0."""
        for number in range(len(files) - 1, 0, -1):
            with (folder / file_name(files[number])).open("rb") as file:
                data = file.read(CQ_STORE_UNIT_SIZE).ljust(CQ_STORE_UNIT_SIZE, b"\0")
            offset, size, _ = CQ_STORE_UNIT.unpack(data)
            if offset >= 0 and size > 0 and offset + size <= vouched:
                return number
        return 0

    def _truncate(self, folder: Path, following: int, log_end: int) -> _Queue:
        """Cut from the end of the queue: units are ascending in the log."""
        for first in reversed(self._files(folder)):
            units = self._read(folder, first)
            count = min(len(units), following - first // CQ_STORE_UNIT_SIZE)
            if count <= 0:
                continue
            ends = units["offset"][:count] + units["size"][:count]
            fillers = units["size"][:count] == PRE_BLANK_SIZE
            keep = int(((ends <= log_end) | fillers).sum())
            if keep and fillers[keep - 1]:
                keep = 0  # a queue must not end with a filler
            if keep < count:
                self._keep(folder, first, keep)
            following = first // CQ_STORE_UNIT_SIZE + keep
            if keep:
                return _Queue(following, int(ends[keep - 1]))
        return _Queue(following, -1)

    def _keep(self, folder: Path, first: int, count: int) -> None:
        """Keep the first ``count`` units of a file; a file without any is removed.

        Only the first file of a queue always stays if it shows where the queue begins.
        """
        if count == 0 and (first == 0 or first > self._files(folder)[0]):
            self._fs.unlink(folder / file_name(first))
            self._fs.sync_dir(folder)
            return
        import numpy as np

        units = self._read(folder, first)
        if units[count:].view(np.uint8).any():
            self._zero(folder / file_name(first), count, len(units))

    def _zero(self, path: Path, first: int, end: int) -> None:
        fd = self._fs.open(path, writable=True)
        try:
            size = CQ_STORE_UNIT_SIZE
            self._fs.write(fd, bytes((end - first) * size), first * size)
            self._fs.sync(fd)
        finally:
            self._fs.close(fd)

    # -- files --------------------------------------------------------------------------------

    def _whole_files(self, folder: Path) -> list[int]:
        """The files of a queue that count, all of the store's length when this returns."""
        files = self._files(folder)
        if all((folder / file_name(one)).stat().st_size == self._file_size for one in files):
            return files
        from .queue_lengths import QueueLengths  # what few recoveries need

        lengths = QueueLengths(
            self._fs, self._store, self._file_size, self._log_min, self.notes, self.made_anew
        )
        return lengths.whole_files(folder, files)

    def _folders(self) -> list[tuple[str, int, Path]]:
        """The folders of queues; other folders, and those that can hold no message, are left
        out."""
        found = []
        if self._root.is_dir():
            for topic in sorted(self._root.iterdir()):
                if topic.is_dir() and is_possible_topic(topic.name):
                    found += [
                        (topic.name, int(queue.name), queue)
                        for queue in topic.iterdir()
                        if is_queue_number(queue.name) and queue.is_dir()
                    ]
        return found

    def _files(self, folder: Path) -> list[int]:
        names = (parse_file_name(path.name) for path in folder.iterdir())
        return sorted(offset for offset in names if offset is not None)

    def _read(self, folder: Path, first: int) -> ndarray:
        return read_units(folder / file_name(first))


def read_units(path: Path) -> ndarray:
    """All whole units of a queue file."""
    import numpy as np

    unit = np.dtype([("offset", ">i8"), ("size", ">i4"), ("code", ">i8")])
    data = path.read_bytes()
    return np.frombuffer(data[: len(data) // unit.itemsize * unit.itemsize], unit)
