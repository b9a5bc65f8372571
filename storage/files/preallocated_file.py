"""A file that is made before it is needed, so that it only needs its name at that time.

Making a file waits for the device: its length has to be there before its name is, or a power loss
would leave a file that Java refuses to load. During a sync of a thousand megabytes that takes as
long as the sync. So a thread makes the file while there is time (as RocketMQ's
AllocateMappedFileService does, which gives it its name at once). It has no name until then, and is
gone if the process ends.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .fs import FileSystem


class PreallocatedFile:
    """One file of ``file_size`` zeros with blocks for its first ``window`` bytes, or none.

    Thread-safe: one thread may make it while another takes it.
    """

    def __init__(self, fs: FileSystem, folder: Path, file_size: int, window: int) -> None:
        """``folder`` is any folder of the file system that the file is to be in."""
        self._fs = fs
        self._folder = folder
        self._file_size = file_size
        self._window = min(window, file_size)
        self._lock = threading.Lock()  # guards _made and _closed
        self._made: int | None = None
        self._closed = False

    def make(self) -> None:
        """Make the file if there is none. Blocks for the device.

        If it cannot be made there is none: the thread that needs one makes it, and gets the error.
        """
        if self._made is not None:
            return
        with suppress(OSError):
            fd = self._fs.open_nameless(self._folder)
            try:
                self._fs.set_length(fd, self._file_size)
                self._fs.reserve(fd, 0, self._window)
                self._fs.sync(fd)
            except BaseException:
                self._fs.close(fd)
                raise
            if not self._keep(fd):
                self._fs.close(fd)

    def _keep(self, fd: int) -> bool:
        with self._lock:
            wanted = self._made is None and not self._closed
            if wanted:
                self._made = fd
        return wanted

    def take(self) -> int | None:
        """The file's descriptor, which the caller closes; None if there is none."""
        with self._lock:
            fd, self._made = self._made, None
        return fd

    def close(self) -> None:
        """Release the file; no other one is made. Twice is fine."""
        with self._lock:
            self._closed = True
        fd = self.take()
        if fd is not None:
            self._fs.close(fd)
