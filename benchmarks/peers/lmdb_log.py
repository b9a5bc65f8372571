"""A message log over lmdb, as a careful user of lmdb would write it.

A writable map and no sync at all, so a transaction costs no system call. It keeps the same data as
our store: all fields, properties, checksum, place in the queue, and an entry for each key. The
index is a database of its own with ``dupsort``, because the same key may come again.

    messages   <topic> <queue> <queue offset>  ->  fields, properties, body
    keys       <topic> # <key>                 ->  <queue> <queue offset>, as often as there are any
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct
from typing import Any
from zlib import crc32

import lmdb

from benchmarks.workload import HOST, IDS, TAG, TOPIC, Column
from storage.format.crc import CRC_MASK
from storage.format.encode import MessageInner
from storage.store import now_ms

from .envelope import FIELDS, body_of, envelope

_PLACE = Struct(">IQ")


class LmdbLog:
    """Puts messages one a transaction or many a transaction.

    ``shared`` means that other processes may write too: then a queue's next offset comes from its
    last message, not from this process's memory.
    """

    def __init__(self, folder: Path, *, shared: bool = False) -> None:
        self._shared = shared
        self._env: Any = lmdb.open(
            str(folder),
            map_size=8 << 30,
            writemap=True,
            map_async=True,
            sync=False,
            metasync=False,
            max_dbs=2,
        )
        self._messages = self._env.open_db(b"messages")
        self._keys = self._env.open_db(b"keys", dupsort=True)
        self._next: Counter[int] = Counter()

    def put(self, message: MessageInner) -> None:
        """Store one message in a transaction of its own."""
        topic = message.topic.encode()
        with self._env.begin(write=True) as transaction:
            queue_id = message.queue_id
            if self._shared:
                queue_offset = self._next_offset(transaction, topic, queue_id)
            else:
                queue_offset = self._next[queue_id]
                self._next[queue_id] = queue_offset + 1
            self._put(transaction, message, topic, _PLACE.pack(queue_id, queue_offset))

    def _put(self, transaction: Any, message: MessageInner, topic: bytes, place: bytes) -> None:
        transaction.put(topic + place, envelope(message), db=self._messages)
        for key in message.keys:
            transaction.put(b"%b#%b" % (topic, key.encode()), place, db=self._keys)

    def _next_offset(self, transaction: Any, topic: bytes, queue_id: int) -> int:
        """The offset after the last message of a queue, as the database has it."""
        cursor = transaction.cursor(self._messages)
        found = cursor.set_range(topic + _PLACE.pack(queue_id + 1, 0))
        if not (cursor.prev() if found else cursor.last()):
            return 0
        key: bytes = cursor.key()
        if not key.startswith(topic + _PLACE.pack(queue_id, 0)[:4]):
            return 0
        return int.from_bytes(key[-8:], "big") + 1

    def put_column(self, column: Column) -> None:
        """Store a batch in one transaction; ids and properties are made here, as in ours."""
        now = now_ms()
        topic = TOPIC.encode()
        tag_hash = hash(TAG)
        records: list[tuple[bytes, bytes]] = []
        keys: list[tuple[bytes, bytes]] = []
        ids: Sequence[bytes] = IDS.take(len(column.bodies), now)
        pack, pack_place, following = FIELDS.pack, _PLACE.pack, self._next
        for body, queue_id, key, unique_id in zip(
            column.bodies, column.queue_ids, column.keys, ids, strict=True
        ):
            queue_offset = following[queue_id]
            following[queue_id] = queue_offset + 1
            place = pack_place(queue_id, queue_offset)
            key_bytes = key.encode()
            properties = b"WAIT\1true\2TAGS\1TagA\2UNIQ_KEY\1%b\2KEYS\1%b" % (unique_id, key_bytes)
            fields = pack(
                crc32(body) & CRC_MASK,
                0,
                0,
                now,
                now,
                HOST,
                HOST,
                0,
                0,
                tag_hash,
                len(topic),
                len(properties),
            )
            records.append((topic + place, b"%b%b%b%b" % (fields, topic, properties, body)))
            keys.append((b"%b#%b" % (topic, unique_id), place))
            keys.append((b"%b#%b" % (topic, key_bytes), place))
        records.sort()  # lmdb takes keys fastest in their order
        keys.sort()
        with self._env.begin(write=True) as transaction:
            transaction.cursor(self._messages).putmulti(records)
            transaction.cursor(self._keys).putmulti(keys)

    def bodies(self) -> Iterator[bytes]:
        """Read all queues to their ends, which is the order of the database."""
        with self._env.begin() as transaction:
            for _, value in transaction.cursor(self._messages):
                yield body_of(value)

    def close(self) -> None:
        """Close the environment."""
        self._env.close()
