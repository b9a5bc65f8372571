"""litequeue: one queue in SQLite, WAL and synchronous=NORMAL by itself; no offsets, no keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import litequeue

from benchmarks.workload import Column
from storage.format.encode import MessageInner

from .envelope import body_of, envelope
from .queue_of_bytes import envelopes


class LitequeueLog:
    """Puts packed messages; reading takes and acknowledges them."""

    def __init__(self, folder: Path) -> None:
        self._queue: Any = litequeue.LiteQueue(str(folder / "queue.db"))

    def put(self, message: MessageInner) -> None:
        """Store one message."""
        self._queue.put(envelope(message))

    def put_column(self, column: Column) -> None:
        """Store a batch in one transaction."""
        with self._queue.transaction():
            for packed in envelopes(column):
                self._queue.put(packed)

    def bodies(self) -> Iterator[bytes]:
        """Take everything out."""
        while (task := self._queue.pop()) is not None:
            yield body_of(task.data)
            self._queue.done(task.message_id)

    def close(self) -> None:
        """Close the database."""
        self._queue.close()
