"""What the files of a store take on the disk, by kind: every block that ``du`` counts, once."""

import os
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from stat import S_ISDIR
from struct import error
from typing import TYPE_CHECKING, Final, NamedTuple

from rmqctl.admin.folder_walk import BLOCK, walk
from storage.files.bounded import read_first
from storage.format.cq_unit import CQ_STORE_UNIT_SIZE
from storage.format.index_file import INDEX_HEADER_SIZE, IndexHeader, index_file_size
from storage.format.names import (
    COMMITLOG,
    CONFIG,
    CONSUMEQUEUE,
    CONSUMEQUEUE_EXT,
    INDEX,
    OURS,
    is_index_file_name,
    parse_file_name,
)

if TYPE_CHECKING:
    from storage.readonly import StoreView


class DiskKind(StrEnum):
    """What some bytes on the disk are."""

    TOPIC = "topic"
    MESSAGES = "messages"
    DELETED = "deleted"
    UNKNOWN = "unknown"
    QUEUE = "queue"
    INDEX = "index"
    RESERVED_LOG = "reserved log"
    RESERVED_QUEUE = "reserved queue"
    RESERVED_INDEX = "reserved index"
    CONFIG = "config"
    OWN = "own"
    OTHER = "other"
    FOLDERS = "folders"
    HOLES = "holes"


MEANINGS: Final[Mapping[DiskKind, str]] = {
    DiskKind.TOPIC: "messages of a topic and the files of its queues",
    DiskKind.MESSAGES: "messages in the log that queues point to",
    DiskKind.DELETED: "log that no queue points to: deleted topics, ends of files",
    DiskKind.UNKNOWN: "log and queues of topics with damaged queues",
    DiskKind.QUEUE: "consume queues, 20 bytes for each message",
    DiskKind.INDEX: "the index of keys",
    DiskKind.RESERVED_LOG: "blocks of log files for the next messages",
    DiskKind.RESERVED_QUEUE: "blocks of queue files for the next messages",
    DiskKind.RESERVED_INDEX: "blocks of index files for the next keys",
    DiskKind.CONFIG: "RocketMQ's settings and offsets, in config",
    DiskKind.OWN: "rmqctl's own files: offsets, journal, processes",
    DiskKind.OTHER: "other files: checkpoint, lock, unknown ones",
    DiskKind.FOLDERS: "the folders themselves",
    DiskKind.HOLES: "written, but not on the disk: holes, compression",
}


_FOLDERS: Final = {CONFIG: DiskKind.CONFIG, OURS: DiskKind.OWN}


class DiskFiles(NamedTuple):
    """Bytes on the disk by kind, and the number of files of kinds that are whole files."""

    log: int
    """Bytes up to the end of the log."""
    queues: Mapping[str, int]
    """Bytes up to the ends of the queues, by topic."""
    others: Mapping[DiskKind, int]
    """All kinds but those of the log and the queues. HOLES is negative."""
    files: Mapping[DiskKind, int]
    unreadable: Sequence[Path]
    """Folders that this user may not read; what is in them is not counted."""

    @property
    def total(self) -> int:
        """What ``du -s --block-size=1`` prints for the folder."""
        return self.log + sum(self.queues.values()) + sum(self.others.values())


def disk_files(
    view: "StoreView", bounds: Mapping[tuple[str, int], tuple[int, int]] | None = None
) -> DiskFiles:
    """Look at every file and folder of a store. Files that go meanwhile are not counted.

    A file with several names is counted once; symbolic links are not followed. ``bounds`` are those
    of all queues, where the caller has just read them.
    """
    if not bounds:
        queues = view.queues()
        bounds = dict(zip(queues, view.each_queue_bounds(queues), strict=True))
    return _Count(view, bounds).result()


