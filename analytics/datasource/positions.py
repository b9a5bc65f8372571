"""The position of a stream: how far it has read each log, and by which records it knows the log.

In a checkpoint a position is JSON: for each store an ``offset`` of its log, before which everything
has been given, and ``marks`` of records before it (``analytics.report.copies``). A store is found
again by its marks, whatever its folder is called by then. The key of a store in the JSON is only
the name under which the stream saw it first. Older checkpoints have the offset alone; these stores
are found by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from analytics.lag.log_offsets import first_at
from analytics.report.copies import mark_at
from analytics.report.stores import StoreRef, short_name
from storage.format.sys_flag import REPLACED_FLAG
from storage.readonly import StoreView

from .errors import OptionError


class Position(NamedTuple):
    """How far a log has been read."""

    offset: int
    marks: tuple[str, ...] = ()
    since: int | None = None
    """Where the last batch began, if that was not the end of the batch before: what lay in between
    was gone."""
    floors: Mapping[str, Mapping[str, int]] = {}
    """By topic and queue: the first message that a new stream reads, where it lies after
    ``offset``."""
    until: int = 0
    """From this offset on ``floors`` have no effect."""

    @classmethod
    def of(cls, stored: Any) -> Position:
        """Read it from a checkpoint. Raises OptionError."""
        with suppress(KeyError, TypeError, ValueError):
            if isinstance(stored, Mapping):
                since = stored.get("since")
                marks = tuple(str(mark) for mark in stored["marks"])
                since = None if since is None else int(since)
                more = stored.get("floors", {}), int(stored.get("until", 0))
                return cls(int(stored["offset"]), marks, since, *more)
            return cls(int(stored))
        raise OptionError(f"the checkpoint holds {stored!r}, which is no position of a store")

    def stored(self) -> dict[str, Any]:
        """The form of checkpoints."""
        since = {} if self.since is None else {"since": self.since}
        more = {"floors": self.floors, "until": self.until} if self.floors else {}
        return {"offset": self.offset, "marks": list(self.marks), **since, **more}

    def floor(self, topic: str, queue_id: int) -> int:
        """The first message of a queue that is read after this position."""
        return self.floors.get(topic, {}).get(str(queue_id), 0)

    def moved(self, offset: int, marks: tuple[str, ...], since: int | None = None) -> Position:
        """The position at a later offset."""
        if offset < self.until:
            return Position(offset, marks, since, self.floors, self.until)
        return Position(offset, marks, since)


class Agreement(NamedTuple):
    """What the marks of a position say of a log."""

    same: bool
    """A record of it is where the mark says."""
    other: bool
    """Another record is there."""
    gone: bool = False
    """The last of the records is not there any more, and retention did not delete it."""


_UNKNOWN: Final = Agreement(same=False, other=False)


def look_at_log(ref: StoreRef) -> LogNow:
    """Look at a store. Units are written in the order of the log: those of all records before the
    last one with a unit exist."""
    with StoreView.open(ref.path) as view:
        view.reads_log_at_random()
        begin = end = view.log_min_offset()
        last = None
        for topic, queue_id in view.queues():
            unit = view.unit(topic, queue_id, view.max_offset_in_queue(topic, queue_id) - 1)
            if unit is not None and unit[0] + unit[1] > end:
                last, end = unit[0], unit[0] + unit[1]
        return LogNow(ref, begin, end, max(end, view.log_max_offset()), last)


class LogNow(NamedTuple):
    """A store's log as it is now."""

    ref: StoreRef
    begin: int
    """Of its first file."""
    units_end: int
    """After the last record with a unit: so far messages can be read."""
    log_end: int
    last: int | None
    """The last record with a unit."""

    def marks_before(self, offset: int) -> tuple[str, ...]:
        """Marks by which a stream knows this log again, that has read it up to an offset."""
        with StoreView.open(self.ref.path) as view:
            size = view.config.mapped_file_size_commit_log
            before = max(offset - 1, self.begin)
            places = [self.begin, before - before % size]
            if offset == self.units_end and self.last is not None:
                places.append(self.last)
            found = [_lasting_mark(view, place) for place in dict.fromkeys(places)]
        return tuple(mark for mark in found if mark is not None)

    def agrees(self, position: Position) -> Agreement:
        """Whether it is the log of a position."""
        if not position.marks:
            return _UNKNOWN
        with StoreView.open(self.ref.path) as view:
            found = [_lasting_mark(view, _place(mark)) for mark in position.marks]
            last = _place(position.marks[-1])
            # A unit that names it shows that it is only damaged, or replaced by a repair.
            gone = found[-1] is None and self.begin <= last and not _has_unit(view, last)
        same = [mark == now for mark, now in zip(position.marks, found, strict=True) if now]
        return Agreement(any(same), not all(same), gone)

    def ends_a_record(self, offset: int) -> bool:
        """Whether a stream may have stopped at an offset of this log."""
        if offset in {self.begin, self.units_end, self.log_end}:
            return True
        with StoreView.open(self.ref.path) as view:
            return view.look_message_by_offset(offset) is not None


