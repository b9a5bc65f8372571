"""Records ready to be appended, except for the three fields that only the appender knows.

Encoding, checksums and hashes are done before the write lock is taken. Under it, a run of records
only needs its commit log offset, queue offsets and store timestamp.

    prepare -> PreparedRecords -> [lock: split, place, write image, write units, index] -> result
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from struct import Struct
from typing import TYPE_CHECKING, Final, TypeAlias

from .cq_unit import CQ_STORE_UNIT
from .layout import QUEUE_OFFSET_POSITION

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints: TypeAlias = Sequence[int] | NDArray[np.int64]
    Bools: TypeAlias = Sequence[bool] | NDArray[np.bool_]

_OFFSETS: Final = Struct(">2q")
_TIMESTAMP: Final = Struct(">q")
_SYS_FLAG_LOW_BYTE: Final = 39
_BORN_V6: Final = 0x10


class PreparedRecords:
    """A run of records of one append, in order.

    ``buffer`` holds them consecutively, record i at ``starts[i]`` (the first at 0) with
    ``sizes[i]`` bytes. ``queues`` lists the distinct (topic, queue_id); ``queue_index[i]`` is the
    number of record i's queue in it, None = all are ``queues[0]``. ``has_unit`` None = every
    record gets a consume queue unit. ``delays_ms[i]`` >= 0: the unit's tags code is the store
    timestamp plus that delay; None or -1: it is ``tags_codes[i]``. ``key_hashes`` are the index
    hashes of all records in order, ``key_counts`` how many each has (an int = all the same).

    Not thread-safe: ``place`` changes ``buffer``.
    """

    store_timestamps: Ints | None = None
    """Store times that the records already have (ms), None = they get the appender's."""
    may_go_back: bool = False
    """Whether such times may be older than the log's newest."""

    __slots__ = (
        "buffer",
        "delays_ms",
        "has_unit",
        "key_counts",
        "key_hashes",
        "queue_index",
        "queues",
        "sizes",
        "starts",
        "tags_codes",
    )

    def __init__(
        self,
        buffer: bytearray,
        starts: Ints,
        sizes: Ints,
        queues: list[tuple[str, int]],
        queue_index: Ints | None,
        has_unit: Bools | None,
        tags_codes: Ints,
        delays_ms: Ints | None,
        key_hashes: Ints,
        key_counts: Ints | int,
    ) -> None:
        self.buffer = buffer
        self.starts = starts
        self.sizes = sizes
        self.queues = queues
        self.queue_index = queue_index
        self.has_unit = has_unit
        self.tags_codes = tags_codes
        self.delays_ms = delays_ms
        self.key_hashes = key_hashes
        self.key_counts = key_counts

    def __len__(self) -> int:
        return len(self.starts)

    def largest(self) -> int:
        """Give the bytes of the largest record, 0 if there is none."""
        return max(self.sizes, default=0)

    def queue_counts(self) -> Sequence[int]:
        """Count how many queue offsets each queue of ``queues`` uses."""
        if self.queue_index is None and self.has_unit is None:
            return [len(self.starts)] * len(self.queues)
        counts = [0] * len(self.queues)
        for i in range(len(self.starts)):
            if self.has_unit is None or self.has_unit[i]:
                counts[0 if self.queue_index is None else self.queue_index[i]] += 1
        return counts

    def record_queue_offsets(self, queue_offsets: Sequence[int]) -> Ints:
        """Give each record's queue offset, from the next offset of every queue in ``queues``.

        Ascending within a queue, in the order of the records; 0 for a record without a unit.
        """
        if self.queue_index is None and self.has_unit is None:
            first = queue_offsets[0] if self.queues else 0
            return range(first, first + len(self.starts))
        following = list(queue_offsets)
        offsets = []
        for i in range(len(self.starts)):
            if self.has_unit is not None and not self.has_unit[i]:
                offsets.append(0)
                continue
            number = 0 if self.queue_index is None else self.queue_index[i]
            offsets.append(following[number])
            following[number] += 1
        return offsets

    def place(
        self, commitlog_offset: int, queue_offsets: Sequence[int], store_timestamp: int
    ) -> Ints:
        """Write queue offsets, commit log offsets and the store timestamp (ms) into ``buffer``.

        ``commitlog_offset`` is where the first byte of ``buffer`` will lie; ``queue_offsets`` is
        the next offset of every queue in ``queues``. May be called again with other values. Gives
        each record's queue offset.
        """
        buffer = self.buffer
        if len(self.starts) == 1:
            # One message at a time is the most frequent use; the loop below takes twice as long.
            number = 0 if self.queue_index is None else self.queue_index[0]
            has_unit = self.has_unit is None or self.has_unit[0]
            queue_offset = queue_offsets[number] if has_unit else 0
            _OFFSETS.pack_into(buffer, QUEUE_OFFSET_POSITION, queue_offset, commitlog_offset)
            position = 68 if buffer[_SYS_FLAG_LOW_BYTE] & _BORN_V6 else 56
            _TIMESTAMP.pack_into(buffer, position, store_timestamp)
            return (queue_offset,)
        offsets = self.record_queue_offsets(queue_offsets)
        for start, queue_offset in zip(self.starts, offsets, strict=True):
            _OFFSETS.pack_into(
                buffer, start + QUEUE_OFFSET_POSITION, queue_offset, commitlog_offset + start
            )
            position = 68 if buffer[start + _SYS_FLAG_LOW_BYTE] & _BORN_V6 else 56
            _TIMESTAMP.pack_into(buffer, start + position, store_timestamp)
        return offsets

    def units(self, commitlog_offset: int, store_timestamp: int) -> list[tuple[int, int, bytes]]:
        """Make the consume queue units: per queue (number in ``queues``, count, units in order).

        Queues that get no unit are left out.
        """
        queue_index, has_unit, delays_ms = self.queue_index, self.has_unit, self.delays_ms
        pack = CQ_STORE_UNIT.pack
        if len(self.starts) == 1 and has_unit is None and delays_ms is None:
            number = 0 if queue_index is None else queue_index[0]
            return [(number, 1, pack(commitlog_offset, self.sizes[0], self.tags_codes[0]))]
        blocks: list[list[bytes]] = [[] for _ in self.queues]
        for i, start in enumerate(self.starts):
            if has_unit is not None and not has_unit[i]:
                continue
            code = self.tags_codes[i]
            if delays_ms is not None and delays_ms[i] >= 0:
                code = store_timestamp + delays_ms[i]
            number = 0 if queue_index is None else queue_index[i]
            blocks[number].append(pack(commitlog_offset + start, self.sizes[i], code))
        return [
            (number, len(block), b"".join(block)) for number, block in enumerate(blocks) if block
        ]

    def log_offsets(self, commitlog_offset: int) -> Ints:
        """Give each record's commit log offset; after :meth:`place`."""
        return [start + commitlog_offset for start in self.starts]

    def key_offsets(self, commitlog_offset: int) -> Ints:
        """Give each record's commit log offset as often as it has keys."""
        counts = self.key_counts
        if isinstance(counts, int):
            return [s + commitlog_offset for s in self.starts for _ in range(counts)]
        rows = zip(self.starts, counts, strict=True)
        return [start + commitlog_offset for start, count in rows for _ in range(count)]

    def split(self, limit: int) -> tuple[PreparedRecords, PreparedRecords | None]:
        """Divide into the records that end within ``limit`` bytes and the rest, None if all do.

        Both keep ``queues`` as it is. The first part may be empty.
        """
        if len(self.buffer) <= limit:
            return self, None
        count = bisect_right(self.starts, limit - 1) if limit > 0 else 0
        if count and self.starts[count - 1] + self.sizes[count - 1] > limit:
            count -= 1
        return self._part(0, count), self._part(count, len(self.starts))

    def _part(self, first: int, end: int) -> PreparedRecords:
        base = self.starts[first] if first < len(self.starts) else len(self.buffer)
        stop = self.starts[end] if end < len(self.starts) else len(self.buffer)
        counts = self.key_counts
        if isinstance(counts, int):
            keys = slice(first * counts, end * counts)
        else:
            before = sum(counts[:first])
            keys = slice(before, before + sum(counts[first:end]))
            counts = counts[first:end]
        return type(self)(
            self.buffer[base:stop],
            self._rebased(self.starts[first:end], base),
            self.sizes[first:end],
            self.queues,
            None if self.queue_index is None else self.queue_index[first:end],
            None if self.has_unit is None else self.has_unit[first:end],
            self.tags_codes[first:end],
            None if self.delays_ms is None else self.delays_ms[first:end],
            self.key_hashes[keys],
            counts,
        )

    @staticmethod
    def _rebased(starts: Ints, base: int) -> Ints:
        return [start - base for start in starts]
