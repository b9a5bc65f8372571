"""Encoding lines: messages of one topic that differ in body, UNIQ_KEY and KEYS only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from .encode import prepare
from .message_id import IdColumn
from .prepared import PreparedRecords
from .prepared_table import table_of_column

ColumnParts: TypeAlias = tuple[
    str,
    int | list[int],
    list[bytes],
    int,
    bytes,
    bytes,
    bytes,
    str | None,
    bytes | None,
    list[str] | None,
    int,
    int,
    int,
]
"""The arguments of :func:`prepare_column`, in its order; the unique ids are joined."""


def prepare_column(
    topic: str,
    queue_ids: int | Sequence[int],
    bodies: Sequence[bytes],
    *,
    born_timestamp: int,
    born_host: bytes,
    store_host: bytes,
    properties: bytes = b"",
    tags: str | None = None,
    unique_ids: Sequence[bytes] | None = None,
    keys: Sequence[str] | None = None,
    flag: int = 0,
    sys_flag: int = 0,
    delay_ms: int = -1,
) -> PreparedRecords:
    """Encode one message for each body, without a Python object for each; 0.3 us at 100 bytes.

    ``properties`` are encoded and shared by all messages. They must hold TAGS if ``tags`` is given,
    which is only hashed. ``unique_ids[i]`` (ASCII, all of one length) is added as UNIQ_KEY,
    ``keys[i]`` as KEYS: several keys separated by blanks, or an empty string. With ``delay_ms`` >=
    0 units hold the time of delivery. Raises InvalidMessageError as ``encode.prepare`` does.
    """
    if not bodies:
        return prepare(())
    column = (
        topic,
        queue_ids if isinstance(queue_ids, int) else list(queue_ids),
        bodies if type(bodies) is list else list(bodies),
        born_timestamp,
        born_host,
        store_host,
        properties,
        tags,
        None if unique_ids is None else joined_ids(unique_ids),
        keys if keys is None or type(keys) is list else list(keys),
        flag,
        sys_flag,
        delay_ms,
    )
    made = table_of_column(column)
    if made is not None:
        return made
    from .column_pure import prepare_column_pure

    return prepare_column_pure(column)


def joined_ids(unique_ids: Sequence[bytes]) -> bytes:
    """Join ids in their order."""
    return unique_ids.joined if isinstance(unique_ids, IdColumn) else b"".join(unique_ids)
