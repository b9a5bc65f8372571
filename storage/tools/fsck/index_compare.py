"""Comparing blocks of records with the entries of the key index.

Results are collected for one part of the log after the other, maybe by several processes, and
combined in the order of the log (:meth:`IndexComparison.absorb`).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.record_batch.arrays import Longs
from storage.record_batch.queue_numbers import TopicNames
from storage.record_batch.record_batch import RecordBatch

from .index_file import IndexFile
from .reported import Reported
from .unconfirmed import Mask

_HASH_BITS: Final = 31
_HASH_MASK: Final = (1 << _HASH_BITS) - 1
_MOST_MISSING: Final = 1 << 22
"""Missing keys that are kept, with 8 bytes each; more are only counted."""
_MOST_WRONG: Final = 1 << 20
"""Wrong entries of one file that are kept, with 16 bytes each."""


class EntryNotes:
    """Problems of the entries of one file."""

    def __init__(self) -> None:
        self.wrong: list[tuple[Longs, Longs]] = []
        """Numbers and log offsets of entries that belong to no record."""
        self._kept_wrong = 0
        self.late = 0
        """Entries with a wrong time, but for the first of the file."""
        self.first_late: int | None = None
        """The first of them."""
        self.begins_late = False
        """Whether the first entry has another time than the distance from the last file's end."""
        self.header_wrong: list[str] = []
        """Contradictions between the header and the records."""

    def note_wrong(self, numbers: Longs, offsets: Longs) -> None:
        """Note entries that belong to no record."""
        if len(numbers) and self._kept_wrong < _MOST_WRONG:
            self._kept_wrong += len(numbers)
            self.wrong.append((numbers, offsets))

    def note_late(self, count: int, first: int) -> None:
        """Note entries with a wrong time and the number of the first of them."""
        self.late += count
        self.first_late = first if self.first_late is None else min(first, self.first_late)

    def absorb(self, other: EntryNotes) -> None:
        """Add later results."""
        for wrong in other.wrong:
            self.note_wrong(*wrong)
        if other.first_late is not None:
            self.note_late(other.late, other.first_late)
        self.begins_late |= other.begins_late
        self.header_wrong += other.header_wrong


class IndexPart(NamedTuple):
    """Results of a part of the log; ``notes`` has an item for each file."""

    notes: list[EntryNotes]
    missing: list[Longs]
    missing_keys: int


