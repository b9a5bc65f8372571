"""The rows of each table of whole stores; a table's columns are made of its row.

Names and units are those of the commands' rows. Times are epoch ms here and timestamps in Spark.
There are no ages: a query has the time, and ``current_timestamp()``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import (
    Annotated,
    Any,
    Final,
    NamedTuple,
    TypeAlias,
    get_args,
    get_origin,
    get_type_hints,
)

Int: TypeAlias = Annotated[int, "int"]
Millis: TypeAlias = Annotated[int, "timestamp"]
_TYPES: Final[Mapping[Any, str]] = {
    str: "string",
    int: "bigint",
    bool: "boolean",
    bytes: "binary",
    list[str]: "array<string>",
}


class DelayedRow(NamedTuple):
    """A message that waits in the delay topic: a delayed message, or a retry."""

    broker: str
    due_timestamp: Millis
    msg_id: str
    keys: list[str]
    topic: str
    """The target, as ``queue_id``."""
    queue_id: Int
    level: Int
    reconsume_times: Int
    store_timestamp: Millis
    tags: str | None
    store_size: Int
    queue_offset: int
    """In the queue of the level."""
    commitlog_offset: int


class TransactionRow(NamedTuple):
    """An open transaction: its last half message."""

    broker: str
    topic: str | None
    """The target, as ``queue_id``."""
    queue_id: Int | None
    msg_id: str
    keys: list[str]
    tags: str | None
    producer_group: str | None
    check_times: Int
    """How often the producer was asked."""
    born_timestamp: Millis
    store_timestamp: Millis
    """Of the last half message: each check stores it anew."""
    store_size: Int
    queue_offset: int
    """In the topic of half messages."""
    commitlog_offset: int
    body: bytes | None


class RetryRow(NamedTuple):
    """A message that a group will consume again."""

    broker: str
    group: str
    msg_id: str
    keys: list[str]
    origin_topic: str | None
    origin_queue_id: Int | None
    origin_offset: int | None
    reconsume_times: Int
    failed_timestamp: Millis | None
    due_timestamp: Millis | None
    reason: str | None
    store_size: Int
    tags: str | None
    delay_level: Int | None
    client: str | None
    state: str
    """WAITING, OVERDUE, or READY: in the retry topic, not read by the group."""


class DeadLetterRow(NamedTuple):
    """A dead letter."""

    broker: str
    group: str
    queue_id: Int
    queue_offset: int
    msg_id: str
    keys: list[str]
    origin_topic: str | None
    origin_queue_id: Int | None
    origin_offset: int | None
    origin_msg_id: str | None
    reconsume_times: Int
    dead_timestamp: Millis
    reason: str | None
    handled: bool
    store_size: Int
    tags: str | None
    redrives: Int
    body: bytes | None


class GroupRow(NamedTuple):
    """A group of consumers."""

    broker: str
    group: str
    kind: str
    members: Int
    message_model: str | None
    topics: Int
    retry: int | None
    """Messages that failed and are ready; null if the group's progress among them is unknown."""
    dlq: int
    consume_enable: bool
    retry_max_times: Int


class TopicRow(NamedTuple):
    """A topic."""

    broker: str
    topic: str
    kind: str
    read_queues: Int
    write_queues: Int
    perm: Int
    messages: int


class ChangeRow(NamedTuple):
    """An effect of a change in the journal: on a queue's progress, or on a setting."""

    broker: str
    change_id: int
    at_timestamp: Millis
    command: str | None
    group: str | None
    topic: str | None
    queue_id: Int | None
    old_offset: int | None
    new_offset: int | None
    user: str | None
    host: str | None
    reason: str | None
    undone_by: int | None
    applied: bool | None
    what: str | None
    old: str | None
    """In JSON, as ``new``."""
    new: str | None


StoreRow: TypeAlias = (
    DelayedRow | TransactionRow | RetryRow | DeadLetterRow | GroupRow | TopicRow | ChangeRow
)
ROWS: Final[Mapping[str, type[StoreRow]]] = {
    "delayed": DelayedRow,
    "transactions": TransactionRow,
    "retries": RetryRow,
    "deadletters": DeadLetterRow,
    "groups": GroupRow,
    "topics": TopicRow,
    "changes": ChangeRow,
}
"""The row of each table."""


def spark_columns(row: type[StoreRow]) -> dict[str, str]:
    """The columns of a table and their Spark types, from its row."""
    hints = get_type_hints(row, include_extras=True)
    return {name: _spark_type(hints[name]) for name in row._fields}


def _spark_type(hint: Any) -> str:
    if hint in _TYPES:
        return _TYPES[hint]
    if get_origin(hint) is Annotated:
        return str(hint.__metadata__[0])
    (known,) = (part for part in get_args(hint) if part is not NoneType)
    return _spark_type(known)