class _Count:
    def __init__(
        self, view: "StoreView", bounds: Mapping[tuple[str, int], tuple[int, int]]
    ) -> None:
        self._root = view.root
        self._view = view
        self._log_end = view.log_max_offset()
        self._log = 0
        self._queues: dict[str, int] = {}
        self._others: dict[DiskKind, int] = dict.fromkeys(
            (
                DiskKind.INDEX,
                DiskKind.RESERVED_LOG,
                DiskKind.RESERVED_QUEUE,
                DiskKind.RESERVED_INDEX,
                DiskKind.CONFIG,
                DiskKind.OWN,
                DiskKind.OTHER,
                DiskKind.FOLDERS,
            ),
            0,
        )
        self._files: dict[DiskKind, int] = {}
        self._unreadable: list[Path] = []
        self._ends = {
            (topic, str(queue_id)): high * CQ_STORE_UNIT_SIZE
            for (topic, queue_id), (_, high) in bounds.items()
        }

    def result(self) -> DiskFiles:
        found = self._unreadable
        for names, entries in walk(self._root, found):
            if len(names) == 3 and names[0] == CONSUMEQUEUE:
                self._add_files_of_queue(names[1], names[2], entries)
                continue
            for name, status in entries:
                self._add((*names, name), status)
        self._count(DiskKind.FOLDERS, self._root.stat().st_blocks * BLOCK)
        return DiskFiles(self._log, self._queues, self._others, self._files, found)

    def _add_files_of_queue(
        self, topic: str, queue: str, entries: Iterable[tuple[str, os.stat_result]]
    ) -> None:
        end = self._queue_end(topic, queue)
        for name, status in entries:
            first = parse_file_name(name)
            if first is None or S_ISDIR(status.st_mode):
                self._add((CONSUMEQUEUE, topic, queue, name), status)
            else:
                written = min(max(end - first, 0), status.st_size)
                self._add_queue(topic, written, status.st_blocks * BLOCK)

    def _add(self, names: tuple[str, ...], status: os.stat_result) -> None:
        size = status.st_blocks * BLOCK
        if S_ISDIR(status.st_mode):
            self._count(DiskKind.FOLDERS, size)
            return
        folder, first = names[0], parse_file_name(names[-1])
        if folder == COMMITLOG and len(names) == 2 and first is not None:
            written = min(max(self._log_end - first, 0), status.st_size)
            self._log += written
            self._split(DiskKind.MESSAGES, DiskKind.RESERVED_LOG, written, size)
        elif folder == CONSUMEQUEUE_EXT and len(names) == 4:
            self._add_queue(names[1], size, size)
        elif folder == INDEX and len(names) == 2 and is_index_file_name(names[1]):
            used = min(_index_bytes(self._root.joinpath(*names), size), size)
            self._others[DiskKind.INDEX] += used
            self._split(DiskKind.INDEX, DiskKind.RESERVED_INDEX, used, size)
        else:
            self._count(_FOLDERS.get(folder, DiskKind.OTHER), size)

    def _add_queue(self, topic: str, written: int, size: int) -> None:
        self._queues[topic] = self._queues.get(topic, 0) + written
        self._split(DiskKind.QUEUE, DiskKind.RESERVED_QUEUE, written, size)

    def _count(self, kind: DiskKind, size: int) -> None:
        self._others[kind] += size
        self._files[kind] = self._files.get(kind, 0) + 1

    def _split(self, kind: DiskKind, reserved: DiskKind, written: int, size: int) -> None:
        """Count the blocks of a file beyond what was written; the rest is counted as ``kind``."""
        self._files[kind] = self._files.get(kind, 0) + 1
        if size >= written:
            self._others[reserved] += size - written
        else:
            holes = self._others.get(DiskKind.HOLES, 0)
            self._others[DiskKind.HOLES] = holes - (written - size)

    def _queue_end(self, topic: str, queue: str) -> int:
        """Bytes of a queue up to its end; 0 for a folder that is no queue."""
        end = self._ends.get((topic, queue))
        if end is None:
            end = 0
            if queue.isascii() and queue.isdigit():
                bounds = self._view.queue_bounds(topic, int(queue))
                end = bounds.max_offset * CQ_STORE_UNIT_SIZE
            self._ends[topic, queue] = end
        return end


def _index_bytes(path: Path, size: int) -> int:
    """Bytes of an index file up to its last entry; all of it if that is not known."""
    try:
        header = IndexHeader.unpack_from(read_first(path, INDEX_HEADER_SIZE))
    except (OSError, error):
        return size
    return index_file_size(max(0, header.hash_slot_count), header.next_entry)
