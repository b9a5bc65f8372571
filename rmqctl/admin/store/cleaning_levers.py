"""What decides which files of the log are deleted, and what each of it would free now."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from rmqctl.admin.folder_walk import BLOCK
from rmqctl.admin.next_deletions import WhyNone, next_clean
from storage.clock import now_ms as clock_ms
from storage.config import parse_hours
from storage.format.names import COMMITLOG, file_name
from storage.parse.durations import format_duration, format_size
from storage.retention import (
    HOUR_MS,
    LogFile,
    RetentionRules,
    deletes_by_force,
    due_now,
    log_files,
    rules_by_hand,
    used_ratio,
)

if TYPE_CHECKING:
    from pathlib import Path

    from storage.readonly import StoreView

_MINUTE_MS: Final = 60_000
_AGES_MS: Final = (
    *(hours * HOUR_MS for hours in (720, 336, 168, 96, 72, 48, 24, 12, 6, 3, 1)),
    *(minutes * _MINUTE_MS for minutes in (30, 10, 5, 1)),
)
_MOST_AGES: Final = 3


class Freed(NamedTuple):
    """Files of the log, and their bytes on the disk."""

    files: int
    bytes: int


class AgeLever(NamedTuple):
    """What ``clean`` frees with another age than fileReservedTime."""

    older_than_ms: int
    freed: Freed


class CleaningLevers(NamedTuple):
    """The settings that decide about deletions, and what is deleted at the moment by each."""

    all: Freed
    """All files of the log. The newest is never deleted."""
    expired: Freed
    """Files older than fileReservedTime; ``clean`` deletes them at any hour."""
    reserved_ms: int
    oldest_age_ms: int | None
    """Since the last write of the oldest file that is not the newest; None without one."""
    ages: tuple[AgeLever, ...]
    """Shorter ages, the longest first, each of which frees more than the one before it."""
    delete_when: str
    """Local hours in which a running broker deletes expired files."""
    next_timestamp: int | None
    """When the next files are deleted in these hours; None if no file ever is."""
    why_none: WhyNone | None
    """Why no file ever is."""
    used_percent: float
    """Of the disk."""
    any_hour_percent: int
    """Above it (diskMaxUsedSpaceRatio) expired files are deleted at any hour."""
    forced_percent: float | None
    """Above it (diskSpaceCleanForciblyRatio) files of any age are deleted; None: never."""
    forced: Freed
    """What is deleted at any age."""

    def sentences(self, now_ms: int) -> Iterator[str]:
        """A sentence for each lever."""
        if self.oldest_age_ms is None:
            yield "the log has only its newest file, which always stays"
            return
        yield (
            f"fileReservedTime is {self.reserved_ms // HOUR_MS} h; the oldest of "
            f"{self.all.files} log files was last written {format_duration(self.oldest_age_ms)} "
            "ago; the newest always stays"
        )
        for lever in self.ages:
            age = _age(lever.older_than_ms)
            yield f"'rmqctl store clean --older-than {age}' would free {_freed(lever.freed)}"
        yield self._of_hours(now_ms)
        used, full = f"{self.used_percent:.0f} %", f"{self.any_hour_percent} %"
        yield (
            f"the disk is {used} full; above {full} (diskMaxUsedSpaceRatio) expired files are "
            f"deleted at any hour, which would free {_freed(self.expired)}"
        )
        if self.forced_percent is not None:
            yield (
                f"above {self.forced_percent:.0f} % (diskSpaceCleanForciblyRatio) files of any "
                f"age are deleted, which would free {_freed(self.forced)}"
            )

    def _of_hours(self, now_ms: int) -> str:
        if not parse_hours(self.delete_when):
            return "deleteWhen names no hour: files are deleted by this command, or on a full disk"
        sentence = (
            f"the clean hour is {self.delete_when} (deleteWhen), which would free "
            f"{_freed(self.expired)} now"
        )
        if self.next_timestamp is None:
            return sentence
        left = format_duration(max(0, self.next_timestamp - now_ms))
        return f"{sentence}; the next deletion is in {left}"


def levers(view: "StoreView", *, now_ms: int | None = None) -> CleaningLevers:
    """What decides which files are deleted, and what each would free now. OSError."""
    now = clock_ms() if now_ms is None else now_ms
    root, config = view.root, view.config
    sizes = _Sizes(root)

    def under(rules: RetentionRules) -> list[LogFile]:
        return log_files(root, config, rules, view.log_max_offset(), now)

    def freed(rules: RetentionRules) -> Freed:
        return sizes.of(due_now(under(rules), now))

    by_hand = rules_by_hand(config)
    files = under(by_hand)
    coming = next_clean(view, now)
    modified = sizes.modified_ms(files[0]) if len(files) > 1 else None
    return CleaningLevers(
        all=sizes.of(files),
        expired=freed(by_hand),
        reserved_ms=by_hand.reserved_ms,
        oldest_age_ms=None if modified is None else max(0, now - modified),
        ages=tuple(_ages(by_hand, freed)),
        delete_when=config.delete_when,
        next_timestamp=coming.at,
        why_none=coming.why_none,
        used_percent=used_ratio(root) * 100,
        any_hour_percent=config.disk_max_used_space_ratio,
        forced_percent=(
            config.disk_space_clean_forcibly_ratio * 100 if deletes_by_force(root, config) else None
        ),
        forced=freed(by_hand._replace(at_once=True)),
    )


class _Sizes:
    """Bytes on the disk and times of log files; a file that was deleted meanwhile has none."""

    def __init__(self, root: "Path") -> None:
        self._folder = root / COMMITLOG

    def of(self, files: Sequence[LogFile]) -> Freed:
        found = [self._status(file) for file in files]
        return Freed(len(files), sum(one.st_blocks * BLOCK for one in found if one is not None))

    def modified_ms(self, file: LogFile) -> int | None:
        status = self._status(file)
        return None if status is None else status.st_mtime_ns // 1_000_000

    def _status(self, file: LogFile) -> os.stat_result | None:
        try:
            return (self._folder / file_name(file.first)).stat()
        except FileNotFoundError:
            return None


def _ages(by_hand: RetentionRules, freed: Callable[[RetentionRules], Freed]) -> Iterator[AgeLever]:
    """The longest ages below fileReservedTime that free something, each more than the last."""
    before, found = freed(by_hand).files, 0
    for age_ms in _AGES_MS:
        if age_ms >= by_hand.reserved_ms or found == _MOST_AGES:
            continue
        would = freed(by_hand._replace(reserved_ms=age_ms))
        if would.files > before:
            before, found = would.files, found + 1
            yield AgeLever(age_ms, would)


def _freed(freed: Freed) -> str:
    if not freed.files:
        return "nothing"
    plural = "" if freed.files == 1 else "s"
    return f"{freed.files} file{plural}, {format_size(freed.bytes)}"


def _age(milliseconds: int) -> str:
    """``24h`` or ``10m``."""
    whole = not milliseconds % HOUR_MS
    return f"{milliseconds // HOUR_MS}h" if whole else f"{milliseconds // _MINUTE_MS}m"
