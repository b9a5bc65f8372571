"""Stores put together byte by byte with the format's own functions, without the writing store.

For tests that need a place in a file, a store in a state that no writer leaves, or many stores.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from storage.config import StoreConfig
from storage.format.checkpoint import CheckpointData
from storage.format.cq_unit import CQ_STORE_UNIT, PRE_BLANK
from storage.format.index_file import IndexHeader, entry_position, put_keys, slot_position
from storage.format.java_hash import key_hash, tags_code
from storage.format.names import file_name
from storage.format.properties import encode_properties
from storage.format.record import BLANK_SIZE, blank_record, encode_record

HOST = bytes((127, 0, 0, 1, 0, 0, 42, 159))
START_MS = 1_700_000_000_000

TINY = StoreConfig(
    mapped_file_size_commit_log=1024,
    mapped_file_size_consume_queue=100,
    max_hash_slot_num=7,
    max_index_num=40,
)
"""5 units in a queue file, some records in a log file."""


@dataclass
class Stored:
    """What a reader must find: one message of a hand-made store."""

    topic: str
    queue_id: int
    queue_offset: int
    body: bytes
    commitlog_offset: int
    size: int
    store_timestamp: int
    tags: str | None = None
    keys: tuple[str, ...] = ()


@dataclass
class HandMade:
    """A store in memory: ``put`` messages, then ``write`` the files into a folder."""

    config: StoreConfig = TINY
    first_offset: int = 0
    log: bytearray = field(default_factory=bytearray)
    queues: dict[tuple[str, int], bytearray] = field(default_factory=dict)
    queue_starts: dict[tuple[str, int], int] = field(default_factory=dict)
    messages: list[Stored] = field(default_factory=list)
    timestamp: int = START_MS
    clean: bool = True
    index: bool = True

    @property
    def log_end(self) -> int:
        return self.first_offset + len(self.log)

    def put(
        self,
        topic: str = "T",
        queue_id: int = 0,
        body: bytes = b"body",
        *,
        tags: str | None = None,
        keys: Iterable[str] = (),
        properties: dict[str, str] | None = None,
        sys_flag: int = 0,
        queue_offset: int | None = None,
        unit: bool = True,
        step_ms: int = 1000,
        version: int = 1,
        born_host: bytes = HOST,
    ) -> Stored:
        """Append a message; rolls the log file as RocketMQ does."""
        units = self.queues.get((topic, queue_id), bytearray())
        start = self.queue_starts.get((topic, queue_id), 0)
        offset = start + len(units) // 20 if queue_offset is None else queue_offset
        self.timestamp += step_ms
        pairs = dict(properties or {})
        if tags:
            pairs["TAGS"] = tags
        if keys:
            pairs["KEYS"] = " ".join(keys)
        record = self._encode(topic, queue_id, body, pairs, offset, sys_flag, version, born_host)
        room = self.config.mapped_file_size_commit_log
        if len(self.log) % room + len(record) + BLANK_SIZE > room:
            remaining = room - len(self.log) % room
            self.log += blank_record(remaining).ljust(remaining, b"\0")
            record = self._encode(
                topic, queue_id, body, pairs, offset, sys_flag, version, born_host
            )
        place = self.log_end
        self.log += record
        if unit and not sys_flag & 4:
            if (topic, queue_id) not in self.queues:
                self.queue_starts[topic, queue_id] = offset
                self.queues[topic, queue_id] = bytearray()
            self.add_unit(topic, queue_id, place, len(record), tags_code(tags))
        stored = Stored(
            topic, queue_id, offset, body, place, len(record), self.timestamp, tags, tuple(keys)
        )
        self.messages.append(stored)
        return stored

    def _encode(
        self,
        topic: str,
        queue_id: int,
        body: bytes,
        pairs: dict[str, str],
        offset: int,
        sys_flag: int,
        version: int,
        born_host: bytes,
    ) -> bytes:
        return encode_record(
            topic=topic,
            queue_id=queue_id,
            body=body,
            properties=encode_properties(pairs),
            queue_offset=offset,
            physical_offset=self.log_end,
            store_timestamp=self.timestamp,
            born_timestamp=self.timestamp - 1,
            born_host=born_host,
            store_host=HOST,
            sys_flag=sys_flag,
            version=version,
        )

    def add_unit(self, topic: str, queue_id: int, place: int, size: int, code: int) -> None:
        """Append any unit to a queue."""
        self.queues.setdefault((topic, queue_id), bytearray())
        self.queues[topic, queue_id] += CQ_STORE_UNIT.pack(place, size, code)

    def write(self, root: Path) -> Path:
        """Write all files; gives ``root``. May be called again: longer files replace shorter."""
        log_size = self.config.mapped_file_size_commit_log
        self._write_row(root / "commitlog", self.log, self.first_offset, log_size)
        queue_size = self.config.mapped_file_size_consume_queue
        (root / "consumequeue").mkdir(exist_ok=True)
        for (topic, queue_id), units in self.queues.items():
            start = self.queue_starts.get((topic, queue_id), 0) * 20
            within = start % queue_size
            row = PRE_BLANK * (within // 20) + units
            folder = root / "consumequeue" / topic / str(queue_id)
            self._write_row(folder, row, start - within, queue_size)
        if self.index:
            self._write_index(root / "index")
        newest = self.messages[-1].store_timestamp if self.messages else 0
        (root / "checkpoint").write_bytes(CheckpointData(newest, newest).pack())
        if not self.clean:
            (root / "abort").touch()
        return root

    def _write_row(self, folder: Path, data: bytes | bytearray, first: int, size: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for start in range(0, len(data), size):
            path = folder / file_name(first + start)
            content = bytes(data[start : start + size]).ljust(size, b"\0")
            if not path.exists() or path.read_bytes() != content:
                with path.open("r+b" if path.exists() else "wb") as file:
                    file.write(content)

    def _write_index(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        slots, entries = self.config.max_hash_slot_num, self.config.max_index_num
        keys = [
            (key_hash(message.topic, key), message.commitlog_offset, message.store_timestamp)
            for message in self.messages
            for key in message.keys
        ]
        header = IndexHeader()
        for number, start in enumerate(range(0, len(keys), entries - 1)):
            data = bytearray(self.config.index_file_size)

            def read_slot(slot: int, data: bytearray = data) -> int:
                return int(struct.unpack_from(">i", data, slot_position(slot))[0])

            part = keys[start : start + entries - 1]
            puts = put_keys(
                header, slots, read_slot, *(list(column) for column in zip(*part, strict=True))
            )
            at = entry_position(slots, puts.first_entry)
            data[at : at + len(puts.entries)] = puts.entries
            for slot, value in zip(puts.slots, puts.slot_values, strict=True):
                struct.pack_into(">i", data, slot_position(slot), value)
            data[:40] = puts.header.pack()
            (folder / f"{20231114221320000 + number:017d}").write_bytes(data)
            end = puts.header
            header = IndexHeader(
                end.end_timestamp, end.end_timestamp, end.end_phy_offset, end.end_phy_offset
            )
