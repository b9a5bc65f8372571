"""What lies where in a store's files, so that tests can damage one thing on purpose.

Read with the format's own functions from files alone, without any reader of the store. Of a file
only as much is read as can hold data in the stores of the tests.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from storage.config import StoreConfig
from storage.detect import detect_config
from storage.format.check import CheckKind, check_record
from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE, MAX_EXT_ADDR
from storage.format.index_file import INDEX_ENTRY, IndexHeader, entry_position
from storage.format.message import SCHEDULE_TOPIC, MessageExt
from storage.format.record import decode_record

MOST_BYTES = 8 << 20
Key = tuple[str, int]
Unit = tuple[int, int, int]


class Record(NamedTuple):
    """A whole record of the log; ``position`` is its offset in its file."""

    path: Path
    position: int
    size: int
    message: MessageExt

    @property
    def offset(self) -> int:
        """Where it lies in the log."""
        return int(self.path.name) + self.position

    @property
    def key(self) -> Key:
        """Its queue."""
        return self.message.topic, self.message.queue_id


@dataclass
class LogFile:
    """A file of the log: its whole records, and where (``end``) they end."""

    path: Path
    records: list[Record]
    end: int
    blank: bool
    """Whether a right blank record follows the records."""

    @property
    def first(self) -> int:
        """Log offset of its first byte."""
        return int(self.path.name)


@dataclass
class QueueFile:
    """A file of a queue; ``units`` up to the last one that is not zero."""

    path: Path
    units: list[Unit]

    @property
    def first(self) -> int:
        """Queue offset of its first unit."""
        return int(self.path.name) // CQ_STORE_UNIT_SIZE


@dataclass
class IndexFile:
    """A file of the index."""

    path: Path
    header: IndexHeader
    entries: list[tuple[int, int, int, int]]
    """hash, log offset, seconds, entry before; number 0 is not used."""


class Anatomy:
    """All files of a store that is not being written."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.config: StoreConfig = detect_config(root)

    @property
    def closed(self) -> bool:
        """Whether it was closed cleanly."""
        return not (self.root / "abort").exists()

    def name(self, path: Path) -> str:
        """A path as findings show it."""
        return str(path.relative_to(self.root))

    # -- log ----------------------------------------------------------------------------------

    @cached_property
    def log(self) -> list[LogFile]:
        """The files of the log that have records, oldest first."""
        files = [_log_file(path) for path in sorted((self.root / "commitlog").glob("[0-9]*"))]
        return [file for file in files if file.records]

    @cached_property
    def records(self) -> list[Record]:
        """All whole records."""
        return [record for file in self.log for record in file.records]

    @cached_property
    def sound_log(self) -> list[LogFile]:
        """Files of the log that are whole, up to the first that is not; all but the last have a
        blank record."""
        found: list[LogFile] = []
        for file in self.log:
            found.append(file)
            if not file.blank:
                break
        if found and not found[-1].blank and found[-1] is not self.log[-1]:
            found.pop()
        return found

    @cached_property
    def plain(self) -> list[Record]:
        """Records in sound files, not the first or last two of a file, whose unit is theirs."""
        inner = [record for file in self.sound_log for record in file.records[1:-2]]
        places = Counter((*record.key, record.message.queue_offset) for record in self.records)
        return [
            record
            for record in inner
            if not record.message.sys_flag & 0b1111_1100
            and record.message.topic != SCHEDULE_TOPIC
            and "INNER_MULTI_DISPATCH" not in record.message.properties
            and places[(*record.key, record.message.queue_offset)] == 1
            and self.unit_of(record) is not None
        ]

    # -- queues -------------------------------------------------------------------------------

    @cached_property
    def queues(self) -> dict[Key, list[QueueFile]]:
        """The queues that have units, and their files."""
        found = {}
        for folder in sorted((self.root / "consumequeue").glob("*/*")):
            files = [_queue_file(path) for path in sorted(folder.glob("[0-9]*"))]
            if any(file.units for file in files):
                found[folder.parent.name, int(folder.name)] = files
        return found

    @cached_property
    def sound_queues(self) -> dict[Key, list[QueueFile]]:
        """Queues, no delayed nor light ones, all of whose units point at records of theirs, but for
        those in front whose records are deleted."""
        places = {record.offset: record for record in self.records}
        start = self.log[0].first if self.log else 0
        found = {}
        for key, files in self.queues.items():
            firsts = [int(file.path.name) for file in files]
            size = self.config.mapped_file_size_consume_queue
            sound = key[0] != SCHEDULE_TOPIC and not key[0].startswith("%LMQ%")
            sound &= firsts == list(range(firsts[0], firsts[0] + len(firsts) * size, size))
            number = files[0].first
            for file in files:
                sound &= bool(file.units)
                for offset, length, code in file.units:
                    record = places.get(offset)
                    if offset >= start:
                        sound &= record is not None and _points_at(record, key, number, length)
                    sound &= code > MAX_EXT_ADDR
                    number += 1
            if sound and number == files[-1].first + len(files[-1].units):
                found[key] = files
        return found

    def unit_of(self, record: Record) -> tuple[QueueFile, int] | None:
        """The file and the number in it of the unit that points at a record from its place."""
        for file in self.queues.get(record.key, ()):
            number = record.message.queue_offset - file.first
            if 0 <= number < len(file.units) and file.units[number][0] == record.offset:
                return file, number
        return None

    # -- index --------------------------------------------------------------------------------

    @cached_property
    def index(self) -> list[IndexFile]:
        """The files of the index that have keys, oldest first."""
        found = []
        for path in sorted((self.root / "index").glob("[0-9]*")):
            with path.open("rb") as file:
                header = IndexHeader.unpack_from(file.read(40))
                file.seek(entry_position(self.config.max_hash_slot_num, 0))
                data = file.read(INDEX_ENTRY.size * header.next_entry)
            if header.next_entry > 1:
                found.append(IndexFile(path, header, list(INDEX_ENTRY.iter_unpack(data))))
        return found

    def entry_at(self, number: int) -> int:
        """Where an entry lies in an index file."""
        return entry_position(self.config.max_hash_slot_num, number)


def _points_at(record: Record, key: Key, queue_offset: int, size: int) -> bool:
    message = record.message
    return (record.key, message.queue_offset, record.size) == (key, queue_offset, size)


def _log_file(path: Path) -> LogFile:
    with path.open("rb") as file:
        buffer = file.read(MOST_BYTES)
    records: list[Record] = []
    position = 0
    while True:
        found = check_record(buffer, position, len(buffer))
        if found.kind is not CheckKind.MESSAGE:
            break
        records.append(Record(path, position, found.size, decode_record(buffer, position)))
        position += found.size
    length = path.stat().st_size
    blank = found.kind is CheckKind.BLANK and found.size == length - position
    return LogFile(path, records, position, blank)


def _queue_file(path: Path) -> QueueFile:
    with path.open("rb") as file:
        data = file.read(MOST_BYTES).rstrip(b"\0")
    data = data.ljust(-(-len(data) // CQ_STORE_UNIT_SIZE) * CQ_STORE_UNIT_SIZE, b"\0")
    return QueueFile(path, list(CQ_STORE_UNIT.iter_unpack(data)))
