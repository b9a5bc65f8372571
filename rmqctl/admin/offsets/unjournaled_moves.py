"""Moves of offsets without a journal entry, as far as two observations of one queue show them.

A group's progress only grows by itself. Where it is less than it was, or gone, and no change in the
journal says so, it was moved by another program: Java's mqadmin, an editor, a copied file.
Observations are those of changes and samples (:mod:`rmqctl.admin.offsets.observations`), what is
there now, and the ``.bak`` of Java's file. The time is not known, only between which observations.
"""

from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from rmqctl.admin.offsets.committed import by_group
from storage.configs.config_file import ConfigFile, ConfigSource
from storage.configs.consumer_offsets import consumer_offset_file, decode_offsets
from storage.errors import CorruptFileError

from .observations import OffsetObservation, sightings

if TYPE_CHECKING:
    from pathlib import Path

    from rmqctl.admin.offsets.committed import Offsets
    from storage.configs.journal_changes import Changes, ProgressPlace

_NOW: Final = 1 << 62
_SAMPLED_LATE_MS: Final = 30_000
"""A sample that was read before a change may be written after it."""


class UnjournaledMove(NamedTuple):
    """One such move."""

    place: "ProgressPlace"
    old: int | None
    """What the first observation has."""
    new: int | None
    """What the second one has."""
    at: int | None
    """When it was first observed; None if that is now."""
    note: str


def unnoted_moves(changes: "Changes", now: "Offsets | None") -> list[UnjournaledMove]:
    """All that the observations show, in the order of time.

    ``now`` is what the groups have committed, None if that cannot be read.
    """
    offsets = _places(now or {})
    known = sightings(changes)
    found: list[UnjournaledMove] = []
    for place, row in known.items():
        offset = offsets.get(place)
        looks = row if now is None else [*row, OffsetObservation(_NOW, 0, offset, offset)]
        found += _gone_back(place, looks)
    for place, offset in {} if now is None else _places(_bak(changes.root)).items():
        if place not in known and _went_back(offset, offsets.get(place)):
            note = "no journal entry; the .bak of consumerOffset.json has the old offset"
            found.append(UnjournaledMove(place, offset, offsets.get(place), None, note))
    return sorted(found, key=lambda move: (_NOW if move.at is None else move.at, move.place))


def _places(table: "Offsets") -> "dict[ProgressPlace, int]":
    return {
        (group, topic, queue_id): offset
        for (group, topic), queues in table.items()
        for queue_id, offset in queues.items()
    }


def _gone_back(
    place: "ProgressPlace", row: Collection[OffsetObservation]
) -> Iterator[UnjournaledMove]:
    changes = [sighting for sighting in row if sighting.change_id]
    for first, second in pairwise(row):
        if _went_back(first.left, second.seen) and not any(
            first.at - _SAMPLED_LATE_MS <= change.at <= second.at + _SAMPLED_LATE_MS
            and change not in (first, second)
            and (second.seen == change.left or not _went_back(change.left, second.seen))
            for change in changes
        ):
            at = None if second.at == _NOW else second.at
            note = f"no journal entry; {_between(first, second)}"
            yield UnjournaledMove(place, first.left, second.seen, at, note)


def _between(first: OffsetObservation, second: OffsetObservation) -> str:
    names = [f"change {s.change_id}" if s.change_id else "a sample" for s in (first, second)]
    if second.at == _NOW:
        return f"since {names[0]}"
    if first.change_id and second.change_id:
        return f"between changes {first.change_id} and {second.change_id}"
    return f"between {names[0]} and {names[1]}, {second.at - first.at} ms later"


def _went_back(first: int | None, second: int | None) -> bool:
    return first is not None and (second is None or second < first)


def _bak(root: "Path") -> "Offsets":
    """What Java's file held before it was written last; nothing if that is unknown."""
    file = consumer_offset_file(root)
    try:
        if file.load().source is not ConfigSource.FILE:
            return {}  # the .bak is all that there is
        loaded = ConfigFile(file.bak_path, check=decode_offsets).load()
    except CorruptFileError:
        return {}
    return by_group(decode_offsets(loaded.document))
