"""Finding where each consume queue ends, and cutting units that point behind the log's end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .format.names import CONSUMEQUEUE, file_name, parse_file_name
from .format.unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE, PRE_BLANK_SIZE

if TYPE_CHECKING:
    from numpy import ndarray

    from .config import StoreConfig
    from .fs import FileSystem

_LOOK_BACK = 3
"""Files from the end that are read, as in ConsumeQueue.recover."""


class _Queue(NamedTuple):
    """Next offset of a queue, and the end of the record of its last unit (-1 = none)."""

    next_offset: int
    max_physic_offset: int


class QueueRecovery:
    """All consume queues of a store as files, without the shared page."""

    def __init__(self, fs: FileSystem, root: Path, config: StoreConfig) -> None:
        self._fs = fs
        self._root = root / CONSUMEQUEUE
        self._file_size = config.mapped_file_size_consume_queue
        self._queues: dict[tuple[str, int], _Queue] = {}

    def load(self) -> None:
        """Read the last units of every queue (ConsumeQueue.recover)."""
        for topic, queue_id, folder in self._folders():
            files = self._files(folder)
            if files:
                self._queues[topic, queue_id] = self._recover(folder, files)

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
        """Zero the units of records that end behind ``log_end``."""
        for key, queue in list(self._queues.items()):
            if queue.max_physic_offset > log_end:
                folder = self._root / key[0] / str(key[1])
                self._queues[key] = self._truncate(folder, queue.next_offset, log_end)

    def units_from(self, commitlog_offset: int) -> ndarray:
        """Units of all queues that point at or behind an offset, with queue id and offset."""
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

    def _recover(self, folder: Path, files: list[int]) -> _Queue:
        following, last = files[0] // CQ_STORE_UNIT_SIZE, -1
        for first in files[max(0, len(files) - _LOOK_BACK) :]:
            units = self._read(folder, first)
            offsets, sizes = units["offset"], units["size"]
            present = (offsets >= 0) & (sizes > 0)
            count = len(units) if present.all() else int(present.argmin())
            if count == 0:
                break  # an all-zero file: Java would count one phantom unit here
            following = first // CQ_STORE_UNIT_SIZE + count
            if sizes[count - 1] != PRE_BLANK_SIZE:
                last = int(offsets[count - 1]) + int(sizes[count - 1])
            if count < len(units):
                break
        return _Queue(following, last)

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
                self._zero(folder / file_name(first), keep, count)
            following = first // CQ_STORE_UNIT_SIZE + keep
            if keep:
                return _Queue(following, int(ends[keep - 1]))
        return _Queue(following, -1)

    def _zero(self, path: Path, first: int, end: int) -> None:
        fd = self._fs.open(path, writable=True)
        try:
            size = CQ_STORE_UNIT_SIZE
            self._fs.write(fd, bytes((end - first) * size), first * size)
        finally:
            self._fs.close(fd)

    # -- files --------------------------------------------------------------------------------

    def _folders(self) -> list[tuple[str, int, Path]]:
        found = []
        if self._root.is_dir():
            for topic in sorted(self._root.iterdir()):
                if topic.is_dir():
                    found += [
                        (topic.name, int(queue.name), queue)
                        for queue in topic.iterdir()
                        if queue.name.isascii() and queue.name.isdigit()
                    ]
        return found

    def _files(self, folder: Path) -> list[int]:
        names = (parse_file_name(path.name) for path in folder.iterdir())
        return sorted(offset for offset in names if offset is not None)

    def _read(self, folder: Path, first: int) -> ndarray:
        import numpy as np

        unit = np.dtype([("offset", ">i8"), ("size", ">i4"), ("code", ">i8")])
        data = (folder / file_name(first)).read_bytes()
        assert unit.itemsize == CQ_STORE_UNIT.size
        return np.frombuffer(data[: len(data) // unit.itemsize * unit.itemsize], unit)
