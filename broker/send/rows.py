"""Rows: many messages that differ in any field, from columns of them.

They are stored as one ``send`` each would store them, without a Message and its look-ups for each.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Final

from broker.errors import MessageIllegalError
from broker.validation import check_properties
from storage.format.encode import MessageInner
from storage.format.message import (
    KEY_SEPARATOR,
    PROPERTY_CLUSTER,
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_KEYS,
    PROPERTY_TAGS,
    PROPERTY_TRANSACTION_PREPARED,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    PROPERTY_WAIT_STORE_MSG_OK,
    split_keys,
)
from storage.format.prepared_table import table_of_rows

if TYPE_CHECKING:
    from broker.api.send import RowColumns
    from storage.format.message_id import IdColumn
    from storage.format.prepared_table import PreparedTable

    from .message_builder import Origin

_new_tuple: Final = tuple.__new__  # does the same as a NamedTuple's own, in half the time
_ID: Final = f"{PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX}\x01".encode()
_TAG: Final = f"{PROPERTY_TAGS}\x01"
_KEYS: Final = f"\x02{PROPERTY_KEYS}\x01"
_WITH_MEANING: Final = (
    PROPERTY_CLUSTER,
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_KEYS,
    PROPERTY_TAGS,
    PROPERTY_TRANSACTION_PREPARED,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    PROPERTY_WAIT_STORE_MSG_OK,
)
"""Properties that have a column of their own, or make another kind of message."""


def check_rows(rows: RowColumns) -> None:
    """Refuse rows whose fields would be read back differently, and those that need ``send``.

    Raises MessageIllegalError; ValueError for columns of several lengths.
    """
    count = len(rows.bodies)
    if not count:
        raise MessageIllegalError("the rows have no message")
    for column in rows:
        if column is not None and not isinstance(column, (int, str)) and len(column) != count:
            raise ValueError(f"{count} bodies have a column of {len(column)}")
    _check_encoded(set(rows.properties))
    for tag in set(rows.tags):
        if tag is not None:
            check_properties({PROPERTY_TAGS: tag})
            try:
                tag.encode()
            except UnicodeEncodeError as error:
                raise MessageIllegalError("a tag holds characters that are no Unicode") from error


def _check_encoded(properties: Collection[bytes]) -> None:
    items = [each for each in properties if each]
    if not items:
        return
    joined = b"\x02" + b"\x02".join(items)
    for name in _WITH_MEANING:
        if f"\x02{name}\x01".encode() in joined:
            raise MessageIllegalError(f"a row holds {name} among its properties")
    whole = b"\x02\x02" not in joined and b"\x02\x01" not in joined and b"\x01\x02" not in joined
    if joined.count(b"\x01") != joined.count(b"\x02") or not whole or joined[-1] < 3:
        raise MessageIllegalError("the properties of a row are not encoded properties")
    try:
        joined.decode()
    except UnicodeDecodeError:
        raise MessageIllegalError("a property holds bytes that are no UTF-8") from None


def table_of(
    rows: RowColumns, queue_ids: Sequence[int], unique_ids: IdColumn, origin: Origin, added: bytes
) -> PreparedTable | None:
    """The records of the rows; None where ``row_inners`` has to make them."""
    if origin.reconsume_times:
        return None
    topics = rows.topics
    return table_of_rows(
        (
            topics if isinstance(topics, str) else _list(topics),
            _list(queue_ids),
            *map(_list, (rows.bodies, rows.properties, rows.tags, rows.keys, rows.flags)),
            unique_ids.joined,
            added,
            *origin[:4],
        )
    )


def _list(column: Sequence[Any]) -> list[Any]:
    return column if type(column) is list else list(column)


def row_inners(
    rows: RowColumns,
    queue_ids: Sequence[int],
    unique_ids: IdColumn,
    origin: Origin,
    added: bytes,
) -> list[MessageInner]:
    """What the store keeps of each row; ``added`` are encoded properties that all get."""
    heads: dict[tuple[bytes, str | None], bytes] = {}
    born, born_host, store_host, sys_flag, times = origin
    topics = [rows.topics] * len(queue_ids) if isinstance(rows.topics, str) else rows.topics
    made = []
    for topic, body, queue_id, properties, tag, keys, flag, unique_id in zip(
        topics,
        rows.bodies,
        queue_ids,
        rows.properties,
        rows.tags,
        rows.keys,
        rows.flags,
        unique_ids.texts(),
        strict=True,
    ):
        shared = properties, tag
        head = heads.get(shared)
        if head is None:
            parts = [properties, (_TAG + tag).encode() if tag else b"", added, _ID]
            head = heads[shared] = b"\x02".join(filter(None, parts))
        hashed: tuple[str, ...] = (unique_id,)
        text = unique_id
        if keys:
            text += _KEYS + keys
            hashed += split_keys(keys) if KEY_SEPARATOR in keys else (keys,)
        made.append(
            _new_tuple(
                MessageInner,
                (
                    topic,
                    queue_id,
                    body,
                    head + text.encode(),
                    born,
                    born_host,
                    store_host,
                    flag,
                    sys_flag,
                    times,
                    0,
                    tag,
                    hashed,
                    0,
                    -1,
                ),
            )
        )
    return made
