"""Changing settings without opening the store: no recovery, no services, nothing mapped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from storage.files.access import not_writable
from storage.format.names import LOCK

from .write_lock import WriteLock

_TIMEOUT_MS = 10_000


@contextmanager
def config_lock(root: Path, *, timeout_ms: int = _TIMEOUT_MS) -> Iterator[WriteLock]:
    """Hold the right to replace config files of the store at ``root`` for a block.

    Keeps Java out meanwhile. Byte 0 is shared only while the write lock is held, so that no opener
    takes this process for a writer that keeps the shared state valid. Raises StoreInUseError (a
    Java broker), WriteLockTimeoutError and StoreNotWritableError.
    """
    try:
        write_lock = WriteLock(root, root / LOCK, timeout_ms=timeout_ms)
    except OSError as error:
        raise not_writable(root, error) from error
    try:
        with write_lock.held():
            write_lock.share()
            try:
                yield write_lock
            finally:
                write_lock.unshare()
    finally:
        write_lock.close()
