"""Rows of the tables as Arrow batches, with only the wanted columns.

A batch ends at a number of rows or of bytes, whichever comes first. It joins ranges: those of many
small queues are one batch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from analytics.kernels.units import read_units
from storage.read.message_table import FIELDS, MessageTable

from .arrays import field_array, repeated, time_array
from .bodies import COLUMNS as OF_BODY, FIELDS as FIELDS_OF_BODY, Bodies
from .errors import DamagedError
from .losses import first_left, next_after_deleted, opened_ranges
from .tag_runs import runs_of_tags

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from analytics.kernels.units import Units
    from storage.readonly import StoreView

    from .losses import Planned
    from .ranges import Range

BATCH_BYTES: Final = 64 << 20
"""Bytes of a batch, unless the option ``batchBytes`` says another number."""
_OF_RANGE: Final = ("broker", "topic", "queue_id")
_UNIT_BYTES: Final = 48


class BatchLimits(NamedTuple):
    """Where a batch ends: it has at most so many rows, and about so many bytes."""

    rows: int
    size: int = BATCH_BYTES

    def rows_of(self, ranges: Sequence[Planned], row_bytes: int) -> int:
        """The rows that the bytes leave, where names and so many bytes come with each."""
        longest = max((len(part.broker) + len(part.topic) for part in ranges), default=0)
        return max(1, min(self.rows, self.size // (4 * longest + row_bytes)))


def message_batches(
    ranges: Iterable[Planned],
    schema: pa.Schema,
    limits: BatchLimits,
    times: tuple[int, int] | None = None,
    *,
    tags: Collection[str] | None = None,
    fail_fast: bool = False,
    fail_on_loss: bool = True,
) -> Iterator[pa.RecordBatch]:
    """The ``messages`` of some ranges, with ``times`` only those stored in [begin, end) (ms).

    Raises DamagedError for one that cannot be read, with ``fail_fast`` also for a body that cannot
    be decompressed. Those that were deleted since the ranges were made raise DataLossError, or are
    left out without ``fail_on_loss``. Of messages stored at other times only the time is read.
    With ``tags`` many of those that have another tag are left out (``tag_runs``).
    """
    ranges = list(ranges)
    names = set(schema.names)
    bodies = Bodies(limits.size, fail_fast=fail_fast) if names & OF_BODY else None
    fields = names & FIELDS.keys() | (FIELDS_OF_BODY if bodies is not None else set())
    most_rows = limits.rows_of(ranges, 1)
    table = MessageTable(fields, most_rows, limits.size)
    parts: list[tuple[Range, int]] = []
    opened = opened_ranges(ranges)
    for part, view in opened if tags is None else runs_of_tags(opened, tags):
        at = part.first
        while at < part.end:
            before = table.rows
            filled = view.fill_table(table, part.topic, part.queue_id, at, part.end, times)
            at = filled.next_offset
            parts.append((part, table.rows - before))
            if table.is_full:
                yield from _of_messages(table, parts, bodies, schema)
                table, parts = MessageTable(fields, most_rows, limits.size), []
            if filled.is_unreadable:
                at = _after_unreadable(view, part, at, fail_on_loss=fail_on_loss)
    if table.rows:
        yield from _of_messages(table, parts, bodies, schema)
    if bodies is not None:
        bodies.tell()


def _after_unreadable(view: StoreView, part: Range, at: int, *, fail_on_loss: bool) -> int:
    unit = view.unit(part.topic, part.queue_id, at)
    place = None if unit is None else unit[0]
    found = next_after_deleted(view, part, at, place, fail=fail_on_loss)
    if found is None:
        raise DamagedError(
            f"{part.path}: message {at} of {part.topic}, queue {part.queue_id}, cannot be read; "
            "'rmqctl store fsck' tells why"
        )
    return found


def _of_messages(
    table: MessageTable,
    parts: Sequence[tuple[Range, int]],
    bodies: Bodies | None,
    schema: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    columns = {
        field.name: field_array(table, field.name, field.type)
        for field in schema
        if field.name in FIELDS
    }
    columns |= _of_ranges(parts, schema)
    if bodies is None:
        yield _batch(columns, schema)
        return
    for start, end, of_bodies in bodies.rows(table, parts):
        here = {name: column.slice(start, end - start) for name, column in columns.items()}
        yield _batch({**here, **of_bodies}, schema)


def _of_ranges(parts: Sequence[tuple[Range, int]], schema: pa.Schema) -> dict[str, pa.Array]:
    counts = [count for _, count in parts]
    return {
        field.name: repeated([getattr(part, field.name) for part, _ in parts], counts, field.type)
        for field in schema
        if field.name in _OF_RANGE
    }


def _batch(columns: Mapping[str, pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


class _UnitRows(NamedTuple):
    """Units of a range, and their store times (ms, -1 where unknown) if these are wanted."""

    part: Range
    units: Units
    times: NDArray[np.int64] | None


def unit_batches(
    ranges: Iterable[Planned], schema: pa.Schema, limits: BatchLimits, *, fail_on_loss: bool = True
) -> Iterator[pa.RecordBatch]:
    """The ``consumequeue`` of some ranges; null where a unit is missing. For those that were
    deleted since see ``message_batches``."""
    ranges = list(ranges)
    most = limits.rows_of(ranges, _UNIT_BYTES)
    found: list[_UnitRows] = []
    room = most
    for part, view in opened_ranges(ranges):
        at = part.first
        while (at := first_left(view, part, at, fail=fail_on_loss)) < part.end:
            end = min(at + room, part.end)
            units = read_units(view, part.topic, part.queue_id, at, end)
            times = None
            if "store_timestamp" in schema.names:
                times = view.store_timestamps(units.places, units.sizes)
            found.append(_UnitRows(part, units, times))
            room -= end - at
            at = end
            if not room:
                yield _of_units(found, schema)
                found, room = [], most
    if found:
        yield _of_units(found, schema)


def _of_units(found: Sequence[_UnitRows], schema: pa.Schema) -> pa.RecordBatch:
    parts = [(rows.part, len(rows.units)) for rows in found]
    columns = _of_ranges(parts, schema)
    sizes = _joined([rows.units.sizes for rows in found])
    missing = sizes == 0
    for field in schema:
        match field.name:
            case "queue_offset":
                offsets = [
                    np.arange(rows.units.first, rows.units.first + len(rows.units))
                    for rows in found
                ]
                columns["queue_offset"] = pa.array(_joined(offsets), field.type)
            case "commitlog_offset":
                places = _joined([rows.units.places for rows in found])
                columns["commitlog_offset"] = pa.array(places, field.type, mask=missing)
            case "store_size":
                columns["store_size"] = pa.array(sizes.astype(np.int32), field.type, mask=missing)
            case "tags_code":
                tags = _joined([rows.units.tags for rows in found])
                columns["tags_code"] = pa.array(tags, field.type, mask=missing)
            case "store_timestamp":
                times = _joined([rows.times for rows in found if rows.times is not None])
                columns["store_timestamp"] = time_array(times, field.type, times < 0)
    return _batch(columns, schema)


def _joined(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
