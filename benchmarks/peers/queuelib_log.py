"""queuelib's FifoDiskQueue: files of bytes, nothing else; no offsets, no keys, one process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import queuelib

from benchmarks.workload import Column
from storage.format.encode import MessageInner

from .envelope import body_of, envelope
from .queue_of_bytes import envelopes


class QueuelibLog:
    """Puts packed messages; reading takes them away."""

    def __init__(self, folder: Path) -> None:
        self._queue: Any = queuelib.FifoDiskQueue(str(folder / "queue"))

    def put(self, message: MessageInner) -> None:
        """Store one message."""
        self._queue.push(envelope(message))

    def put_column(self, column: Column) -> None:
        """Store a batch, one by one: there is no other way."""
        for packed in envelopes(column):
            self._queue.push(packed)

    def bodies(self) -> Iterator[bytes]:
        """Take everything out."""
        while (packed := self._queue.pop()) is not None:
            yield body_of(packed)

    def close(self) -> None:
        """Write the file of its state."""
        self._queue.close()
