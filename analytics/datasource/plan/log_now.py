"""The log of a store as it is now, for a planner that looks at many stores again and again.

A look at the log alone costs the same however many queues a store has. It is as safe as one at the
queues: a reader that opens a store later finds a unit for each record before the end that is given
here, in the files or made again from the log (``storage.read.scan_bounds``).

The end comes from, in this order:

* the shared state of rmqctl's writers, where it can be trusted;
* the log itself, in a store that was closed cleanly, or whose Java broker runs: whole records are
  followed from a place where one begins. That is the end of the look before, what the newest index
  file ends with, or the first record of the last file, but none that is far from the end. The end
  counts only if nothing is written after it;
* the queues, in all other stores (``look_at_queues``).

Nothing is concluded from times of files: stores to a map change them late. What a look remembers is
used again only if the last record that it saw is still where it was, with the same contents.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from analytics.report.copies import lasting_mark_at, mark_at, marked_places
from analytics.report.losses import noted_losses
from storage.coordination.lock_owners import is_java_running
from storage.coordination.shared_state import SharedState, Word
from storage.coordination.shared_state_check import contradiction
from storage.detect import detect_config
from storage.files.bounded import read_at, read_first
from storage.files.fs import FileSystem
from storage.files.read_files import StoreFiles
from storage.format.index_file import INDEX_HEADER_SIZE, IndexHeader
from storage.format.names import ABORT, INDEX, is_index_file_name
from storage.log.record_reader import RecordReader
from storage.log.walk import LogWalk, StretchKind
from storage.platform.space import next_data
from storage.readonly import StoreView

if TYPE_CHECKING:
    from analytics.report.stores import StoreRef
    from storage.config import StoreConfig
    from storage.files.read_files import ReadOnlyFiles
    from storage.format.message import MessageExt

_FAR: Final = 64 << 20
"""Bytes of records that cost more than a look at the queues."""
_FEW_MAPS: Final = 8
_AFTER: Final = 64
"""Bytes after a known end that show whether something was added there."""
_BLOCK: Final = 1 << 18


class LogNow(NamedTuple):
    """A store's log as it is now."""

    ref: StoreRef
    config: StoreConfig
    """As far as the log is concerned."""
    begin: int
    """Of its first file."""
    end: int
    """After the last record: so far messages can be read."""
    last: int | None
    """The last record, if it is known."""
    last_mark: str | None
    firsts: Mapping[int, str]
    """Marks of the first records of some of its files, by their offsets."""
    lost: str | None = None
    """A sentence about messages that the log's end or missing log files have lost."""

    @property
    def log(self) -> tuple[int, int]:
        """Begin and end."""
        return self.begin, self.end

    @property
    def marks(self) -> frozenset[str]:
        """Marks of the first records of some of its files: copies of one log share some."""
        return frozenset(self.firsts.values())

    def begun_now(self) -> LogNow:
        """The same log, which begins with its first file of now: retention deletes the oldest ones
        at any time. A log without any begins where it did."""
        with self.opened() as log:
            starts = log.files.relist()
        if not starts:
            return self
        return self._replace(begin=min(max(starts[0], self.begin), self.end))

    @contextmanager
    def opened(self) -> Iterator[OpenLog]:
        """The files of the log."""
        with opened_log(Path(self.ref.path), self.config, self.end) as found:
            yield found


class OpenLog:
    """The files of a log, up to an end that is known; no queue is looked at."""

    def __init__(self, files: ReadOnlyFiles, end: int) -> None:
        self.files = files
        self._records = RecordReader(files)
        self.end = end

    def look_message_by_offset(self, commitlog_offset: int) -> MessageExt | None:
        """The record that begins at a log offset, None if none does."""
        return self._records.look(commitlog_offset, self.end)


@contextmanager
def opened_log(root: Path, config: StoreConfig, end: int = 1 << 62) -> Iterator[OpenLog]:
    """Open the files of a log, until the context ends."""
    files = StoreFiles(root, config, _FEW_MAPS)
    files.log.reads_at_random()
    try:
        yield OpenLog(files.log, end)
    finally:
        files.budget.drop()


