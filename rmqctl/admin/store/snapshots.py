"""Taking and verifying snapshots."""

from pathlib import Path

from rmqctl.admin.changes import Warn, no_warning
from rmqctl.admin.progress import Phase, no_phase
from rmqctl.errors import CliError, NotFound, Refused
from rmqctl.exit_codes import NOT_WRITABLE
from storage.clock import now_ms as clock_ms
from storage.errors import StoreError
from storage.tools.snapshot.archive import check_packing
from storage.tools.snapshot.file_copy import CopyMethod
from storage.tools.snapshot.snapshot import take_snapshot as take
from storage.tools.snapshot.snapshot_source import open_snapshot

from .restoring import verified
from .snapshot_rows import SnapshotRow, snapshot_row


def take_snapshot(
    root: Path,
    target: Path,
    *,
    copies_only: bool = False,
    now_ms: int | None = None,
    warn: Warn = no_warning,
    phase: Phase = no_phase,
) -> SnapshotRow:
    """Copy a store at one moment, while other processes write to it.

    ``target`` is a folder that is free, or a file ``*.tar`` or ``*.tar.gz``; it appears once it is
    whole. Nothing in the store is changed, and no lock is taken. With ``copies_only`` no file
    shares its blocks with the store. NotFound without the store. Refused for a target that exists
    or is inside the store, CliError (5) without a folder for it, CliError (1) for ``*.tar.zst``
    without the package zstandard. ``warn`` gets what is wrong with the store.
    """
    check_target(root, target)
    now = clock_ms() if now_ms is None else now_ms
    taken = take(root, target, now_ms=now, copies_only=copies_only, phase=phase)
    for note in taken.notes:
        warn(note)
    shared = taken.counts[CopyMethod.CLONED] + taken.counts[CopyMethod.LINKED]
    return snapshot_row(str(target), taken.manifest, shared)


def verify_snapshot(path: Path, *, phase: Phase = no_phase) -> SnapshotRow:
    """Verify all checksums of a snapshot. CliError (4) if it is damaged, NoSnapshotError if it is
    none."""
    source = open_snapshot(path)
    verified(source, phase)
    return snapshot_row(str(path), source.manifest, None)


def check_target(root: Path, target: Path) -> None:
    """Raise what ``take_snapshot`` raises for a store and a target that it does not take."""
    _check_free(target)
    if not root.exists():
        raise NotFound(f"{root} does not exist; name another store with --store")
    if target.is_relative_to(root):
        raise Refused(f"{target} is inside the store; name a path outside of it")
    try:
        check_packing(target)
    except StoreError as error:
        raise CliError(str(error)) from error


def _check_free(target: Path) -> None:
    """Refuse an existing target: a snapshot never replaces anything."""
    if target.is_dir() and not any(target.iterdir()):
        return
    if target.exists() or target.is_symlink():
        raise Refused(f"{target} exists already and a snapshot replaces nothing; name another path")
    if not target.parent.is_dir():
        raise CliError(f"{target.parent} is not a folder; create it first", NOT_WRITABLE)
