"""Taking a snapshot of a store while others write it: a folder that is a store, cut at one place.

No lock is taken and nothing of the store is changed. The order: progress files, then the cut, then
everything before it, then the tables of topics and groups (see config_files.py). The result is what
a kill of all writers at the cut would have left, so it has the ``abort`` file, unless the store was
closed all the time: the opener of a copy recovers it first.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

from storage.config import FIXED_FIELDS
from storage.configs.deleted_topics import (
    STAGED_FILE,
    DeletedTopics,
    deleted_topics_for_reading,
)
from storage.errors import (
    DamagedSnapshotError,
    StoreError,
    StoreNotReadableError,
    StoreNotWritableError,
)
from storage.files.checksum import Tick, checksum_of, no_tick
from storage.files.creating import create
from storage.files.fs import FileSystem
from storage.files.ownership import forget_store, note_store
from storage.format.names import ABORT, OURS, SNAPSHOT_MANIFEST
from storage.readonly import StoreView

from .archive import check_packing, is_archive_name, write_archive
from .config_files import merge_notes, place_after, place_before
from .file_copy import CopyMethod, FileCopier
from .index_files import place_index
from .log_and_queues import place_log, place_queues
from .manifest import Manifest, SnapshotFile, SnapshotQueue
from .staging import begin_store, folder_mode, make_ready, own, put_in_place, staging

_TRIES: Final = 3

Phase = Callable[[str, int | None], Tick]
"""Called when a part of the work begins, with its name and its number of bytes, if known; gives the
function to call as they are done."""


def no_phase(_: str, __: int | None) -> Tick:
    """Ignore progress."""
    return no_tick


class StagedSnapshot(NamedTuple):
    """The files of a snapshot, and their description."""

    cut: int
    """The log's end."""
    placer: FileCopier
    notes: list[str]
    """Sentences about irregularities."""


class TakenSnapshot(NamedTuple):
    """A snapshot that was taken."""

    manifest: Manifest
    counts: Counter[CopyMethod]
    """How its files were copied."""
    notes: list[str]
    """Sentences about irregularities."""


def take_snapshot(
    root: Path,
    target: Path,
    *,
    now_ms: int,
    copies_only: bool = False,
    fs: FileSystem | None = None,
    phase: Phase = no_phase,
) -> TakenSnapshot:
    """Make ``target``, which is missing or an empty folder, a snapshot of the store in ``root``.

    One file if its name is one of an archive (archive.py), else a folder.

    On the device when this returns; ``target`` exists as a whole or not at all. Raises the errors
    of StoreView.open, StoreInUseError (another process makes ``target``), StoreNotWritableError
    about ``target``, and StoreError if the archive needs a package that is not installed, or if no
    reader would take the snapshot.
    """
    check_packing(target)
    fs = fs or FileSystem()
    with errors_about(root, target), staging(target) as folder:
        stage = folder / "store"
        staged = stage_store(root, stage, fs, phase, copies_only=copies_only)
        manifest = describe(root, stage, staged.cut, fs, phase, now_ms)
        write_manifest(fs, stage, manifest)
        made = stage
        if is_archive_name(target):
            made = folder / target.name
            os.close(create(made))
            made.chmod(0o600)
            write_archive(stage, made, manifest, fs, phase("packing", manifest.size_bytes))
        mode = folder_mode(root) if made is stage else folder_mode(root) & 0o666
        make_ready(fs, made, mode)
        put_in_place(fs, made, target, mode)
        fs.sync_dir(target.parent)
    return TakenSnapshot(manifest, staged.placer.counts, staged.notes + damage_notes(manifest))


@contextmanager
def errors_about(root: Path, target: Path) -> Iterator[None]:
    """Turn errors of the system into StoreNotReadableError of the store, or StoreNotWritableError
    of the folder that is written."""
    try:
        yield
    except OSError as error:
        where = Path(error.filename) if error.filename else target
        if where.is_relative_to(root) and error.errno in (errno.EACCES, errno.EPERM):
            raise StoreNotReadableError(where) from error
        raise StoreNotWritableError(where, error.strerror or str(error)) from error


