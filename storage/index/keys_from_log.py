"""Keys that no index file holds yet: those of the newest records, read from the log.

Single appends put their keys into the index some hundred at a time (storage.index.pending_keys), so
until then a search for a key also reads these records.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from storage.format.dispatch import KeyRow, read_keys
from storage.format.java_hash import key_hash
from storage.log.walk import LogWalk, StretchKind

if TYPE_CHECKING:
    from storage.files.read_files import ReadOnlyFiles

_MOST_KEPT: Final = 1 << 14
"""Records whose keys are remembered before the older ones are forgotten."""


class KeyRange(NamedTuple):
    """Keys of consecutive records; ``end`` is where the next range begins."""

    end: int
    rows: list[KeyRow]
    whole: bool
    """False if it is damaged; its readable keys are there."""


class PendingHits(NamedTuple):
    """Log offset and store time (ms) of the records that have a key's hash, oldest first."""

    hits: list[tuple[int, int]]
    last: tuple[int, int]
    """The same of the last record that has a key at all; zeros without any."""


NO_HITS: Final = PendingHits([], (0, 0))


def key_stretches(log: ReadOnlyFiles, start: int, end: int) -> Iterator[KeyRange]:
    """Read the keys of the records in [start, end) of the log; damage is passed."""
    walk = LogWalk(log, start, limit=end, check_crc=False, search_all=True)
    while (stretch := walk.next()) is not None:
        rows: list[KeyRow] = []
        position = stretch.start % log.file_size
        first = stretch.start - position
        file = log.at(first)
        if file is not None and stretch.kind in (StretchKind.RECORDS, StretchKind.DAMAGED):
            for size in stretch.sizes:
                rows.append(read_keys(file.view, position, size, first=first))
                position += size
        whole = stretch.kind in (StretchKind.RECORDS, StretchKind.BLANK)
        yield KeyRange(walk.position, rows, whole)


class PendingKeys:
    """The keys of one store's newest records, for its readers. Thread-safe; reads each once."""

    def __init__(self, log: ReadOnlyFiles) -> None:
        self._log = log
        self._lock = threading.Lock()  # guards everything below
        self._start = self._end = 0
        self._records = 0
        self._by_hash: dict[int, list[tuple[int, int]]] = {}
        self._last = (0, 0)

    def find(self, topic: str, key: str, start: int, end: int) -> PendingHits:
        """Search for a key among the records in [start, end), by its hash."""
        if start >= end:
            return NO_HITS
        with self._lock:
            if not self._start <= start <= self._end <= end or self._records > _MOST_KEPT:
                self._start = self._end = start
                self._records = 0
                self._by_hash = {}
                self._last = (0, 0)
            if self._end < end:
                self._read_on(end)
            found = self._by_hash.get(key_hash(topic, key), ())
            last = self._last if self._last[0] >= start else (0, 0)
            return PendingHits([hit for hit in found if hit[0] >= start], last)

    def _read_on(self, end: int) -> None:
        for stretch in key_stretches(self._log, self._end, end):
            for topic, keys, offset, timestamp in stretch.rows:
                for key in keys:
                    hits = self._by_hash.setdefault(key_hash(topic, key), [])
                    hits.append((offset, timestamp))
                if keys:
                    self._last = (offset, timestamp)
            self._records += len(stretch.rows)
        self._end = end
