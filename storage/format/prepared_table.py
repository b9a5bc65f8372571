"""Prepared records in the compiled form: a table of all columns; answers as PreparedRecords.

The table is bytes that C wrote (``Row`` of storage/native/writing/rows.h): numbers of 8 bytes, a
row of ``_COLUMNS`` for each record. Columns are made from it on first use.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from storage import native

from .prepared import PreparedRecords

if TYPE_CHECKING:
    from .encode_column import ColumnParts
    from .prepared import Ints

_START, _SIZE, _CODE, _QUEUE, _KEYS, _DELAY, _HAS_UNIT, _COLUMNS = range(8)
_ROW: Final = 8 * _COLUMNS
_NUMPY_FROM: Final = 48
"""Where nothing is compiled, so many bodies pay for the import of NumPy."""


class PreparedTable(PreparedRecords):
    """Records that ``encode_run`` or ``encode_column`` of the compiled module has made."""

    __slots__ = ("_compiled", "_log_offsets", "table")

    def __init__(
        self, buffer: bytearray, table: bytes, queues: list[tuple[str, int]], hashes: bytes
    ) -> None:
        """Take what these functions give."""
        self.buffer = buffer
        self.table = table
        self.queues = queues
        self.key_hashes = memoryview(hashes).cast("q")
        self._log_offsets: list[int] = []  # set by place
        self._compiled: Any = native.compiled

    @property
    def parts(self) -> tuple[bytearray, bytes, list[tuple[str, int]], Ints]:
        """The arguments of compiled code: image, table, queues and key hashes."""
        return self.buffer, self.table, self.queues, self.key_hashes

    def __len__(self) -> int:
        return len(self.table) // _ROW

    def __getattr__(self, name: str) -> Any:
        """Make the columns; called for a slot that is not set yet."""
        if name not in PreparedRecords.__slots__:
            raise AttributeError(name)
        numbers = array("q", self.table)
        self.starts = numbers[_START::_COLUMNS]
        self.sizes = numbers[_SIZE::_COLUMNS]
        self.tags_codes = numbers[_CODE::_COLUMNS]
        self.queue_index = numbers[_QUEUE::_COLUMNS] if len(self.queues) > 1 else None
        self.key_counts = numbers[_KEYS::_COLUMNS]
        delays = numbers[_DELAY::_COLUMNS]
        self.delays_ms = delays if max(delays, default=-1) >= 0 else None
        has_unit = [bool(number) for number in numbers[_HAS_UNIT::_COLUMNS]]
        self.has_unit = None if all(has_unit) else has_unit
        return object.__getattribute__(self, name)

    def place(
        self, commitlog_offset: int, queue_offsets: Sequence[int], store_timestamp: int
    ) -> Ints:
        """Write queue offsets, commit log offsets and the store timestamp (ms) into ``buffer``."""
        following = list(queue_offsets)
        own: list[int]
        self._log_offsets, own = self._compiled.place(
            self.buffer, self.table, commitlog_offset, following, store_timestamp
        )
        return own

    def units(self, commitlog_offset: int, store_timestamp: int) -> list[tuple[int, int, bytes]]:
        """Make the consume queue units: per queue (number in ``queues``, count, units in order)."""
        found: list[tuple[int, int, bytes]] = self._compiled.units(
            self.table, len(self.queues), commitlog_offset, store_timestamp
        )
        return found

    def log_offsets(self, commitlog_offset: int) -> Ints:
        """Give each record's commit log offset; after :meth:`place`."""
        return self._log_offsets

    def key_offsets(self, commitlog_offset: int) -> Ints:
        """Give each record's commit log offset as often as it has keys."""
        places: bytes = self._compiled.key_places(self.table, commitlog_offset)
        return memoryview(places).cast("q")

    def _part(self, first: int, end: int) -> PreparedTable:
        base = self.starts[first] if first < len(self) else len(self.buffer)
        stop = self.starts[end] if end < len(self) else len(self.buffer)
        numbers = array("q", self.table[first * _ROW : end * _ROW])
        numbers[_START::_COLUMNS] = array("q", [n - base for n in numbers[_START::_COLUMNS]])
        before = sum(array("q", self.table[: first * _ROW])[_KEYS::_COLUMNS])
        keys = slice(before, before + sum(numbers[_KEYS::_COLUMNS]))
        return PreparedTable(
            self.buffer[base:stop], numbers.tobytes(), self.queues, bytes(self.key_hashes[keys])
        )


def table_of_run(messages: Sequence[Any]) -> PreparedTable | None:
    """Encode messages; None if nothing is compiled, or if one of them is unusual."""
    if native.compiled is None or not messages:
        return None
    made = native.compiled.encode_run(messages if type(messages) is list else list(messages))
    return None if made is None else PreparedTable(*made)


def table_of_column(column: ColumnParts) -> PreparedTable | None:
    """Encode a column; None if nothing is compiled, or if the column is unusual."""
    if native.compiled is None:
        return None
    made = native.compiled.encode_column(*column)
    return None if made is None else PreparedTable(*made)


def table_of_rows(columns: tuple[Any, ...], delay_ms: int = -1) -> PreparedTable | None:
    """Encode rows; None if nothing is compiled, or if one of them is unusual. ``columns`` are the
    arguments of ``encode_rows`` (storage/native). With ``delay_ms`` >= 0 units hold the time of
    delivery."""
    if native.compiled is None:
        return None
    made = native.compiled.encode_rows(*columns)
    if made is None:
        return None
    table = PreparedTable(*made)
    if delay_ms >= 0:
        numbers = array("q", table.table)
        numbers[_DELAY::_COLUMNS] = array("q", [delay_ms]) * len(table)
        table.table = numbers.tobytes()
    return table


def column_pays(count: int) -> bool:
    """Whether ``prepare_column`` is faster than ``prepare`` for ``count`` messages."""
    return native.compiled is not None or count >= _NUMPY_FROM
