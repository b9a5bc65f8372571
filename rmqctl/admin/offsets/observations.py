"""Observations of groups' offsets: by changes in the journal, and by samples.

A change names the offset that it found and the one that it left. A sample (storage.configs.
offset_samples) has the offset at a moment. Between two observations an offset only grows, unless it
is moved.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from storage.configs.consumer_offsets import split_topic_at_group
from storage.configs.offset_samples import OffsetSamples

if TYPE_CHECKING:
    from storage.configs.journal_changes import Changes, ProgressPlace


class OffsetObservation(NamedTuple):
    """One observation of a queue's offset; None is no offset."""

    at: int
    change_id: int
    """The change that observed it and moved it; 0 for a sample."""
    seen: int | None
    left: int | None


def sightings(changes: "Changes") -> "dict[ProgressPlace, list[OffsetObservation]]":
    """All observations of each queue of a group, in the order of time."""
    found: dict[ProgressPlace, list[OffsetObservation]] = {}
    for move in changes.moves():
        sighting = OffsetObservation(
            move.change.at_timestamp, move.change.change_id, move.old, move.new
        )
        found.setdefault(move.place, []).append(sighting)
    for place, sighting in _samples(changes):
        found.setdefault(place, []).append(sighting)
    for row in found.values():
        row.sort(key=lambda sighting: sighting.at)
    return found


def _samples(changes: "Changes") -> "Iterator[tuple[ProgressPlace, OffsetObservation]]":
    history = OffsetSamples(changes.root).read(0)
    for key, queue_id in history.places():
        parts = split_topic_at_group(key)
        if parts is not None:
            for at, offset in history.committed(key, queue_id):
                yield (parts[1], parts[0], queue_id), OffsetObservation(at, 0, offset, offset)
