"""Keys of single appends, put into the index many at a time: one at a time they cost as much as all
the rest of the append.

``KEYS_FROM`` in the shared state says how far the index files go; the records after that are few,
and readers search them (storage.index.keys_from_log). The writer remembers the keys of its own
records; records that other processes appended in between, dead ones too, are read again from the
log. Putting the keys is a stage of its own:

    KEYS_TO, undo -> stage 3 -> entries, slots, header -> KEYS_FROM = KEYS_TO -> stage 0
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from storage import native
from storage.coordination.shared_state import STAGE_KEYS, STAGE_NONE, SharedState, Word
from storage.files.read_files import MapBudget, ReadOnlyFiles
from storage.format.encode import index_hashes

if TYPE_CHECKING:
    from pathlib import Path

    from storage.config import StoreConfig
    from storage.format.dispatch import KeyRow
    from storage.format.prepared import Ints

    from .writer import IndexWriter

MOST_PENDING: Final = 1024
"""Records of one process whose keys may wait to be put into the index."""
_MOST_AT_ONCE: Final = 1 << 15
"""Records whose keys are put in one stage."""

_offset: Final = itemgetter(2)


class PendingKeys:
    """The pending keys that one process remembers. All methods need the write lock."""

    def __init__(
        self, config: StoreConfig, shared: SharedState, log_folder: Path, index: IndexWriter
    ) -> None:
        self._enabled = config.message_index_enable
        self._shared = shared
        self._index = index
        self._maps = MapBudget(8)
        self._log = ReadOnlyFiles(self._maps, str(log_folder), config.mapped_file_size_commit_log)
        self.rows: list[KeyRow] = []
        """The records of this process in [``_start``, ``end``) of the log, in order."""
        self._start = 0
        self.end = 0
        self._gaps: list[tuple[int, int]] = []  # between them, records that others appended
        self.has_file = False
        """There is an index file. The first key makes it at once: if it goes missing, that shows
        that a Java broker started beside us (storage.coordination.java_interference)."""
        self.put_in_all = 0
        """Number of rows that were put one by one."""

    def note(self, start: int, end: int, row: KeyRow) -> None:
        """Remember the keys of the record in [start, end), which the log has now.

        :class:`storage.append.fast_append.FastAppender` does the same in place.
        """
        if self.end != start:
            self.go_on_at(start)
        self.rows.append(row)
        self.end = end
        if len(self.rows) >= MOST_PENDING:
            self.put()
        elif not self.has_file:
            self.put_first()

    def put_first(self) -> None:
        """Put the keys if there is no index file yet."""
        self.has_file = self._shared.words[Word.INDEX_FILE] != 0 or not self._enabled
        if not self.has_file:
            self.put()

    def go_on_at(self, start: int) -> None:
        """Note that others appended something before ``start`` meanwhile."""
        if self.rows:
            if self._gaps and self._gaps[-1][0] == self.end:
                del self._gaps[-1]  # noted by a put that a signal interrupted: it extends to here
            self._gaps.append((self.end, start))
        else:
            self._start = start
        self.end = start

    @property
    def has_own(self) -> bool:
        """Whether records of this process may still be without keys in the index."""
        return bool(self.rows)

    def put(self) -> None:
        """Put all keys up to the log's end into the index. After an OSError the caller must
        resolve."""
        words = self._shared.words
        start, end = words[Word.KEYS_FROM], words[Word.LOG_END]
        if start < end:
            if self._enabled:
                self._put_between(start, end)
            words[Word.KEYS_FROM] = end
        self.put_in_all += len(self.rows)
        self._forget(end)

    def close(self) -> None:
        """Unmap the parts of the log that were read."""
        self._maps.drop()

    def _put_between(self, start: int, end: int) -> None:
        """Put the keys of own records, and of those between them, from the log."""
        own = self.rows
        done = bisect_left(own, start, key=_offset)
        rows: list[KeyRow] = []
        for begin, gap_end in ((0, self._start), *self._gaps, (self.end, end)):
            gap = max(begin, start)
            if gap < gap_end:
                here = bisect_left(own, gap, done, key=_offset)
                rows += own[done:here]
                rows = self._read(rows, gap, gap_end)
                # None lies in a gap, unless an interrupt came right after it was noted.
                done = bisect_left(own, gap_end, here, key=_offset)
        self._put_rows(rows + own[done:], end)

    def _read(self, rows: list[KeyRow], start: int, end: int) -> list[KeyRow]:
        """Read keys after ``rows`` from the log; puts them as soon as they are too many."""
        from .keys_from_log import key_stretches

        for stretch in key_stretches(self._log, start, end):
            rows += stretch.rows
            if len(rows) >= _MOST_AT_ONCE:
                self._put_rows(rows, stretch.end)
                rows = []
        return rows

    def _forget(self, end: int) -> None:
        self.rows.clear()
        self._gaps.clear()
        self._start = self.end = end

    def put_now(self, end: int, hashes: Ints, offsets: Ints, timestamps: Ints | int) -> None:
        """Put the keys of a batch that is in the log up to ``end``; all records before it have
        theirs."""
        if len(hashes) and self._enabled:
            self._put(end, hashes, offsets, timestamps)
        self._shared.words[Word.KEYS_FROM] = end
        self._forget(end)

    def _put_rows(self, rows: Sequence[KeyRow], end: int) -> None:
        hashes, offsets, timestamps = columns_of(rows)
        if len(hashes):
            self._put(end, hashes, offsets, timestamps)

    def _put(self, end: int, hashes: Ints, offsets: Ints, timestamps: Ints | int) -> None:
        words = self._shared.words
        words[Word.KEYS_TO] = end
        self._index.begin()
        words[Word.STAGE] = STAGE_KEYS
        self._index.put(hashes, offsets, timestamps)
        words[Word.KEYS_FROM] = end
        words[Word.STAGE] = STAGE_NONE

    def redo(self) -> None:
        """Finish stage 3 of a process that died in it. Raises StoreBrokenError for damage.

        The caller changes the stage itself.
        """
        words = self._shared.words
        start, end = words[Word.KEYS_FROM], words[Word.KEYS_TO]
        if start < end:
            rows = self._rows_of_stage(start, end)
            hashes, offsets, timestamps = columns_of(rows)
            self._index.take_back(len(hashes))
            self._index.put(hashes, offsets, timestamps)
            words[Word.KEYS_FROM] = end

    def _rows_of_stage(self, start: int, end: int) -> list[KeyRow]:
        from storage.errors import StoreBrokenError

        from .keys_from_log import key_stretches

        rows: list[KeyRow] = []
        reached = start
        for stretch in key_stretches(self._log, start, end):
            if not stretch.whole:
                break
            reached = stretch.end
            rows += stretch.rows
        if reached < end:
            raise StoreBrokenError(
                f"{self._log.directory} is damaged at log offset {reached}; run 'rmqctl store fsck'"
            )
        return rows


key_columns: Final = native.form("key_columns", native.nothing)


def columns_of(rows: Sequence[KeyRow]) -> tuple[Any, Any, Any]:
    """Hash, log offset and store time of each key."""
    columns = key_columns(rows if type(rows) is list else list(rows))
    if columns is not None:
        hashed, places, times = (memoryview(column).cast("q") for column in columns)
        return hashed, places, times
    hashes: list[int] = []
    offsets: list[int] = []
    timestamps: list[int] = []
    for topic, keys, offset, timestamp in rows:
        hashes += index_hashes(topic, keys)
        offsets += [offset] * len(keys)
        timestamps += [timestamp] * len(keys)
    return hashes, offsets, timestamps
