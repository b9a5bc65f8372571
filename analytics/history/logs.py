"""Brokers that have one name, kept apart by the marks of their logs.

A store that no list names has the name of its folder, so machines that are set up alike keep their
reports by one name. A run counts as an earlier one of a later run only if both may be of one log:
logs that begin with the same records and have others at a later place are two.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from analytics.report.copies import place_of
from storage.counted import counted

from .tables import Kept

if TYPE_CHECKING:
    from analytics.report.amounts import Row

DAY_MS: Final = 86_400_000
LOG: Final = ("path", "log_min_offset", "log_max_offset", "marks")
"""The columns of ``stores`` that tell logs apart."""
_MOST_A_DAY: Final = 48
"""Runs of one name and day whose logs are looked at, the last ones: each may be a file."""


class Places:
    """Marks of a log by their places; several at one place, where a run has several stores."""

    def __init__(self, marks: Iterable[str]) -> None:
        self._marks: set[str] = set()
        self._at: dict[int, set[str]] = defaultdict(set)
        self.add(marks)

    def add(self, marks: Iterable[str]) -> None:
        """Add the marks of another run of the log."""
        for mark in marks:
            self._marks.add(mark)
            self._at[place_of(mark)].add(mark)

    def fit(self, others: Places) -> bool:
        """Whether others may be of the same log: no place has other marks in both."""
        common = self._at.keys() & others._at.keys() - {-1}
        return not any(self._at[place].isdisjoint(others._at[place]) for place in common)

    def prove(self, others: Places) -> bool:
        """Whether others are of the same log: some are the same, and none contradicts."""
        return not self._marks.isdisjoint(others._marks) and self.fit(others)


@dataclass
class _Log:
    """What is known of a log, from its newest run back to older ones."""

    newest: list[Kept]
    places: Places
    """The marks of all its runs."""
    first: _State | None
    """The earliest run that has marks; the newest one if none has; None if it is unreadable."""


@dataclass(frozen=True)
class _State:
    """A log at the moment (ms) of a run."""

    as_of: int
    end: int
    marks: frozenset[str]


def looked_at(runs: Iterable[Kept]) -> Iterator[Kept]:
    """The runs of one broker whose logs are looked at: the last ones of each day."""
    of_days: dict[int, list[Kept]] = defaultdict(list)
    for kept in runs:
        of_days[kept.as_of // DAY_MS].append(kept)
    for of_day in of_days.values():
        moments = sorted({kept.as_of for kept in of_day})[-_MOST_A_DAY:]
        yield from (kept for kept in of_day if kept.as_of >= moments[0])


def newest_of_logs(runs: Collection[Kept], stores: Mapping[Kept, Row]) -> list[list[Kept]]:
    """The newest run of each log among the runs of one broker, as its stores.

    ``stores`` are the rows of the runs that can be read, with the columns ``LOG``. Of runs of one
    moment in several folders the first counts.
    """
    by_run: dict[tuple[int, str], list[Kept]] = defaultdict(list)
    for kept in runs:
        by_run[kept.as_of, kept.folder].append(kept)
    logs: list[_Log] = []
    for (as_of, _), run in sorted(by_run.items(), key=lambda one: -one[0][0]):
        state = _state(as_of, [stores[kept] for kept in run if kept in stores])
        known = _log_of(logs, state)
        if known is None:
            marks = () if state is None else state.marks
            logs.append(_Log(sorted(run), Places(marks), state))
        elif state is not None and state.marks:
            known.places.add(state.marks)
            known.first = state
    return [log.newest for log in logs]


def same_names(found: Iterable[Kept]) -> list[str]:
    """A sentence for each name that several logs have, of the runs that are counted."""
    runs: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for kept in found:
        runs[kept.broker].add((kept.folder, kept.as_of))
    return [
        f"{broker}: {counted(len(of_broker), 'broker')} with different logs have this name, and "
        "each is counted; give each one a name, with a YAML file for --store where its report is "
        "kept"
        for broker, of_broker in sorted(runs.items())
        if len(of_broker) > 1
    ]


def _state(as_of: int, rows: Collection[Row]) -> _State | None:
    """The log of a run; None if it cannot be read."""
    if not rows:
        return None
    marks = frozenset(mark for row in rows for mark in row["marks"] or ())
    return _State(as_of, max(row["log_max_offset"] for row in rows), marks)


def _log_of(logs: Collection[_Log], state: _State | None) -> _Log | None:
    """The log that a run is an earlier one of; None if it is of another log."""
    places = Places(() if state is None else state.marks)
    for log in logs:
        if log.places.prove(places):
            return log
    for log in logs:
        if state is None or log.first is None:
            return log
        if log.places.fit(places) and _may_become(state, log.first):
            return log
    return None


def _may_become(earlier: _State, later: _State) -> bool:
    """Whether a log may be another one at a later moment, though they share no mark: its files may
    have been deleted meanwhile, and a log without messages has no marks."""
    if later.end < earlier.end:
        return False
    before, after = _times(earlier.marks), _times(later.marks)
    if not before.keys().isdisjoint(after):
        return False  # other records at one place
    return not any(
        place > earlier.end and time is not None and time < earlier.as_of
        for place, time in after.items()  # it was longer by then than the earlier one
    )


def _times(marks: Iterable[str]) -> dict[int, int | None]:
    """The store times of records by their log offsets, of ``analytics.report.copies.mark_of``."""
    found = {}
    for mark in marks:
        place, *rest = mark.split(" ")
        time = rest[-2] if len(rest) > 2 else ""
        if place.isdecimal():
            found[int(place)] = int(time) if time.isdecimal() else None
    return found
