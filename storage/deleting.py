"""Deleting the consume queues of a topic (DefaultMessageStore.cleanUnusedTopic).

The files of its queues go and the folders of the queues with them; the topic's own folder and all
records stay, as a real broker leaves them. Maps of these files in other processes would outlive
them, so nobody else may have the store open for writing meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .configs.deleted_topics import note_deleted_topic
from .errors import StoreInUseError, StoreNotWritableError
from .files.fs import FileSystem
from .files.read_files import is_queue_number
from .format.names import CONSUMEQUEUE, CONSUMEQUEUE_EXT, LOCK, OURS
from .sharing.gate import Gate
from .sharing.holders import find_holders
from .sharing.page import PAGE_NAME, SharedPage, Word

if TYPE_CHECKING:
    from .readonly import StoreView

_TIMEOUT_MS = 10_000


@contextmanager
def alone(root: Path, *, timeout_ms: int = _TIMEOUT_MS) -> Iterator[None]:
    """Hold the right to append and to replace files for a block, as the only process on a store.

    Raises StoreInUseError (a Java broker, or an rmqctl process that has it open for writing),
    GateTimeoutError and StoreNotWritableError.
    """
    try:
        gate = Gate(root, root / LOCK, timeout_ms=timeout_ms)
    except OSError as error:
        raise StoreNotWritableError(root / LOCK, error.strerror or str(error)) from error
    try:
        with gate.held():
            gate.share()
            try:
                if not gate.try_alone():
                    raise StoreInUseError(root, find_holders(root).describe() or "rmqctl")
                yield
            finally:
                gate.unshare()
    finally:
        gate.close()


def delete_queues(view: StoreView, topic: str, fs: FileSystem | None = None) -> int:
    """Delete all queues of a topic within :func:`alone`; gives how many there were.

    The next message of the topic gets queue offset 0. ``view`` reads the store and is of no use
    afterwards. On the device when this returns. A death in between deletes nothing: the next writer
    makes all units again, as long as nothing notes that they were deleted. Raises
    StoreNotWritableError.
    """
    fs = fs or FileSystem()
    root = view.root
    try:
        log_end, log_min = view.log_max_offset(), view.log_min_offset()
        _distrust_page(fs, root)
        queues = _queue_folders(root / CONSUMEQUEUE / topic)
        for folder in [*queues, *_queue_folders(root / CONSUMEQUEUE_EXT / topic)]:
            # The last one first: what is left is a queue that lacks its end, and that is mended.
            for path in sorted(folder.iterdir(), reverse=True):
                fs.unlink(path)
            folder.rmdir()
            fs.sync_dir(folder.parent)
        note_deleted_topic(root, topic, log_end, log_min, fs)
    except OSError as error:
        where = Path(error.filename) if error.filename else root
        raise StoreNotWritableError(where, error.strerror or str(error)) from error
    return len(queues)


def _distrust_page(fs: FileSystem, root: Path) -> None:
    """Have readers look at the files themselves, and the next writer make the page anew."""
    if (root / OURS / PAGE_NAME).exists():
        page = SharedPage(fs, root, writable=True)
        try:
            page.words[Word.MAGIC] = 0
        finally:
            page.close()


def _queue_folders(topic: Path) -> list[Path]:
    try:
        return sorted(path for path in topic.iterdir() if is_queue_number(path.name))
    except (FileNotFoundError, NotADirectoryError):
        return []
