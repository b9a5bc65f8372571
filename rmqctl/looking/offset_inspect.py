"""Everything about the progress of groups, queue by queue."""

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple

from analytics.unread import Unread, last_consumed_timestamp, oldest_unread_timestamp, unread
from broker.validation import check_group, check_topic
from rmqctl.errors import NotFound
from rmqctl.rows.inspected import InspectedOffsetRow

if TYPE_CHECKING:
    from broker.embedded import EmbeddedBroker
    from rmqctl.looking.changes import Changes
    from rmqctl.looking.offset_source import CommittedOffsets, Offsets
    from storage.configs.topics import TopicConfig


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


def places(broker: "EmbeddedBroker", table: "Offsets", chosen: Chosen) -> list[Place]:
    """The places to look at, sorted: every read queue of a topic that a group has progress in.

    Of a group and a topic that are both named also if it has none there. NotFound for a named
    group without progress anywhere and for a named topic that is unknown.
    """
    topics = broker.topics()
    check_known(broker, table, chosen.groups, chosen.topics)
    wanted = set(table)
    if chosen.groups and chosen.topics:
        wanted |= {(group, topic) for group in chosen.groups for topic in chosen.topics}
    found: list[Place] = []
    for group, topic in sorted(wanted):
        if (chosen.groups and group not in chosen.groups) or (
            chosen.topics and topic not in chosen.topics
        ):
            continue
        offsets = table.get((group, topic), {})
        queues = set(offsets).union(_queues_of(broker, topics.get(topic), topic))
        found.extend(
            Place(group, topic, queue_id, offsets.get(queue_id))
            for queue_id in sorted(queues)
            if chosen.queues is None or queue_id in chosen.queues
        )
    if not found and chosen.queues is not None:
        numbers = ", ".join(map(str, sorted(chosen.queues)))
        raise NotFound(f"none of the topics that were chosen has a queue {numbers}")
    return found


def inspected(
    broker: "EmbeddedBroker",
    known: "CommittedOffsets",
    chosen: Chosen,
    changes: "Changes",
    now_ms: int,
    wants: Callable[[str], bool],
) -> Iterator[InspectedOffsetRow]:
    """The row of each place. Fields that cost more than a look are found out if ``wants`` says so.

    Those are ``lag_bytes`` (a look at each unread unit), the id of the oldest message, and what
    the journal knows.
    """
    view = broker.view
    wants_bytes = wants("lag_bytes")
    wants_id = wants("oldest_unread_msg_id")
    wants_changes = wants("changed_timestamp") or wants("changed_by")
    last_moves = changes.last_moves if wants_changes else {}
    for group, topic, queue_id, committed in places(broker, known.table, chosen):
        what = unread(view, topic, queue_id, committed)
        oldest = oldest_unread_timestamp(view, topic, queue_id, what)
        move = last_moves.get((group, topic, queue_id))
        yield InspectedOffsetRow(
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
            what.state,
            note_of(what),
            _bytes(broker, topic, queue_id, what) if wants_bytes else None,
            oldest,
            _oldest_id(broker, topic, queue_id, what) if wants_id else None,
            None if committed is None else known.source,
            move.change.at_timestamp if move else None,
            move.change.who if move else None,
        )


def note_of(what: Unread) -> str | None:
    """By how many a group is ahead, or how many messages were deleted before it read them."""
    if what.ahead:
        return f"{what.ahead} beyond the end"
    return f"{what.lost} deleted unread" if what.lost else None


def _bytes(broker: "EmbeddedBroker", topic: str, queue_id: int, what: Unread) -> int | None:
    from analytics.unread import unread_bytes

    return unread_bytes(broker.view, topic, queue_id, what)


def _oldest_id(broker: "EmbeddedBroker", topic: str, queue_id: int, what: Unread) -> str | None:
    first = what.first_unread
    unit = None if first is None else broker.view.unit(topic, queue_id, first)
    if first is None or unit is None:
        return None
    message = broker.view.message_of_unit(topic, queue_id, first, unit)
    return None if message is None else message.msg_id


def _queues_of(
    broker: "EmbeddedBroker", config: "TopicConfig | None", topic: str
) -> Collection[int]:
    if config is not None:
        return range(config.read_queue_nums)
    return [queue_id for name, queue_id in broker.view.queues() if name == topic]


def check_known(
    broker: "EmbeddedBroker",
    table: "Offsets",
    groups: Collection[str] | None,
    topics: Collection[str] | None,
) -> None:
    """NotFound for a group without progress and for a topic that does not exist."""
    for group in groups or ():
        if not any(group == name for name, _ in table):
            check_group(group)
            raise NotFound(f"group {group} has no progress in {broker.view.root}")
    known = broker.topics()
    for topic in topics or ():
        if topic not in known and not any(topic == name for _, name in table):
            check_topic(topic)
            raise NotFound(f"topic {topic} does not exist in {broker.view.root}")
