"""Two sides of offsets, queue by queue; and the offsets of groups, to keep."""

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from rmqctl.admin.changes import Warn, no_warning
from rmqctl.errors import NotFound, UsageProblem
from storage.format.message import retry_topic

from .committed import offsets_in_force
from .comparison_rows import ExportedOffset, OffsetDiffRow
from .inspection import Chosen, places
from .queues import no_progress

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from storage.readonly import StoreView

    from .sides import Side

_Key = tuple[str | None, str, int]


def diff(
    a: "Side",
    b: "Side",
    *,
    group: str | None = None,
    topics: Collection[str] = (),
    equal_too: bool = False,
) -> Iterator[OffsetDiffRow]:
    """The queues whose offsets differ, by group, topic and queue; ``equal_too``: all queues.

    Where one side has one group, the other one is about the same, or about its only one. Two
    groups are compared in the topics that they read, without the retry topic of each unless it is
    named. ``group`` chooses one of sides with many; ``topics`` narrows to these, none means all.
    NotFound for a group or a topic that neither side has; UsageProblem if it is not clear which
    group is meant, or a side has only another one.
    """
    if group is not None:
        _check_group(a, b, group)
    a, b = _chosen(a, group or b.group), _chosen(b, group or a.group)
    names = {place[0] for side in (a, b) for place in side.offsets}
    if None in names and any(len({place[0] for place in s.offsets}) > 1 for s in (a, b)):
        raise UsageProblem("one side names no group, the other several: choose one with --group")
    names_group = None not in names and a.group == b.group
    own = set()
    if a.group is not None and b.group is not None and a.group != b.group:
        own = {retry_topic(a.group), retry_topic(b.group)}.difference(topics)
    _check_topics(a, b, topics)

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


def _check_group(a: "Side", b: "Side", group: str) -> None:
    """UsageProblem for a side of another group, NotFound for a group that neither side has. Sides
    that name no group are taken for those of this one."""
    for name, side in (("A", a), ("B", b)):
        if side.group is not None and side.group != group:
            raise UsageProblem(f"--group {group}: {name} has offsets of group {side.group} alone")
    names = {place[0] for side in (a, b) for place in side.offsets}
    if group not in names and names != {None}:
        raise NotFound(f"neither side has offsets of group {group}")


def _check_topics(a: "Side", b: "Side", topics: Collection[str]) -> None:
    """NotFound for topics that neither side has."""
    there = {place[1] for side in (a, b) for place in side.offsets}
    missing = ", ".join(topic for topic in topics if topic not in there)
    if missing:
        of = f" of group {a.group}" if a.group is not None and a.group == b.group else ""
        raise NotFound(f"neither side has offsets{of} in topic {missing}")


def _chosen(side: "Side", group: str | None) -> "Side":
    """A side with many groups, narrowed to one of them."""
    if side.group is not None or group is None or any(place[0] is None for place in side.offsets):
        return side
    return side._replace(
        offsets={place: o for place, o in side.offsets.items() if place[0] == group},
        group=group,
        notes={place: note for place, note in side.notes.items() if place[0] == group},
    )


def export(
    view: "StoreView",
    broker: "Broker",
    *,
    groups: Collection[str] = (),
    topics: Collection[str] = (),
    queues: Collection[int] | None = None,
    warn: Warn = no_warning,
) -> list[ExportedOffset]:
    """Committed offsets by group, topic and queue; none means all groups, all topics.

    NotFound for a group without offsets, for an unknown topic, for a queue that no topic has, and
    where nothing is left of what was named; CorruptFileError if the file cannot be read.
    :func:`rmqctl.admin.offsets.import_offsets` takes them back.
    """
    known = offsets_in_force(view, broker, warn)
    found = [
        ExportedOffset(place.group, place.topic, place.queue_id, place.committed)
        for place in places(view, known, Chosen(groups, topics, queues))
        if place.committed is not None
    ]
    if not found and (groups or topics or queues is not None):
        raise NotFound(f"{no_progress(groups, topics, queues)} of {view.root}")
    return found