class LogLooks:
    """Looks at logs, each from the one before."""

    def __init__(self) -> None:
        self.logged: Final[set[str]] = set()
        """Sentences about lost messages that the log has by now."""
        self._before: dict[str, LogNow] = {}

    def look(self, ref: StoreRef) -> LogNow:
        """Look at the log of a store. Raises the errors of ``StoreView.open``."""
        before = self._before.pop(ref.path, None)
        found = None if before is None else _look_again(before)
        if found is None:
            found = look_at_log(ref)
        self._before[ref.path] = found
        return found._replace(ref=ref)


def look_at_log(ref: StoreRef) -> LogNow:
    """Look at the log of a store for the first time. Raises the errors of ``StoreView.open``."""
    root = Path(ref.path)
    config = detect_config(root, reading=True, log_only=True)
    with opened_log(root, config) as log:
        found = _end(root, config, log, None)
        if found is not None:
            return _log_now(ref, config, log, found, {})
    return look_at_queues(ref)


def look_at_queues(ref: StoreRef) -> LogNow:
    """The same by means of the queues, whose newest units lead to the log's end: in a store that
    was not closed cleanly as its recovery would do it."""
    with noted_losses() as missing, StoreView.open(ref.path) as view:
        view.reads_log_at_random()
        begin = end = view.log_min_offset()
        last = None
        for topic, queue_id in view.queues():
            unit = view.unit(topic, queue_id, view.max_offset_in_queue(topic, queue_id) - 1)
            if unit is not None and unit[0] + unit[1] > end:
                last, end = unit[0], unit[0] + unit[1]
        end = max(end, view.log_max_offset())
        with opened_log(view.root, view.config, end) as log:
            found = _log_now(ref, view.config, log, _End(begin, end, last), {})
        return found._replace(lost=view.lost_end() or next(iter(missing), None))


def _look_again(before: LogNow) -> LogNow | None:
    """Look at what has been added since; None if the store may be another one by now."""
    root = Path(before.ref.path)
    if before.last is None:
        return None
    with opened_log(root, before.config) as log:
        if before.last_mark is None or mark_at(log, before.last) != before.last_mark:
            return None
        found = _end(root, before.config, log, before)
        if found is None or found.begin < before.begin or found.end < before.end:
            return None
        known = {**before.firsts, before.last: before.last_mark}
        return _log_now(before.ref, before.config, log, found, known)


class _End(NamedTuple):
    """Begin and end of a log, and its last record."""

    begin: int
    end: int
    last: int | None


def _log_now(
    ref: StoreRef, config: StoreConfig, log: OpenLog, found: _End, known: Mapping[int, str]
) -> LogNow:
    begin, log.end, last = found
    size = config.mapped_file_size_commit_log
    firsts: dict[int, str] = {}
    for start in marked_places(begin, log.end, size):
        mark = known.get(start) or lasting_mark_at(log, start)
        if mark is not None:
            firsts[start] = mark
    last_mark = None if last is None else known.get(last) or mark_at(log, last)
    return LogNow(ref, config, begin, log.end, last, last_mark, firsts)


def _end(root: Path, config: StoreConfig, log: OpenLog, before: LogNow | None) -> _End | None:
    """Begin and end without a look at a queue; None if that does not say for sure."""
    starts = log.files.relist()
    begin = starts[0] if starts else 0
    shared = _shared_end(root, config)
    if shared is not None:
        end, batch = shared
        log.end = end
        if end <= begin:
            return _End(begin, end, None)
        last = _last_before(root, log, end, batch, before)
        return None if last is None else _End(begin, end, last)
    if (root / ABORT).exists() and not is_java_running(root):
        return None
    for start, last in _places(root, log, before):
        walk = LogWalk(log.files, start, last_record=last, as_broker=True)
        if _walked(walk, start + _FAR):
            end = walk.position
            is_known = before is not None and before.end == end
            unread = _AFTER if is_known else 2 * config.max_message_size
            if walk.last_record is None or not _ends_there(log.files, end, unread):
                return None
            return _End(begin, end, walk.last_record)
    return None


