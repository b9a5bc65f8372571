"""Moves of progress that nobody noted, as far as two looks at the same place differ.

A group's progress only grows by itself. Where it is less than it was, or gone, and no change in
the journal says so, somebody has moved it past rmqctl: Java's mqadmin, an editor, a copied file.
Looks are: what a change in the journal left and what the next one found, or what is there now;
what rmqctl gave to Java's file last and what is in there now; that file and its ``.bak``. When it
happened is not known, only between what.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from rmqctl.looking.offset_source import by_group
from storage.configs.config_file import ConfigFile, ConfigSource
from storage.configs.consumer_offsets import consumer_offset_file, decode_offsets
from storage.errors import CorruptFileError

if TYPE_CHECKING:
    from pathlib import Path

    from broker.embedded import EmbeddedBroker
    from rmqctl.looking.changes import Changes, Move, ProgressPlace


class Unnoted(NamedTuple):
    """One such move."""

    place: "ProgressPlace"
    old: int | None
    """What the first look saw."""
    new: int | None
    """What the second one saw."""
    note: str
    found_by: int | None
    """The change in the journal that met it; None if it is met now."""


def unnoted_moves(broker: "EmbeddedBroker", changes: "Changes") -> Iterator[Unnoted]:
    """All of them that can be told, in no order."""
    now = {
        (group, topic, queue_id): offset
        for (group, topic), queues in broker.consumer_offsets().items()
        for queue_id, offset in queues.items()
    }
    last: dict[ProgressPlace, Move] = {}
    for move in changes.moves():
        before = last.get(move.place)
        if before is not None and _went_back(before.new, move.old):
            ids = f"{before.change.change_id} and {move.change.change_id}"
            note = f"not noted by anybody; between changes {ids}"
            yield Unnoted(move.place, before.new, move.old, note, move.change.change_id)
        last[move.place] = move
    for place, move in last.items():
        if _went_back(move.new, now.get(place)):
            note = f"not noted by anybody; since change {move.change.change_id}"
            yield Unnoted(place, move.new, now.get(place), note, None)
    for place, offset in _bak(broker.view.root).items():
        if place not in last and _went_back(offset, now.get(place)):
            note = "not noted by anybody; the .bak of consumerOffset.json has the old offset"
            yield Unnoted(place, offset, now.get(place), note, None)


def _went_back(first: int | None, second: int | None) -> bool:
    return first is not None and (second is None or second < first)


def _bak(root: "Path") -> "dict[ProgressPlace, int]":
    """What Java's file held before it was written last; nothing if that can not be told."""
    file = consumer_offset_file(root)
    try:
        if file.load().source is not ConfigSource.FILE:
            return {}  # the .bak is all that there is
        loaded = ConfigFile(file.bak_path, check=decode_offsets).load()
    except CorruptFileError:
        return {}
    return {
        (group, topic, queue_id): offset
        for (group, topic), queues in by_group(decode_offsets(loaded.document)).items()
        for queue_id, offset in queues.items()
    }
