"""The tables of the data source and their columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from analytics.store_rows.row_types import ROWS, spark_columns

FAIL: Final = "fail"
SKIP: Final = "skip"
NULL: Final = "null"
ON_DAMAGE: Final = (FAIL, SKIP, NULL)
"""What the option of that name makes of messages that cannot be read, see rows.damage."""
DAMAGE: Final = "_damage"
"""The column with place and reason, with ``null``."""

_PLACE: Final = {"broker": "string", "topic": "string", "queue_id": "int"}
_PROGRESS: Final = {
    "broker": "string",
    "group": "string",
    "topic": "string",
    "queue_id": "int",
    "committed_offset": "bigint",
    "min_offset": "bigint",
    "max_offset": "bigint",
}

TABLES: Final[dict[str, dict[str, str]]] = {
    "messages": {
        **_PLACE,
        "queue_offset": "bigint",
        "tags": "string",
        "keys": "array<string>",
        "body": "binary",
        "msg_id": "string",
        "store_timestamp": "timestamp",
        "born_timestamp": "timestamp",
        "reconsume_times": "int",
        "properties": "map<string,string>",
        "offset_msg_id": "string",
        "commitlog_offset": "bigint",
        "store_size": "int",
        "body_size": "int",
        "flag": "int",
        "sys_flag": "int",
        "born_host": "string",
        "store_host": "string",
        "body_error": "string",
        "corrupt_body": "binary",
        "record_topic": "string",
        "record_queue_id": "int",
        "record_queue_offset": "bigint",
    },
    "consumequeue": {
        **_PLACE,
        "queue_offset": "bigint",
        "commitlog_offset": "bigint",
        "store_size": "int",
        "tags_code": "bigint",
        "store_timestamp": "timestamp",
    },
    "offsets": _PROGRESS,
    "lag": {
        **_PROGRESS,
        "lag": "bigint",
        "lag_bytes": "bigint",
        "oldest_unread_timestamp": "timestamp",
    },
    "lag_partials": {
        **_PLACE,
        "from_offset": "bigint",
        "minute": "timestamp",
        "tags_code": "bigint",
        "messages": "bigint",
        "bytes": "bigint",
    },
    **{name: spark_columns(row) for name, row in ROWS.items()},
}
"""Columns and their Spark types, by table.

Names and units are those of the command line, but times are Spark's timestamps (UTC). Unknown is
null.

messages        stored messages, read and checked record by record; ``body`` as the sender gave it.
                Null where it cannot be decompressed: ``body_error`` has the message and the
                reason, ``corrupt_body`` the stored bytes. The place is that of the queue that
                is read; ``record_topic``, ``record_queue_id`` and ``record_queue_offset`` are the
                place that the record names, which differs in light queues (LMQ) only
consumequeue    the queues' own units: quick to count, 20 bytes a message; ``store_timestamp``
                costs a read of the log
offsets         progress of groups
lag             progress and lag of groups
lag_partials    unread messages, counted from one of the committed offsets
                (``from_offset``) to the next, by minute and, in rows of their own, by tag; of
                those whose units are missing only the number is known, in rows without minute,
                tag and bytes. Offsets to join them with are read before them

The others are those of whole stores, see analytics.store_rows.row_types.
"""

COUNTED: Final = "lag_partials"
"""The table that reads the units of unread messages."""
STREAMED: Final = ("messages", "consumequeue")
"""Tables that can be read as streams."""
OF_STORES: Final = tuple(ROWS)
"""Tables of whole stores."""


def columns_of(table: str, *, damage: bool = False) -> dict[str, str]:
    """The columns of a table; with ``damage`` that of messages that cannot be read, too."""
    return {**TABLES[table], **({DAMAGE: "string"} if damage else {})}


def ddl(columns: Mapping[str, str]) -> str:
    """A schema as Spark writes it."""
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())
