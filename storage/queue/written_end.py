"""Where the written units of a consume queue end, from its files alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from storage import native
from storage.files.many_files import list_offsets
from storage.files.read_files import MAP_MAKERS, MapBudget, ReadOnlyFiles
from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE, PRE_BLANK_SIZE
from storage.log.record_reader import QueueKey

if TYPE_CHECKING:
    import mmap

    from storage.files.read_files import ReadMap, StoreFiles

_LOOK_AHEAD: Final = 200 * CQ_STORE_UNIT_SIZE
_HEAD: Final = 8_000
"""Bytes in which most queues of a store end that has thousands."""
_NO_UNIT: Final = (0, 0, 0)
_AT_ONCE: Final = 200
"""Queues whose last files are read in one step: two megabytes at most."""
_KEPT: Final = 32
"""Units at the end of a queue that are kept until :meth:`QueueTail.forget`."""


Span = tuple[int, int, int]
"""Of some units that are written, each with a record that begins where that of the one before ends,
or later: the log offsets of the first and the last record, and where the last one ends."""


class QueueTail:
    """The end of one queue's files. ``next_offset`` counts units that are part of the store."""

    __slots__ = (
        *("_first_kept", "_kept", "_kept_end", "_span"),
        *("followed_to", "hole", "key", "next_offset", "row"),
    )

    def __init__(
        self,
        row: ReadOnlyFiles,
        key: QueueKey,
        next_offset: int,
        kept: bytes = b"",
        span: Span | None = None,
    ) -> None:
        """``kept``: the last units before ``next_offset``; of these no file is read again, which
        takes much longer where there are thousands of queues. ``span`` is theirs."""
        self.row = row
        self.key = key
        self.next_offset = next_offset
        self._kept = kept
        self._first_kept = next_offset - len(kept) // CQ_STORE_UNIT_SIZE
        self._kept_end, self._span = next_offset, span
        self.followed_to = -1
        """The log's end up to which all units of the queue are counted."""
        self.hole: int | None = None
        """The queue offset of the first hole, if that is why no unit from there on is counted."""

    def forget(self, first: int) -> None:
        """Read the units from this one on from the files."""
        if first < self._kept_end:
            self._kept = self._kept[: max(0, first - self._first_kept) * CQ_STORE_UNIT_SIZE]
            self._kept_end, self._span = first, None

    @property
    def span(self) -> Span | None:
        """That of the last units, if it is known and they are the kept ones."""
        return self._span if self.next_offset == self._kept_end else None

    def all_units(self) -> bytes | None:
        """All units of the queue, if they are kept."""
        files = self.row.offsets()
        is_first = bool(files) and files[0] // CQ_STORE_UNIT_SIZE == self._first_kept
        return self._kept if is_first and self.next_offset == self._kept_end else None

    def last_units(self) -> tuple[int, memoryview]:
        """The units that are kept: the queue offset of the first one, and their bytes."""
        return self._first_kept, memoryview(self._kept)

    def cut_to(self, units: int, hole: int) -> None:
        """Count the first ``units``; ``hole`` is where the first unit is missing."""
        if units < self.next_offset:
            self.next_offset = units
            self.hole = hole

    def unit(self, queue_offset: int) -> tuple[int, int, int]:
        """One unit of the files, zeros where it is missing."""
        at = (queue_offset - self._first_kept) * CQ_STORE_UNIT_SIZE
        if 0 <= at < len(self._kept):
            kept: tuple[int, int, int] = CQ_STORE_UNIT.unpack_from(self._kept, at)
            return kept
        if queue_offset < 0:
            return _NO_UNIT
        data = self.row.peek(queue_offset * CQ_STORE_UNIT_SIZE, CQ_STORE_UNIT_SIZE)
        if len(data) < CQ_STORE_UNIT_SIZE:
            return _NO_UNIT
        unit: tuple[int, int, int] = CQ_STORE_UNIT.unpack(data)
        return unit

    def kept(self, first: int, end: int) -> bytes | None:
        """The units from ``first`` to before ``end``, if all of them are kept."""
        at = (first - self._first_kept) * CQ_STORE_UNIT_SIZE
        stop = (end - self._first_kept) * CQ_STORE_UNIT_SIZE
        return self._kept[at:stop] if 0 <= at < stop <= len(self._kept) else None

    def first_unit(self, is_before: Callable[[int, int], bool]) -> int:
        """The queue offset of the first unit that is not before a place, by a bisection; the end
        if all are. ``is_before`` is asked with the log offset and the size of a unit.

        The unit before the one that is found is before the place, or there is none."""
        files = self.row.offsets()
        low = files[0] // CQ_STORE_UNIT_SIZE if files else 0
        high = self.next_offset
        probes = [self._first_kept, high - 1] if self._kept else []  # mostly it is among the last
        while low < high:
            probe = probes.pop() if probes else (low + high) // 2
            if not low <= probe < high:
                continue
            offset, size, _ = self.unit(probe)
            if is_before(offset, size):
                low = probe + 1
            else:
                high = probe
        return low


def tails_of(files: StoreFiles) -> Iterator[QueueTail]:
    """The ends of all queues that have a folder, with all units that are written."""
    queues = [
        (QueueKey(topic, queue_id), row)
        for topic, queue_id in files.queue_folders()
        if (row := files.queue(topic, queue_id)) is not None
    ]
    for start in range(0, len(queues), _AT_ONCE):
        some = queues[start : start + _AT_ONCE]
        ends = _written_ends([row for _, row in some])
        for (key, row), end in zip(some, ends, strict=True):
            yield QueueTail(row, key, *end)


