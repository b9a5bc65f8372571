"""The progress of groups, queue by queue: in short, and everything about it."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from analytics.lag.queue_position import (
    QueuePosition,
    last_consumed_timestamp,
    oldest_unread_timestamp,
    unread_bytes,
)
from rmqctl.admin.changes import Warn, no_warning
from rmqctl.admin.topics.facts import queues_by_topic
from rmqctl.errors import NotFound

from .committed import CommittedOffsets, check_known, offsets_in_force
from .inspection_rows import InspectedOffsetRow, OffsetRow
from .queues import not_read_note, read_queues_without

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from storage.configs.journal_changes import Changes
    from storage.configs.topics import TopicConfig
    from storage.queue.reader import QueueBounds
    from storage.readonly import StoreView


class Chosen(NamedTuple):
    """What to look at; None is everything."""

    groups: Collection[str] | None
    topics: Collection[str] | None
    queues: Collection[int] | None = None


class Place(NamedTuple):
    """A group's progress in one queue."""

    group: str
    topic: str
    queue_id: int
    committed: int | None


def places(view: "StoreView", known: CommittedOffsets, chosen: Chosen) -> list[Place]:
    """The places to look at, sorted: every read queue of a topic that a group has progress in.

    Of a group and a topic that are both named also if it has none there. NotFound for a named
    group without progress anywhere, for a named topic that is unknown, and for a named queue that
    none of the topics has.
    """
    check_known(view.root, known, chosen.groups, chosen.topics)
    table = known.table
    wanted = set(table)
    if chosen.groups and chosen.topics:
        wanted |= {(group, topic) for group in chosen.groups for topic in chosen.topics}
    found: list[Place] = []
    there: set[int] = set()
    queues_of = _read_queues(view, known.topics, {topic for _, topic in wanted})
    for group, topic in sorted(wanted):
        if (chosen.groups and group not in chosen.groups) or (
            chosen.topics and topic not in chosen.topics
        ):
            continue
        offsets = table.get((group, topic), {})
        queues = set(offsets).union(queues_of[topic])
        there |= queues
        found.extend(
            Place(group, topic, queue_id, offsets.get(queue_id))
            for queue_id in sorted(queues)
            if chosen.queues is None or queue_id in chosen.queues
        )
    missing = sorted(set(chosen.queues or ()) - there)
    if missing:
        numbers = ", ".join(map(str, missing))
        has = f"; they have {', '.join(map(str, sorted(there)))}" if there else ""
        raise NotFound(f"none of the topics that were chosen has a queue {numbers}{has}")
    return found


def list_offsets(
    view: "StoreView",
    broker: "Broker",
    *,
    groups: Collection[str] | None = None,
    topics: Collection[str] | None = None,
    warn: Warn = no_warning,
) -> Iterator[OffsetRow]:
    """The progress of groups in topics, every read queue of a topic included; see :func:`places`.

    All rows of a queue have the bounds of one look. NotFound for a named group without progress
    anywhere and for a named topic that is unknown.
    """
    known = offsets_in_force(view, broker, warn)
    return _rows(view, broker.name, known, Chosen(groups, topics))


def _rows(
    view: "StoreView", broker: str, known: CommittedOffsets, chosen: Chosen
) -> Iterator[OffsetRow]:
    bounds: dict[tuple[str, int], QueueBounds] = {}
    for group, topic, queue_id, committed in places(view, known, chosen):
        low_high = bounds.get((topic, queue_id))
        if low_high is None:
            low_high = bounds[topic, queue_id] = view.queue_bounds(topic, queue_id)
        what = QueuePosition(low_high.min_offset, committed, low_high.max_offset)
        yield OffsetRow(
            group,
            topic,
            broker,
            queue_id,
            what.min_offset,
            committed,
            what.max_offset,
            what.lag,
            what.state,
            note_of(what, known.topics.get(topic), queue_id),
        )


class Wanted(NamedTuple):
    """Which fields are worth finding out, of those that cost more than a look."""

    bytes: bool
    """``lag_bytes``: a look at each unread unit."""
    msg_id: bool
    """The id of the oldest message: its record is read."""
    changes: bool
    """What the journal knows."""


