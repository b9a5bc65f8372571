"""Checking the key index: each file in itself, and its entries against the records of the log.

All problems of a file are one finding: the cause, then its effects. Keys that are missing where a
damaged file had them are part of it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np

from storage.config import StoreConfig
from storage.format.names import INDEX, file_name, is_index_file_name
from storage.record_batch.arrays import Longs

from .findings import Checked, Code, Finding, Severity
from .index_compare import EntryNotes, IndexComparison
from .index_file import IndexFile, Problem
from .reported import Reported

Emit = Callable[[Finding], None]

_REBUILD: Final = "rmqctl store rebuild index"
_ORDER: Final = (
    Code.INDEX_FILE_LENGTH,
    Code.INDEX_HEADER_WRONG,
    Code.INDEX_ENTRY_WRONG,
    Code.INDEX_CHAIN_BROKEN,
    Code.INDEX_TIME_WRONG,
)
"""Causes before their effects."""


class IndexCheck:
    """Checks all index files, each in itself, and reports the comparison with the log.

    ``live``: a process is writing, so the newest file may be ahead of itself for a moment. Findings
    that hold only if no process begins to write meanwhile go to ``emit_if_quiet``.
    """

    def __init__(
        self,
        root: Path,
        config: StoreConfig,
        emit: Emit,
        checked: Checked,
        *,
        log_min: int,
        log_end: int,
        live: bool,
        emit_if_quiet: Emit,
        reported: Reported,
    ) -> None:
        self._root = root
        self._config = config
        self._emit = emit
        self._checked = checked
        self._log_min = log_min
        self._log_end = log_end
        self._live = live
        self._emit_if_quiet = emit_if_quiet
        self._reported = reported
        self.files: list[IndexFile] = []
        """The mapped files, after :meth:`load`."""
        self.past_end: list[Finding] = []
        """Findings of keys past the log's end; ignored while a process is writing."""

    # -- each file in itself ------------------------------------------------------------------

    def load(self) -> None:
        """Map the files and find their ranges of entries."""
        folder = self._root / INDEX
        paths = sorted(folder.iterdir()) if folder.is_dir() else []
        usual = self._config.index_file_size
        usable = [path for path in paths if is_index_file_name(path.name) and path.is_file()]
        for path in usable:
            try:
                length = path.stat().st_size
                live = self._live and path == usable[-1]
                file = IndexFile(path, self._config, live=live) if length else None
            except FileNotFoundError:  # deleted meanwhile
                continue
            self._checked.files += 1
            what = f"the file has {length} bytes, those of this store {usual}"
            effect = "it is not searched" if length < usual else "none"
            problem = Problem(Code.INDEX_FILE_LENGTH, None, what, effect)
            if file is None:
                self._report(path.name, [problem], self._emit)
                continue
            if length != usual:
                file.problems.append(problem)
            self._checked.index_entries += file.count - 1
            file.look_at_order()
            self.files.append(file)

    def check_files(self) -> None:
        """Check each file's header against its content; after :meth:`load`, which is quicker."""
        for number, file in enumerate(self.files):
            past_end = file.check(self._log_min, self._log_end)
            if number:
                _check_sequence(self.files[number - 1], file)
            if past_end and not self._live:
                what = f"{past_end} keys are of records past the log's end"
                problem = Problem(
                    Code.INDEX_BEHIND_END, None, what, "queries by key find nothing there"
                )
                self._report(file.name, [problem], self.past_end.append)

    # -- what was found -----------------------------------------------------------------------

    def finish(self, found: IndexComparison) -> None:
        """Report what was found over all blocks."""
        missing = np.concatenate(found.missing) if found.missing else np.zeros(0, np.int64)
        kept = len(missing)
        missing = missing[~self._reported.has(missing)]
        for file, notes in zip(self.files, found.notes, strict=True):
            for what in notes.header_wrong:
                file.header_wrong(what)
        for number, notes in enumerate(found.notes):
            if notes.begins_late and not (number and self.files[number - 1].problems):
                notes.note_late(1, 1)
        for number, (file, notes) in enumerate(zip(self.files, found.notes, strict=True)):
            self._add_problems(file, notes)
            if file.problems:
                begin, end = self._range(number)
                missing = missing[(missing < begin) | (missing > end)]
        for number, (file, notes) in enumerate(zip(self.files, found.notes, strict=True)):
            first = notes.first_late
            only_first = (notes.late, first) == (1, 1)
            if first is not None and not (only_first and self._begins_anew(number, missing)):
                what = f"{notes.late} keys have a wrong time"
                place = file.position(first)
                effect = "queries by key and time give wrong results"
                file.problems.append(Problem(Code.INDEX_TIME_WRONG, place, what, effect))
            newest = file is self.files[-1]
            if file.problems:
                emit = self._emit_if_quiet if newest else self._emit
                self._report(file.name, file.problems, emit)
        if len(missing):
            self._report_missing(np.sort(missing), found.missing_keys - kept)

    def _add_problems(self, file: IndexFile, notes: EntryNotes) -> None:
        wrong = [
            numbers[~self._reported.has(offsets)]
            for numbers, offsets in [*file.wrong, *notes.wrong]
            if not self._reported.has(offsets).all()
        ]
        if wrong:
            count, first = sum(map(len, wrong)), min(int(part.min()) for part in wrong)
            what = f"{count} keys belong to no record"
            place = file.position(first)
            effect = "queries by key find wrong places"
            file.problems.append(Problem(Code.INDEX_ENTRY_WRONG, place, what, effect))

    def _range(self, number: int) -> tuple[int, int]:
        """First and last log offset whose keys a file should have, by its neighbours if need be."""
        file = self.files[number]
        if file.header_sound:
            return file.header.begin_phy_offset, file.header.end_phy_offset
        begin, end = self._log_min, self._log_end
        if number and self.files[number - 1].header_sound:
            begin = self.files[number - 1].header.end_phy_offset
        if number + 1 < len(self.files) and self.files[number + 1].header_sound:
            end = self.files[number + 1].header.begin_phy_offset
        return begin, end

    def _begins_anew(self, number: int, missing: Longs) -> bool:
        """Whether the file before this one is missing: then its first key's time is unknown."""
        if not number:
            return False
        begin, end = self.files[number - 1].header[3], self.files[number].header[2]
        return bool(((missing >= begin) & (missing <= end)).any())

    def _report_missing(self, missing: Longs, more: int) -> None:
        file_size = self._config.mapped_file_size_commit_log
        start, end = int(missing[0]), int(missing[-1])
        position = start % file_size
        count = len(missing) + more
        self._emit(
            Finding(
                Code.INDEX_KEY_MISSING,
                Severity.WARNING,
                f"commitlog/{file_name(start - position)}",
                position,
                f"{count} keys of records between log offsets {start} and {end} are not in the "
                "index",
                "queries by key do not find these messages",
                _REBUILD,
            )
        )

    def _report(self, name: str, problems: list[Problem], emit: Emit) -> None:
        """Make one finding of all problems of a file."""
        if len(problems) > 1:
            problems.sort(key=lambda problem: _ORDER.index(problem.code))
        cause = problems[0]
        what = "; ".join(dict.fromkeys(problem.what for problem in problems))
        emit(
            Finding(
                cause.code,
                Severity.WARNING,
                f"{INDEX}/{name}",
                cause.position,
                what,
                cause.effect,
                _REBUILD,
            )
        )


def _check_sequence(before: IndexFile, file: IndexFile) -> None:
    """A file begins where the one before it ends, or later: queries stop at one that is too old."""
    if before.problems or not file.header_sound or before.count < 2 or file.count < 2:
        return
    begin, end = file.header.begin_phy_offset, before.header.end_phy_offset
    if begin < end:
        file.header_wrong(f"it begins at log offset {begin}, the file before it ends at {end}")
