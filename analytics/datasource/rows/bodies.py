"""The columns of bodies: as they were sent, null with the reason where that cannot be had."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import numpy as np
import pyarrow as pa

from analytics.datasource.plan.planned import planned_view
from analytics.datasource.query.errors import DamagedError
from storage.format.compress import MAX_INFLATED_BODY_SIZE, decompress
from storage.format.errors import BodyError
from storage.readonly import StoreView

from .arrays import ends_of, text_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.datasource.plan.ranges import Range
    from storage.read.message_table import MessageTable

    Parts = Sequence[tuple[Range, int]]
    """Ranges, and how many rows of a table are of each."""

logger = logging.getLogger("rmqctl.datasource")

_ORDER: Final = ("body", "body_size", "body_error", "corrupt_body")
COLUMNS: Final = frozenset(_ORDER)
FIELDS: Final = frozenset({"stored_body", "sys_flag", "queue_offset"})
"""Fields of a table that they are made of; all but the first for bodies that are compressed."""
_BINARY: Final = pa.binary()
_TEXT: Final = pa.string()


class BodyRows(NamedTuple):
    """The columns of bodies for the rows [start, end) of a table."""

    start: int
    end: int
    columns: dict[str, pa.Array]


class _Bad(NamedTuple):
    """Why a body cannot be unpacked, and its stored bytes."""

    error: str
    stored: bytes


class _Run(NamedTuple):
    """Bodies of consecutive rows: either as they are stored, or of one row that was unpacked."""

    lengths: NDArray[np.int32]
    data: memoryview | bytes
    bad: _Bad | None = None


class Bodies:
    """Unpacks the bodies of tables; notes those that cannot be unpacked."""

    def __init__(self, most_bytes: int, *, fail_fast: bool) -> None:
        self._most = most_bytes
        self._fail_fast = fail_fast
        self._bad: dict[tuple[str, str, int], tuple[int, str]] = {}

    def rows(self, table: MessageTable, parts: Parts) -> Iterator[BodyRows]:
        """The columns of a table, whose rows are so many of each part; in pieces of about
        ``most_bytes``, as packed bodies may become much. Raises DamagedError with fail_fast."""
        packed = np.frombuffer(table.buffer("stored_body_packed"), np.int32).tolist()
        ends, data = table.buffer("stored_body_ends"), table.buffer("stored_body")
        if not packed:
            cuts = np.frombuffer(ends, np.int32)
            sizes = cuts[1:] - cuts[:-1]
            yield BodyRows(0, table.rows, _columns(text_array(ends, data, _BINARY), sizes, {}))
            return
        piece = _Piece(0)
        for run in self._runs(table, parts, packed):
            if piece.data and len(piece.data) + len(run.data) > self._most:
                yield piece.rows()
                piece = _Piece(piece.end)
            piece.add(run)
        yield piece.rows()

    def _runs(self, table: MessageTable, parts: Parts, packed: list[int]) -> Iterator[_Run]:
        stored = memoryview(table.buffer("stored_body"))
        ends = np.frombuffer(table.buffer("stored_body_ends"), np.int32)
        flags = np.frombuffer(table.buffer("sys_flag"), np.int32)
        lengths = ends[1:] - ends[:-1]
        at = 0
        with _Places(table, parts) as places:
            for row in packed:
                yield _Run(lengths[at:row], stored[ends[at] : ends[row]])
                raw = bytes(stored[ends[row] : ends[row + 1]])
                try:
                    body = decompress(raw, int(flags[row]), MAX_INFLATED_BODY_SIZE)
                except BodyError as error:
                    text = self._note(places.part(row), error.of(places.name(row)))
                    yield _Run(np.zeros(1, np.int32), b"", _Bad(text, raw))
                else:
                    yield _Run(np.array([len(body)], np.int32), body)
                at = row + 1
        yield _Run(lengths[at:], stored[ends[at] :])

    def _note(self, part: Range, error: BodyError) -> str:
        text = str(error)
        if self._fail_fast:
            raise DamagedError(
                f"{part.path}: {text}; with mode=PERMISSIVE its body is null, "
                "and body_error says why"
            ) from error
        key = part.path, part.topic, part.queue_id
        count, first = self._bad.get(key, (0, text))
        self._bad[key] = count + 1, first
        return text

    def tell(self) -> None:
        """Warn once of those of each queue, in the log of the worker."""
        for (path, _, _), (count, first) in self._bad.items():
            logger.warning(
                "%s: %d bodies cannot be unpacked and are null (body_error says why), the first: "
                "%s",
                path,
                count,
                first,
            )


class _Piece:
    """Rows of a table from ``start`` on, whose bodies are put one after the other."""

    def __init__(self, start: int) -> None:
        self.start = self.end = start
        self.data = bytearray()
        self._lengths: list[NDArray[np.int32]] = []
        self._bad: dict[int, _Bad] = {}

    def add(self, run: _Run) -> None:
        """Add the next rows."""
        if run.bad is not None:
            self._bad[self.end - self.start] = run.bad
        self.data += run.data
        self._lengths.append(run.lengths)
        self.end += len(run.lengths)

    def rows(self) -> BodyRows:
        """The columns."""
        lengths = np.concatenate(self._lengths)
        nulls = np.zeros(len(lengths), np.bool_)
        nulls[list(self._bad)] = True
        bodies = text_array(ends_of(lengths), self.data, _BINARY, nulls)
        return BodyRows(self.start, self.end, _columns(bodies, lengths, self._bad))


class _Places:
    """Names messages of a table for errors; they are read once more for that, as few are named."""

    def __init__(self, table: MessageTable, parts: Parts) -> None:
        self._offsets = np.frombuffer(table.buffer("queue_offset"), np.int64)
        self._parts = parts
        self._ends = np.cumsum([count for _, count in parts])
        self._opened: tuple[str, StoreView] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._opened is not None:
            self._opened[1].close()

    def part(self, row: int) -> Range:
        """The range that the message of a row was read for."""
        return self._parts[int(np.searchsorted(self._ends, row, "right"))][0]

    def name(self, row: int) -> str:
        """Id, topic, queue and offset of its record."""
        part, offset = self.part(row), int(self._offsets[row])
        view, queue = self._view(part.path), (part.topic, part.queue_id)
        unit = view.unit(*queue, offset)
        message = None if unit is None else view.message_of_unit(*queue, offset, unit)
        if message is None:  # deleted since it was read
            return f"message {offset} of {part.topic}, queue {part.queue_id}"
        return message.place

    def _view(self, path: str) -> StoreView:
        if self._opened is None or self._opened[0] != path:
            self.__exit__()
            self._opened = path, planned_view(path) or StoreView.open(path)
        return self._opened[1]


def _columns(
    bodies: pa.Array, sizes: NDArray[np.int32], bad: dict[int, _Bad]
) -> dict[str, pa.Array]:
    count = len(bodies)
    if not bad:
        of_sizes = pa.array(sizes, pa.int32())
        none = pa.nulls(count, _TEXT), pa.nulls(count, _BINARY)
        return dict(zip(_ORDER, (bodies, of_sizes, *none), strict=True))
    why = [bad.get(row) for row in range(count)]
    nulls = np.array([one is not None for one in why])
    errors = pa.array([one and one.error for one in why], _TEXT)
    corrupt = pa.array([one and one.stored for one in why], _BINARY)
    of_sizes = pa.array(sizes, pa.int32(), mask=nulls)
    return dict(zip(_ORDER, (bodies, of_sizes, errors, corrupt), strict=True))
