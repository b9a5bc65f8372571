"""Creating a store from a snapshot."""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from rmqctl.admin.changes import Change, Outcome, Warn, no_warning
from rmqctl.admin.java_writers import refuse_beside_java
from rmqctl.admin.progress import Phase, no_phase
from rmqctl.admin.store_folder import looks_like_a_store
from rmqctl.errors import CliError, Refused
from rmqctl.exit_codes import DAMAGED, NOT_WRITABLE
from storage.clock import now_ms as clock_ms
from storage.configs.journal import Journal
from storage.coordination.lock_owners import find_holders
from storage.detect import detect_config
from storage.errors import StoreInUseError
from storage.format.names import COMMITLOG
from storage.layout import was_created_here
from storage.retention import HOUR_MS
from storage.tools.snapshot.manifest import is_snapshot
from storage.tools.snapshot.restore import aside_path, refuse_too_large, restore_snapshot
from storage.tools.snapshot.snapshot_source import SnapshotSource, open_snapshot, verify

from .rows import RestoreRow

_OLD: Final = "old store"
_NAMED: Final = 5


class Restore(Change):
    """A change that creates a store from a snapshot, in place of the folder's old content."""

    def __init__(
        self, source: SnapshotSource, target: Path, now_ms: int, warn: Warn, phase: Phase
    ) -> None:
        self._source = source
        self._target = target
        self._now_ms = now_ms
        self._warn = warn
        self._phase = phase
        self._checked = False
        self._run = f"{datetime.fromtimestamp(now_ms / 1000, UTC):%Y%m%dT%H%M%SZ}"
        self.occupied = target.exists() and any(target.iterdir())
        """Whether the folder has a store, which is moved aside."""
        self._aside = None
        if self.occupied:
            self._aside = aside_path(target, self._run)
        aside = None if self._aside is None else {"moved_aside": str(self._aside)}
        new = {"snapshot": str(source.path), "taken_from": source.manifest.source}
        super().__init__(
            RestoreRow,
            list(_rows(source, target, self._aside, applied=None)),
            question=f"Restore {source.path} to {target}?",
            confirm_name=target.name if self.occupied else None,
            entry={"what": "restore", "new": new, "old": aside},
        )

    def check(self) -> None:
        """StoreInUseError if a process has the target open for writing, or a Java broker."""
        if self.occupied:
            java_check = refuse_beside_java(self._target)
            holders = find_holders(self._target)
            if holders.writers:
                raise StoreInUseError(self._target, holders.describe() or "rmqctl")
            java_check()
        self._checked = True

    def verify(self, phase: Phase = no_phase) -> None:
        """Verify all checksums of the snapshot, as ``apply`` does while it writes.

        CliError (4) if it is damaged, StoreFullError if there is no room for it.
        """
        verified(self._source, phase)
        refuse_too_large(self._source, self._target)

    def apply(self, note: Mapping[str, Any]) -> Outcome:
        """Create the store, as a whole or not at all; on the device when this returns."""
        if not self._checked:
            self.check()
        return Outcome(self._restored({**note, **self.entry}))

    def _restored(self, entry: dict[str, Any]) -> Iterator[RestoreRow]:
        source, target = self._source, self._target

        def note(stage: Path) -> None:
            Journal(stage).append(entry, self._now_ms)

        done = restore_snapshot(
            source,
            target,
            run=self._run,
            before_swap=note,
            tick=self._phase("restoring", source.manifest.size_bytes),
        )
        if not done.settled:
            self._warn(f"{target} is a copy of a damaged store; 'rmqctl store fsck' shows where")
        self._warn_of_retention()
        yield from _rows(source, target, done.aside, applied=True)

    def _warn_of_retention(self) -> None:
        """Warn of expired log files, which an old snapshot is full of."""
        target = self._target
        if not was_created_here(target):
            return
        hours = detect_config(target).file_reserved_time_hours
        before_ns = (self._now_ms - hours * HOUR_MS) * 1_000_000
        log = sorted(file for file in self._source.manifest.files if file.part == COMMITLOG)
        old = [file for file in log[:-1] if file.modified_ns < before_ns]
        if old:
            self._warn(
                f"{len(old)} log files are older than {hours} h (fileReservedTime), and "
                "long-running programs delete such files; to keep them, first run 'rmqctl broker "
                f"config set fileReservedTime N -S {target}'"
            )


def restore(
    snapshot: Path,
    target: Path,
    *,
    now_ms: int | None = None,
    warn: Warn = no_warning,
    phase: Phase = no_phase,
) -> Restore:
    """Create a store from a snapshot, a folder or a file.

    ``target`` is a path that is free, or a store, which is moved to a folder beside it; its name
    has to be confirmed. CliError (5) where no folder can be, Refused for a folder that is no store,
    NoSnapshotError without the snapshot. ``phase`` shows the progress of long work.
    """
    target = target.resolve()
    if target.exists() and not target.is_dir():
        raise CliError(f"{target} is a file, not a folder", NOT_WRITABLE)
    if not target.parent.is_dir():
        raise CliError(f"{target.parent} is not a folder; create it first", NOT_WRITABLE)
    if target.is_mount():
        raise Refused(f"{target} is a mount point, which cannot be renamed; name a folder in it")
    if target.exists() and any(target.iterdir()):
        if is_snapshot(target):
            raise Refused(f"{target} is a snapshot; name another folder")
        if not looks_like_a_store(target):
            raise Refused(f"{target} is neither empty nor a store; name another folder")
    now = clock_ms() if now_ms is None else now_ms
    return Restore(open_snapshot(snapshot), target, now, warn, phase)


def verified(source: SnapshotSource, phase: Phase = no_phase) -> None:
    """Verify all checksums of a snapshot; CliError (4) if it is damaged."""
    damage = verify(source, phase("verifying", source.manifest.size_bytes))
    if damage:
        named = "; ".join(f"{error.path}: {error.reason}" for error in damage[:_NAMED])
        more = f" and {len(damage) - _NAMED} more" if len(damage) > _NAMED else ""
        raise CliError(f"the snapshot {source.path} is damaged: {named}{more}", DAMAGED)


def _rows(
    source: SnapshotSource, target: Path, aside: Path | None, *, applied: bool | None
) -> Iterator[RestoreRow]:
    if aside is not None:
        yield RestoreRow(_OLD, "move aside", str(aside), None, None, applied)
    files: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for file in source.manifest.files:
        files[file.part] += 1
        sizes[file.part] += file.length
    for part in sorted(files):
        yield RestoreRow(part, "write", str(target / part), files[part], sizes[part], applied)
