"""When files of the log may be deleted: the one rule of writers, forecasts and ``store clean``.

The rule is that of DefaultMessageStore.CleanCommitLogService: oldest files first, once they were
not written for fileReservedTime, in the hours of deleteWhen, or at any hour while the disk is
fuller than diskMaxUsedSpaceRatio; all at once while it is fuller than diskSpaceCleanForciblyRatio
and that is enabled. The last file that is written stays, and one that was made ahead of it. Whether
a file was read does not matter. A store without a broker and without a long-lived process deletes
nothing.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from storage.format.names import COMMITLOG, LATEST_MS, file_name, parse_file_name

from .layout import was_created_here

if TYPE_CHECKING:
    from .config import StoreConfig

HOUR_MS: Final = 3_600_000


def used_ratio(path: Path) -> float:
    """Share of the disk that is used, of the space for ordinary users; whole per cents, rounded up.

    Blocks reserved for root belong to neither, as with ``df``
    (UtilAll.getDiskPartitionSpaceUsedPercent). Raises OSError.
    """
    space = os.statvfs(path)
    used = space.f_blocks - space.f_bfree
    entire = used + space.f_bavail
    return -(-used * 100 // entire) / 100 if entire else 0.0


class RetentionRules(NamedTuple):
    """The rules of deletion. A file may be deleted ``reserved_ms`` after its last write."""

    reserved_ms: int
    hours: frozenset[int]
    """Local hours in which files are deleted (deleteWhen); none: only ``any_hour`` deletes."""
    any_hour: bool = False
    """The hour does not matter: the disk is full, or a command requests the deletion."""
    at_once: bool = False
    """The disk is so full that the age does not matter either."""

    def due(self, modified_ms: int, now_ms: int) -> int | None:
        """The time (ms) from which on a file that was last written at ``modified_ms`` may be
        deleted; None: never, which is also what comes after the end of calendars."""
        if self.at_once:
            return now_ms
        due = max(modified_ms + self.reserved_ms, now_ms)
        if due > LATEST_MS:
            return None
        return due if self.any_hour else self._next_hour(due)

    def _next_hour(self, moment_ms: int) -> int | None:
        moment = datetime.fromtimestamp(moment_ms / 1000)
        if moment.hour in self.hours:
            return moment_ms
        hour = moment.replace(minute=0, second=0, microsecond=0)
        for _ in range(49):
            hour += timedelta(hours=1)
            if hour.hour in self.hours:
                return int(hour.timestamp() * 1000)
        return None


def rules_of(root: Path, config: StoreConfig, reserved_ms: int | None = None) -> RetentionRules:
    """RocketMQ's defaults, or the store's settings; the disk is that of the store.

    A store that rmqctl did not make belongs to a broker that deletes by force on a full disk, as
    RocketMQ does by default; rmqctl itself refuses writes instead.
    """
    if reserved_ms is None:
        reserved_ms = config.file_reserved_time_hours * HOUR_MS
    used = used_ratio(root)
    forced = deletes_by_force(root, config)
    return RetentionRules(
        reserved_ms,
        frozenset(int(hour) for hour in config.delete_when.split(";") if hour.strip()),
        any_hour=used * 100 > config.disk_max_used_space_ratio,
        at_once=forced and used > config.disk_space_clean_forcibly_ratio,
    )


def deletes_by_force(root: Path, config: StoreConfig) -> bool:
    """Whether files of any age are deleted while the disk is fuller than
    diskSpaceCleanForciblyRatio."""
    return config.clean_file_forcibly_enable or not was_created_here(root)


def rules_by_hand(config: StoreConfig, reserved_ms: int | None = None) -> RetentionRules:
    """The rules for a command: age alone decides, whatever the hour and the disk.

    ``reserved_ms`` is that age, else fileReservedTime.
    """
    if reserved_ms is None:
        reserved_ms = config.file_reserved_time_hours * HOUR_MS
    return RetentionRules(reserved_ms, frozenset(), any_hour=True)


class LogFile(NamedTuple):
    """A file of the commit log: its first byte, and the time (ms) from which on it may be deleted.

    None for a file that is never deleted under these rules: the last one, the one that is being
    written, and each after such a file.
    """

    first: int
    due_timestamp: int | None


def log_files(
    root: Path, config: StoreConfig, rules: RetentionRules, log_end: int, now_ms: int
) -> list[LogFile]:
    """The files of a store's log, oldest first. ``log_end`` is the offset of the next record.

    OSError if the folder cannot be read.
    """
    folder = root / COMMITLOG
    size = config.mapped_file_size_commit_log
    found = sorted(
        first
        for path in (folder.iterdir() if folder.is_dir() else ())
        if (first := parse_file_name(path.name)) is not None and not first % size
    )
    files: list[LogFile] = []
    due: int | None = 0
    for first in found[:-1]:
        try:
            modified_ms = (folder / file_name(first)).stat().st_mtime_ns // 1_000_000
        except FileNotFoundError:  # deleted meanwhile
            continue
        # Deletion stops at the first file that may stay, so none is deleted before an older one.
        own = rules.due(modified_ms, now_ms) if first + size <= log_end else None
        due = None if due is None or own is None else max(due, own)
        files.append(LogFile(first, due))
    return [*files, *(LogFile(first, None) for first in found[-1:])]


def due_now(files: Sequence[LogFile], now_ms: int) -> list[LogFile]:
    """The files that may be deleted at this moment, oldest first."""
    return [
        file for file in files if file.due_timestamp is not None and file.due_timestamp <= now_ms
    ]


class LogFilesDue:
    """From when on records of some log files may be deleted."""

    def __init__(self, files: Sequence[LogFile]) -> None:
        self._firsts = [file.first for file in files]
        self._due = [file.due_timestamp for file in files]

    def of(self, commitlog_offset: int) -> int | None:
        """The time (ms) from which on the record at an offset may be deleted; None if it stays."""
        number = bisect_right(self._firsts, commitlog_offset) - 1
        return self._due[number] if number >= 0 else None


def safe_from(files: Sequence[LogFile], until_ms: int) -> int:
    """First byte of the log that is still there at ``until_ms``, if all files that may be deleted
    are."""
    for file in files:
        if file.due_timestamp is None or file.due_timestamp > until_ms:
            return file.first
    return 0
