"""Being the only process on a store, in order to replace files that others have mapped.

No other rmqctl process has the store open for writing meanwhile, and no Java broker; readers may
come and go. A caller that replaces or removes queue files calls :func:`distrust_shared_state`
first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from storage.errors import StoreInUseError
from storage.files.fs import FileSystem
from storage.format.names import OURS

from .config_lock import config_lock
from .lock_owners import find_holders
from .shared_state import SHARED_STATE_NAME, SharedState, Word


@contextmanager
def alone(root: Path, *, timeout_ms: int = 10_000) -> Iterator[None]:
    """Hold the right to append and to replace files for a block, as the only process on a store.

    Raises StoreInUseError (a Java broker, or an rmqctl process that has it open for writing),
    WriteLockTimeoutError and StoreNotWritableError.
    """
    with config_lock(root, timeout_ms=timeout_ms) as write_lock:
        if not write_lock.try_alone():
            raise StoreInUseError(root, find_holders(root).describe() or "rmqctl")
        yield


def distrust_shared_state(fs: FileSystem, root: Path) -> None:
    """Make readers read the files themselves, and the next writer make the shared state anew."""
    if (root / OURS / SHARED_STATE_NAME).exists():
        shared = SharedState(fs, root, writable=True)
        try:
            shared.words[Word.MAGIC] = 0
        finally:
            shared.close()
