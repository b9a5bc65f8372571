"""Rows of the tables as Arrow batches, with only the wanted columns."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from analytics.kernels.units import read_units
from storage.format.errors import BodyError

from .losses import first_left, next_after_deleted, opened_ranges

if TYPE_CHECKING:
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

    from .ranges import Range

logger = logging.getLogger("rmqctl.datasource")

_US_PER_MS: Final = 1000
_BATCH_BYTES: Final = 64 << 20
"""Bytes of uncompressed bodies after which a batch is given: they may be well compressed."""

_OF_MESSAGE: Final[dict[str, Callable[[MessageExt], Any]]] = {
    "tags": lambda message: _text(message.tags),
    "keys": lambda message: [_text(key) for key in message.keys],
    "msg_id": lambda message: _text(message.msg_id),
    "store_timestamp": lambda message: message.store_timestamp * _US_PER_MS,
    "born_timestamp": lambda message: message.born_timestamp * _US_PER_MS,
    "reconsume_times": lambda message: message.reconsume_times,
    "properties": lambda message: [
        (_text(name), _text(value)) for name, value in message.properties.items()
    ],
    "offset_msg_id": lambda message: message.offset_msg_id,
    "commitlog_offset": lambda message: message.commitlog_offset,
    "store_size": lambda message: message.store_size,
    "flag": lambda message: message.flag,
    "sys_flag": lambda message: message.sys_flag,
    "born_host": lambda message: message.born_host,
    "store_host": lambda message: message.store_host,
    "record_topic": lambda message: _text(message.topic),
    "record_queue_id": lambda message: message.queue_id,
    "record_queue_offset": lambda message: message.queue_offset,
}


class _Read(NamedTuple):
    """A message at an offset of the queue that is read, and why its body cannot be decompressed
    (None: it can, or was not requested)."""

    queue_offset: int
    message: MessageExt
    body_error: str | None


_OF_BODY: Final[dict[str, Callable[[_Read], Any]]] = {
    "body": lambda read: None if read.body_error else read.message.body,
    "body_size": lambda read: None if read.body_error else len(read.message.body),
    "body_error": lambda read: read.body_error,
    "corrupt_body": lambda read: read.message.raw_body if read.body_error else None,
}
"""Columns for which a body is decompressed."""


class DamagedError(Exception):
    """A message cannot be read whole; the error goes to Spark."""


def message_batches(
    ranges: Iterable[Range],
    schema: pa.Schema,
    rows: int,
    times: tuple[int, int] | None = None,
    *,
    fail_fast: bool = False,
    fail_on_loss: bool = True,
) -> Iterator[pa.RecordBatch]:
    """The ``messages`` of some ranges, with ``times`` only those stored in [begin, end) (ms).

    Raises DamagedError for one that cannot be read, with ``fail_fast`` also for a body that cannot
    be decompressed. Those that were deleted since the ranges were made raise DataLossError, or are
    left out without ``fail_on_loss``. Of messages stored at other times only the time is read.
    """
    for part, view in opened_ranges(ranges):
        bodies = _Bodies(part, fail_fast=fail_fast) if _OF_BODY.keys() & set(schema.names) else None
        found: list[_Read] = []
        size = 0
        for offset, message in _messages(view, part, rows, times, fail_on_loss=fail_on_loss):
            error = bodies.error_of(message) if bodies is not None else None
            found.append(_Read(offset, message, error))
            size += len(message.body) if bodies is not None and error is None else 0
            if size > _BATCH_BYTES or len(found) == rows:
                yield _of_messages(part, found, schema)
                found, size = [], 0
        if found:
            yield _of_messages(part, found, schema)
        if bodies is not None:
            bodies.tell()


class _Bodies:
    """Decompresses the bodies of a range; reports those that it cannot decompress."""

    def __init__(self, part: Range, *, fail_fast: bool) -> None:
        self._path = part.path
        self._fail_fast = fail_fast
        self._count = 0
        self._first = ""

    def error_of(self, message: MessageExt) -> str | None:
        """Give the reason why a body cannot be decompressed; None if it can. DamagedError with
        fail_fast."""
        try:
            message.body  # noqa: B018 - it is kept, for the columns
        except BodyError as error:
            text = str(error)
            if self._fail_fast:
                raise DamagedError(
                    f"{self._path}: {text}; with mode=PERMISSIVE its body is null, "
                    "and body_error says why"
                ) from error
            self._first = self._first or text
            self._count += 1
            return text
        return None

    def tell(self) -> None:
        """Warn once of all of them, in the log of the worker."""
        if self._count:
            logger.warning(
                "%s: %d bodies cannot be unpacked and are null (body_error says why), the first: "
                "%s",
                self._path,
                self._count,
                self._first,
            )


def _messages(
    view: StoreView,
    part: Range,
    most: int,
    times: tuple[int, int] | None,
    *,
    fail_on_loss: bool,
) -> Iterator[tuple[int, MessageExt]]:
    """Messages and their offsets in the queue, which may be a light one: the records of its
    messages name their place in another queue."""

    def after(at: int, place: int | None) -> int:
        found = next_after_deleted(view, part, at, place, fail=fail_on_loss)
        if found is None:
            raise DamagedError(_where(part, at))
        return found

    at = part.first
    while at < part.end:
        units = view.units(part.topic, part.queue_id, at, min(most, part.end - at))
        if not units:
            at = after(at, None)
            continue
        for unit, wanted in zip(units, _stored_in(view, units, times), strict=True):
            if not wanted:
                at += 1
                continue
            message = view.message_of_unit(part.topic, part.queue_id, at, unit)
            if message is None:
                at = after(at, unit[0])
                break
            yield at, message
            at += 1


def _stored_in(
    view: StoreView, units: Sequence[tuple[int, int, int]], times: tuple[int, int] | None
) -> Iterable[bool]:
    """Whether each message was stored in [begin, end), or its time cannot be read."""
    if times is None:
        return [True] * len(units)
    table = np.array(units, np.int64)
    stored = view.store_timestamps(table[:, 0], table[:, 1])
    wanted: list[bool] = ((stored < 0) | ((stored >= times[0]) & (stored < times[1]))).tolist()
    return wanted


def _where(part: Range, offset: int) -> str:
    return (
        f"{part.path}: message {offset} of {part.topic}, queue {part.queue_id}, cannot be read; "
        "'rmqctl store fsck' tells why"
    )


def _of_messages(part: Range, found: Sequence[_Read], schema: pa.Schema) -> pa.RecordBatch:
    place = {"broker": part.broker, "topic": _text(part.topic), "queue_id": part.queue_id}
    columns = []
    for field in schema:
        if field.name in place:
            values = [place[field.name]] * len(found)
        elif field.name == "queue_offset":
            values = [read.queue_offset for read in found]
        elif field.name in _OF_BODY:
            values = [_OF_BODY[field.name](read) for read in found]
        else:
            values = [_OF_MESSAGE[field.name](read.message) for read in found]
        columns.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def unit_batches(
    ranges: Iterable[Range], schema: pa.Schema, rows: int, *, fail_on_loss: bool = True
) -> Iterator[pa.RecordBatch]:
    """The ``consumequeue`` of some ranges; null where a unit is missing. For those that were
    deleted since see ``message_batches``."""
    for part, view in opened_ranges(ranges):
        at = part.first
        while (at := first_left(view, part, at, fail=fail_on_loss)) < part.end:
            end = min(at + rows, part.end)
            yield _of_units(view, part, at, end, schema)
            at = end


def _of_units(
    view: StoreView, part: Range, start: int, end: int, schema: pa.Schema
) -> pa.RecordBatch:
    units = read_units(view, part.topic, part.queue_id, start, end)
    missing = units.sizes == 0
    count = len(units)
    columns = []
    for field in schema:
        match field.name:
            case "broker":
                column = pa.array([part.broker] * count, field.type)
            case "topic":
                column = pa.array([_text(part.topic)] * count, field.type)
            case "queue_id":
                column = pa.array(np.full(count, part.queue_id), field.type)
            case "queue_offset":
                column = pa.array(np.arange(start, end), field.type)
            case "commitlog_offset":
                column = pa.array(units.places, field.type, mask=missing)
            case "store_size":
                column = pa.array(units.sizes.astype(np.int32), field.type, mask=missing)
            case "tags_code":
                column = pa.array(units.tags, field.type, mask=missing)
            case _:
                times = view.store_timestamps(units.places, units.sizes)
                column = pa.array(times * _US_PER_MS, field.type, mask=times < 0)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _text(text: str | None) -> str | None:
    """Text that Arrow takes: bytes of a store that are no UTF-8 become question marks."""
    return None if text is None else text.encode("utf-8", "replace").decode("utf-8")
