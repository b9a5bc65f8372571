"""Rows of the tables as Arrow batches, with only the wanted columns.

A batch ends at a number of rows or of bytes, whichever comes first. It joins ranges: those of many
small queues are one batch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from analytics.datasource.plan.losses import first_left, next_after_deleted, opened_ranges
from analytics.datasource.query.tables import DAMAGE, FAIL
from analytics.kernels.units import read_units
from storage.format.cq_unit import StoreUnit
from storage.read.message_table import FIELDS, MessageTable

from .arrays import field_array, repeated, time_array, value_array
from .bodies import COLUMNS as OF_BODY, FIELDS as FIELDS_OF_BODY, Bodies
from .body_rooms import BODY_ROOMS
from .damage import Damages, damage_of, sentence_of
from .tag_runs import runs_of_tags

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from analytics.datasource.plan.losses import Planned
    from analytics.datasource.plan.ranges import Range
    from analytics.kernels.units import Units
    from storage.read.message_table import Filled
    from storage.readonly import StoreView

BATCH_BYTES: Final = 64 << 20
"""Bytes of a batch, unless the option ``batchBytes`` says another number."""
_OF_RANGE: Final = ("broker", "topic", "queue_id")
_OF_PLACE: Final = (*_OF_RANGE, "queue_offset", DAMAGE)
"""The columns that a message has that cannot be read."""
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
    on_damage: str = FAIL,
) -> Iterator[pa.RecordBatch]:
    """The ``messages`` of some ranges, with ``times`` only those stored in [begin, end) (ms).

    Raises DamagedError for one that cannot be read, unless ``on_damage`` says otherwise, with
    ``fail_fast`` also for a body that cannot be decompressed. Those that were deleted since the
    ranges were made raise DataLossError, or are left out without ``fail_on_loss``. Of messages
    stored at other times only the time is read. With ``tags`` many of those that have another tag
    are left out (``tag_runs``).
    """
    ranges = list(ranges)
    bodies = Bodies(limits.size, fail_fast=fail_fast) if OF_BODY & set(schema.names) else None
    rows = _MessageRows(schema, limits.rows_of(ranges, 1), limits.size, bodies)
    damages = Damages(on_damage)
    opened = opened_ranges(ranges)
    for part, view in opened if tags is None else runs_of_tags(opened, tags):
        at = part.first
        while at < part.end:
            filled = rows.fill(view, part, at, times)
            at = filled.next_offset
            if rows.table.is_full:
                yield from rows.taken()
            if not filled.is_unreadable:
                continue
            later = _after_deleted(view, part, at, fail_on_loss=fail_on_loss)
            reason = damage_of(view, part, at) if later is None else None
            if reason is not None:
                damages.found(sentence_of(part, at, reason))
                if damages.have_rows:
                    if not rows.table.has_room(0, 0):
                        yield from rows.taken()
                    rows.add_damaged(part, at, reason)
            at = at + 1 if later is None else later
    yield from rows.taken()
    if bodies is not None:
        bodies.tell()
    damages.tell()


def _after_deleted(view: StoreView, part: Range, at: int, *, fail_on_loss: bool) -> int | None:
    """Where to go on after messages that were deleted; None if the one at ``at`` was not."""
    unit = view.unit(part.topic, part.queue_id, at)
    found = StoreUnit(*(unit or (0, 0, 0)))
    # A hole or a pre-blank names no record: its log offset, 0, is none of one.
    names_one = found.is_present and not found.is_pre_blank
    place = found.commitlog_offset if names_one else None
    return next_after_deleted(view, part, at, place, fail=fail_on_loss)


class _MessageRows:
    """Rows of messages that become batches when the table is full."""

    def __init__(
        self, schema: pa.Schema, most_rows: int, most_bytes: int, bodies: Bodies | None
    ) -> None:
        self._schema = schema
        self._bodies = bodies
        fields = FIELDS.keys() & set(schema.names)
        self._fields = fields | FIELDS_OF_BODY if bodies is not None else fields
        self._most = most_rows, most_bytes
        self._begin()

    def _begin(self) -> None:
        self.table = MessageTable(self._fields, *self._most, BODY_ROOMS.take())
        self._parts: list[tuple[Range, int]] = []
        self._damage: dict[int, str] = {}
        """By row: why its message cannot be read."""

    def fill(self, view: StoreView, part: Range, at: int, times: tuple[int, int] | None) -> Filled:
        """Add messages of a range from ``at`` on, see ``StoreView.fill_table``."""
        before = self.table.rows
        filled = view.fill_table(self.table, part.topic, part.queue_id, at, part.end, times)
        self._parts.append((part, self.table.rows - before))
        return filled

    def add_damaged(self, part: Range, at: int, reason: str) -> None:
        """Add a message that cannot be read."""
        self._damage[self.table.rows] = reason
        self.table.add_empty(at)
        self._parts.append((part, 1))

    def taken(self) -> Iterator[pa.RecordBatch]:
        """The rows so far as batches; then there are none."""
        yield from self._batches()
        if self.table.body_room is not None:
            BODY_ROOMS.give_back(self.table.body_room)
        self._begin()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        table, parts, damage, schema = self.table, self._parts, self._damage, self._schema
        if not table.rows:
            return
        columns = {
            field.name: field_array(table, field.name, field.type)
            for field in schema
            if field.name in FIELDS
        }
        columns |= _of_ranges(parts, schema)
        if DAMAGE in schema.names:
            reasons = [damage.get(row) for row in range(table.rows)] if damage else []
            kind = schema.field(DAMAGE).type
            columns[DAMAGE] = value_array(reasons, kind) if damage else pa.nulls(table.rows, kind)
        nulls = np.zeros(table.rows, np.bool_)
        nulls[list(damage)] = True
        if self._bodies is None:
            yield _batch(_with_nulls(columns, nulls), schema)
            return
        for start, end, of_bodies in self._bodies.rows(table, parts):
            here = {name: column.slice(start, end - start) for name, column in columns.items()}
            yield _batch(_with_nulls({**here, **of_bodies}, nulls[start:end]), schema)


def _with_nulls(
    columns: Mapping[str, pa.Array], nulls: NDArray[np.bool_]
) -> Mapping[str, pa.Array]:
    """The columns, with nulls in the rows of messages that cannot be read."""
    if not nulls.any():
        return columns
    rows = pa.array(np.arange(len(nulls)), mask=nulls)
    return {
        name: column if name in _OF_PLACE else column.take(rows) for name, column in columns.items()
    }


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