def inspect(
    view: "StoreView",
    broker: "Broker",
    known: CommittedOffsets,
    chosen: Chosen,
    changes: "Changes",
    *,
    now_ms: int,
    wanted: Wanted,
    advance: Callable[[int], None] = lambda _: None,
) -> list[InspectedOffsetRow]:
    """The row of each place, by group, topic and queue; None in fields that are not wanted.

    Found out queue by queue: many groups on one queue cost one pass over its units. ``advance``
    gets the number of rows that are ready.
    """
    queues: dict[tuple[str, int], list[Place]] = {}
    for place in places(view, known, chosen):
        queues.setdefault((place.topic, place.queue_id), []).append(place)
    last_moves = changes.last_moves if wanted.changes else {}
    found = []
    for (topic, queue_id), here in sorted(queues.items()):
        low, high = view.queue_bounds(topic, queue_id)
        config = known.topics.get(topic)
        facts = {place.group: QueuePosition(low, place.committed, high) for place in here}
        sizes = _bytes(view, topic, queue_id, facts.values()) if wanted.bytes else {}
        for group, _, _, committed in here:
            what = facts[group]
            oldest = oldest_unread_timestamp(view, topic, queue_id, what)
            move = last_moves.get((group, topic, queue_id))
            doubt = known.doubts.get((group, topic, queue_id)) if committed is None else None
            row = InspectedOffsetRow(
                group,
                topic,
                broker.name,
                queue_id,
                what.min_offset,
                committed,
                what.max_offset,
                what.lag,
                None if oldest is None else max(0, now_ms - oldest),
                last_consumed_timestamp(view, topic, queue_id, what),
                what.state if doubt is None else None,
                note_of(what, config, queue_id) if doubt is None else doubt,
                None if what.lag is None else sizes.get(what.first_unread),
                oldest,
                _oldest_id(view, topic, queue_id, what) if wanted.msg_id else None,
                None if committed is None else known.source,
                move.change.at_timestamp if move else None,
                move.change.who if move else None,
            )
            found.append(row)
        advance(len(here))
    found.sort(key=lambda row: (row.group, row.topic, row.queue_id))
    return found


def note_of(what: QueuePosition, config: "TopicConfig | None", queue_id: int) -> str | None:
    """By how many a group is ahead, or how many messages were deleted before it read them; and
    whether the topic's settings leave the queue unread."""
    notes = [
        f"{what.ahead} beyond the end" if what.ahead else None,
        f"{what.lost} deleted unread" if what.lost and not what.ahead else None,
        not_read_note(read_queues_without(config, queue_id)),
    ]
    return "; ".join(note for note in notes if note is not None) or None


def _bytes(
    view: "StoreView", topic: str, queue_id: int, facts: Collection[QueuePosition]
) -> dict[int | None, int | None]:
    """Bytes after each first unread message; 0 after None, where nothing is unread."""
    firsts = [what.first_unread for what in facts if what.first_unread is not None]
    high = max(what.max_offset for what in facts)
    sizes = unread_bytes(view, topic, queue_id, firsts, high)
    return {None: 0, **{first: sizes[first] for first in firsts}}


def _oldest_id(view: "StoreView", topic: str, queue_id: int, what: QueuePosition) -> str | None:
    first = what.first_unread
    unit = None if first is None else view.unit(topic, queue_id, first)
    if first is None or unit is None:
        return None
    message = view.message_of_unit(topic, queue_id, first, unit)
    return None if message is None else message.msg_id


def _read_queues(
    view: "StoreView", configs: Mapping[str, "TopicConfig"], topics: Collection[str]
) -> dict[str, Collection[int]]:
    """The queues of some topics: those that are read, or those with messages if no settings tell.

    The store's queues are gone through once: there may be as many as topics and groups together.
    """
    used = {} if configs.keys() >= set(topics) else queues_by_topic(view)
    return {
        topic: range(configs[topic].read_queue_nums) if topic in configs else used.get(topic, ())
        for topic in topics
    }
