"""diskcache's Deque: one queue in SQLite, values beyond 32 KiB in files; no offsets, no keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import diskcache

from benchmarks.workload import Column
from storage.format.encode import MessageInner

from .envelope import body_of, envelope
from .queue_of_bytes import envelopes


class DiskcacheLog:
    """Puts packed messages; reading takes them away."""

    def __init__(self, folder: Path) -> None:
        self._deque: Any = diskcache.Deque(directory=str(folder / "deque"))

    def put(self, message: MessageInner) -> None:
        """Store one message."""
        self._deque.append(envelope(message))

    def put_column(self, column: Column) -> None:
        """Store a batch in one transaction."""
        with self._deque.transact():
            for packed in envelopes(column):
                self._deque.append(packed)

    def bodies(self) -> Iterator[bytes]:
        """Take everything out."""
        while self._deque:
            yield body_of(self._deque.popleft())

    def close(self) -> None:
        """Close the database."""
        self._deque.cache.close()
