"""Putting rebuilt files in the place of the old ones, which go to the quarantine.

Needs the right to change the store's files as the only process
(``storage.coordination.exclusive``). Each file is replaced by one rename, so there is a whole one
at any moment; queue files are right or wrong one by one, so old and new ones side by side are no
worse than before. ``abort`` exists meanwhile: a process that opens a store whose rebuilding was
killed recovers it as after a crash, and makes the missing files. Rebuilding once more finishes the
job.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from storage.coordination.exclusive import distrust_shared_state
from storage.errors import StoreNotWritableError
from storage.files.fs import FileSystem
from storage.format.names import ABORT, COMMITLOG, INDEX, OURS, REBUILT_FOLDER
from storage.tools.quarantine import Quarantine

from .index import RebuiltIndexFile
from .queue import RebuiltQueue, folder_of

if TYPE_CHECKING:
    from storage.readonly import StoreView

WHY: Final = "REBUILT"
"""The reason of replaced files in the quarantine's manifest."""


@contextmanager
def staging(root: Path, fs: FileSystem) -> Iterator[Path]:
    """An empty folder for new files on the store's file system; removed afterwards, and after a
    kill by the next first writer.

    Raises StoreNotWritableError for a link in its place.
    """
    folder = root / OURS / REBUILT_FOLDER
    if folder.is_symlink():
        raise StoreNotWritableError(folder, "it is a symbolic link; remove it")
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
    fs.make_dirs(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def unclean(root: Path, fs: FileSystem) -> Iterator[None]:
    """Mark the store as crashed for a block, and its shared state as invalid from then on."""
    abort = root / ABORT
    was_clean = not abort.exists()
    if was_clean:
        fs.touch(abort)
        fs.sync_dir(root)
    distrust_shared_state(fs, root)
    yield
    # Readers that have old files mapped list them anew (Bounds.files_generation).
    fs.set_modified(root / COMMITLOG, time.time_ns() // 1_000_000)
    if was_clean:
        fs.unlink(abort)
        fs.sync_dir(root)


def put_queues_in_place(
    view: StoreView,
    made: Path,
    queues: Iterable[RebuiltQueue],
    quarantine: Quarantine,
    *,
    why: str = WHY,
    fs: FileSystem | None = None,
) -> Iterator[RebuiltQueue]:
    """Replace queues by the result of ``rebuild_queues`` below ``made``; gives each finished one.

    Unchanged queues are skipped. On the device when a queue is given. ``view`` must not be used
    afterwards. To be run to the end, within :func:`unclean`. Raises StoreNotWritableError.
    """
    fs = fs or FileSystem()
    root = view.root
    try:
        for queue in queues:
            if queue.is_same:
                continue
            folder = folder_of(queue.topic, queue.queue_id)
            # The last one first: a crash leaves a queue without its end, which recovery repairs.
            for name in sorted(queue.taken_away, reverse=True):
                quarantine.move(f"{folder}/{name}", why)
            for name in queue.replaced:
                quarantine.keep_copy(f"{folder}/{name}", why)
            _rename_all(fs, made / queue.topic / str(queue.queue_id), root / folder, queue)
            yield queue
    except OSError as error:
        where = Path(error.filename) if error.filename else root
        raise StoreNotWritableError(where, error.strerror or str(error)) from error


def put_index_in_place(
    view: StoreView,
    made: Path,
    files: Iterable[RebuiltIndexFile],
    quarantine: Quarantine,
    *,
    why: str = WHY,
    fs: FileSystem | None = None,
) -> Iterator[RebuiltIndexFile]:
    """The same for the result of ``rebuild_index`` in the folder ``made``.

    Raises StoreNotWritableError.
    """
    fs = fs or FileSystem()
    root = view.root
    folder = root / INDEX
    try:
        for file in files:
            if file.is_same:
                continue
            path = f"{INDEX}/{file.name}"
            if file.keys_after is None:
                quarantine.move(path, why)
            else:
                if file.keys_before is not None:
                    quarantine.keep_copy(path, why)
                fs.make_dirs(folder)
                fs.rename(made / file.name, folder / file.name)
                fs.sync_dir(folder)
            yield file
    except OSError as error:
        where = Path(error.filename) if error.filename else root
        raise StoreNotWritableError(where, error.strerror or str(error)) from error


def _rename_all(fs: FileSystem, source: Path, target: Path, queue: RebuiltQueue) -> None:
    names = sorted((*queue.replaced, *queue.made))
    if not names:
        return
    if not target.exists():
        fs.make_dirs(target)
        fs.sync_dir(target.parent)
        fs.sync_dir(target.parent.parent)
    for name in names:
        fs.rename(source / name, target / name)
    fs.sync_dir(target)
