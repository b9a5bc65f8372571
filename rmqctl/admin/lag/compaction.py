"""Joining the small files of kept lag reports."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rmqctl.admin.changes import Change, Outcome, Warn, no_warning
from storage.clock import now_ms as clock_ms

from .compaction_rows import CompactedRow, CompactPlanRow

if TYPE_CHECKING:
    from analytics.history.swapping import Join


class Compaction(Change):
    """A change that joins files of kept reports. The reports themselves stay as they are."""

    def __init__(self, folder: Path, joins: "Sequence[Join]", warn: Warn) -> None:
        self._folder, self._joins, self._warn = folder, joins, warn
        plan = [
            CompactPlanRow(
                one.table,
                one.month,
                len(one.files),
                len(one.periods),
                sum(map(_size, one.files)),
            )
            for one in joins
        ]
        files, after = sum(row.files for row in plan), sum(row.joined_files for row in plan)
        super().__init__(
            CompactPlanRow,
            plan,
            result_type=CompactedRow,
            summary=[f"{files:,} files become {after:,}"] if plan else [],
            question=f"Join {files:,} files of {folder} into {after:,}?",
        )

    def apply(self, note: Mapping[str, Any]) -> Outcome:
        """Join them as the rows are read. ``note`` is not used: a folder of reports has no journal.

        Raises CompactionRunsError, OSError and KeptFileError.
        """
        return Outcome(self._joined())

    def _joined(self) -> Iterator[CompactedRow]:
        from analytics.history.compaction import compacting, join

        with compacting(str(self._folder)) as old:
            for row, one in zip(self.plan, self._joins, strict=True):
                done = join(one, self._warn, old)
                whole = done.files == row.files
                self.has_part_rows |= 0 < done.files < row.files
                yield CompactedRow(
                    **row._asdict(), joined_bytes=done.size, rows=done.rows, applied=whole
                )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # a run has replaced it meanwhile
        return 0


def compact(
    folder: Path,
    *,
    by_day: bool = False,
    now_ms: int | None = None,
    warn: Warn = no_warning,
) -> Compaction:
    """Join the files of kept reports: those of a table and month, or day, of the past (in UTC).

    ``warn`` is called with a sentence for each file that cannot be read. Raises KeptError for a
    folder without kept reports, NoArrowError and OSError. Rows are CompactPlanRow, then
    CompactedRow.
    """
    from analytics.errors import KeptError
    from analytics.history.compaction import plan
    from analytics.history.tables import arrow

    arrow()
    if not (folder / "stores").is_dir():
        raise KeptError(str(folder))
    now = clock_ms() if now_ms is None else now_ms
    return Compaction(folder, plan(str(folder), now, by_day=by_day), warn)
