"""Writing consume queues: files of 20-byte units, one series for each (topic, queue).

A file of units is created with its first unit already in it: Java takes an all-zero file after a
full one for one bogus unit (FORMAT.md, "Consume queue"). Units are written under the write lock
only.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from storage.coordination.kept_links import KeptLinks
from storage.errors import StoreNotWritableError
from storage.files.access import (
    refuse_other_file_system,
    refuse_unwritable_folders,
    refuse_without_descriptors,
)
from storage.files.mapped_file_queue import MappedFileQueue
from storage.files.preallocation import QUEUE_WINDOW
from storage.format.cq_unit import CQ_STORE_UNIT_SIZE, PRE_BLANK
from storage.format.names import CONSUMEQUEUE, OURS, exact_str

if TYPE_CHECKING:
    from storage.config import StoreConfig
    from storage.files.fs import FileSystem

NO_SLOT: Final = -1
"""In :meth:`ConsumeQueueTable.at_slot`: the queue has none (any more)."""
_MAX_OPEN_QUEUES: Final = 256
_COPY_LIMIT: Final = 4096
"""Blocks up to this size are stored through the map, larger ones through the descriptor."""


class ConsumeQueueTable:
    """All consume queues of a store, opened when first written; guarded by the write lock."""

    def __init__(self, fs: FileSystem, root: Path, config: StoreConfig) -> None:
        self._fs = fs
        self._root = root / CONSUMEQUEUE
        self._staging = root / OURS
        self._file_size = config.mapped_file_size_consume_queue
        self._second_names = KeptLinks(fs, root)
        self.opened: OrderedDict[tuple[str, int], MappedFileQueue] = OrderedDict()
        """The most recently written queues, by (topic, queue id)."""
        self._reachable: set[tuple[str, int]] = set()
        """Queues into whose folders new files can be renamed."""
        self.slots: dict[tuple[str, int], int] = {}
        """The slot of the shared state that each queue had when its files were opened."""

    def at_slot(self, topic: str, queue_id: int, slot: int) -> None:
        """Note the queue's slot before its files are used. With another slot it is another queue:
        the files of the deleted one are closed."""
        key = (topic, queue_id)
        if self.slots.get(key) != slot:
            files = self.opened.pop(key, None)
            if files is not None:
                files.close()
            self._reachable.discard(key)
            self.slots[key] = slot

    def files(self, topic: str, queue_id: int) -> MappedFileQueue:
        """The files of one queue, whether there are any or not."""
        key = (topic, queue_id)
        found = self.opened.get(key)
        if found is None:
            found = MappedFileQueue(
                self._fs,
                self._root / exact_str(topic) / str(queue_id),
                self._file_size,
                writable=True,
                staging=self._staging,
                max_open=1,
                second_names=self._second_names,
            )
            self.opened[key] = found
            if len(self.opened) > _MAX_OPEN_QUEUES:
                self.opened.popitem(last=False)[1].close()
        return found

    def get_ready(self, queues: Sequence[tuple[str, int]], firsts: Sequence[int]) -> None:
        """Open the file of each queue's next unit ``first``; check whether one can be made.

        Nothing of the batch is written yet: once its records are in the log, all writers would
        wait for the file that cannot be made. Raises StoreNotWritableError, CorruptFileError for a
        file of another length, and OSError without a free descriptor.
        """
        size, opened = self._file_size, self.opened
        for queue, first in zip(queues, firsts, strict=True):
            offset = first * CQ_STORE_UNIT_SIZE
            files = opened.get(queue)
            if files is None or offset - offset % size not in files.opened:
                self._open(queue, offset)

    def _open(self, queue: tuple[str, int], offset: int) -> None:
        files = self.files(*queue)
        first = offset - offset % self._file_size
        try:
            found = files.find(offset)
        except PermissionError as error:
            raise StoreNotWritableError(files.path(first), "no permission") from error
        if queue not in self._reachable:
            refuse_other_file_system(files.directory, self._staging)
            self._reachable.add(queue)
        if found is None:
            refuse_unwritable_folders(files.directory, self._staging)
            refuse_without_descriptors()
            files.refuse_other_length(first)

    def put(self, topic: str, queue_id: int, first: int, units: bytes, timestamp: int) -> None:
        """Write the units of queue offsets ``first``.. ; the same bytes again change nothing.

        ``timestamp`` is the store time of the last one (ms). Raises OSError; then part of them
        may be written, and the batch must be resolved.
        """
        offset = first * CQ_STORE_UNIT_SIZE
        files = self.opened.get((topic, queue_id))
        if files is not None and len(units) <= _COPY_LIMIT:
            position = offset % self._file_size
            file = files.opened.get(offset - position)
            end = position + len(units)
            if file is not None and end <= file.reserved_to:  # nearly always
                file.map[position:end] = units
                return
        files = self.files(topic, queue_id)
        start = 0
        while start < len(units):
            position = offset % self._file_size
            end = start + min(len(units) - start, self._file_size - position)
            block = units[start:end]
            file = files.find(offset)
            if file is None and position and self._second_names.restore(files.directory):
                file = files.find(offset)
            if file is None:
                self._create(files, offset, block, timestamp)
            else:
                file.reserve(position, position + len(block), QUEUE_WINDOW)
                if len(block) <= _COPY_LIMIT:
                    file.map[position : position + len(block)] = block
                else:
                    file.write(position, block)
            offset += len(block)
            start = end

    def _create(self, files: MappedFileQueue, offset: int, block: bytes, timestamp: int) -> None:
        """Make the file that begins with, or holds, the first unit of ``block``."""
        position = offset % self._file_size
        if position and not files.offsets():
            # A queue that begins in the middle of a file: ConsumeQueue.fillPreBlank.
            block = PRE_BLANK * (position // CQ_STORE_UNIT_SIZE) + block
            position = 0
        if not files.directory.exists():
            self._make_directory(files.directory)
        full = offset - self._file_size
        if position == 0 and full >= 0 and files.path(full).exists():
            # Java's time search picks a file by this time; stores to a map do not keep it.
            self._fs.set_modified(files.path(full), timestamp)
        files.create(offset - offset % self._file_size, QUEUE_WINDOW, position, block)

    def _make_directory(self, directory: Path) -> None:
        self._fs.make_dirs(directory)
        self._fs.sync_dir(directory.parent)
        self._fs.sync_dir(self._root)

    def close(self) -> None:
        """Close all maps."""
        while self.opened:
            self.opened.popitem()[1].close()