class IndexComparison:
    """Looks up the keys of records among the entries of ``files``, block by block.

    Records from the log offset ``keys_from`` on may be without keys. ``live``: the newest file may
    be ahead of its header.
    """

    def __init__(
        self,
        files: list[IndexFile],
        topics: TopicNames,
        *,
        log_min: int,
        keys_from: int,
        live: bool,
        wanted: frozenset[str] | None,
        reported: Reported,
    ) -> None:
        self._files = files
        self._topics = topics
        self._log_min = log_min
        self._keys_from = keys_from
        self._live = live
        self._wanted = wanted
        self._reported = reported
        self.notes = [EntryNotes() for _ in files]
        self.missing: list[Longs] = []
        """Offsets of records, once for each key that no file has."""
        self.missing_keys = 0
        """How many keys are missing, also where there are too many to keep."""

    def part(self) -> IndexPart:
        """The results, for the comparison of the part before."""
        return IndexPart(self.notes, self.missing, self.missing_keys)

    def absorb(self, part: IndexPart) -> None:
        """Add the results of the part of the log that follows."""
        for own, other in zip(self.notes, part.notes, strict=True):
            own.absorb(other)
        for missing in part.missing:
            self._note_missing(missing)
        self.missing_keys += part.missing_keys - sum(map(len, part.missing))

    def compare(self, block: RecordBatch, unsure: Mask) -> None:
        """Look up the keys of a block's records, and find entries that no record has.

        Those of ``unsure`` records are ignored: their keys are unknown.
        """
        offset = block.offset
        owners, hashes = block.index_keys(unsure)
        start, end = int(offset[0]), block.end
        # offset and hash in one number, so that sets can be compared
        expected = (offset[owners] - start) << _HASH_BITS | hashes
        found = []
        for number, file in enumerate(self._files):
            numbers, entries = file.between(start, end)
            if len(numbers) and unsure.any():
                kept = ~np.isin(entries["offset"], offset[unsure])
                numbers, entries = numbers[kept], entries[kept]
            if len(numbers):
                keys = (entries["offset"].astype(np.int64) - start) << _HASH_BITS
                keys |= entries["key_hash"].astype(np.int64) & _HASH_MASK
                found.append((number, numbers, entries, keys))
        times = block.store_timestamp[owners]
        if len(found) == 1 and np.array_equal(found[0][3], expected):  # one by one, as usual
            self._compare_entries(*found[0][:3], np.ones(len(expected), np.bool_), times)
            return
        expected, first = np.unique(expected, return_index=True)
        times = times[first]
        present = np.zeros(len(expected), np.bool_)
        for number, numbers, entries, keys in found:
            at = _found(expected, keys)
            known = expected[at] == keys if len(expected) else np.zeros(len(keys), np.bool_)
            present[at[known]] = True
            self._compare_entries(
                number, numbers, entries, known, times[at] if len(expected) else keys
            )
        missing = expected[~present]
        missing = missing[missing >> _HASH_BITS < self._keys_from - start]
        if self._wanted is not None and len(missing):
            missing = missing[self._are_wanted(block, missing, start)]
        if len(missing):
            self._note_missing((missing >> _HASH_BITS) + start)

    def _note_missing(self, offsets: Longs) -> None:
        if self.missing_keys < _MOST_MISSING:
            self.missing.append(offsets)
        self.missing_keys += len(offsets)

    def _compare_entries(
        self,
        number: int,
        numbers: Longs,
        entries: NDArray[Any],
        known: NDArray[np.bool_],
        times: Longs,
    ) -> None:
        """Compare fields other than offset and hash; ``times`` are those of the records of the
        ``known`` ones."""
        file, notes = self._files[number], self.notes[number]
        known = known & (entries["key_hash"] >= 0)
        if not known.all():
            notes.note_wrong(numbers[~known], entries["offset"][~known].astype(np.int64))
        if self._reported.odd_times:
            known &= ~np.isin(entries["offset"], list(self._reported.odd_times))
        if not known.all():
            numbers, entries, times = numbers[known], entries[known], times[known]
        if not len(numbers):
            return
        self._compare_times(number, numbers, times)
        begin = file.header.begin_timestamp
        if begin <= 0:
            return
        late = entries["seconds"] != np.clip((times - begin) // 1000, 0, 0x7FFFFFFF)
        is_first = numbers == 1
        if is_first.any():
            row = int(is_first.argmax())
            late[row] = False
            seconds = int(entries["seconds"][row])
            notes.begins_late |= self._begins_late(number, seconds, int(times[row]))
        if late.any():
            notes.note_late(int(late.sum()), int(numbers[late][0]))

    def _begins_late(self, number: int, seconds: int, time: int) -> bool:
        """Whether a file's first key has another time than its distance from the last file's
        end."""
        if not number:
            return self._log_min == 0 and seconds != 0
        before = self._files[number - 1].header.end_timestamp
        return seconds != min(max((time - before) // 1000, 0), 0x7FFFFFFF)

    def _compare_times(self, number: int, numbers: Longs, times: Longs) -> None:
        """The header repeats the store times of the first and the last key's records."""
        file = self._files[number]
        header = file.header
        for entry, time, what in (
            (1, header.begin_timestamp, "begins"),
            (file.count - 1, header.end_timestamp, "ends"),
        ):
            at = np.flatnonzero(numbers == entry)
            if len(at) and int(times[at[0]]) != time and not self._live:
                self.notes[number].header_wrong.append(
                    f"it {what} at {time}, its key is of {times[at[0]]}"
                )

    def _are_wanted(self, block: RecordBatch, keys: Longs, start: int) -> NDArray[np.bool_]:
        rows = np.searchsorted(block.offset, (keys >> _HASH_BITS) + start)
        names = self._topics.names
        wanted = self._wanted or frozenset()
        return np.array([names[number] in wanted for number in block.topic[rows].tolist()], bool)


def _found(expected: Longs, keys: Longs) -> Longs:
    """The index of each key in ``expected``, which ascends, if it is there."""
    at = np.searchsorted(expected, keys)
    return np.minimum(at, max(0, len(expected) - 1))
