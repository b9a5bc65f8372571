"""Finding where the commit log ends, and removing what lies after it.

The rules of CommitLog.load, recoverNormally and recoverAbnormally, except that damage does not end
the log where whole records surely follow (FORMAT.md, "Damage and what recovery does"). After an
abnormal exit bytes that are no record are the torn end, unless the checkpoint covers a record after
them: then they are damage, and are skipped.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from storage.errors import CorruptFileError
from storage.files.read_files import MapBudget, ReadOnlyFiles
from storage.format.dispatch import is_possible_topic, topic_of
from storage.format.names import COMMITLOG, OURS, SET_ASIDE_FOLDER
from storage.format.record import (
    BLANK_SIZE,
    MESSAGE_MAGIC_V1,
    MESSAGE_MAGIC_V2,
    RecordError,
    blank_record,
    read_head,
)
from storage.log.walk import LogWalk, Segment, StretchKind

from .unit_check import Heads, Runs, read_heads

if TYPE_CHECKING:
    from storage.files.fs import FileSystem
    from storage.files.mapped_file import MappedFile
    from storage.files.mapped_file_queue import MappedFileQueue


class LogRecovery:
    """The log of one store; needs the write lock, with no other writer there. Offsets are bytes.

    ``notes`` collects the findings; ``records`` counts the records of the walk.
    """

    def __init__(
        self, fs: FileSystem, root: Path, log: MappedFileQueue, *, clean_shutdown: bool
    ) -> None:
        self._fs = fs
        self._root = root
        self._log = log
        self._file_size = log.file_size
        self._clean = clean_shutdown
        self.row = ReadOnlyFiles(MapBudget(), str(root / COMMITLOG), log.file_size)
        """The log as the walk reads it."""
        self._last_record: int | None = None
        self.heads: list[Heads] = []
        """The heads of the runs of the walk."""
        self.records = 0
        self.notes: list[str] = []
        self.files = self._load()

    def _load(self) -> list[int]:
        files = self._log.offsets()
        for offset in files:
            self._check_name(offset)
        if files and (last := self._log.path(files[-1])).stat().st_size == 0:
            # A Java broker died between making the file and giving it its length.
            self._log.delete(files.pop())
            self.notes.append(f"{last}: it is empty, removed")
        for offset in files:
            path = self._log.path(offset)
            size = path.stat().st_size
            if size != self._file_size:
                raise CorruptFileError(
                    path, size, f"its length is {size}, that of the store's files {self._file_size}"
                )
        for before, after in pairwise(files):
            if after != before + self._file_size:
                folder = self._root / COMMITLOG
                raise CorruptFileError(folder, before, f"the file after {before:020d} is missing")
        return files

    def _check_name(self, offset: int) -> None:
        path = self._log.path(offset)
        if not path.is_file():
            kind = "it is a folder" if path.is_dir() else "it is no file, or a link to none"
            raise CorruptFileError(path, 0, f"{kind}, in the place of a file of the log")
        if offset % self._file_size:
            number = f"its name is not the number of a file of {self._file_size} bytes"
            raise CorruptFileError(path, 0, f"{number}; move it away")

    def start_file(self, min_timestamp: int) -> int:
        """Number of the file that the walk begins with: CommitLog.isMappedFileMatchedRecover."""
        if self._clean:
            return max(0, len(self.files) - 3)
        for number in range(len(self.files) - 1, -1, -1):
            timestamp = self._timestamp_at(self.files[number])
            if timestamp is not None and 0 < timestamp <= min_timestamp:
                return number
        return 0

    def _timestamp_at(self, offset: int) -> int | None:
        """Store time of the record at an offset, None if there is none."""
        file = self._log.find(offset)
        if file is None:
            return None
        try:
            head = read_head(file.read(offset - file.file_from_offset, 128))
        except RecordError:
            return None
        return head.store_timestamp if head.magic in (MESSAGE_MAGIC_V1, MESSAGE_MAGIC_V2) else None

    # -- the walk -----------------------------------------------------------------------------

    def walk(self, start: int, vouched_timestamp: int) -> tuple[Runs, int]:
        """Check record after record, CRCs too, from file number ``start``.

        Gives runs of records (offset of the first, all sizes) and the end of the log.
        ``vouched_timestamp`` is the store time up to which the checkpoint says that the device
        has everything.
        """
        runs: Runs = []
        walk = LogWalk(self.row, self.files[start] if self.files else 0, as_broker=True)
        end = walk.position
        while (stretch := walk.next() or self._search_farther(walk)) is not None:
            if stretch.kind is not StretchKind.BLANK and not self._take(
                stretch, runs, vouched_timestamp
            ):
                break
            end = stretch.end
            if walk.position != end:
                walk = self._walk_from(end)
        return runs, end if self._clean else self._cut_torn(runs, end)

    def _search_farther(self, ended: LogWalk) -> Segment | None:
        """Search all of the file after the end for records, if it holds anything there."""
        file = self._log.find(ended.position)
        position = ended.position % self._file_size
        if file is None or not _last_used(self._fs, file, position):
            return None
        return self._walk_from(ended.position).next()

    def _walk_from(self, position: int) -> LogWalk:
        return LogWalk(
            self.row, position, search_all=True, last_record=self._last_record, as_broker=True
        )

    def _take(self, stretch: Segment, runs: Runs, vouched_timestamp: int) -> bool:
        """Note a stretch; False if the log ends before it."""
        end = stretch.end
        if stretch.kind is StretchKind.RECORDS or (
            stretch.kind is StretchKind.DAMAGED and self._topic_is_possible(stretch)
        ):
            runs.append((stretch.start, stretch.sizes))
            self.heads.append(read_heads(self.row, stretch.start, stretch.sizes))
            self.records += len(stretch.sizes)
            self._last_record = end - stretch.sizes[-1]
            if stretch.kind is StretchKind.DAMAGED:
                self._note(stretch, f"{stretch.reason}; kept, whole records follow")
            return True
        if end % self._file_size == 0:
            self._bridge(stretch)
            return True
        following = self._timestamp_at(end)
        if not self._clean and (following is None or following > vouched_timestamp):
            return False
        self._note(stretch, f"{stretch.reason}; {end - stretch.start} bytes passed")
        return True

    def _topic_is_possible(self, stretch: Segment) -> bool:
        file = self._log.find(stretch.start)
        assert file is not None
        record = file.read(stretch.start - file.file_from_offset, stretch.sizes[0])
        return is_possible_topic(topic_of(record, 0))

    def _bridge(self, stretch: Segment) -> None:
        """Write the blank record that a file lost, also over the first bytes of a stretch without
        records.

        Without it a Java broker would end the log here and delete what follows.
        """
        file = self._log.find(stretch.start)
        assert file is not None
        position = stretch.start - file.file_from_offset
        remaining = file.size - position
        lost = any(file.read(position, remaining))
        if remaining >= BLANK_SIZE:
            file.write(position, blank_record(remaining))
        what = f"{remaining} bytes that are no records are left out"
        self._note(stretch, what if lost else "blank record written again")

    def _cut_torn(self, runs: Runs, end: int) -> int:
        """Remove records from the end whose topic no message can have: they were being written."""
        while runs:
            offset, sizes = runs[-1]
            last = offset + sum(sizes[:-1])
            torn = Segment(StretchKind.DAMAGED, last, sizes[-1:], end)
            if self._topic_is_possible(torn):
                break
            self._note(torn, "torn, no message has its topic")
            end = last
            sizes.pop()
            if not sizes:
                runs.pop()
        return end

    def _note(self, stretch: Segment, what: str) -> None:
        first = stretch.start - stretch.start % self._file_size
        self.notes.append(f"{self._log.path(first)} byte {stretch.start - first}: {what}")

    # -- after the end -----------------------------------------------------------------------

    def clear_from(self, end: int) -> None:
        """Zero the rest of the file that holds ``end`` and remove the files after it.

        Files made ahead hold nothing and are removed, as Java does; others, and zeroed bytes that
        hold a record, are kept in ``rmqctl/set-aside``. The newest file goes first: ended at any
        step, the log is without a gap.
        """
        for first in reversed(self.files):
            if first + self._file_size <= end:
                break
            file = self._log.at(first)
            assert file is not None
            position = max(0, end - first)
            used = _last_used(self._fs, file, position)
            if first >= end and used:
                path = file.path
                self._log.forget(first)
                self._fs.rename(path, self._place_aside(path.name))
                self._fs.sync_dir(path.parent)
                self.notes.append(f"{path}: after the log's end, moved to {SET_ASIDE_FOLDER}")
            elif first >= end:
                self._log.delete(first)
                self._fs.sync_dir(self._log.directory)
            elif used:
                if self._holds_record(first + position):
                    self._copy_aside(file, position, used)
                self.notes.append(
                    f"{file.path} byte {position}: {used - position} bytes after the end zeroed"
                )
                file.write(position, bytes(used - position))
                file.sync()

    def _holds_record(self, position: int) -> bool:
        """Whether a whole record lies at or somewhere after a position in its file."""
        walk = LogWalk(self.row, position, search_all=True)
        while (stretch := walk.next()) is not None:
            if stretch.start // self._file_size != position // self._file_size:
                return False
            if stretch.kind is StretchKind.RECORDS:
                return True
        return False

    def _copy_aside(self, file: MappedFile, position: int, used: int) -> None:
        target = self._place_aside(f"{file.file_from_offset + position:020d}")
        fd = self._fs.open(target, writable=True, create=True)
        try:
            self._fs.write(fd, file.read(position, used - position), 0)
            self._fs.sync(fd)
        finally:
            self._fs.close(fd)
        self._fs.sync_dir(target.parent)
        self.notes.append(f"{file.path} byte {position}: records after the end, kept as {target}")

    def _place_aside(self, name: str) -> Path:
        folder = self._root / OURS / SET_ASIDE_FOLDER
        self._fs.make_dirs(folder)
        number = 0
        while (target := folder / f"{name}.{number}").exists():
            number += 1
        return target


def _last_used(fs: FileSystem, file: MappedFile, start: int) -> int:
    """Position after the last byte that is not zero, or 0 if there is none from ``start`` on.

    Reads only where the file has data, 1 MiB at a time, from the end.
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
