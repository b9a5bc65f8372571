"""Copies of one log: a slave beside its master, a snapshot beside its store.

Folders and names say nothing about that. Records do: they carry a broker's address, an id and a
time. A log is a copy of a longer one if its last record is in that one, at its place. First records
of log files say which pairs of logs are compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Protocol, TypeVar

from storage.format.sys_flag import REPLACED_FLAG

if TYPE_CHECKING:
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

    from .stores import StoreRef

_LAST_FILES: Final = 64
"""Files whose first records are looked at, the last ones of a log."""
_SPREAD_FILES: Final = 32
"""And so many at most that lie all over a longer log."""
_FAR_LONGER: Final = 8
"""A log that is so many times as long as one within it may have no marked place of it: of each
power of two with more than _SPREAD_FILES multiples only the outermost ones are marked."""
_MOST_LOOKS: Final = 64
"""Longer logs in which the last record of a log is looked up, the next longer ones."""
NO_RECORD: Final = " -"
"""How the mark of a place ends where no record begins."""


class LooksUp(Protocol):
    """What reads records by their log offsets: a store's view, or its log alone."""

    def look_message_by_offset(self, commitlog_offset: int) -> MessageExt | None:
        """The record that begins there, None if none does."""


class OneLog(Protocol):
    """What tells copies of one log."""

    @property
    def ref(self) -> StoreRef:
        """The store."""

    @property
    def log(self) -> tuple[int, int]:
        """Begin and end of its commit log."""

    @property
    def marks(self) -> frozenset[str]:
        """Marks of the first records of its log files."""


S = TypeVar("S", bound=OneLog)
T_contra = TypeVar("T_contra", bound=OneLog, contravariant=True)


class Looks(Protocol[T_contra]):
    """What looks records of logs up."""

    def last_marks(self, logs: Sequence[T_contra]) -> Sequence[str | None]:
        """The mark of the last record of each log, None where it is not known."""

    def marks_at(
        self, asked: Sequence[tuple[T_contra, Sequence[int]]]
    ) -> Sequence[Sequence[str | None]]:
        """The marks of records at log offsets of logs, None where no record begins."""


def marked_places(begin: int, end: int, size: int) -> list[int]:
    """The begins of files, of a log of files of ``size`` bytes, whose first records are marked.

    They are few, and where two logs overlap, a file of both is marked in both, unless one is far
    longer and has the other one within it. For this the outermost multiples of each power of two
    are marked: a range of files has one multiple of the greatest power of which it has any.
    """
    places = set(range(begin, end, size)[-_LAST_FILES:])
    step = size
    while multiples := range(begin + -begin % step, end, step):
        if len(multiples) <= _SPREAD_FILES:
            places.update(multiples)
            break
        places.update((multiples[0], multiples[-1]))
        step *= 2
    return sorted(places)


def log_marks(view: StoreView, begin: int, end: int) -> Iterator[str]:
    """The marks of first records of log files between two log offsets."""
    for start in marked_places(begin, end, view.config.mapped_file_size_commit_log):
        mark = lasting_mark_at(view, start)
        if mark is not None:
            yield mark


def mark_at(view: LooksUp, place: int) -> str | None:
    """The mark of the record that begins at a log offset; None if none does."""
    found = view.look_message_by_offset(place)
    return None if found is None else mark_of(found, place)


def lasting_mark_at(view: LooksUp, place: int) -> str | None:
    """The same, but None for a record that a repair has put there: a copy has another one."""
    found = view.look_message_by_offset(place)
    if found is None or found.sys_flag & REPLACED_FLAG:
        return None
    return mark_of(found, place)


def mark_of(found: MessageExt, place: int) -> str:
    """The mark of a record at a log offset."""
    who = f"{found.offset_msg_id} {found.msg_id}"
    return f"{place} {who} {found.store_timestamp} {found.body_crc}"


def place_of(mark: str) -> int:
    """The log offset of a mark; -1 for a text of another form."""
    text = mark.partition(" ")[0]
    return int(text) if text.isdecimal() else -1


class SortedOut(NamedTuple):
    """What logs are to each other."""

    kept: list[int]
    """The numbers of the logs that are no copies of others."""
    left_out: list[str]
    """A sentence for each of the others."""
    parted: list[str]
    """A sentence for each kept log that begins like another kept one, and goes on otherwise."""
    differences: dict[int, set[str]]
    """Marks that tell these logs from each other, for readers that cannot look records up."""


def without_copies(logs: Sequence[S], looks: Looks[S] | None = None) -> tuple[list[S], list[str]]:
    """Leave out stores whose log is the beginning of another store's log: slaves, and copies.

    Gives sentences about them, and about logs that have parted. Without ``looks`` the marks alone
    decide: logs that share one and contradict each other at no place count as copies.
    """
    found = sort_out(logs, looks)
    return [logs[number] for number in found.kept], [*found.left_out, *found.parted]


