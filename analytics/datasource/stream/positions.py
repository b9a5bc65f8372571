"""The position of a stream: how far it has read each log, and by which records it knows the log.

In a checkpoint a position is JSON: for each store an ``offset`` of its log, before which everything
has been given, and ``marks`` of records before it (``analytics.report.copies``). A store is found
again by its marks, whatever its folder is called by then. The key of a store in the JSON is only
the name under which the stream saw it first; ``name`` is a later one. Older checkpoints have the
offset alone; these stores are found by name.

A log without a position that begins like one that the stream has read, such as a slave that lacked
the last records of its master, goes on where its records begin to be others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from analytics.datasource.query.errors import OptionError
from analytics.report.copies import lasting_mark_at, place_of
from analytics.report.stores import short_name
from storage.read.log_offsets import first_at, place_from
from storage.readonly import StoreView

from .parting import parts_at

if TYPE_CHECKING:
    from analytics.datasource.plan.log_now import LogNow
    from analytics.report.stores import StoreRef


class Position(NamedTuple):
    """How far a log has been read."""

    offset: int
    marks: tuple[str, ...] = ()
    since: int | None = None
    """Where the last batch began, if that was not the end of the batch before (what lay in between
    was gone) or, in a new store, not its begin (what lay before was given of another store)."""
    floors: Mapping[str, Mapping[str, int]] = {}
    """By topic and queue: the first message that a new stream reads, where it lies after
    ``offset``."""
    until: int = 0
    """From this offset on ``floors`` have no effect."""
    name: str | None = None
    """The broker name under which its store was seen last, if that is not its key."""

    @classmethod
    def of(cls, stored: Any) -> Position:
        """Read it from a checkpoint. Raises OptionError."""
        with suppress(KeyError, TypeError, ValueError):
            if isinstance(stored, Mapping):
                since = stored.get("since")
                marks = tuple(str(mark) for mark in stored["marks"])
                since = None if since is None else int(since)
                more = stored.get("floors", {}), int(stored.get("until", 0))
                return cls(int(stored["offset"]), marks, since, *more, stored.get("name"))
            return cls(int(stored))
        raise OptionError(f"the checkpoint holds {stored!r}, which is no position of a store")

    def stored(self) -> dict[str, Any]:
        """The form of checkpoints."""
        since = {} if self.since is None else {"since": self.since}
        more = {"floors": self.floors, "until": self.until} if self.floors else {}
        name = {} if self.name is None else {"name": self.name}
        return {"offset": self.offset, "marks": list(self.marks), **since, **more, **name}

    def floor(self, topic: str, queue_id: int) -> int:
        """The first message of a queue that is read after this position."""
        return self.floors.get(topic, {}).get(str(queue_id), 0)

    def moved(self, offset: int, marks: tuple[str, ...], since: int | None = None) -> Position:
        """The position at a later offset."""
        floors = (self.floors, self.until) if offset < self.until else ({}, 0)
        return Position(offset, marks, since, *floors, self.name)

    def seen_in(self, ref: StoreRef, key: str) -> Position:
        """The position, with key ``key``, of a store that has this name now."""
        return self._replace(name=None if key in ref else ref.broker)


class Agreement(NamedTuple):
    """What the marks of a position say of a log."""

    same: bool
    """A record of it is where the mark says."""
    other: bool
    """Another record is there."""
    gone: bool = False
    """The last of the records is not there any more, and retention did not delete it."""

    @property
    def is_whole(self) -> bool:
        """Whether the log has all that was read of it, as far as is known."""
        return not self.other and not self.gone


_UNKNOWN: Final = Agreement(same=False, other=False)
_SAME: Final = Agreement(same=True, other=False)


def marks_before(log: LogNow, offset: int) -> tuple[str, ...]:
    """Marks by which a stream knows a log again, that has read it up to an offset."""
    size = log.config.mapped_file_size_commit_log
    before = max(offset - 1, log.begin)
    places = [log.begin, before - before % size]
    if offset == log.end and log.last is not None:
        places.append(log.last)
    with log.opened() as files:
        found = [lasting_mark_at(files, place) for place in dict.fromkeys(places)]
    return tuple(mark for mark in found if mark is not None)


def _ends_a_record(log: LogNow, offset: int) -> bool:
    """Whether a stream may have stopped at an offset of a log."""
    if offset in {log.begin, log.end}:
        return True
    with log.opened() as files:
        return files.look_message_by_offset(offset) is not None


class Found(NamedTuple):
    """A store's place among the positions of a stream."""

    key: str
    position: Position | None
    """None for a store that is new to the stream, and begins like none that it has read."""
    agreement: Agreement
    is_new: bool = False
    """Whether the position, if any, is that of another store, or was made from it."""


