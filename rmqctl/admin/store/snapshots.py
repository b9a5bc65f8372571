"""Taking and verifying a snapshot, with its progress on stderr."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rmqctl.admin.store.restoring import verified
from rmqctl.cli.context import Cli
from rmqctl.cli.progress import Progress
from rmqctl.errors import CliError, NotFound, Refused
from rmqctl.exit_codes import NOT_WRITABLE
from storage.files.checksum import Tick
from storage.tools.snapshot.file_copy import CopyMethod
from storage.tools.snapshot.snapshot import Phase, take_snapshot
from storage.tools.snapshot.snapshot_source import open_snapshot

from .rows import SnapshotRow, snapshot_row


@contextmanager
def phases(cli: Cli) -> Iterator[Phase]:
    """Show the parts of long work on stderr, one after the other."""
    shown: list[Progress] = []

    def begin(label: str, total: int | None) -> Tick:
        for progress in shown:
            progress.clear()
        progress = cli.progress(label, "bytes", total)
        shown[:] = [progress]
        return lambda count: progress.advance(count, count)

    try:
        yield begin
    finally:
        for progress in shown:
            progress.clear()


def take(cli: Cli, target: Path, *, copies_only: bool) -> SnapshotRow:
    """Take a snapshot of the call's store. Refused (7) if ``target`` exists."""
    check_free(target)
    root = cli.store.path
    if not root.exists():
        raise NotFound(f"{root} does not exist; name another store with --store")
    if target.is_relative_to(root):
        raise Refused(f"{target} is inside the store; name a path outside of it")
    with phases(cli) as phase:
        taken = take_snapshot(root, target, now_ms=cli.now_ms, copies_only=copies_only, phase=phase)
    for note in taken.notes:
        cli.warn(note)
    shared = taken.counts[CopyMethod.CLONED] + taken.counts[CopyMethod.LINKED]
    return snapshot_row(str(target), taken.manifest, shared)


def check_free(target: Path) -> None:
    """Refuse an existing target: a snapshot never replaces anything."""
    if target.is_dir() and not any(target.iterdir()):
        return
    if target.exists() or target.is_symlink():
        raise Refused(f"{target} exists already and a snapshot replaces nothing; name another path")
    if not target.parent.is_dir():
        raise CliError(f"{target.parent} is not a folder; create it first", NOT_WRITABLE)


def verify_snapshot(cli: Cli, path: Path) -> SnapshotRow:
    """Verify all checksums of a snapshot. CliError (4) if it is damaged, NotFound if none."""
    source = open_snapshot(path)
    with phases(cli) as phase:
        verified(source, phase)
    return snapshot_row(str(path), source.manifest, None)
