"""Storage of a consumer's progress, in memory and beyond (OffsetStore of 4.9).

Progress is one number a group and queue: the next offset to consume. Its path:

    listener done -> process queue -> this table -> (a) the next pull, (b) the 5 s timer,
    (c) the queue is given up, (d) shutdown -> the broker, or a file

so a kill repeats what was not persisted, and loses nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from broker.api.offsets import ProgressPastEnd
from broker.offset.start_position import offset_without_progress
from storage.format.message import MessageQueue

if TYPE_CHECKING:
    from broker.api.offsets import OffsetCommit
    from client.consumer.consumer_config import ConsumerConfig
    from client.runtime.routes import Routes


class ReadOffsetType(Enum):
    """Where to read an offset."""

    READ_FROM_MEMORY = "READ_FROM_MEMORY"
    READ_FROM_STORE = "READ_FROM_STORE"
    MEMORY_FIRST_THEN_STORE = "MEMORY_FIRST_THEN_STORE"


class OffsetStore(Protocol):
    """The progress of one group's consumer. Safe for threads."""

    def load(self) -> None:
        """Read what is kept in a file, if there is one."""
        ...

    def update_offset(self, queue: MessageQueue, offset: int, increase_only: bool) -> None:
        """Note progress in memory; with ``increase_only`` a smaller offset changes nothing."""
        ...

    def read_offset(self, queue: MessageQueue, read_type: ReadOffsetType) -> int | None:
        """Give the progress; None if none is known there.

        An offset read from the store is in memory afterwards. If the store cannot be read, raises
        the errors of brokers, or CorruptFileError.
        """
        ...

    def persist_all(self, queues: Collection[MessageQueue]) -> None:
        """Store the progress of these queues. Does nothing without any.

        A queue of a broker that fails keeps its progress in memory, for the next time.
        """
        ...

    def persist(self, queue: MessageQueue) -> None:
        """Store the progress of one queue, as ``persist_all`` does."""
        ...

    def remove_offset(self, queue: MessageQueue) -> None:
        """Remove what is in memory of a queue."""
        ...

    def clone_offset_table(self, topic: str | None = None) -> dict[MessageQueue, int]:
        """Give the progress in memory, of one topic or all."""
        ...

    def pull_commit(self, queue: MessageQueue) -> OffsetCommit | None:
        """Give the commit that a pull of the queue carries; None if there is nothing to commit."""
        ...


class OffsetTable:
    """Offsets by queue, in memory. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the table
        self._offsets: dict[MessageQueue, int] = {}

    def update(self, queue: MessageQueue, offset: int, increase_only: bool) -> None:
        """See OffsetStore.update_offset."""
        with self._lock:
            if not increase_only or offset > self._offsets.get(queue, -1):
                self._offsets[queue] = offset

    def get(self, queue: MessageQueue) -> int | None:
        """Give a queue's offset."""
        return self._offsets.get(queue)

    def remove(self, queue: MessageQueue) -> None:
        """Remove a queue."""
        with self._lock:
            self._offsets.pop(queue, None)

    def items(self) -> dict[MessageQueue, int]:
        """Give a copy."""
        with self._lock:
            return dict(self._offsets)


def end_past_progress(
    offset_store: OffsetStore, queue: MessageQueue, offset: int, next_begin_offset: int
) -> ProgressPastEnd | None:
    """Give what ``correct_consumer_offset`` of the broker takes, after a pull at ``offset`` with
    the answer OFFSET_ILLEGAL: the end of the queue, and the progress past it.

    None: the offset was not past the end, or brokers have no progress of this consumer.
    """
    if next_begin_offset >= offset:
        return None
    refused = offset_store.pull_commit(queue)
    if refused is None:
        return None
    topic, queue_id, progress, generation = refused
    return ProgressPastEnd(topic, queue_id, next_begin_offset, generation, progress)


def correct_offset(
    offset_store: OffsetStore,
    routes: Routes,
    group: str,
    queue: MessageQueue,
    found: ProgressPastEnd,
) -> None:
    """Have the broker move progress past the end of its queue back. Raises its errors."""
    from .remote_offset_store import RemoteBrokerOffsetStore

    if isinstance(offset_store, RemoteBrokerOffsetStore):
        offset_store.correct_offset(queue, found)
    else:  # the consumer brought its store along
        routes.broker(queue.broker_name).correct_consumer_offset(group, *found)


def compute_pull_from_where(
    offset_store: OffsetStore, routes: Routes, config: ConsumerConfig, queue: MessageQueue
) -> int:
    """Give the progress that is stored, else the start of the settings for a group without any.

    Raises the errors of the broker and the store.
    """
    known = offset_store.read_offset(queue, ReadOffsetType.READ_FROM_STORE)
    if known is not None:
        return known
    return offset_without_progress(
        routes.broker(queue.broker_name),
        queue.topic,
        queue.queue_id,
        config.consume_from_where,
        config.consume_timestamp,
    )
