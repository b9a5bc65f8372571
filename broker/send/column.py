"""A column: many messages that differ in body and keys only, without an object for each.

Delayed messages for several queues name them in their properties. Where nothing is compiled, an
object is made for each of those.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from broker.errors import MessageIllegalError
from broker.validation import check_properties
from storage.errors import InvalidMessageError
from storage.format.encode import MessageInner, prepare
from storage.format.encode_column import joined_ids, prepare_column
from storage.format.message import PROPERTY_KEYS, split_keys
from storage.format.prepared_table import column_pays, table_of_rows

if TYPE_CHECKING:
    from storage.format.prepared import PreparedRecords
    from storage.format.prepared_table import PreparedTable

    from .message_builder import Origin


class Column(NamedTuple):
    """A column as it is stored; ``properties`` are encoded: shared ones, or those of each message
    without its id and keys."""

    topic: str
    queue_ids: int | Sequence[int]
    bodies: Sequence[bytes]
    unique_ids: Sequence[bytes]
    keys: Sequence[str] | None
    properties: bytes | Sequence[bytes]
    tags: str | None
    flag: int
    delay_level: int
    delay_ms: int


def prepared_column(column: Column, origin: Origin) -> PreparedRecords:
    """Encode a column. Raises MessageIllegalError."""
    properties = column.properties
    try:
        if not isinstance(properties, bytes):
            return _table(column, properties, origin) or prepare(_inners(column, origin))
        if not column_pays(len(column.bodies)):
            return prepare(_inners(column, origin))
        return prepare_column(
            column.topic,
            column.queue_ids,
            column.bodies,
            born_timestamp=origin.born_timestamp,
            born_host=origin.born_host,
            store_host=origin.store_host,
            properties=properties,
            tags=column.tags,
            unique_ids=column.unique_ids,
            keys=column.keys,
            flag=column.flag,
            sys_flag=origin.sys_flag,
            delay_ms=column.delay_ms,
        )
    except InvalidMessageError as error:
        raise MessageIllegalError(str(error)) from error


def _table(column: Column, properties: Sequence[bytes], origin: Origin) -> PreparedTable | None:
    """The records of messages with properties of their own; None where ``_inners`` has to make
    them."""
    if origin.reconsume_times:
        return None
    count, queue_ids = len(column.bodies), column.queue_ids
    return table_of_rows(
        (
            column.topic,
            [queue_ids] * count if isinstance(queue_ids, int) else list(queue_ids),
            list(column.bodies),
            list(properties),
            [None] * count,  # the units of delayed messages have no hash of the tag
            [""] * count if column.keys is None else list(column.keys),
            [column.flag] * count,
            joined_ids(column.unique_ids),
            b"",
            *origin[:4],
        ),
        column.delay_ms,
    )


def _inners(column: Column, origin: Origin) -> list[MessageInner]:
    """Make the same records without NumPy, whose import takes longer than encoding a few."""
    queue_ids = column.queue_ids
    if isinstance(queue_ids, int):
        queue_ids = [queue_ids] * len(column.bodies)
    shared = column.properties
    if isinstance(shared, bytes):
        shared = [shared] * len(column.bodies)
    inners = []
    for i, (body, queue_id, unique_id) in enumerate(
        zip(column.bodies, queue_ids, column.unique_ids, strict=True)
    ):
        keys = column.keys[i] if column.keys is not None else ""
        properties = shared[i] + b"\x02UNIQ_KEY\x01" + unique_id
        if keys:
            properties += b"\x02KEYS\x01" + keys.encode()
        inners.append(
            MessageInner(
                column.topic,
                queue_id,
                body,
                properties,
                origin.born_timestamp,
                origin.born_host,
                origin.store_host,
                column.flag,
                origin.sys_flag,
                origin.reconsume_times,
                0,
                column.tags,
                (unique_id.decode(), *split_keys(keys)),
                column.delay_level,
                column.delay_ms,
            )
        )
    return inners


def check_lengths(
    bodies: Sequence[bytes], queue_ids: int | Sequence[int] | None, keys: Sequence[str] | None
) -> None:
    """Refuse a column without a message (MessageIllegalError), and columns of several lengths
    (ValueError)."""
    if not bodies:
        raise MessageIllegalError("the column has no message")
    for what, column in (("queue ids", queue_ids), ("keys", keys)):
        if column is not None and not isinstance(column, int) and len(column) != len(bodies):
            raise ValueError(f"{len(bodies)} bodies have {len(column)} {what}")


def check_keys(keys: Sequence[str]) -> None:
    """Refuse keys that would be read back differently: MessageIllegalError."""
    joined = "".join(keys)
    if "\x01" in joined or "\x02" in joined:
        for key in keys:
            check_properties({PROPERTY_KEYS: key})
    try:
        joined.encode()
    except UnicodeEncodeError as error:
        raise MessageIllegalError("a key holds characters that are no Unicode") from error