def _shared_end(root: Path, config: StoreConfig) -> tuple[int, int] | None:
    """The end of the log, and where the last batch began, by the shared state."""
    size = config.mapped_file_size_commit_log
    try:
        shared = SharedState(FileSystem(), root, writable=False)
    except OSError:
        return None
    try:
        if shared.stale(log_file_size=size) or contradiction(shared, root, size):
            return None
        return int(shared.words[Word.LOG_END]), int(shared.words[Word.FROM])
    finally:
        shared.close()


def _last_before(
    root: Path, log: OpenLog, end: int, batch: int, before: LogNow | None
) -> int | None:
    """The last record before an end; None if it is not near a place where one begins."""
    if before is not None and before.end == end:
        return before.last
    for start, last in chain([(batch, None)], _places(root, log, before)):
        if max(0, end - _FAR) <= start < end:
            walk = LogWalk(
                log.files, start, limit=end, last_record=last, check_crc=False, as_broker=True
            )
            if _walked(walk, end) and walk.position == end and walk.last_record is not None:
                return walk.last_record
    return None


def _places(root: Path, log: OpenLog, before: LogNow | None) -> Iterator[tuple[int, int | None]]:
    """Places where a record begins or the log ends, near its end, and the record before them."""
    if before is not None:
        yield before.end, before.last
    indexed = _index_end(root)
    if indexed is not None and log.look_message_by_offset(indexed) is not None:
        yield indexed, None
    starts = [start for start in log.files.offsets() if start < log.end]
    used = (start for start in reversed(starts) if any(_bytes_at(log.files, start, 8)))
    for start in islice(used, 1):  # a broker makes files ahead
        yield start, None


def _walked(walk: LogWalk, limit: int) -> bool:
    """Go on to the end of the walk; False if that is past the limit, or bytes are no records."""
    while (stretch := walk.next()) is not None:
        if stretch.kind is StretchKind.LOST or walk.position > limit:
            return False
    return True


def _ends_there(files: ReadOnlyFiles, end: int, unread: int) -> bool:
    """Whether nothing is written for some way after an end of the log, in no file.

    Without a file there, it may have been lost with its records.
    """
    first = end - end % files.file_size
    later = [start for start in files.offsets() if start >= first]
    if first not in later:
        return False
    for start in later:
        try:
            fd = os.open(files.path(start), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            position = max(0, end - start)
            if position and os.fstat(fd).st_size != files.file_size:
                return False
            if not _is_zero(fd, position, min(files.file_size, position + unread)):
                return False
        finally:
            os.close(fd)
    return True


def _is_zero(fd: int, position: int, end: int) -> bool:
    """Whether a part of a file is zero; its holes are not read."""
    while position < end:
        try:
            data = next_data(fd, position)
        except OSError:  # the file system does not know its holes
            data = position
        if data is None:
            return True
        position = data
        block = os.pread(fd, min(_BLOCK, max(0, end - position)), position)
        if block != bytes(len(block)):
            return False
        position += len(block) or _BLOCK
    return True


def _bytes_at(files: ReadOnlyFiles, offset: int, count: int) -> bytes:
    """Bytes of the log, none where the file is missing."""
    position = offset % files.file_size
    try:
        return read_at(Path(files.path(offset - position)), position, count)
    except FileNotFoundError:
        return b""


def _index_end(root: Path) -> int | None:
    """Log offset of the newest record that the index knows of."""
    try:
        with os.scandir(root / INDEX) as entries:
            newest = max(
                (entry.name for entry in entries if is_index_file_name(entry.name)), default=None
            )
        if newest is None:
            return None
        data = read_first(root / INDEX / newest, INDEX_HEADER_SIZE)
    except OSError:
        return None
    return IndexHeader.unpack_from(data).end_phy_offset if len(data) == INDEX_HEADER_SIZE else None