def damage_notes(manifest: Manifest) -> list[str]:
    """Notes on a snapshot of a damaged store."""
    if manifest.whole:
        return []
    return ["the store is damaged, and so is this copy of it; 'rmqctl store fsck' tells where"]


def stage_store(
    root: Path, stage: Path, fs: FileSystem, phase: Phase, *, copies_only: bool
) -> StagedSnapshot:
    """Copy everything that belongs to a snapshot into the missing folder ``stage``, unsynced.

    If a deletion of a topic, which removes its files one by one, began or ended meanwhile, it
    begins anew. During all of one the copy is that of a crash: its checkpoint vouches for no unit.
    """
    for attempt in count():
        deleted = _deletions(root)
        here = stage.with_name(f"{stage.name}-{attempt}")
        begin_store(here, own(folder_mode(root)))
        staged = _stage(root, here, fs, FileCopier(fs, copies_only=copies_only), phase)
        if _deletions(root) == deleted or attempt == _TRIES:
            here.rename(stage)
            forget_store(here)
            note_store(stage, own(folder_mode(root)))
            return staged
        phase("a topic was deleted meanwhile: once more", None)
    raise AssertionError


def _deletions(root: Path) -> tuple[DeletedTopics, bool]:
    """The topics that were deleted, and whether one is being deleted, or was when its writer
    died."""
    return deleted_topics_for_reading(root), (root / OURS / STAGED_FILE).exists()


def _stage(
    root: Path, stage: Path, fs: FileSystem, placer: FileCopier, phase: Phase
) -> StagedSnapshot:
    was_closed = not (root / ABORT).exists()
    with StoreView.open(root) as view:
        shown, notes = place_before(root, stage, placer)
        cut = view.log_max_offset()
        deleted = place_log(root, stage, view.config, cut, placer, phase("copying the log", None))
        deleted += place_queues(root, stage, view.config, cut, placer)
        closed = was_closed and not (root / ABORT).exists() and view.log_max_offset() == cut
        deleted += place_index(view, stage, cut, fs, placer, closed=closed)
        notes += place_after(root, stage, placer)
    merge_notes(stage, shown, fs)
    if not closed or (root / ABORT).exists():
        fs.touch(stage / ABORT)
    if deleted:
        notes.append(f"{deleted} old files were deleted while they were copied, and are left out")
    return StagedSnapshot(cut, placer, notes)


def describe(
    root: Path, stage: Path, cut: int, fs: FileSystem, phase: Phase, now_ms: int
) -> Manifest:
    """Read all staged files once, and make their entries."""
    with StoreView.open(stage) as view:
        whole = view.log_max_offset() == cut
        queues = tuple(SnapshotQueue(*queue, *view.queue_bounds(*queue)) for queue in view.queues())
        log_min = view.log_min_offset()
        sizes = {name: getattr(view.config, name) for name in FIXED_FIELDS}
    paths = sorted(path for path in stage.rglob("*") if path.is_file())
    tick = phase("check sums", sum(path.stat().st_size for path in paths))
    files = []
    for path in paths:
        found = checksum_of(fs, path, tick)
        name = path.relative_to(stage).as_posix()
        modified_ns = max(path.stat().st_mtime_ns, 0)  # readers take no time before 1970
        files.append(SnapshotFile(name, found.length, found.value, modified_ns))
    return Manifest(
        at_timestamp=now_ms,
        source=str(root),
        log_min=log_min,
        log_end=cut,
        whole=whole,
        sizes=sizes,
        queues=queues,
        files=tuple(files),
    )


def write_manifest(fs: FileSystem, folder: Path, manifest: Manifest) -> None:
    """Write the manifest into a snapshot, unsynced. StoreError if no reader would take it."""
    data = manifest.pack()
    try:
        Manifest.unpack(data, folder / SNAPSHOT_MANIFEST)
    except DamagedSnapshotError as error:
        raise StoreError(
            f"no snapshot of {manifest.source} can be made: {error.reason}; copy its folder "
            "while no process writes to it"
        ) from None
    fd = fs.open(folder / SNAPSHOT_MANIFEST, writable=True, create=True)
    try:
        fs.write(fd, data, 0)
    finally:
        fs.close(fd)
