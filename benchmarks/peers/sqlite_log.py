"""A message log over SQLite, as a careful user of SQLite would write it.

WAL, synchronous=NORMAL, a cache and a map that hold everything, explicit transactions, prepared
statements (the module keeps them). It keeps the same data as our store: all fields, properties,
checksum, place in the queue, and an index row for each key.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from benchmarks.workload import HOST, IDS, QUEUES, TAG, TOPIC, Column
from storage.format.crc import CRC_MASK
from storage.format.encode import MessageInner, cached_tags_code
from storage.store import now_ms

_SCHEMA = """
create table messages (
    id integer primary key, topic text, queue_id integer, queue_offset integer, crc integer,
    flag integer, sys_flag integer, born_timestamp integer, born_host blob,
    store_timestamp integer, store_host blob, reconsume_times integer,
    prepared_offset integer, tags_code integer, properties blob, body blob
);
create unique index queues on messages (topic, queue_id, queue_offset);
create table keys (topic_key text, id integer, primary key (topic_key, id)) without rowid;
"""
_INSERT = "insert into messages values (" + ",".join("?" * 16) + ")"
_INSERT_KEY = "insert into keys values (?, ?)"
_SELECT = (
    "select * from messages where topic = ? and queue_id = ? and queue_offset >= ? "
    "order by queue_offset limit ?"
)
_SELECT_TAGGED = (
    "select * from messages where topic = ? and queue_id = ? and queue_offset >= ? "
    "and tags_code = ? order by queue_offset limit ?"
)


class SqliteLog:
    """Puts messages one a transaction or many a transaction, and pulls them."""

    def __init__(self, folder: Path, *, synchronous: str = "normal") -> None:
        self._db = sqlite3.connect(folder / "log.db", isolation_level=None)
        execute = self._execute = self._db.execute
        execute("pragma journal_mode = wal")
        execute(f"pragma synchronous = {synchronous}")
        execute("pragma cache_size = -262144")
        execute("pragma mmap_size = 4294967296")
        execute("pragma temp_store = memory")
        self._db.executescript(_SCHEMA)
        self._next: Counter[int] = Counter()
        self._id = 0

    def put(self, message: MessageInner) -> None:
        """Store one message in a transaction of its own."""
        self._execute("begin immediate")
        self._put(message)
        self._execute("commit")

    def put_many(self, messages: Sequence[MessageInner]) -> None:
        """Store any messages in one transaction."""
        self._execute("begin immediate")
        for message in messages:
            self._put(message)
        self._execute("commit")

    def _put(self, message: MessageInner) -> None:
        queue_id = message.queue_id
        queue_offset = self._next[queue_id]
        self._next[queue_id] = queue_offset + 1
        number = self._id = self._id + 1
        body = message.body
        execute = self._execute
        execute(
            _INSERT,
            (
                number,
                message.topic,
                queue_id,
                queue_offset,
                crc32(body) & CRC_MASK,
                message.flag,
                message.sys_flag,
                message.born_timestamp,
                message.born_host,
                now_ms(),
                message.store_host,
                message.reconsume_times,
                message.prepared_transaction_offset,
                cached_tags_code(message.tags),
                message.properties,
                body,
            ),
        )
        for key in message.keys:
            execute(_INSERT_KEY, (f"{message.topic}#{key}", number))

    def put_column(self, column: Column) -> None:
        """Store a batch in one transaction; ids and properties are made here, as in ours."""
        now = now_ms()
        tag_hash = hash(TAG)
        number, following = self._id, self._next
        rows: list[tuple[Any, ...]] = []
        keys: list[tuple[str, int]] = []
        ids = IDS.take(len(column.bodies), now)
        for body, queue_id, key, unique_id in zip(
            column.bodies, column.queue_ids, column.keys, ids, strict=True
        ):
            queue_offset = following[queue_id]
            following[queue_id] = queue_offset + 1
            number += 1
            properties = b"WAIT\1true\2TAGS\1TagA\2UNIQ_KEY\1%b\2KEYS\1%b" % (
                unique_id,
                key.encode(),
            )
            rows.append(
                (
                    number,
                    TOPIC,
                    queue_id,
                    queue_offset,
                    crc32(body) & CRC_MASK,
                    0,
                    0,
                    now,
                    HOST,
                    now,
                    HOST,
                    0,
                    0,
                    tag_hash,
                    properties,
                    body,
                )
            )
            keys.append((f"{TOPIC}#{unique_id.decode()}", number))
            keys.append((f"{TOPIC}#{key}", number))
        self._id = number
        keys.sort()  # a tree takes keys fastest in their order
        self._execute("begin immediate")
        self._db.executemany(_INSERT, rows)
        self._db.executemany(_INSERT_KEY, keys)
        self._execute("commit")

    def pull(self, queue_id: int, queue_offset: int, count: int) -> list[tuple[Any, ...]]:
        """Up to ``count`` messages of a queue from an offset on, as rows; the body is the last."""
        rows: list[tuple[Any, ...]] = self._execute(
            _SELECT, (TOPIC, queue_id, queue_offset, count)
        ).fetchall()
        return rows

    def pull_tagged(
        self, queue_id: int, queue_offset: int, count: int, code: int
    ) -> list[tuple[Any, ...]]:
        """The same, of messages with the hash of a tag."""
        rows: list[tuple[Any, ...]] = self._execute(
            _SELECT_TAGGED, (TOPIC, queue_id, queue_offset, code, count)
        ).fetchall()
        return rows

    def bodies(self) -> Iterator[bytes]:
        """Read all queues to their ends."""
        for queue_id in range(QUEUES):
            offset = 0
            while rows := self.pull(queue_id, offset, 32):
                yield from (row[-1] for row in rows)
                offset += len(rows)

    def close(self) -> None:
        """Close the database."""
        self._db.close()
