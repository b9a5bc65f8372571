"""persist-queue's SQLiteQueue: one queue of bytes, a transaction a message; no offsets, no keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import persistqueue

from benchmarks.workload import Column
from storage.format.encode import MessageInner

from .envelope import body_of, envelope
from .queue_of_bytes import envelopes


class PersistQueueLog:
    """Puts packed messages; reading takes them away."""

    def __init__(self, folder: Path) -> None:
        self._queue: Any = persistqueue.SQLiteQueue(str(folder / "queue"), auto_commit=True)

    def put(self, message: MessageInner) -> None:
        """Store one message."""
        self._queue.put(envelope(message))

    def put_column(self, column: Column) -> None:
        """Store a batch, one by one: there is no other way."""
        for packed in envelopes(column):
            self._queue.put(packed)

    def bodies(self) -> Iterator[bytes]:
        """Take everything out."""
        while self._queue.qsize():
            yield body_of(self._queue.get(block=False))

    def close(self) -> None:
        """Close the database."""
        self._queue.close()
