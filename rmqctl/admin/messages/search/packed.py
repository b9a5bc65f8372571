"""Records with compressed bodies, which have to be unpacked to be searched."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from storage.files.read_files import ReadOnlyFiles
    from storage.log.record_finder import FoundRecord, RecordFinder
    from storage.readonly import StoreView

_ODD: Final = re.escape(bytes(range(1, 256, 2)))
_PACKED: Final = re.compile(rb"(?s)\xda\xa3 \xa7.{31}[" + _ODD + b"]")
"""Magic code, and the lowest byte of sysFlag with the bit for a compressed body."""
_PACKED_OR_V2: Final = re.compile(rb"(?s)\xda\xa3 [\xa7\xab].{31}[" + _ODD + b"]")
_MAGIC_AT: Final = 4
_FLAG_AT: Final = 39
_LONG_TOPIC: Final = 127


class PackedRecords:
    """Finds the records of a piece that have compressed bodies.

    If units of the queues give the starts of records, one byte of each record is read. Elsewhere
    the magic codes are searched. ``by_units`` False saves NumPy's import for short searches.
    """

    overlap: Final = 48
    """Bytes after a part of the log that are needed to judge it."""

    def __init__(
        self,
        view: "StoreView",
        log: "ReadOnlyFiles",
        finder: "RecordFinder",
        log_end: int,
        *,
        by_units: bool,
    ) -> None:
        self._view = view
        self._log = log
        self._finder = finder
        self._log_end = log_end
        self._by_units = by_units
        self._starts: Any = None
        self._position = 0
        # Version 2 of records exists only for topics of more than 127 bytes.
        has_long_topics = any(
            len(topic.encode("utf-8", "surrogateescape")) > _LONG_TOPIC
            for topic, _ in view.queues()
        )
        self._pattern = _PACKED_OR_V2 if has_long_topics else _PACKED

    def enter(self, start: int, end: int) -> None:
        """Start a piece."""
        self._starts = None
        self._position = start
        if self._by_units:
            first = self._finder.containing(start)
            if first is not None:
                from storage.read.record_offsets import record_starts

                begin = start if first.start == start else first.end
                if begin < end:
                    self._starts = record_starts(self._view, self._log, begin, end, self._log_end)

    def records(
        self, buffer: bytearray, start: int, size: int, length: int
    ) -> "Iterator[FoundRecord]":
        """Records that begin in the first ``size`` bytes of the buffer, which is at ``start``."""
        if self._starts is not None:
            places = self._flagged(buffer, start, size, length)
        else:
            places = self._by_magic(buffer, start, size, length)
        for place in places:
            record = self._finder.containing(place)
            if record is not None and record.start == place:
                self._position = max(self._position, record.end)
                yield record

    def _flagged(self, buffer: bytearray, start: int, size: int, length: int) -> Iterator[int]:
        import numpy as np

        low, high = np.searchsorted(self._starts, (start, start + size))
        places = self._starts[low:high] - (start - _FLAG_AT)
        flags = np.frombuffer(buffer, np.uint8, length)[places]
        packed = np.flatnonzero(flags & 1)
        if len(packed):
            yield from (places[packed] + (start - _FLAG_AT)).tolist()

    def _by_magic(self, buffer: bytearray, start: int, size: int, length: int) -> Iterator[int]:
        at = max(self._position - start, 0) + _MAGIC_AT
        while (found := self._pattern.search(buffer, at, length)) is not None:
            place = found.start() - _MAGIC_AT
            if place >= size:
                return
            yield start + place
            at = max(found.start() + 1, self._position - start + _MAGIC_AT)