class Found(NamedTuple):
    """A store's place among the positions of a stream."""

    key: str
    position: Position | None
    """None for a store that is new to the stream."""
    agreement: Agreement


def find_positions(stored: Mapping[str, Any], logs: Sequence[LogNow]) -> list[Found]:
    """Find the position of each store. Raises OptionError where names are all that is known, and
    fit two stores."""
    positions = {key: Position.of(value) for key, value in stored.items()}
    agreements = {
        (number, key): log.agrees(position)
        for number, log in enumerate(logs)
        for key, position in positions.items()
    }
    found: dict[int, str] = {}

    def take(number: int, key: str) -> None:
        if number not in found and key not in found.values():
            found[number] = key

    def by(fits: Any) -> None:
        for number, key in agreements:
            if fits(agreements[number, key], key, logs[number].ref):
                take(number, key)

    by(lambda how, key, ref: how.same and key in {ref.broker, ref.path})
    by(lambda how, key, ref: how.same)
    by(lambda how, key, ref: not how.other and key in {ref.broker, ref.path})
    for key, position in positions.items():
        if key not in found.values():
            _take_by_short_name(key, position, logs, agreements, take, found)
    by(lambda how, key, ref: key in {ref.broker, ref.path})
    result: list[Found] = []
    for number, log in enumerate(logs):
        known = found.get(number)
        if known is None:
            names = (log.ref.broker, log.ref.path)
            more = (f"{log.ref.path}#{n}" for n in range(2, len(positions) + len(logs) + 2))
            used = {*positions, *(one.key for one in result), *found.values()}
            key = next(name for name in (*names, *more) if name not in used)
            result.append(Found(key, None, _UNKNOWN))
        else:
            result.append(Found(known, positions[known], agreements[number, known]))
    return result


def _take_by_short_name(
    key: str,
    position: Position,
    logs: Sequence[LogNow],
    agreements: Mapping[tuple[int, str], Agreement],
    take: Any,
    found: Mapping[int, str],
) -> None:
    """Find the store of a position whose name was short before, because no other store had it."""
    fitting = [
        number
        for number, log in enumerate(logs)
        if number not in found
        and short_name(log.ref.path) == key
        and not agreements[number, key].other
    ]
    if len(fitting) > 1:
        fitting = [one for one in fitting if logs[one].ends_a_record(position.offset)] or fitting
    if len(fitting) > 1:
        paths = " or ".join(logs[one].ref.path for one in fitting)
        raise OptionError(
            f"the checkpoint has a position of {key!r}, which may be that of {paths}; name the "
            f"stores in a YAML file, '{key}: ' and the folder that the stream read"
        )
    for number in fitting:
        take(number, key)


def _has_unit(view: StoreView, place: int) -> bool:
    for topic, queue_id in view.queues():
        low, high = view.queue_bounds(topic, queue_id)
        unit = view.unit(topic, queue_id, first_at(view, topic, queue_id, place, low, high))
        if unit is not None and unit[0] == place:
            return True
    return False


def _place(mark: str) -> int:
    text = mark.partition(" ")[0]
    return int(text) if text.isdigit() else 0


def _lasting_mark(view: StoreView, place: int) -> str | None:
    """The mark of a record, None for one that a repair has put there."""
    found = view.look_message_by_offset(place)
    if found is None or found.sys_flag & REPLACED_FLAG:
        return None
    return mark_at(view, place)
