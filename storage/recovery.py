"""What the first writer does when it can not trust the shared page: find where the store ends.

The rules are those of RocketMQ's load and recover (CommitLog.recoverNormally and
recoverAbnormally, ConsumeQueue.recover and truncateDirtyLogicFiles, IndexService.load), with these
differences, all of which keep more whole messages (FORMAT.md, "Damage and recovery"):

* a record whose body alone is damaged, with a whole record behind it, does not end the log;
* a file without its blank record does not end the log if the next file begins with a record;
* units that are missing are written again, also on a clean start and also for whole queues;
* index files are mended, not deleted (index_recovery.py).

What lies behind the end is zeroed, so that no left-over record is ever taken for a new one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from .checkpoint import StoreCheckpoint
from .dispatch import is_possible_topic, topic_of
from .errors import CorruptFileError
from .format.names import ABORT, COMMITLOG, OURS
from .format.record import (
    BLANK_SIZE,
    MESSAGE_MAGIC_V1,
    MESSAGE_MAGIC_V2,
    CheckKind,
    RecordError,
    blank_record,
    check_record,
    read_head,
    scan_records,
)
from .index_recovery import IndexRecovery
from .page import STATE_CLOSED, Word
from .queue_recovery import QueueRecovery
from .redispatch import Redispatch

if TYPE_CHECKING:
    from .append import Appender
    from .config import StoreConfig
    from .fs import FileSystem
    from .mapped_file import MappedFile
    from .page import SharedPage

_CHUNK_RECORDS = 1 << 16


@dataclass(slots=True)
class RecoveryReport:
    """What a recovery found and did. Offsets are commit log bytes."""

    clean_shutdown: bool
    log_min: int = 0
    log_end: int = 0
    records: int = 0
    units_written: int = 0
    keys_written: int = 0
    notes: list[str] = field(default_factory=list)


class Recovery:
    """One recovery of one store. Needs the gate, with no other writer there."""

    def __init__(
        self, fs: FileSystem, root: Path, config: StoreConfig, page: SharedPage, appender: Appender
    ) -> None:
        self._fs = fs
        self._root = root
        self._config = config
        self._page = page
        self._appender = appender
        self._log = appender.log
        self._file_size = config.mapped_file_size_commit_log
        self._report = RecoveryReport(not (root / ABORT).exists())

    def run(self) -> RecoveryReport:
        """Find the end, mend what is derived, and fill the page; its magic stays 0.

        Raises CorruptFileError for files that RocketMQ refuses to load too, and OSError.
        """
        report = self._report
        page = self._page
        page.invalidate()
        files = self._load_files()
        checkpoint = StoreCheckpoint(self._fs, self._root).read()
        start = self._start_file(files, checkpoint.min_timestamp)
        queues = QueueRecovery(self._fs, self._root, self._config)
        queues.load(None if report.clean_shutdown else files[start] if files else 0)
        walked = self._walk(files, start)
        report.log_min = files[0] if files else 0
        self._clear_behind(files, report.log_end)
        queues.truncate(report.log_end)
        words = page.words
        words[Word.LOG_END] = report.log_end
        words[Word.LOG_MIN] = report.log_min
        words[Word.FLUSHED_TO] = report.log_end if report.clean_shutdown else report.log_min
        for topic, queue_id, following in queues.next_offsets():
            slot = page.add_slot(topic, queue_id)
            page.set_next_offset(slot, following)
            if report.clean_shutdown:
                page.set_synced_offset(slot, following)
        index = self._appender.index
        keys_from = None
        if not report.clean_shutdown:
            mending = IndexRecovery(self._fs, self._root, self._config, index, self._log)
            keys_from, notes = mending.run(checkpoint.index_msg_timestamp, report.log_end)
            report.notes += notes
        index.use_newest()
        redispatch = Redispatch(self._config, self._appender, page, queues, self._log, report)
        redispatch.run(walked, keys_from)
        words[Word.LAST_STORE_TIMESTAMP] = max(
            words[Word.LAST_STORE_TIMESTAMP], checkpoint.physic_msg_timestamp
        )
        words[Word.STATE] = STATE_CLOSED
        return report

    # -- files --------------------------------------------------------------------------------

    def _load_files(self) -> list[int]:
        """First offsets of the log files; the rules of CommitLog.load."""
        folder = self._root / COMMITLOG
        files = self._log.offsets()
        for offset in files:
            path = self._log.path(offset)
            size = path.stat().st_size
            if size != self._file_size:
                raise CorruptFileError(
                    path, size, f"its length is {size}, that of the store's files {self._file_size}"
                )
        for before, after in pairwise(files):
            if after != before + self._file_size:
                raise CorruptFileError(folder, before, f"the file behind {before:020d} is missing")
        return files

    def _start_file(self, files: list[int], min_timestamp: int) -> int:
        """Number of the file that the walk begins with."""
        if self._report.clean_shutdown:
            return max(0, len(files) - 3)
        for number in range(len(files) - 1, -1, -1):
            timestamp = self._first_timestamp(files[number])
            if timestamp is not None and 0 < timestamp <= min_timestamp:
                return number
        return 0

    def _first_timestamp(self, file_from_offset: int) -> int | None:
        """Store time of a file's first record, None if it does not begin with one."""
        file = self._log.at(file_from_offset)
        if file is None:
            return None
        try:
            head = read_head(file.read(0, 128))
        except RecordError:
            return None
        return head.store_timestamp if head.magic in (MESSAGE_MAGIC_V1, MESSAGE_MAGIC_V2) else None

    # -- the walk -----------------------------------------------------------------------------

    def _walk(self, files: list[int], start: int) -> list[tuple[int, list[int]]]:
        """Check record after record from file number ``start``; sets the report's ``log_end``.

        Gives runs of records: the offset of the first, and all sizes.
        """
        runs: list[tuple[int, list[int]]] = []
        end = files[start] if files else 0
        for number in range(start, len(files)):
            first = files[number]
            end, at_file_end = self._walk_file(first, runs)
            if at_file_end:
                end = first + self._file_size
            elif number + 1 < len(files) and self._begins_with_record(files[number + 1]):
                self._bridge(first, end)
                end = first + self._file_size
            else:
                break
        self._report.log_end = end if self._report.clean_shutdown else self._cut_torn(runs, end)
        return runs

    def _cut_torn(self, runs: list[tuple[int, list[int]]], end: int) -> int:
        """Take records off the end whose topic no message can have: they were being written."""
        while runs:
            offset, sizes = runs[-1]
            place = offset + sum(sizes[:-1])
            file = self._log.find(place)
            assert file is not None
            if is_possible_topic(topic_of(file.read(place - file.file_from_offset, sizes[-1]), 0)):
                break
            self._report.notes.append(
                f"{file.path} byte {place - file.file_from_offset}: torn, no message has its topic"
            )
            end = place
            sizes.pop()
            if not sizes:
                runs.pop()
        return end

    def _walk_file(self, first: int, runs: list[tuple[int, list[int]]]) -> tuple[int, bool]:
        """Give where the whole records of one file end, and whether that is the file's end."""
        file = self._log.at(first)
        assert file is not None
        position = 0
        with memoryview(file.map) as view:
            while True:
                scan = scan_records(view, position, file.size, max_count=_CHUNK_RECORDS)
                if scan.sizes:
                    runs.append((first + position, scan.sizes))
                    self._report.records += len(scan.sizes)
                position = scan.end
                if scan.stop is None:
                    continue
                if scan.stop.kind is CheckKind.BLANK:
                    return first + position, True
                size = self._damaged_body(view, position, file.size, first)
                if size == 0:
                    return first + position, False
                self._report.notes.append(
                    f"{file.path} byte {position}: {scan.stop.reason}; kept, whole records follow"
                )
                runs.append((first + position, [size]))
                position += size

    def _damaged_body(self, view: memoryview, position: int, limit: int, first: int) -> int:
        """Size of a record that is damaged in its body only and followed by a whole one, else 0."""
        found = check_record(view, position, limit, check_crc=False)
        if found.kind is not CheckKind.MESSAGE or found.size <= 0:
            return 0
        if not is_possible_topic(topic_of(view, position)):
            return 0
        behind = position + found.size
        following = check_record(view, behind, limit)
        if following.kind is CheckKind.BLANK:
            return found.size if behind + following.size == limit else 0
        if following.kind is not CheckKind.MESSAGE:
            return 0
        return found.size if read_head(view, behind).physical_offset == first + behind else 0

    def _begins_with_record(self, file_from_offset: int) -> bool:
        file = self._log.at(file_from_offset)
        if file is None:
            return False
        with memoryview(file.map) as view:
            if check_record(view, 0, file.size).kind is not CheckKind.MESSAGE:
                return False
            return read_head(view, 0).physical_offset == file_from_offset

    def _bridge(self, first: int, end: int) -> None:
        """Write the blank record that a file lost, also over the first bytes of what is no record.

        Without it a Java broker would end the log here and delete what follows.
        """
        file = self._log.at(first)
        assert file is not None
        position = end - first
        remaining = file.size - position
        lost = any(file.read(position, remaining))
        if remaining >= BLANK_SIZE:
            file.write(position, blank_record(remaining))
        self._report.notes.append(
            f"{file.path} byte {position}: "
            + (
                f"{remaining} bytes that are no records are left out"
                if lost
                else "blank record written again"
            )
        )

    def _clear_behind(self, files: list[int], end: int) -> None:
        """Zero the rest of the file of ``end``; take away the files behind it.

        Files made ahead hold nothing and are removed, as Java does; others are set aside.
        """
        for first in files:
            if first + self._file_size <= end:
                continue
            file = self._log.at(first)
            assert file is not None
            position = max(0, end - first)
            used = _last_used(self._fs, file, position)
            if first < end and used:
                self._report.notes.append(
                    f"{file.path} byte {position}: {used - position} bytes behind the end zeroed"
                )
                file.write(position, bytes(used - position))
            elif first >= end and used:
                self._set_aside(first)
            elif first >= end:
                self._log.delete(first)

    def _set_aside(self, first: int) -> None:
        aside = self._root / OURS / "set-aside"
        self._fs.make_dirs(aside)
        self._log.forget(first)
        path = self._log.path(first)
        self._fs.rename(path, aside / path.name)
        self._report.notes.append(f"{path}: no whole record at its start, moved to {aside}")


def _last_used(fs: FileSystem, file: MappedFile, start: int) -> int:
    """Position behind the last byte that is not zero, or 0 if there is none from ``start`` on.

    Looks only where the file has data, 1 MiB at a time, from the end.
    """
    step = 1 << 20
    for first, end in reversed(fs.data_ranges(file.fd, start, file.size)):
        while end > first:
            begin = max(first, end - step)
            block = file.read(begin, end - begin).rstrip(b"\0")
            if block:
                return begin + len(block)
            end = begin
    return 0
