"""Looks at messages: some of a topic, one, what becomes of it, new ones, and those found."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rmqctl.admin import messages
from rmqctl.admin.messages.rows import LifeRow, TraceRow
from rmqctl.admin.queues import selection
from rmqctl.admin.queues.cursor import ObjectFetcher
from rmqctl.admin.queues.in_order import Part, QueuesInOrder
from rmqctl.errors import CliError, NotFound, UsageProblem
from rmqctl.exit_codes import DAMAGED
from rmqctl.output.message_rows import MessageRow, message_row
from rmqctl.parse.positions import Bound, Point, Position, parse_position
from storage.counted import counted
from storage.format.errors import BodyError
from storage.format.message import TRACE_TOPIC
from storage.parse.durations import format_size

from .filters import QuietCli
from .look import Look, Place, Progress, Source

if TYPE_CHECKING:
    from rmqctl.admin.queues.selection import Span
    from storage.format.message import MessageExt

ALL: Final = "*"
"""All queues, in a place."""
WINDOW: Final = 1000
"""Messages of a list, until more are wanted."""
READER: Final = "TOOLS_CONSUMER"
KEPT_BYTES: Final = 32 << 20
"""Bytes of bodies that a list keeps."""


class Window(NamedTuple):
    """A part of a topic, as the names of a place say it: TOPIC [QUEUE [FROM [COUNT]]].

    The names are as typed; the look says what is wrong with them.
    """

    topic: str
    queue: str = ALL
    start: str = ""
    """A time as ``--from`` takes it, or a position as ``--offset`` does; empty: the last ones."""
    most: str = str(WINDOW)

    def place(self) -> Place:
        """The place that shows it."""
        return Place("messages", tuple(self))

    def number(self) -> int:
        """The number of messages. UsageProblem for another text."""
        if not (self.most.isascii() and self.most.isdigit()):
            raise UsageProblem(f"{self.most!r} is not a number of messages")
        return int(self.most)


def window_of(place: Place) -> Window:
    """The window of a place."""
    return Window(*place.names)


def queue_number(text: str) -> int | None:
    """The number of a queue; None for all. UsageProblem for another text."""
    if text == ALL:
        return None
    if not (text.isascii() and text.isdigit()):
        raise UsageProblem(f"{text!r} is not a queue: a number, or {ALL} for all queues")
    return int(text)


_POSITION: Final = re.compile(
    r"[-+]?\d+|\d*:\d?|\d*:(\d{3,}|end)|[se]?@.*|start|beginning|end|stored"
)
"""What is a position and no time, but for a number that is one in milliseconds or finer."""
_LEAST_EPOCH_MS: Final = 100_000_000_000


def is_time(start: str) -> bool:
    """Whether the start of a window is a time: ``09:30`` is, ``5:9`` is a range of offsets."""
    text = start.strip()
    if text.isascii() and text.isdigit():
        return int(text) >= _LEAST_EPOCH_MS
    return _POSITION.fullmatch(text) is None


def position_of(
    start: str, now_ms: int, zone: tzinfo | None, tell: Callable[[str], object]
) -> Position:
    """Where a window begins. UsageProblem has the sentence of ``consume``; ``tell`` takes doubts
    about a time."""
    if is_time(start):
        cli = QuietCli({}, zone, tell, now_ms)
        timestamp = cli.time("--from", start)
        cli.warn_of_future("--from", timestamp, "no message is that recent")
        return Position(Point(Bound.TIME, timestamp), None)
    try:
        return parse_position(start, now_ms, zone)
    except ValueError as error:
        raise UsageProblem(f"--offset: {error}") from None


def _list_words(place: Place) -> tuple[str, ...]:
    window = window_of(place)
    queue = () if window.queue == ALL else ("-Q", window.queue)
    if not window.start:
        return ("consume", window.topic, *queue, "--last", window.most, "--with-meta")
    option = "--from" if is_time(window.start) else "--offset"
    part = (f"{option}={window.start}", "-e", "-c", window.most)
    return ("consume", window.topic, *queue, *part, "--with-meta")


def range_words(window: Window, begin: int, end: int) -> tuple[str, ...]:
    """The command that prints the messages of one queue from an offset up to before another."""
    offsets = f"--offset={begin}:{end}"
    return ("consume", window.topic, "-Q", window.queue, offsets, "--with-meta")


def _list(source: Source, place: Place) -> Iterator[Any]:
    """The messages of a window; the same rows again while nothing has come into it."""
    window = window_of(place)
    broker = source.broker
    queue, most = queue_number(window.queue), window.number()
    queues = selection.queues_of(broker, window.topic, None if queue is None else [queue])
    unread = (
        None if queue is not None else selection.words_about_unread_queues(broker, window.topic)
    )
    if unread is not None:
        source.notice(unread)
    if window.start:
        position = position_of(window.start, source.now_ms, source.zone, source.notice)
        spans = selection.spans(broker, window.topic, queues, position, None, stop_at_end=True)
        for sentence in selection.words_about(broker, window.topic, position, spans):
            source.notice(sentence)
        there = sum((span.end or 0) - span.start for span in spans)
    else:
        found = selection.last_spans(broker, {window.topic: queues}, most, stop_at_end=True)
        spans = found[window.topic]
        bounds = [source.view.queue_bounds(window.topic, queue_id) for queue_id in queues]
        there = sum(high - low for low, high in bounds)
    kept = source.memory.get("messages")
    if kept is None or kept[0] != (place, _signature(spans, there, most)):
        rows, notes = _read(source, window.topic, spans, most)
        kept = ((place, _signature(spans, there, most)), rows, notes)
        source.memory["messages"] = kept
    for sentence in kept[2]:
        source.notice(sentence)
    source.advance(Progress(len(kept[1]), there, "messages"))
    yield from kept[1]


def _signature(spans: "Sequence[Span]", there: int, count: int) -> Any:
    """What changes if the rows of a window do: its starts, and its ends unless it is full."""
    starts = tuple((span.queue_id, span.start) for span in spans)
    full = sum((span.end or 0) - span.start for span in spans) > count
    return starts if full else (*starts, there, *(span.end for span in spans))


def _read(
    source: Source, topic: str, spans: "Sequence[Span]", most: int
) -> tuple[list[Any], list[str]]:
    """The rows, and sentences about what is left out."""
    broker = source.broker
    fetch = ObjectFetcher(broker, topic, READER, None)
    queues = QueuesInOrder(broker, [Part(topic, spans, fetch)])
    rows: list[Any] = []
    notes: list[str] = []
    room = max(32, 2 * most // max(1, len(spans)))
    left, kept_bytes = most, 0
    while left and kept_bytes < KEPT_BYTES:
        ready = queues.ready(min(room, left))
        if not ready.items:
            break
        taken = 0
        for message in ready.items:
            taken += 1
            try:
                rows.append(message_row(message))
            except BodyError as error:
                notes.append(f"left out {error}")
                continue
            left -= 1
            kept_bytes += len(message.body)
            if not left or kept_bytes >= KEPT_BYTES:
                break
        ready.take(taken)
    if left and kept_bytes >= KEPT_BYTES:
        limit = format_size(KEPT_BYTES)
        notes.append(f"stopped after {len(rows):,} messages: a list keeps {limit} of bodies")
    if queues.unreadable:
        notes.append(
            f"{counted(queues.unreadable, 'message')} could not be read; 'rmqctl store fsck'"
        )
    return rows, notes


def _one(source: Source, place: Place) -> Iterable[Any]:
    topic, queue, offset = place.names
    queue_id = queue_number(queue)
    if queue_id is None or not (offset.isascii() and offset.isdigit()):
        raise UsageProblem("give a queue and a queue offset")
    return [_row(messages.at_offset(source.view, topic, queue_id, int(offset)))]


def _row(message: "MessageExt") -> MessageRow:
    try:
        return message_row(message)
    except BodyError as error:
        raise CliError(str(error), DAMAGED) from error


def _one_words(place: Place) -> tuple[str, ...]:
    topic, queue, offset = (*place.names, "QUEUE", "OFFSET")[:3]
    return ("message", "get", topic, "-Q", queue, "-O", offset)


def _life(source: Source, place: Place) -> Iterable[Any]:
    return messages.life(source.view, place.name, left_out=source.notice)


def _trace(source: Source, place: Place) -> Iterable[Any]:
    rows = list(messages.trace(source.view, place.name, left_out=source.notice))
    if not rows:
        raise NotFound(
            f"topic {TRACE_TOPIC} has no trace of {place.name}; L shows its history from the log"
        )
    return rows


def place_of(row: Any) -> Place:
    """The place of one message, by any row with a topic, a queue and an offset."""
    return Place("message", (row.topic, str(row.queue_id), str(row.queue_offset)))


LIST: Final = Look(
    "messages",
    MessageRow,
    _list,
    _list_words,
    ("queue_id", "queue_offset"),
    opens=place_of,
    named=("msg_id",),
)
ONE: Final = Look(
    "message",
    MessageRow,
    _one,
    _one_words,
    ("topic", "queue_id", "queue_offset"),
    named=("msg_id",),
)
LIFE: Final = Look(
    "life",
    LifeRow,
    _life,
    lambda place: ("message", "life", place.name),
    ("event", "group", "topic", "queue_id", "queue_offset", "msg_id"),
    opens=place_of,
    named=("msg_id",),
)
TRACE: Final = Look(
    "trace",
    TraceRow,
    _trace,
    lambda place: ("message", "trace", place.name),
    ("at_timestamp", "trace_type", "group", "client_host", "request_id"),
    named=("msg_id",),
)
