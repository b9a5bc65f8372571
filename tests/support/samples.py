"""Messages whose every byte follows from their id, and stores small enough to be walked often."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from storage.append.lmq import LmqPut
from storage.config import FlushDiskType, StoreConfig
from storage.files.fs import FileSystem
from storage.format.encode import MessageInner, prepare
from storage.format.prepared import PreparedRecords
from storage.format.properties import encode_properties
from storage.store import MessageStore

HOST = bytes((127, 0, 0, 1, 0, 0, 42, 159))
START_MS = 1_700_000_000_000

TINY = StoreConfig(
    mapped_file_size_commit_log=4096,
    mapped_file_size_consume_queue=80,
    max_hash_slot_num=5,
    max_index_num=12,
    flush_interval_commit_log_ms=3_600_000,
    min_free_bytes=0,
)
"""Log files of 4 KiB, 4 units in a queue file, 11 keys in an index file: everything rolls often.
The background sync never comes by itself, so that a run is the same each time."""

SMALL = TINY.with_(
    mapped_file_size_commit_log=64 << 10,
    mapped_file_size_consume_queue=400 * 20,
    max_hash_slot_num=40,
    max_index_num=700,
)
"""Room for batches that go through the descriptor."""


class Sample(NamedTuple):
    """A message: body and properties follow from these fields."""

    id: str
    topic: str
    queue_id: int = 0
    size: int = 40
    tags: str | None = None
    keys: tuple[str, ...] = ()
    light: tuple[str, ...] = ()
    """Light queues that get a unit of it, too; only for a message sent alone."""

    def body(self) -> bytes:
        text = f"<{self.id}>".encode()
        return (text * (self.size // len(text) + 1))[: self.size]

    def properties(self) -> dict[str, str]:
        found = {"UNIQ_KEY": self.id}
        if self.keys:
            found["KEYS"] = " ".join(self.keys)
        if self.tags is not None:
            found["TAGS"] = self.tags
        if self.light:
            found["INNER_MULTI_DISPATCH"] = ",".join(self.light)
        return found

    def inner(self) -> MessageInner:
        return MessageInner(
            self.topic,
            self.queue_id,
            self.body(),
            encode_properties(self.properties()),
            START_MS,
            HOST,
            HOST,
            tags=self.tags,
            keys=(self.id, *self.keys),
        )


def prepared(samples: Sequence[Sample]) -> PreparedRecords | LmqPut:
    """Encoded as the broker would."""
    messages = [sample.inner() for sample in samples]
    if samples[0].light:
        return LmqPut(messages[0], samples[0].light)
    return prepare(messages)


class Ticking:
    """A clock that goes on by ``step`` ms with every look; different runs see the same times."""

    def __init__(self, now: int = START_MS, step: int = 7) -> None:
        self.now = now
        self.step = step

    def __call__(self) -> int:
        self.now += self.step
        return self.now


def open_store(
    root: Path,
    config: StoreConfig = TINY,
    *,
    fs: FileSystem | None = None,
    clock: Ticking | None = None,
    exclusive: bool = False,
    gate_timeout_ms: int = 5_000,
) -> MessageStore:
    return MessageStore(
        root,
        config,
        exclusive=exclusive,
        clock=clock or Ticking(),
        fs=fs or FileSystem(),
        gate_timeout_ms=gate_timeout_ms,
    )


def new_store(root: Path, config: StoreConfig = TINY) -> Path:
    MessageStore.create(root, config)
    return root


def sync_flush(config: StoreConfig) -> StoreConfig:
    return config.with_(flush_disk_type=FlushDiskType.SYNC_FLUSH)


def batch(
    name: str, count: int, topic: str, queues: Iterable[int] = (0,), *, size: int = 40
) -> list[Sample]:
    """``count`` messages round robin over the queues."""
    numbers = list(queues)
    return [
        Sample(f"{name}-{i}", topic, numbers[i % len(numbers)], size, keys=(f"k{i % 3}",))
        for i in range(count)
    ]
