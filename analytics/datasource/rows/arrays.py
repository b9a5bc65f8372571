"""Columns of tables of messages and of units as Arrow arrays, mostly without copying."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from analytics.report.stores import as_text
from storage.read.message_table import FIELDS, Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from storage.read.message_table import MessageTable

_US_PER_MS: Final = 1000
_LATEST_MS: Final = ((1 << 63) - 1) // _US_PER_MS


def field_array(table: MessageTable, name: str, kind: pa.DataType) -> pa.Array:
    """A field of a table that is complete; the array points into the table's buffers."""
    buffer = table.buffer
    match FIELDS[name]:
        case Kind.INT:
            return pa.Array.from_buffers(kind, table.rows, [None, pa.py_buffer(buffer(name))])
        case Kind.LONG if pa.types.is_timestamp(kind):
            return time_array(np.frombuffer(buffer(name), np.int64), kind)
        case Kind.LONG:
            return pa.Array.from_buffers(kind, table.rows, [None, pa.py_buffer(buffer(name))])
        case Kind.TEXTS:
            texts = text_array(buffer(f"{name}_text_ends"), buffer(f"{name}_text"), kind.value_type)
            return _list_array(buffer(f"{name}_ends"), texts, kind)
        case Kind.PAIRS:
            of_names, of_values = kind.key_field, kind.item_field
            ends = [buffer(f"{name}_{part}_ends") for part in ("name", "value")]
            names = text_array(ends[0], buffer(f"{name}_name"), of_names.type)
            values = text_array(ends[1], buffer(f"{name}_value"), of_values.type)
            pairs = pa.StructArray.from_arrays([names, values], fields=[of_names, of_values])
            return _list_array(buffer(f"{name}_ends"), pairs, kind)
    # Only tags can be missing, and they are never empty.
    found = text_array(buffer(f"{name}_ends"), buffer(name), kind)
    return found if name != "tags" else _without_empty(found)


def text_array(
    ends: Any, data: Any, kind: pa.DataType, nulls: NDArray[np.bool_] | None = None
) -> pa.Array:
    """Texts or bytes by their ends, which begin with a 0; ``nulls`` are none."""
    count = len(memoryview(ends).cast("B")) // 4 - 1
    present = None if nulls is None or not nulls.any() else _bitmap(~nulls)
    return pa.Array.from_buffers(kind, count, [present, pa.py_buffer(ends), pa.py_buffer(data)])


def time_array(
    milliseconds: NDArray[np.int64], kind: pa.DataType, nulls: NDArray[np.bool_] | None = None
) -> pa.Array:
    """Times as Arrow has them; ``nulls`` are none, nor are those whose microseconds 64 bits cannot
    hold."""
    none = (milliseconds > _LATEST_MS) | (milliseconds < -_LATEST_MS)
    if nulls is not None:
        none |= nulls
    present = _bitmap(~none) if none.any() else None
    times = milliseconds * _US_PER_MS
    return pa.Array.from_buffers(kind, len(times), [present, pa.py_buffer(times)])


def microseconds(time_ms: int | None) -> int | None:
    """A time as ``time_array`` has it."""
    return None if time_ms is None or abs(time_ms) > _LATEST_MS else time_ms * _US_PER_MS


def repeated(values: Sequence[str | int], counts: Iterable[int], kind: pa.DataType) -> pa.Array:
    """A column of which each value comes so many times in a row."""
    each = np.fromiter(counts, np.int64)
    if pa.types.is_integer(kind):
        return pa.array(np.repeat(np.array(values, kind.to_pandas_dtype()), each), kind)
    texts = [as_text(str(value)).encode() for value in values]
    data = b"".join([text * count for text, count in zip(texts, each.tolist(), strict=True)])
    lengths = np.repeat(np.array([len(text) for text in texts], np.int64), each)
    return text_array(ends_of(lengths), data, kind)


def value_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """A column of values; names in it that are no Unicode text are replaced as ``as_text`` does.
    Raises ArrowInvalid and OverflowError for a number that the type does not hold."""
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array([_with_text(value) for value in values], kind)


def _with_text(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_text(one) for one in value]
    return as_text(value) if isinstance(value, str) else value


def ends_of(lengths: NDArray[Any]) -> NDArray[np.int32]:
    """The ends of texts of such lengths, after a 0."""
    ends = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=ends[1:])
    return ends


def _list_array(ends: bytearray, items: pa.Array, kind: pa.DataType) -> pa.Array:
    count = len(ends) // 4 - 1
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(ends)], children=[items])


def _without_empty(texts: pa.Array) -> pa.Array:
    _, ends, data = texts.buffers()
    present = np.diff(np.frombuffer(ends, np.int32)) > 0
    bitmap = None if present.all() else _bitmap(present)
    return pa.Array.from_buffers(texts.type, len(texts), [bitmap, ends, data])


def _bitmap(present: NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(present, bitorder="little"))