def find_positions(
    stored: Mapping[str, Any], logs: Sequence[LogNow], *, copies_once: bool
) -> list[Found]:
    """Find the position of each store. Raises OptionError where names are all that is known, and
    fit two stores. Without ``copies_once`` a new store has none, whatever its records are."""
    positions = {key: Position.of(value) for key, value in stored.items()}
    how = _Agreements(logs, positions)
    found: dict[int, str] = {}
    left = {key: number for number, key in enumerate(positions)}
    of_name: dict[str | None, list[str]] = {}
    for key, position in positions.items():
        for name in {key, position.name}:
            of_name.setdefault(name, []).append(key)

    def take(number: int, key: str) -> None:
        if number not in found and left.pop(key, None) is not None:
            found[number] = key

    def by(fits: Callable[[Agreement], bool], *, named: bool) -> None:
        for number, log in enumerate(logs):
            if number in found:
                continue
            known = {key for name in set(log.ref) for key in of_name.get(name, ())} & left.keys()
            for key in sorted(known if named else left, key=left.__getitem__):
                if fits(how.of(number, key)):
                    take(number, key)
                    break

    by(lambda one: one.same, named=True)
    by(lambda one: one.same, named=False)
    by(lambda one: not one.other, named=True)
    for key in list(left):
        _take_by_short_name(key, positions[key], logs, how, take, found)
    by(lambda _: True, named=True)
    result: list[Found] = []
    used = {*positions}
    for number, log in enumerate(logs):
        known = found.get(number)
        if known is None:
            names = (log.ref.broker, log.ref.path)
            more = (f"{log.ref.path}#{n}" for n in range(2, len(positions) + len(logs) + 2))
            key = next(name for name in (*names, *more) if name not in used)
            used.add(key)
            begin = None
            if copies_once:
                begin = _begin_alike(key, number, logs, positions, how, found)
            result.append(begin or Found(key, None, _UNKNOWN, is_new=True))
        else:
            result.append(Found(known, positions[known], how.whole(number, known)))
    return result


class _Agreements:
    """Whether logs are those of positions. Each record is looked at once, if a pair needs it."""

    def __init__(self, logs: Sequence[LogNow], positions: Mapping[str, Position]) -> None:
        self._logs = logs
        self._positions = positions
        self._known: dict[tuple[int, int], str | None] = {}

    def of(self, number: int, key: str) -> Agreement:
        """Of the log with a number, and the position with a key; ``gone`` is left open."""
        marks = self._positions[key].marks
        found = self._marks(number, [place_of(mark) for mark in marks])
        same = [mark == now for mark, now in zip(marks, found, strict=True) if now]
        return Agreement(any(same), not all(same))

    def whole(self, number: int, key: str) -> Agreement:
        """The same, with ``gone``."""
        log, marks = self._logs[number], self._positions[key].marks
        gone = False
        if marks:
            last = place_of(marks[-1])
            (found,) = self._marks(number, [last])
            # A unit that names it shows that it is only damaged, or replaced by a repair.
            gone = found is None and log.begin <= last and not _has_unit(log, last)
        return self.of(number, key)._replace(gone=gone)

    def _marks(self, number: int, places: Sequence[int]) -> list[str | None]:
        new = [place for place in places if (number, place) not in self._known]
        if new:
            with self._logs[number].opened() as files:
                for place in new:
                    self._known[number, place] = lasting_mark_at(files, place)
        return [self._known[number, place] for place in places]


def _begin_alike(
    new_key: str,
    number: int,
    logs: Sequence[LogNow],
    positions: Mapping[str, Position],
    how: _Agreements,
    found: Mapping[int, str],
) -> Found | None:
    """Where a log goes on that begins like one that the stream has read; None if none does."""
    log = logs[number]
    owners = {key: one for one, key in found.items()}
    best: Found | None = None
    known = (False, 0)
    for key in sorted(positions, key=lambda key: -positions[key].offset):
        offset, marks = positions[key][:2]
        if not how.of(number, key).same:
            continue
        one = owners.get(key)
        if one is not None and logs[one].end >= offset and how.whole(one, key).is_whole:
            at = parts_at(log, logs[one], offset, known[1] if known[0] else 0)
            begin, how_alike = Position(at, marks_before(log, at)), _SAME
        else:  # the marks are all that is known of what the stream has read
            begin, how_alike = Position(offset, marks), how.whole(number, key)
        if best is None or (how_alike.is_whole, begin.offset) > known:
            best = Found(new_key, begin, how_alike, is_new=True)
            known = (how_alike.is_whole, begin.offset)
    return best


def _take_by_short_name(
    key: str,
    position: Position,
    logs: Sequence[LogNow],
    how: _Agreements,
    take: Callable[[int, str], None],
    found: Mapping[int, str],
) -> None:
    """Find the store of a position whose name was short before, because no other store had it."""
    fitting = [
        number
        for number, log in enumerate(logs)
        if number not in found and short_name(log.ref.path) == key and not how.of(number, key).other
    ]
    if len(fitting) > 1:
        fitting = [one for one in fitting if _ends_a_record(logs[one], position.offset)] or fitting
    if len(fitting) > 1:
        paths = " or ".join(logs[one].ref.path for one in fitting)
        raise OptionError(
            f"the checkpoint has a position of {key!r}, which may be that of {paths}; name the "
            f"stores in a YAML file, '{key}: ' and the folder that the stream read"
        )
    for number in fitting:
        take(number, key)


def _has_unit(log: LogNow, place: int) -> bool:
    with StoreView.open(log.ref.path) as view:
        for topic, queue_id in view.queues():
            low, high = view.queue_bounds(topic, queue_id)
            at = first_at(view, topic, queue_id, place, low, high)
            if place_from(view, topic, queue_id, at, high)[1] == place:
                return True
    return False
