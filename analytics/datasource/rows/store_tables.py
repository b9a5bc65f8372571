"""The tables of whole stores (analytics.store_rows) as Arrow batches.

A task has one store. Filters on names are hints: Spark applies all of them itself, too.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from analytics.store_rows.reading import store_rows
from analytics.store_rows.wanted import Wanted

from .arrays import microseconds, value_array
from .damage import Damages

if TYPE_CHECKING:
    from analytics.datasource.query.options import Options
    from analytics.datasource.query.selection import Selection
    from analytics.report.stores import StoreRef
    from analytics.store_rows.row_types import StoreRow

logger = logging.getLogger("rmqctl.datasource")

_ROW_BYTES: Final = 256


def store_batches(
    options: Options, chosen: Selection, ref: StoreRef, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The rows of a table of one store.

    Raises the errors of ``StoreView.open``, CorruptFileError, and DamagedError for a message that
    cannot be read, unless ``onDamage`` says otherwise. Where it is unknown which rows there are,
    the worker's log says so.
    """
    damages = Damages(options.on_damage)
    wanted = Wanted(
        _both(options.groups, chosen.group),
        _both(options.topics.named, chosen.topic),
        damages.found,
        logger.warning,
        bodies="body" in schema.names,
    )
    rows = store_rows(options.table, ref.path, ref.broker, wanted)
    for part in _cut(rows, options.batch_rows, options.batch_bytes):
        columns = dict(zip(part[0]._fields, zip(*part, strict=True), strict=True))
        arrays = [_array(columns[field.name], field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
    damages.tell()


def _both(named: Collection[str] | None, chosen: frozenset[Any] | None) -> Collection[str] | None:
    if named is None or chosen is None:
        return chosen if named is None else named
    return chosen & frozenset(named)


def _cut(rows: Iterable[StoreRow], most: int, most_bytes: int) -> Iterator[Sequence[StoreRow]]:
    """Rows in parts of at most so many, and of about so many bytes: packed bodies may become much
    more than what is stored."""
    part: list[StoreRow] = []
    size = 0
    for row in rows:
        body = getattr(row, "body", None) or b""
        row_size = _ROW_BYTES + max(getattr(row, "store_size", 0), len(body))
        if part and (len(part) == most or size + row_size > most_bytes):
            yield part
            part, size = [], 0
        part.append(row)
        size += row_size
    if part:
        yield part


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """A column; times come in ms. A number that its type does not hold is null."""
    if pa.types.is_timestamp(kind):
        values = [microseconds(value) for value in values]
    try:
        return value_array(values, kind)
    except (pa.ArrowInvalid, OverflowError):
        bits = kind.bit_width - 1
        known = [
            None if value is None or value >> bits not in {0, -1} else value for value in values
        ]
        return pa.array(known, kind)
