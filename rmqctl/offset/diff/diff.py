"""Two sides of offsets, queue by queue."""

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from rmqctl.errors import UsageProblem
from storage.format.message import retry_topic

from .rows import ExportedOffset, OffsetDiffRow

if TYPE_CHECKING:
    from rmqctl.offset.source import Offsets

    from .sides import Side

_Key = tuple[str | None, str, int]


def diff_rows(
    a: "Side",
    b: "Side",
    group: str | None,
    topics: Collection[str],
    *,
    equal_too: bool,
) -> Iterator[OffsetDiffRow]:
    """The queues whose offsets differ, by group, topic and queue.

    Where one side is about one group, the other is about the same, or about its only one. Two
    groups are compared in the topics that they read; each one's own retry topic is left out.
    ``group`` chooses one of sides with many. UsageProblem if it is not clear which.
    """
    a, b = _chosen(a, group or b.group), _chosen(b, group or a.group)
    names = {place[0] for side in (a, b) for place in side.offsets}
    if None in names and any(len({place[0] for place in s.offsets}) > 1 for s in (a, b)):
        raise UsageProblem("one side names no group, the other several: choose one with --group")
    names_group = None not in names and a.group == b.group
    own = set()
    if a.group is not None and b.group is not None and a.group != b.group:
        own = {retry_topic(a.group), retry_topic(b.group)}

    def key(place: _Key) -> _Key:
        return place if names_group else (None, *place[1:])

    left = {key(place): offset for place, offset in a.offsets.items()}
    right = {key(place): offset for place, offset in b.offsets.items()}
    notes = {key(p): f"a: {note}" for p, note in a.notes.items()}
    for place, note in b.notes.items():
        ours = notes.get(key(place))
        notes[key(place)] = f"{ours}; b: {note}" if ours else f"b: {note}"
    for place in sorted({*left, *right}, key=lambda place: (place[0] or "", *place[1:])):
        first, second = left.get(place), right.get(place)
        if place[1] in own or (topics and place[1] not in topics):
            continue
        if equal_too or first != second or place in notes:
            difference = None if first is None or second is None else second - first
            yield OffsetDiffRow(*place, first, second, difference, notes.get(place))


def _chosen(side: "Side", group: str | None) -> "Side":
    """A side with many groups, cut down to one of them."""
    if side.group is not None or group is None or any(place[0] is None for place in side.offsets):
        return side
    return side._replace(
        offsets={place: o for place, o in side.offsets.items() if place[0] == group},
        group=group,
        notes={place: note for place, note in side.notes.items() if place[0] == group},
    )


def export_rows(
    table: "Offsets",
    groups: Collection[str],
    topics: Collection[str],
    queues: Collection[int] | None,
) -> Iterator[ExportedOffset]:
    """Committed offsets by group, topic and queue; empty means all groups, all topics."""
    for (group, topic), offsets in sorted(table.items()):
        if (groups and group not in groups) or (topics and topic not in topics):
            continue
        for queue_id, offset in sorted(offsets.items()):
            if queues is None or queue_id in queues:
                yield ExportedOffset(group, topic, queue_id, offset)
