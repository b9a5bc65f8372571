"""The queues to read and their ranges: positions of the options become offsets."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.api.offsets import ConsumeFromWhere
from broker.errors import NoPermissionError
from broker.offset.start_position import compute_pull_from_where
from broker.tables.topics import check_readable
from broker.validation import check_topic
from rmqctl.errors import NotFound, Refused, UsageProblem
from rmqctl.parse.lists import MAX_QUEUE_ID
from rmqctl.parse.positions import Bound, Point, Position
from storage.format.message import DLQ_GROUP_TOPIC_PREFIX

from .topic_queues import bounds_from

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from storage.read.log_cut import LogCut


_TOLD: Final = 3
"""Number of queues whose missing ranges are named."""


class Group(NamedTuple):
    """The group that reads, and its start where it has no progress."""

    name: str
    from_where: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    consume_timestamp: int = 0
    asked: bool = False
    """Whether an option sets the start, and not the default."""


class Span(NamedTuple):
    """The range of one queue; ``end`` None is no end."""

    queue_id: int
    start: int
    end: int | None


def queues_of(broker: "EmbeddedBroker", topic: str, wanted: Sequence[int] | None) -> list[int]:
    """The queues to read. NotFound for an unknown topic or queue, NoPermissionError (of the
    broker) for a topic without read permission."""
    config = broker.topic(topic)
    if config is None:
        if not topic.strip():
            check_topic(topic)
        raise NotFound(f"topic {topic} does not exist in {broker.view.root}")
    try:
        check_readable(config)
    except NoPermissionError as error:
        remedy = f"'rmqctl topic alter {topic} --perm 6' makes it readable"
        if topic.startswith(DLQ_GROUP_TOPIC_PREFIX):
            group = topic.removeprefix(DLQ_GROUP_TOPIC_PREFIX)
            remedy = f"'rmqctl dlq browse {group}' shows the dead letters anyway; {remedy}"
        else:
            remedy += (
                f", and 'rmqctl message export -t {topic}' reads the log without the permission"
            )
        raise Refused(f"{error}; {remedy}") from None
    if wanted is None:
        return list(range(config.read_queue_nums))
    for queue_id in wanted:
        if queue_id >= config.read_queue_nums:
            count = config.read_queue_nums
            unread = words_about_unread_queues(broker, topic)
            raise NotFound(
                f"topic {topic} has no queue {queue_id}: it has {count}, numbered from 0"
                + (f"; {unread}" if unread else "")
            )
    return list(wanted)


def words_about_unread_queues(broker: "EmbeddedBroker", topic: str) -> str | None:
    """A sentence about messages in queues that the topic's settings do not have read; None if there
    are none, or no such topic. Looks at the list of all queues of the store."""
    config = broker.topic(topic)
    if config is None:
        return None
    read = config.read_queue_nums
    bounds = bounds_from(broker.view, topic, read)
    counts = {queue_id: high - low for queue_id, (low, high) in bounds.items() if high > low}
    if not counts:
        return None
    first, last, count = min(counts), max(counts), sum(counts.values())
    messages = "1 message lies" if count == 1 else f"{count} messages lie"
    where = f"queue {first}" if first == last else f"queues {first} to {last}"
    remedy = f"message export -t {topic}' prints them"
    if last <= MAX_QUEUE_ID:
        remedy = f"topic alter {topic} --read-queues {last + 1}' has them read"
    return (
        f"{messages} in {where} of {topic}, not read as readQueueNums is {read}; 'rmqctl {remedy}"
    )


def spans(
    broker: "EmbeddedBroker",
    topic: str,
    queues: Sequence[int],
    position: Position | None,
    group: Group | None,
    *,
    stop_at_end: bool,
    cut: "LogCut | None" = None,
) -> list[Span]:
    """Resolve start and end of each queue in the current store; a group's progress is a start.

    The ends of all queues are those of one moment, while others write: of ``cut``, which several
    topics share; None: of the call. With ``stop_at_end`` the ranges end there.
    """
    from storage.read.log_cut import LogCut

    cut = cut or LogCut(broker.view)
    begin = position.begin if position else None
    end = position.end if position else None
    if begin is not None and begin.bound is Bound.STORED:
        if group is None:
            raise UsageProblem("--offset stored needs --group")
        begin = None
    found = []
    for queue_id in queues:
        if group is not None and begin is None:
            known = compute_pull_from_where(
                broker, group.name, topic, queue_id, group.from_where, group.consume_timestamp
            )
            start = known.offset or 0
        else:
            start = offset_of(broker, topic, queue_id, begin or Point(Bound.START), cut)
        last = None
        if end is not None or stop_at_end:
            most = cut.queue_bounds(topic, queue_id).max_offset
            last = most if end is None else min(offset_of(broker, topic, queue_id, end, cut), most)
            last = max(last, start)
        found.append(Span(queue_id, start, last))
    return found


def offset_of(
    broker: "EmbeddedBroker",
    topic: str,
    queue_id: int,
    point: Point,
    cut: "LogCut | None" = None,
) -> int:
    """The queue offset of a point; a point outside of the queue becomes its nearest end.

    A point before the end counts from the end of ``cut``, None: from the present end.
    """
    from storage.read.by_time import Boundary

    if cut is not None and point.bound is Bound.END:
        low, high = cut.queue_bounds(topic, queue_id)
        return max(low, high - point.value)
    least, most = broker.min_offset(topic, queue_id), broker.max_offset(topic, queue_id)
    match point.bound:
        case Bound.START:
            return min(least + point.value, most)
        case Bound.END:
            return max(least, most - point.value)
        case Bound.TIME:
            return broker.search_offset(topic, queue_id, point.value, Boundary.LOWER)
        case _:
            return min(max(point.value, least), most)


def words_about(
    broker: "EmbeddedBroker", topic: str, position: Position | None, spans: Sequence[Span]
) -> Iterator[str]:
    """Sentences about missing parts of the selected range: offsets that are deleted or do not exist
    yet, queue by queue, and an empty range."""
    if position is None:
        return
    missing = [
        sentence
        for span in spans
        if (sentence := _missing(broker, topic, span.queue_id, position)) is not None
    ]
    yield from missing[:_TOLD]
    if len(missing) > _TOLD:
        yield f"{len(missing) - _TOLD} more queues of {topic} lack parts of the range"
    if position.end is not None and total(spans) == 0:
        yield f"no message of {topic} lies in the range"


def _missing(broker: "EmbeddedBroker", topic: str, queue_id: int, position: Position) -> str | None:
    least, most = broker.min_offset(topic, queue_id), broker.max_offset(topic, queue_id)
    begin, end = (
        point.value if point is not None and point.bound is Bound.OFFSET else None
        for point in position
    )
    where = f"queue {queue_id} of {topic}"
    if begin is not None and begin < least:
        last = least if end is None else min(end, least)
        if last > begin:
            gone = f"{begin} to {last - 1}" if last - 1 > begin else str(begin)
            return f"{where} begins at {least}: offset {gone} is deleted"
    if begin is not None and begin > most:
        return f"{where} ends at {most}: offset {begin} does not exist yet"
    return None


def last_spans(
    broker: "EmbeddedBroker",
    queues: Mapping[str, Sequence[int]],
    count: int,
    end: Point | None = None,
    *,
    stop_at_end: bool,
) -> dict[str, list[Span]]:
    """The start offsets for the last ``count`` messages of all queues together, by topic: the last
    ones before ``end``, None for the present ends.

    All queues end at one moment, while others write.
    """
    from storage.read.log_cut import LogCut

    cut = LogCut(broker.view)
    newest: list[tuple[int, str, int, int]] = []
    ends: dict[tuple[str, int], int] = {}
    for topic, numbers in queues.items():
        for queue_id in numbers:
            least, most = cut.queue_bounds(topic, queue_id)
            if end is not None:
                most = max(least, min(most, offset_of(broker, topic, queue_id, end, cut)))
            ends[topic, queue_id] = most
            offset = max(least, most - count)
            while offset < most:
                units = broker.view.units(topic, queue_id, offset, most - offset)
                newest += [(unit[0], topic, queue_id, at) for at, unit in enumerate(units, offset)]
                offset += len(units) or 1  # the file of one may be missing
    newest.sort()
    starts = dict(ends)
    for _, topic, queue_id, offset in newest[len(newest) - min(count, len(newest)) :]:
        starts[topic, queue_id] = min(starts[topic, queue_id], offset)
    return {
        topic: [Span(q, starts[topic, q], ends[topic, q] if stop_at_end else None) for q in numbers]
        for topic, numbers in queues.items()
    }


def combined(
    position: Position | None, from_timestamp: int | None, to_timestamp: int | None
) -> Position | None:
    """``--offset`` combined with ``--from`` and ``--to``; each end may be set once."""
    times = Position(
        None if from_timestamp is None else Point(Bound.TIME, from_timestamp),
        None if to_timestamp is None else Point(Bound.TIME, to_timestamp),
    )
    if position is None:
        return times if times != (None, None) else None
    if position.begin and times.begin:
        raise UsageProblem("--from and --offset both set the start")
    if position.end and times.end:
        raise UsageProblem("--to and --offset both set the end")
    return Position(position.begin or times.begin, position.end or times.end)


def backlog(broker: "EmbeddedBroker", topic: str, spans: Sequence[Span]) -> int:
    """Number of messages that the spans have now."""
    return sum(
        max(0, broker.max_offset(topic, span.queue_id) - span.start)
        if span.end is None
        else span.end - span.start
        for span in spans
    )


def total(spans: Sequence[Span], most: int | None = None) -> int | None:
    """Number of messages in the spans, up to ``most``; None if they have no end."""
    if any(span.end is None for span in spans):
        return None
    number = sum((span.end or 0) - span.start for span in spans)
    return number if most is None else min(number, most)


FROM_WHERE: Mapping[str, ConsumeFromWhere] = {
    "last": ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
    "first": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    "timestamp": ConsumeFromWhere.CONSUME_FROM_TIMESTAMP,
}
