"""The log as plain bytes, read by system calls into one buffer.

A search through all of the log touches every page once. Mapped pages would cost a fault for some of
them, which takes as long as searching the bytes; a buffer that stays in the processor's cache does
not.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from storage.files.read_files import ReadOnlyFiles


class LogBytes:
    """Reads pieces of log files into ``buffer``; a context manager, for one thread."""

    def __init__(self, log: ReadOnlyFiles, buffer: bytearray) -> None:
        self.buffer = buffer
        self._log = log
        self._fd = -1
        self._first = -1

    def read(self, offset: int, count: int) -> int:
        """Fill the buffer from a commit log offset on; gives how many bytes there are.

        At most ``count`` and the buffer's size, none from the next file; 0 where the file is
        missing. Other failures of the device come as OSError.
        """
        within = offset % self._log.file_size
        if self._first != offset - within and not self._open(offset - within):
            return 0
        count = min(count, len(self.buffer), self._log.file_size - within)
        return os.preadv(self._fd, [memoryview(self.buffer)[:count]], within)

    def _open(self, first: int) -> bool:
        self.close()
        try:
            self._fd = os.open(self._log.path(first), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        self._first = first
        return True

    def close(self) -> None:
        """Close the file; the buffer stays."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = self._first = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
