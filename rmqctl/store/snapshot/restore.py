"""Creating a store from a snapshot: plan, refusals, execution."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from rmqctl.admin.java_writers import refuse_beside_java
from rmqctl.admin.journal_entry import change_note
from rmqctl.cli.change_steps import carry_out, will_execute
from rmqctl.cli.context import Cli, looks_like_a_store
from rmqctl.errors import CliError, Refused, UsageProblem
from rmqctl.exit_codes import NOT_WRITABLE
from storage.configs.journal import Journal
from storage.coordination.lock_owners import find_holders
from storage.detect import detect_config
from storage.errors import StoreInUseError
from storage.format.names import COMMITLOG
from storage.layout import was_created_here
from storage.retention import HOUR_MS
from storage.tools.snapshot.manifest import is_snapshot
from storage.tools.snapshot.restore import ASIDE, refuse_too_large, restore_snapshot
from storage.tools.snapshot.snapshot_source import SnapshotSource, open_snapshot

from .rows import RestoreRow
from .take import phases, verified

_OLD = "old store"


def restore(cli: Cli, snapshot: Path, confirm: str | None) -> None:
    """Show the plan of a restore into the call's store; carry it out with ``--execute``.

    A dry run verifies all checksums; otherwise they are verified while the files are written.
    """
    target = _target(cli)
    source = open_snapshot(snapshot)
    occupied = target.exists() and any(target.iterdir())
    run = f"{datetime.fromtimestamp(cli.now_ms / 1000, UTC):%Y%m%dT%H%M%SZ}"
    if will_execute(cli):
        if occupied:
            _refuse_users(target)
    else:
        verified(cli, source)
        refuse_too_large(source, target)
    aside = target.with_name(f"{target.name}{ASIDE}{run}") if occupied else None
    carry_out(
        cli,
        RestoreRow,
        list(_rows(source, target, aside, applied=None)),
        lambda: _apply(cli, source, target, aside, run),
        question=f"Restore {snapshot} to {target}?",
        plan_summary=_plan_summary(target, needs_name=occupied and confirm is None),
        confirm_name=target.name if occupied else None,
        confirmed=confirm,
    )


def _target(cli: Cli) -> Path:
    if not cli.store.named:
        raise UsageProblem("name the store to create with -S")
    target = cli.store.path.resolve()
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
    return target


def _refuse_users(target: Path) -> None:
    check = refuse_beside_java(target)
    holders = find_holders(target)
    if holders.writers:
        raise StoreInUseError(target, holders.describe() or "rmqctl")
    check()


def _plan_summary(target: Path, *, needs_name: bool) -> list[str]:
    if not needs_name:
        return []
    return [f"{target} is not empty: --execute also needs --confirm {target.name}"]


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


def _apply(
    cli: Cli, source: SnapshotSource, target: Path, aside: Path | None, run: str
) -> Iterator[RestoreRow]:
    def note(stage: Path) -> None:
        entry = change_note(cli, what="restore")
        entry["new"] = {"snapshot": str(source.path), "taken_from": source.manifest.source}
        entry["old"] = None if aside is None else {"moved_aside": str(aside)}
        Journal(stage).append(entry, cli.now_ms)

    with phases(cli) as phase:
        done = restore_snapshot(
            source,
            target,
            run=run,
            before_swap=note,
            tick=phase("restoring", source.manifest.size_bytes),
        )
    if not done.settled:
        cli.warn(f"{target} is a copy of a damaged store; 'rmqctl store fsck' shows where")
    _warn_of_retention(cli, source, target)
    yield from _rows(source, target, done.aside, applied=True)


def _warn_of_retention(cli: Cli, source: SnapshotSource, target: Path) -> None:
    """Warn of expired log files, which an old snapshot is full of."""
    if not was_created_here(target):
        return
    hours = detect_config(target).file_reserved_time_hours
    before_ns = (cli.now_ms - hours * HOUR_MS) * 1_000_000
    log = sorted(file for file in source.manifest.files if file.part == COMMITLOG)
    old = [file for file in log[:-1] if file.modified_ns < before_ns]
    if old:
        cli.warn(
            f"{len(old)} log files are older than {hours} h (fileReservedTime), and long-running "
            "programs delete such files; to keep them, first run 'rmqctl broker config set "
            f"fileReservedTime N -S {target}'"
        )