def _written_ends(rows: list[ReadOnlyFiles]) -> Iterator[tuple[int, bytes, Span | None]]:
    """:func:`_written_end` of each; that of most is in the first bytes of their last file."""
    folders = [row.directory for row in rows]
    found = written_ends(folders, rows[0].file_size, _HEAD, _KEPT * CQ_STORE_UNIT_SIZE)
    for row, usual in zip(rows, found, strict=True):
        if usual is None or row.opened or MAP_MAKERS:
            yield *_written_end(row, row.relist()), None
        else:
            row.note_listed(usual[0])
            yield usual[1:]


def _written_ends_of(
    folders: list[str], file_size: int, head: int, kept: int, /
) -> list[tuple[list[int], int, bytes, Span | None] | None]:
    return [_usual_end(folder, file_size, head, kept) for folder in folders]


def _usual_end(
    folder: str, file_size: int, head: int, kept: int
) -> tuple[list[int], int, bytes, Span | None] | None:
    (files,) = list_offsets([folder], file_size)
    if not files:
        return None
    try:
        found = ReadOnlyFiles(MapBudget(), folder, file_size).head(files[-1], head)
    except OSError:
        return None
    units = None if found is None else _units_before_zeros(*found)
    if found is None or not units or found[0][units * CQ_STORE_UNIT_SIZE :].strip(b"\0"):
        return None
    end = units * CQ_STORE_UNIT_SIZE
    last = found[0][max(0, end - kept) : end]
    return files, files[-1] // CQ_STORE_UNIT_SIZE + units, last, _span_of(last)


def _span_of(units: bytes) -> Span | None:
    first, last, stop = -1, 0, 0
    for last, size, _ in CQ_STORE_UNIT.iter_unpack(units):
        if not (stop <= last < 1 << 62 and 0 < size < PRE_BLANK_SIZE):
            return None
        first, stop = last if first < 0 else first, last + size
    return first, last, stop


written_ends: Final = native.form("written_ends", _written_ends_of)
"""The files of each queue, as list_offsets lists them, the queue offset after the last written
unit, at most ``kept`` bytes of the last units, and their span. None where that unit is not in the
first ``head`` bytes of the last file, or not all after it is zeros: :func:`_written_end` finds
out."""


def written_units(row: ReadOnlyFiles) -> int:
    """Queue offset after the last written unit, 0 for a queue without one (ConsumeQueue.recover).

    An all-zero file after another is skipped: Java takes its first unit for a message.
    """
    return _written_end(row, row.relist())[0]


def _written_end(row: ReadOnlyFiles, files: Sequence[int]) -> tuple[int, bytes]:
    """The same, and the last units of its file, as many as are kept."""
    data: mmap.mmap | bytes
    for first in reversed(files):
        head = row.head(first, _HEAD)
        file = row.look(first) if head is None else None
        if head is not None:
            data, length = head
        elif file is not None:
            data, length = file.map, file.length
        else:
            continue
        found = _end_in(row, first, data, length)
        if found is not None:
            return found
    return 0, b""


def _end_in(
    row: ReadOnlyFiles, first: int, data: mmap.mmap | bytes, length: int
) -> tuple[int, bytes] | None:
    """The same if the last written unit is in the file that begins at ``first``; ``data`` may lack
    zeros at the end of a file of this length."""
    count = min(_units_in(data, length), row.file_size // CQ_STORE_UNIT_SIZE)
    if not count:
        return None
    end = count * CQ_STORE_UNIT_SIZE
    kept = data[max(0, end - _KEPT * CQ_STORE_UNIT_SIZE) : end]
    # a file may have been cut inside its last unit
    kept = b"" if len(kept) % CQ_STORE_UNIT_SIZE else kept
    return first // CQ_STORE_UNIT_SIZE + count, kept


def units_in_file(file: ReadMap) -> int:
    """Number of units up to the last written one; cheap where they end once, in zeros."""
    return _units_in(file.map, file.length)


def _units_in(data: mmap.mmap | bytes, length: int) -> int:
    """The same; ``data`` may lack zeros at the end of a file of this length."""
    low = _units_before_zeros(data, length)
    end = low * CQ_STORE_UNIT_SIZE
    after = data[end : end + _LOOK_AHEAD]
    if after != bytes(len(after)):
        # Damage in the middle misled the search: find the last byte that is not zero.
        used = len(data[:length].rstrip(b"\0"))
        return -(-used // CQ_STORE_UNIT_SIZE)
    return low


def _units_before_zeros(data: mmap.mmap | bytes, length: int) -> int:
    """The same where the units end once, in zeros."""
    unpack = CQ_STORE_UNIT.unpack_from
    known = len(data) // CQ_STORE_UNIT_SIZE
    low, high = 0, length // CQ_STORE_UNIT_SIZE
    while low < high:
        middle = (low + high) // 2
        offset, size, _ = unpack(data, middle * CQ_STORE_UNIT_SIZE) if middle < known else _NO_UNIT
        if offset >= 0 and size > 0:
            low = middle + 1
        else:
            high = middle
    return low
