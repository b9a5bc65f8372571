"""Checking the key index: each file in itself, and its entries against the records of the log.

What is wrong with a file is one finding: the cause, then what follows. Keys that are missing where
a damaged file had them are part of it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from storage.config import StoreConfig
from storage.format.names import INDEX, file_name, is_index_file_name
from storage.format.sys_flag import MessageSysFlag

from .findings import Checked, Code, Finding, Severity
from .index_file import IndexFile, Problem
from .records import Longs, RecordBlock, TopicNames
from .told import Told

Emit = Callable[[Finding], None]

_REBUILD: Final = "rmqctl store rebuild index"
_HASH_BITS: Final = 31
_MOST_MISSING: Final = 1 << 22
"""Missing keys that are kept, with 8 bytes each; more are only counted."""
_ORDER: Final = (
    Code.INDEX_FILE_LENGTH,
    Code.INDEX_HEADER_WRONG,
    Code.INDEX_ENTRY_WRONG,
    Code.INDEX_CHAIN_BROKEN,
    Code.INDEX_TIME_WRONG,
)
"""Causes before what follows from them."""


class IndexCheck:
    """Checks all index files, then blocks of records against them.

    ``live``: somebody is writing, so the newest file may be ahead of itself for a moment. What only
    holds if nobody begins to write meanwhile goes to ``emit_if_quiet``. Records from the log offset
    ``keys_from`` on may be without keys: these are still to be put, and readers find them.
    """

    def __init__(
        self,
        root: Path,
        config: StoreConfig,
        topics: TopicNames,
        emit: Emit,
        checked: Checked,
        *,
        log_min: int,
        log_end: int,
        keys_from: int,
        live: bool,
        emit_if_quiet: Emit,
        wanted: frozenset[str] | None,
        told: Told,
    ) -> None:
        self._root = root
        self._config = config
        self._topics = topics
        self._emit = emit
        self._checked = checked
        self._log_min = log_min
        self._log_end = log_end
        self._keys_from = keys_from
        self._live = live
        self._emit_if_quiet = emit_if_quiet
        self._wanted = wanted
        self._told = told
        self._files: list[IndexFile] = []
        self._missing: list[Longs] = []  # offsets of records, once for each key
        self._missing_keys = 0
        self.behind: list[Finding] = []
        """Findings of keys behind the log's end, which mean nothing while somebody is writing."""

    # -- each file in itself ------------------------------------------------------------------

    def load(self) -> None:
        """Map the files and check what each says about itself."""
        folder = self._root / INDEX
        paths = sorted(folder.iterdir()) if folder.is_dir() else []
        usual = self._config.index_file_size
        usable = [path for path in paths if is_index_file_name(path.name) and path.is_file()]
        for path in usable:
            self._checked.files += 1
            length = path.stat().st_size
            what = f"the file has {length} bytes, those of this store {usual}"
            effect = "it is not searched" if length < usual else "none"
            problem = Problem(Code.INDEX_FILE_LENGTH, None, what, effect)
            if not length:
                self._report(path.name, [problem], self._emit)
                continue
            file = IndexFile(path, self._config, live=self._live and path == usable[-1])
            if length != usual:
                file.problems.append(problem)
            self._checked.index_entries += file.count - 1
            behind = file.check(self._log_min, self._log_end)
            if self._files:
                _check_sequence(self._files[-1], file)
            self._files.append(file)
            if behind and not self._live:
                what = f"{behind} keys are of records behind the log's end"
                problem = Problem(
                    Code.INDEX_BEHIND_END, None, what, "queries by key find nothing there"
                )
                self._report(path.name, [problem], self.behind.append)

    # -- against the log ----------------------------------------------------------------------

    def compare(self, block: RecordBlock) -> None:
        """Look for the keys of a block's records, and for entries that no record has."""
        rolled_back = MessageSysFlag.TRANSACTION_ROLLBACK_TYPE
        # Nobody knows which keys a record had that was replaced, or whose properties are damaged.
        rows = np.flatnonzero((block.sys_flag & rolled_back != rolled_back) & ~block.unsure)
        unsure = block.offset[block.unsure]
        owners, hashes = block.index_keys(rows, self._topics)
        start = int(block.offset[0])
        end = int(block.offset[-1] + block.size[-1])
        # offset and hash in one number, so that sets can be compared
        expected = (block.offset[owners] - start) << _HASH_BITS | hashes
        expected, first = np.unique(expected, return_index=True)
        times = block.store_timestamp[owners[first]] if len(owners) else owners
        found: list[Longs] = []
        for file in self._files:
            numbers, entries = file.between(start, end)
            if len(unsure):
                kept = ~np.isin(entries["offset"], unsure)
                numbers, entries = numbers[kept], entries[kept]
            if len(numbers):
                keys = (entries["offset"].astype(np.int64) - start) << _HASH_BITS
                keys |= entries["key_hash"].astype(np.int64) & 0x7FFFFFFF
                found.append(keys)
                self._compare_entries(file, numbers, entries, keys, expected, times)
        present = np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)
        missing = np.setdiff1d(expected, present, assume_unique=True)
        missing = missing[missing >> _HASH_BITS < self._keys_from - start]
        if self._wanted is not None and len(missing):
            missing = missing[self._are_wanted(block, missing, start)]
        if len(missing):
            if self._missing_keys < _MOST_MISSING:
                self._missing.append((missing >> _HASH_BITS) + start)
            self._missing_keys += len(missing)

    def _compare_entries(
        self,
        file: IndexFile,
        numbers: Longs,
        entries: NDArray[Any],
        keys: Longs,
        expected: Longs,
        times: Longs,
    ) -> None:
        at = np.searchsorted(expected, keys)
        at = np.minimum(at, max(0, len(expected) - 1))
        known = expected[at] == keys if len(expected) else np.zeros(len(keys), bool)
        known &= entries["key_hash"] >= 0
        if not known.all():
            file.note_wrong(numbers[~known], entries["offset"][~known].astype(np.int64))
        if self._told.odd_times:
            known &= ~np.isin(entries["offset"], list(self._told.odd_times))
        if not known.any():
            return
        self._compare_times(file, numbers[known], times[at[known]])
        begin = file.header.begin_timestamp
        seconds = np.clip((times[at[known]] - begin) // 1000, 0, 0x7FFFFFFF)
        first_key = numbers[known] == 1
        seconds = np.where(first_key, self._first_seconds(file, times[at[known]]), seconds)
        late = (entries["seconds"][known] != seconds) & (seconds >= 0)
        if begin > 0 and late.any():
            file.late += numbers[known][late][:1].tolist() + [0] * (int(late.sum()) - 1)

    def _first_seconds(self, file: IndexFile, times: Longs) -> Longs:
        """What a file's first key says: seconds since the file before ended; -1 = unknown."""
        number = self._files.index(file)
        if number:
            before = self._files[number - 1]
            if before.problems:
                return np.full(len(times), -1)
            return np.clip((times - before.header.end_timestamp) // 1000, 0, 0x7FFFFFFF)
        return np.full(len(times), 0 if self._log_min == 0 else -1)

    def _compare_times(self, file: IndexFile, numbers: Longs, times: Longs) -> None:
        """The header repeats the store times of the first and the last key's records."""
        header = file.header
        for number, time, what in (
            (1, header.begin_timestamp, "begins"),
            (file.count - 1, header.end_timestamp, "ends"),
        ):
            at = np.flatnonzero(numbers == number)
            if len(at) and int(times[at[0]]) != time and not self._live:
                file.header_wrong(f"it {what} at {time}, its key is of {times[at[0]]}")

    # -- what was found -----------------------------------------------------------------------

    def finish(self) -> None:
        """Report what was collected over all blocks."""
        missing = np.concatenate(self._missing) if self._missing else np.zeros(0, np.int64)
        missing = missing[~self._told.has(missing)]
        for number, file in enumerate(self._files):
            self._add_problems(file)
            if file.problems:
                begin, end = self._range(number)
                missing = missing[(missing < begin) | (missing > end)]
        for number, file in enumerate(self._files):
            if file.late and not (file.late == [1] and self._begins_anew(number, missing)):
                what = f"{len(file.late)} keys have a wrong time"
                place = file.position(min(filter(None, file.late)))
                effect = "queries by key and time go astray"
                file.problems.append(Problem(Code.INDEX_TIME_WRONG, place, what, effect))
            newest = file is self._files[-1]
            if file.problems:
                emit = self._emit_if_quiet if newest else self._emit
                self._report(file.name, file.problems, emit)
        if len(missing):
            self._report_missing(np.sort(missing))

    def _add_problems(self, file: IndexFile) -> None:
        wrong = [
            numbers[~self._told.has(offsets)]
            for numbers, offsets in file.wrong
            if not self._told.has(offsets).all()
        ]
        if wrong:
            count, first = sum(map(len, wrong)), min(int(part.min()) for part in wrong)
            what = f"{count} keys belong to no record"
            place = file.position(first)
            effect = "queries by key go astray"
            file.problems.append(Problem(Code.INDEX_ENTRY_WRONG, place, what, effect))

    def _range(self, number: int) -> tuple[int, int]:
        """First and last log offset whose keys a file should have, by its neighbours if need be."""
        file = self._files[number]
        if file.header_sound:
            return file.header.begin_phy_offset, file.header.end_phy_offset
        begin, end = self._log_min, self._log_end
        if number and self._files[number - 1].header_sound:
            begin = self._files[number - 1].header.end_phy_offset
        if number + 1 < len(self._files) and self._files[number + 1].header_sound:
            end = self._files[number + 1].header.begin_phy_offset
        return begin, end

    def _begins_anew(self, number: int, missing: Longs) -> bool:
        """Whether the file before this one is missing: then nobody knows its first key's time."""
        if not number:
            return False
        begin, end = self._files[number - 1].header[3], self._files[number].header[2]
        return bool(((missing >= begin) & (missing <= end)).any())

    def _report_missing(self, missing: Longs) -> None:
        file_size = self._config.mapped_file_size_commit_log
        start, end = int(missing[0]), int(missing[-1])
        position = start % file_size
        kept = sum(map(len, self._missing))
        count = len(missing) + self._missing_keys - kept
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

    def _are_wanted(self, block: RecordBlock, keys: Longs, start: int) -> NDArray[np.bool_]:
        rows = np.searchsorted(block.offset, (keys >> _HASH_BITS) + start)
        names = self._topics.names
        wanted = self._wanted or frozenset()
        return np.array([names[number] in wanted for number in block.topic[rows].tolist()], bool)

    def _report(self, name: str, problems: list[Problem], emit: Emit) -> None:
        """One finding of all that is wrong with a file."""
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
    """A file begins where the one before it ends, or later: queries stop where one is too old."""
    if before.problems or not file.header_sound or before.count < 2 or file.count < 2:
        return
    begin, end = file.header.begin_phy_offset, before.header.end_phy_offset
    if begin < end:
        file.header_wrong(f"it begins at log offset {begin}, the file before it ends at {end}")
