"""Everything about the progress of groups, queue by queue."""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from analytics.lag.queue_position import (
    QueuePosition,
    last_consumed_timestamp,
    oldest_unread_timestamp,
    unread_bytes,
)
from rmqctl.admin.offsets.committed import check_known
from rmqctl.errors import NotFound
from rmqctl.topic.facts import queues_by_topic

from .inspect_rows import InspectedOffsetRow

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from rmqctl.admin.journal import Changes
    from storage.configs.topics import TopicConfig

    from .source import CommittedOffsets


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


def places(broker: "EmbeddedBroker", known: "CommittedOffsets", chosen: Chosen) -> list[Place]:
    """The places to look at, sorted: every read queue of a topic that a group has progress in.

    Of a group and a topic that are both named also if it has none there. NotFound for a named
    group without progress anywhere, for a named topic that is unknown, and for a named queue that
    none of the topics has.
    """
    check_known(broker.view.root, known, chosen.groups, chosen.topics)
    table = known.table
    wanted = set(table)
    if chosen.groups and chosen.topics:
        wanted |= {(group, topic) for group in chosen.groups for topic in chosen.topics}
    found: list[Place] = []
    there: set[int] = set()
    queues_of = _read_queues(broker, known.topics, {topic for _, topic in wanted})
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


class Wanted(NamedTuple):
    """Which fields are worth finding out, of those that cost more than a look."""

    bytes: bool
    """``lag_bytes``: a look at each unread unit."""
    msg_id: bool
    """The id of the oldest message: its record is read."""
    changes: bool
    """What the journal knows."""


def inspected(
    broker: "EmbeddedBroker",
    known: "CommittedOffsets",
    chosen: Chosen,
    changes: "Changes",
    now_ms: int,
    wanted: Wanted,
    advance: Callable[[int], None],
) -> list[InspectedOffsetRow]:
    """The row of each place, by group, topic and queue; None in fields that are not wanted.

    Found out queue by queue: many groups on one queue cost one pass over its units. ``advance`` is
    told of rows that are ready.
    """
    queues: dict[tuple[str, int], list[Place]] = {}
    for place in places(broker, known, chosen):
        queues.setdefault((place.topic, place.queue_id), []).append(place)
    last_moves = changes.last_moves if wanted.changes else {}
    found = []
    for (topic, queue_id), here in sorted(queues.items()):
        low, high = broker.view.queue_bounds(topic, queue_id)
        facts = {place.group: QueuePosition(low, place.committed, high) for place in here}
        sizes = _bytes(broker, topic, queue_id, facts.values()) if wanted.bytes else {}
        for group, _, _, committed in here:
            what = facts[group]
            oldest = oldest_unread_timestamp(broker.view, topic, queue_id, what)
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
                last_consumed_timestamp(broker.view, topic, queue_id, what),
                what.state if doubt is None else None,
                note_of(what) if doubt is None else doubt,
                None if what.lag is None else sizes.get(what.first_unread),
                oldest,
                _oldest_id(broker, topic, queue_id, what) if wanted.msg_id else None,
                None if committed is None else known.source,
                move.change.at_timestamp if move else None,
                move.change.who if move else None,
            )
            found.append(row)
        advance(len(here))
    found.sort(key=lambda row: (row.group, row.topic, row.queue_id))
    return found


def note_of(what: QueuePosition) -> str | None:
    """By how many a group is ahead, or how many messages were deleted before it read them."""
    if what.ahead:
        return f"{what.ahead} beyond the end"
    return f"{what.lost} deleted unread" if what.lost else None


def _bytes(
    broker: "EmbeddedBroker", topic: str, queue_id: int, facts: Collection[QueuePosition]
) -> dict[int | None, int | None]:
    """Bytes after each first unread message; 0 after None, where nothing is unread."""
    firsts = [what.first_unread for what in facts if what.first_unread is not None]
    high = max(what.max_offset for what in facts)
    sizes = unread_bytes(broker.view, topic, queue_id, firsts, high)
    return {None: 0, **{first: sizes[first] for first in firsts}}


def _oldest_id(
    broker: "EmbeddedBroker", topic: str, queue_id: int, what: QueuePosition
) -> str | None:
    first = what.first_unread
    unit = None if first is None else broker.view.unit(topic, queue_id, first)
    if first is None or unit is None:
        return None
    message = broker.view.message_of_unit(topic, queue_id, first, unit)
    return None if message is None else message.msg_id


def _read_queues(
    broker: "EmbeddedBroker", configs: Mapping[str, "TopicConfig"], topics: Collection[str]
) -> dict[str, Collection[int]]:
    """The queues of some topics: those that are read, or those with messages if no settings tell.

    The store's queues are gone through once: there may be as many as topics and groups together.
    """
    used = {} if configs.keys() >= set(topics) else queues_by_topic(broker)
    return {
        topic: range(configs[topic].read_queue_nums) if topic in configs else used.get(topic, ())
        for topic in topics
    }