def sort_out(logs: Sequence[S], looks: Looks[S] | None) -> SortedOut:
    """Find the copies among logs. The longest log of copies is kept, the first of equal ones."""
    order = sorted(range(len(logs)), key=lambda number: -logs[number].log[1])
    pairs = _Pairs([logs[number] for number in order])
    if looks is not None:
        pairs.look(looks)
    owners: list[int] = []
    found = SortedOut([], [], [], defaultdict(set))
    for rank, number in enumerate(order):
        log = logs[number]
        owners.append(min((owners[longer] for longer in pairs.copied[rank]), default=rank))
        if owners[rank] != rank:
            master = logs[order[owners[rank]]]
            found.left_out.append(
                f"{log.ref.broker}: left out, it is a copy of {master.ref.broker}, "
                f"which goes {master.log[1] - log.log[1]} bytes further"
            )
            continue
        found.kept.append(number)
        for longer in pairs.parted[rank][:1]:
            found.parted.append(
                f"{log.ref.broker}: its log begins with the same records as that of "
                f"{logs[order[owners[longer]]].ref.broker}, but its last record is not there: the "
                "two logs have parted, and both count"
            )
    for rank, mark in pairs.differences:
        found.differences[order[rank]].add(mark)
    found.kept.sort()
    return found


class _Pairs(Generic[S]):
    """Logs, the longest one first, and for each of them the longer ones (by their numbers, the
    next longer one first) that it is a copy of, and those that it has parted from."""

    def __init__(self, logs: Sequence[S]) -> None:
        self._logs = logs
        self._known = [_by_place(log.marks) for log in logs]
        self.copied: list[list[int]] = [[] for _ in logs]
        self.parted: list[list[int]] = [[] for _ in logs]
        self.differences: list[tuple[int, str]] = []
        """Of pairs that have parted as a look has shown: their marks of one place."""
        having: dict[str, list[int]] = defaultdict(list)
        for number, log in enumerate(logs):
            marks = [mark for mark in log.marks if not mark.endswith(NO_RECORD)]
            for longer in sorted({one for mark in marks for one in having[mark]}, reverse=True):
                if _contradict(self._known[number], self._known[longer]):
                    self.parted[number].append(longer)
                else:
                    self.copied[number].append(longer)
                    if len(self.copied[number]) == _MOST_LOOKS:
                        break
            for mark in marks:
                having[mark].append(number)

    def look(self, looks: Looks[S]) -> None:
        """Look up whether the last records of logs are in the longer ones that may have them."""
        long = [number for number, known in enumerate(self._known) if len(known) > _LAST_FILES]
        wanted: dict[int, list[int]] = {}
        for number, known in enumerate(self._known):
            around = [one for one in reversed(long) if one < number and self._is_far(number, one)]
            if known and (self.copied[number] or around):
                wanted[number] = self.copied[number] + around[:_MOST_LOOKS]
        places: dict[int, int] = {}
        asked: dict[int, set[int]] = defaultdict(set)
        lasts = looks.last_marks([self._logs[number] for number in wanted])
        for (number, longer), mark in zip(wanted.items(), lasts, strict=True):
            known = self._known[number]
            place = places[number] = max(known) if mark is None else place_of(mark)
            if mark is not None:
                known[place] = mark
            for one in longer:
                if place not in self._known[one]:
                    asked[one].add(place)
        items = [(number, sorted(some)) for number, some in asked.items()]
        answers = looks.marks_at([(self._logs[number], some) for number, some in items])
        for (number, some), marks in zip(items, answers, strict=True):
            for place, mark in zip(some, marks, strict=True):
                self._known[number][place] = mark or f"{place}{NO_RECORD}"
        for number, longer in wanted.items():
            begins_alike = set(self.copied[number])
            self.copied[number] = []
            mark = self._known[number][places[number]]
            for one in longer:
                other = self._known[one][places[number]]
                if other == mark:
                    self.copied[number].append(one)
                elif one in begins_alike:
                    self.parted[number].append(one)
                    self.differences += [(number, mark), (one, other)]

    def _is_far(self, number: int, longer: int) -> bool:
        """Whether a log may be within a far longer one though no file is marked in both."""
        (begin, end), (first, last) = self._logs[number].log, self._logs[longer].log
        return (
            first <= begin < end <= last
            and last - first > _FAR_LONGER * (end - begin)
            and self._known[number].keys().isdisjoint(self._known[longer])
        )


def _by_place(marks: Iterable[str]) -> dict[int, str]:
    return {place: mark for mark in marks if (place := place_of(mark)) >= 0}


def _contradict(one: Mapping[int, str], other: Mapping[int, str]) -> bool:
    """Whether marks name different records at one place."""
    return any(other.get(place, mark) != mark for place, mark in one.items())
