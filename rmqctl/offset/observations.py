"""What was seen of groups' progress, and when: by changes in the journal, and by samples.

A change saw where the progress was and left it somewhere else. A sample (storage.configs.
progress_samples) tells where it was at a moment. Between two sightings progress only grows, unless
somebody moves it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from storage.configs.consumer_offsets import split_topic_at_group
from storage.configs.offset_samples import OffsetSamples

if TYPE_CHECKING:
    from rmqctl.audit.changes import Changes, ProgressPlace


class OffsetObservation(NamedTuple):
    """One look at a queue's progress; None is no progress."""

    at: int
    change_id: int
    """The change that looked, and left it elsewhere; 0 for a sample."""
    seen: int | None
    left: int | None


def sightings(changes: "Changes") -> "dict[ProgressPlace, list[OffsetObservation]]":
    """All that is known of each place, in the order of time."""
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
