"""The checkpoint file: up to which store time the log, the queues and the index are on the device.

Written only after the syncs that it reports (org.apache.rocketmq.store.StoreCheckpoint).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from storage.errors import CorruptFileError
from storage.files.bounded import read_first
from storage.format.checkpoint import CHECKPOINT_SIZE, CheckpointData
from storage.format.names import CHECKPOINT

if TYPE_CHECKING:
    from storage.files.fs import FileSystem


class StoreCheckpoint:
    """Reads and writes ``<store>/checkpoint``. Writing needs the write lock."""

    def __init__(self, fs: FileSystem, root: Path) -> None:
        self._fs = fs
        self._path = root / CHECKPOINT

    def read(self) -> CheckpointData:
        """The fields of the file; zeros if it is missing or short, as in RocketMQ.

        Raises CorruptFileError if it is not a file: it could not be written either.
        """
        try:
            data = read_first(self._path, CHECKPOINT_SIZE)
        except FileNotFoundError:
            if self._path.exists():
                raise CorruptFileError(self._path, 0, "it is no file") from None
            data = b""
        return CheckpointData.unpack(data.ljust(CHECKPOINT_SIZE, b"\0"))

    def write(self, data: CheckpointData, sync: Callable[[int], object]) -> None:
        """Replace the fields; on the device when this returns. Bytes after them are kept. ``sync``
        syncs an open file."""
        fd = self._fs.open(self._path, writable=True, create=True)
        try:
            if self._fs.size(fd) < CHECKPOINT_SIZE:
                self._fs.set_length(fd, CHECKPOINT_SIZE)
            self._fs.write(fd, data.pack(), 0)
            sync(fd)
        finally:
            self._fs.close(fd)

    @contextmanager
    def distrusting_queues(self) -> Iterator[None]:
        """Have the checkpoint say, during the block, that the device has no unit for certain, so
        that a recovery reads the whole log. On the device when the block begins. If it raises, the
        next checkpoint that is written vouches for units again."""
        before = self.read()
        if before.logics_msg_timestamp:
            self.write(before._replace(logics_msg_timestamp=0), self._fs.sync)
        yield
        if before.logics_msg_timestamp:
            self.write(before, self._fs.sync)
