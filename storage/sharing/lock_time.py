"""When a Java broker last started on a store: the time of its lock file, asked at every read.

Java writes the file at each start.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from time import monotonic

from storage.files.kept_file import KeptFile


def lock_mtime(lock_path: str) -> int:
    """When Java last started on the store: the ns time of its lock file, 0 if there is none."""
    try:
        return os.stat(lock_path).st_mtime_ns  # noqa: PTH116 - a reader asks at every read
    except OSError:
        return 0


class LockTime:
    """The time of one store's lock file. Thread-safe."""

    def __init__(self, lock_path: str, clock: Callable[[], float] = monotonic) -> None:
        self._file = KeptFile(lock_path, clock)

    def ns(self) -> int:
        """The same as :func:`lock_mtime`."""
        try:
            ident = self._file.ident()
        except OSError:
            return 0
        return 0 if ident is None else ident.mtime_ns

    def close(self) -> None:
        """Let go of the file; it can be asked again."""
        self._file.close()
