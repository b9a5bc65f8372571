"""Planning for the log: its files first, then the bytes in them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

from storage.counted import counted
from storage.files.checksum import Checksum, checksum_of, crc_of
from storage.files.fs import FileSystem
from storage.format.layout import BLANK_SIZE
from storage.format.message import LMQ_PREFIX
from storage.format.names import COMMITLOG, OURS, file_name
from storage.format.record import RecordError, blank_record, read_head
from storage.format.tombstone import LEAST_FILLER, Tombstone, fillers
from storage.tools.quarantine import QUARANTINE, read_manifest

from .log_bytes import Region, RegionPlanner, dispatched_to, record_time
from .log_files import Contents, contents
from .log_order import fitting_records
from .log_tail import TailPlanner, used_to
from .steps import Action, Step
from .unit_lookup import UnitAt, own_first, units_into

if TYPE_CHECKING:
    from storage.files.read_files import StoreFiles

_FOREIGN: Final = "LOG_FILE_FOREIGN"
_MISSING: Final = "LOG_FILE_MISSING"
_MISPLACED: Final = "RECORD_MISPLACED"
_LENGTH: Final = "LOG_FILE_LENGTH"
_AHEAD: Final = "LOG_FILE_AHEAD"
_REPEATED: Final = "RECORD_REPEATED"
_SUSPECT: Final = frozenset((_MISPLACED, _REPEATED))


class LogPlanner:
    """Plans the log of one store. ``found`` are codes by log offset, one list a place.

    ``log_end`` is the log's end according to the check; records at ``prepared`` are marked as half
    messages though they have units; ``closed``: the store was closed cleanly, so units past that
    end prove that there were messages.
    """

    def __init__(
        self,
        root: Path,
        files: StoreFiles,
        found: dict[int, list[str]],
        log_end: int,
        finished_to: int,
        prepared: set[int],
        *,
        closed: bool,
    ) -> None:
        self._root = root
        self._files = files
        self._log = files.log
        self._size = files.log.file_size
        self._found = found
        self._log_end = log_end
        self._finished_to = finished_to
        self._prepared = prepared
        self._closed = closed
        self.queues: set[tuple[str, int]] = set()
        """Queues with units of messages that are gone for good, or with wrong units, which must be
        rebuilt."""
        self._right: dict[int, tuple[str, int]] = {}
        """Records that are right where a unit contradicts them, and the queues that they name."""
        self._unknown: set[int] = set()
        """Whole records that claim another one's place, and have no unit of their own."""

    def steps(self) -> Iterator[Step]:
        """Give all steps, in the order of execution."""
        here = self._log.relist()
        useless = self._useless(here)
        present = [first for first in here if first not in useless]
        damaged = sorted({place - place % self._size for place in self._found})
        walked = {
            first: self._contents(first)
            for first in damaged
            if first in present and first < self._log_end
        }
        for first in damaged:
            if first in present and first >= self._log_end:
                seen = self._contents(first)
                if seen.shift is not None:  # it is past the end because it is misplaced
                    walked[first] = seen
        self.queues |= self._contradicted()
        gone = {first for first, seen in walked.items() if self._is_foreign(first, seen)}
        moves = {
            first: first + seen.shift
            for first, seen in walked.items()
            if seen.shift is not None and first not in gone
        }
        for first, (why, what) in reversed(useless.items()):  # a death leaves no gap at the end
            as_it_is = crc_of(Path(self._log.path(first)))
            yield self._away(first, why, what)._replace(old_crc=as_it_is)
        yield from self._lengths(present)
        for first in sorted(gone, reverse=True):
            yield self._away(first, _FOREIGN, "it is of another log")
        right = set(present) - gone - set(moves)
        yield from self._moves(moves, right)
        kept = right | set(moves.values())
        yield from self._missing(kept)
        yield from self._regions({first: walked[first] for first in walked.keys() & right})
        yield from self._left_alone(right)
        tail = TailPlanner(
            self._files,
            self._found,
            self._log_end,
            self._finished_to,
            kept,
            right,
            closed=self._closed,
            make=self._make_last,
            away=self._away,
        )
        yield from tail.steps()
        self.queues |= tail.queues

    # -- whole files --------------------------------------------------------------------------

    def _useless(self, here: list[int]) -> dict[int, tuple[str, str]]:
        """Files that hold nothing and are in the way, with the code and the reason of each.

        A file made ahead is harmless if it is whole and nothing is missing before it.
        """
        found: dict[int, tuple[str, str]] = {}
        for first in here:
            length = Path(self._log.path(first)).stat().st_size
            before = first - self._size
            follows = (before in here and before not in found) or first == min(here)
            if not length:
                found[first] = (_LENGTH, "it has no bytes")
            elif first < self._log_end or (length == self._size and follows):
                continue
            elif used_to(self._log.path(first), 0) == 0:
                found[first] = (_AHEAD, "it lies past the log's end and holds nothing")
        return found

    def _contents(self, first: int) -> Contents:
        why = {
            place: codes[0]
            for place, codes in self._found.items()
            if first <= place < first + self._size
        }
        suspects = {place for place in why if not _SUSPECT.isdisjoint(self._found[place])}
        last = self._log_end < first + self._size
        end = first + self._size
        if first < self._log_end:
            end = min(end, self._log_end)
        right = fitting_records(self._files, first, end, suspects)
        self._right |= right
        unknown = self._without_units(first, suspects)
        self._unknown |= unknown
        suspects -= (right.keys() - self._prepared) | unknown
        return contents(self._log, first, end, why, suspects, last=last)

    def _without_units(self, first: int, suspects: set[int]) -> set[int]:
        """Second records of a place that no unit points at."""
        repeated = {place for place in suspects if _REPEATED in self._found[place]}
        if not repeated:
            return repeated
        units = units_into(self._files, [(first, first + self._size)])
        return repeated - {unit.offset for unit in units}

    def _left_alone(self, right: set[int]) -> Iterator[Step]:
        """Report whole records whose place is unknown."""
        for place in sorted(self._unknown):
            position = place % self._size
            if place - position in right:
                yield Step(
                    Action.NONE,
                    _name(place - position),
                    position,
                    None,
                    _REPEATED,
                    "another record has the place that it claims, and it has no unit: it "
                    "stays as it is, and can be found by its keys",
                )

    def _contradicted(self) -> set[tuple[str, int]]:
        """The queues that lack units of right records, and those that have them."""
        size = self._size
        within = sorted({place - place % size for place in self._right})
        astray = {
            (unit.topic, unit.queue_id)
            for unit in units_into(self._files, [(first, first + size) for first in within])
            if unit.offset in self._right and not unit.topic.startswith(LMQ_PREFIX)
        }
        return astray | set(self._right.values())

    def _is_foreign(self, first: int, seen: Contents) -> bool:
        return seen.shift is None and _FOREIGN in self._codes(first)

    def _codes(self, first: int) -> set[str]:
        return {
            code
            for place, codes in self._found.items()
            if first <= place < first + self._size
            for code in codes
        }

    def _lengths(self, present: list[int]) -> Iterator[Step]:
        for first in present:
            length = Path(self._log.path(first)).stat().st_size
            if length == self._size:
                continue
            path = _name(first)
            if length > self._size:
                what = f"cut to {self._size} bytes, the length of this store's files"
                cost = ""
                at, count = self._size, length - self._size
            else:
                what = f"lengthened by zeros to {self._size} bytes"
                cost = "the content of the missing part is lost"
                at, count = length, self._size - length
            yield Step(Action.SET_LENGTH, path, at, count, _LENGTH, what, cost, None if cost else 0)

    def _away(self, first: int, why: str, what: str) -> Step:
        length = Path(self._log.path(first)).stat().st_size
        return Step(
            Action.QUARANTINE, _name(first), None, length, why, what, old_crc=self._crc(first)
        )

    def _moves(self, moves: dict[int, int], right: set[int]) -> Iterator[Step]:
        """Files whose records name another place: all are moved away, then put there."""
        what = "its records name another place"
        for first in sorted(moves):
            yield self._away(first, _MISPLACED, what)
        for first, target in sorted(moves.items()):
            if target not in right:
                yield self._bring_back(target, _name(first), self._crc(first))

    def _bring_back(self, target: int, source: str, crc: int) -> Step:
        return Step(
            Action.BRING_BACK,
            _name(target),
            None,
            self._size,
            _MISPLACED,
            f"the records of {source} name this place",
            old_crc=crc,
            source=source,
        )

    def _from_quarantine(self, first: int) -> str | None:
        """A file that an earlier run moved away because it lay in a wrong place: this one."""
        for folder in sorted((self._root / OURS / QUARANTINE).glob("*"), reverse=True):
            for piece in read_manifest(folder):
                kept = folder / str(piece["kept"])
                if (piece["why"], piece["kind"]) != (_MISPLACED, "moved") or not kept.exists():
                    continue
                with kept.open("rb") as file:
                    try:
                        head = read_head(file.read(128))
                    except RecordError:
                        continue
                if head.physical_offset == first and kept.stat().st_size == self._size:
                    return str(kept.relative_to(self._root))
        return None

    def _missing(self, kept: set[int]) -> Iterator[Step]:
        """Files that are missing between others."""
        if not kept:
            return
        wanted = set(range(min(kept), max(kept), self._size)) - kept
        for first in sorted(wanted):
            found = self._from_quarantine(first)
            if found is not None:
                yield self._bring_back(first, found, 0)
            else:
                end = first + self._size
                yield self._make(first, units_into(self._files, [(first, end)]), last=False)

    def _make_last(self, first: int, units: list[UnitAt], is_last: bool) -> Step:
        found = self._from_quarantine(first)
        if found is not None:
            return self._bring_back(first, found, 0)
        return self._make(first, units, last=is_last)

    def _make(self, first: int, units: list[UnitAt], *, last: bool) -> Step:
        """A file in place of a lost one. The last record of each queue that ended in it is kept:
        else new messages would get the offsets of lost ones, and count as consumed."""
        time = self._time_near(first)
        records: list[Tombstone] = []
        placed: set[UnitAt] = set()
        at = first
        for (offset, size), group in groupby(units, lambda unit: unit[:2]):
            wanted, here = _tombstone(own_first(group), time)
            gap = offset - at
            is_needed = any(unit.is_last for unit in here)
            if not is_needed or gap < 0 or 0 < gap < LEAST_FILLER or not wanted.fits():
                continue
            records += [*fillers(at, offset, time), wanted]
            placed.update(here)
            at = offset + size
        self.queues |= {unit[2:4] for unit in units if unit not in placed}
        left = first + self._size - at
        what = "a file of one blank record, which every reader passes"
        if records:
            kept = sum(unit.is_last for unit in placed)
            what = f"a file of records of zeros that keep the ends of {counted(kept, 'queue')}"
        lost = len({unit[:2] for unit in units})
        where = "it" if not units or units[0].offset >= first else "it and in those before it"
        return Step(
            Action.MAKE_FILE,
            _name(first),
            None,
            self._size,
            _MISSING,
            what,
            f"{counted(lost, 'message')} of {where} lost",
            lost,
            records=tuple(records),
            data=b"" if last or left < BLANK_SIZE else blank_record(left),
        )

    def _time_near(self, first: int) -> int:
        """Store time of the record that follows a place, or of the last one in the file before."""
        earlier = [place for place in self._log.offsets() if place < first]
        for place in (first + self._size, *earlier[-1:]):
            file = self._log.at(place)
            if file is not None and (time := record_time(file.view, 0)):
                return time
        return 0

    # -- bytes --------------------------------------------------------------------------------

    def _regions(self, walked: dict[int, Contents]) -> Iterator[Step]:
        every = [(r.start, r.end) for seen in walked.values() for r in seen.regions]
        units = units_into(self._files, every)
        for first, seen in walked.items():
            yield from self._of_file(first, seen.regions, units)

    def _of_file(self, first: int, regions: list[Region], units: list[UnitAt]) -> Iterator[Step]:
        file = self._log.at(first)
        assert file is not None
        planner = RegionPlanner(first, self._size, file.view)
        for region in regions:
            inside = [u for u in units if region.start <= u.offset and u.end <= region.end]
            yield from planner.steps(region, inside)
        self.queues |= planner.dropped

    def _crc(self, first: int) -> int:
        """CRC of a file after its length is corrected."""
        path = Path(self._log.path(first))
        found = checksum_of(FileSystem(), path, end=self._size) if path.is_file() else Checksum()
        found.add_zeros(self._size - found.length)
        return found.value


def _tombstone(units: list[UnitAt], time: int) -> tuple[Tombstone, list[UnitAt]]:
    """A record of zeros for the queues that have the same record, and those it has room for."""
    own, *others = units
    wanted = Tombstone(*own[2:5], own.offset, own.size, time)
    if others:
        named = wanted._replace(properties=dispatched_to(others))
        if named.keeps_properties():
            return named, units
        own = next((unit for unit in units if unit.is_last), own)
        wanted = Tombstone(*own[2:5], own.offset, own.size, time)
    return wanted, [own]


def _name(first: int) -> str:
    return f"{COMMITLOG}/{file_name(first)}"
