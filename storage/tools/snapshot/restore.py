"""Making a store from a snapshot.

Everything happens in a folder beside the target: each file is written while its check sum is
compared, then recovery completes the log's end as after a crash, then the folder gets the target's
name. So at any moment, also after a crash, the target is the old store, or none, or the restored
one. The old content is moved aside, never deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from storage.config import FIXED_FIELDS
from storage.coordination.exclusive import alone
from storage.detect import recorded_config
from storage.errors import (
    CorruptFileError,
    SnapshotTooLargeError,
    StoreBrokenError,
    StoreNotWritableError,
)
from storage.files.checksum import Checksum, Tick, no_tick
from storage.files.creating import cut_name
from storage.files.fs import FileSystem
from storage.files.ownership import Owner, forget_store, owner
from storage.format.names import COMMITLOG, CONFIG, CONSUMEQUEUE, INDEX
from storage.store import MessageStore

from .file_copy import set_times
from .manifest import Manifest
from .snapshot_source import SnapshotSource
from .staging import (
    begin_store,
    folder_mode,
    make_ready,
    own,
    put_in_place,
    remove_tree,
    staging,
)

ASIDE: Final = ".before-restore-"


class Restored(NamedTuple):
    """A restored store."""

    aside: Path | None
    """The new place of the target's old content."""
    settled: bool
    """Whether the log was walked up to its end; False for a copy of a damaged store."""


def aside_path(target: Path, run: str) -> Path:
    """Where the old content of ``target`` is moved; a long name is cut."""
    return target.with_name(f"{cut_name(target.name)}{ASIDE}{run}")


def restore_snapshot(
    source: SnapshotSource,
    target: Path,
    *,
    run: str,
    before_swap: Callable[[Path], None] = lambda _: None,
    fs: FileSystem | None = None,
    tick: Tick = no_tick,
) -> Restored:
    """Make ``target`` the snapshot's store; on the device when this returns.

    The content of ``target`` is moved to ``<target>.before-restore-<run>``. ``before_swap`` is
    called with the folder of the restored store, right before the swap. Raises CorruptFileError for
    a damaged snapshot, StoreInUseError if a process has the target open or restores to it, and
    StoreNotWritableError; then the target is unchanged.
    """
    fs = fs or FileSystem()
    refuse_too_large(source, target, fs)
    try:
        with staging(target) as folder:
            stage = folder / "store"
            wanted = _owner(source, target)
            settled = _fill(source, stage, wanted, fs, tick)
            before_swap(stage)
            mode = wanted.mode
            make_ready(fs, stage, mode)
            forget_store(stage)
            return Restored(_swap(fs, stage, target, run, mode), settled)
    except OSError as error:
        where = Path(error.filename) if error.filename else target
        raise StoreNotWritableError(where, error.strerror or str(error)) from error


def refuse_too_large(source: SnapshotSource, target: Path, fs: FileSystem | None = None) -> None:
    """Raise SnapshotTooLargeError if the snapshot needs more room than there is;
    DamagedSnapshotError if that finds it damaged."""
    free = (fs or FileSystem()).free_bytes(target.parent)
    needed = source.manifest.size_bytes
    if needed > free:  # which may be holes; only reading all of an archive shows it
        needed = source.stored_bytes()
    if needed > free:
        raise SnapshotTooLargeError(source.path, needed, target.parent, free)


def _fill(source: SnapshotSource, stage: Path, wanted: Owner, fs: FileSystem, tick: Tick) -> bool:
    manifest = source.manifest
    if manifest.whole:
        _write_files(source, stage, wanted, fs, tick)
        if _settle(stage, manifest, fs):
            return True
        remove_tree(stage)  # there may be no room for both
    _write_files(source, stage, wanted, fs, no_tick)
    return False


def _settle(stage: Path, manifest: Manifest, fs: FileSystem) -> bool:
    """Let recovery complete what the cut left: units, keys, the checkpoint; then close cleanly.

    False if the log then ends elsewhere than at the cut.
    """
    sizes = {name: manifest.sizes[name] for name in FIXED_FIELDS}
    try:
        config = recorded_config(stage).with_(**sizes)  # its delay levels, too
        with MessageStore.open(stage, config, fs=fs, exclusive=True) as store:
            return store.log_end == manifest.log_end
    except (CorruptFileError, StoreBrokenError):
        return False


def _write_files(
    source: SnapshotSource, stage: Path, wanted: Owner, fs: FileSystem, tick: Tick
) -> None:
    begin_store(stage, wanted)
    folders = {stage}
    for file, parts in source.files():
        path = stage / file.path
        if path.parent not in folders:
            fs.make_dirs(path.parent)
            folders.add(path.parent)
        found = Checksum()
        fd = fs.open(path, writable=True, create=True)
        try:
            for data in parts:
                if isinstance(data, int):
                    found.add_zeros(data)
                    tick(data)
                else:
                    fs.write(fd, data, found.length)
                    found.add(data)
                    tick(len(data))
            fs.set_length(fd, found.length)
            source.check(file, found)
            set_times(fd, file.modified_ns)
        finally:
            fs.close(fd)
    for name in (COMMITLOG, CONSUMEQUEUE, INDEX, CONFIG):
        fs.make_dirs(stage / name)


def _owner(source: SnapshotSource, target: Path) -> Owner:
    """The owner and mode of the store: at most the access that the old target or the snapshot
    gave."""
    if target.exists():
        return owner(target.stat())
    return own(folder_mode(source.path))


def _swap(fs: FileSystem, stage: Path, target: Path, run: str, mode: int) -> Path | None:
    parent = target.parent
    if not target.exists() or not any(target.iterdir()):
        put_in_place(fs, stage, target, mode)
        fs.sync_dir(parent)
        return None
    aside = aside_path(target, run)
    if aside.exists():
        raise StoreNotWritableError(aside, "it exists already")
    with alone(target):
        fs.rename(target, aside)
        fs.sync_dir(parent)
        put_in_place(fs, stage, target, mode)
        fs.sync_dir(parent)
    return aside
