"""Looks that go on: new messages as they come, and a search of the whole log."""

import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from rmqctl.admin.left_out import Named, tell_left_out
from rmqctl.admin.messages import Search
from rmqctl.admin.queues import selection
from rmqctl.admin.queues.cursor import ObjectFetcher
from rmqctl.admin.queues.in_order import Part, QueuesInOrder
from rmqctl.console.looks.filters import QuietCli, filter_of, parse
from rmqctl.output.fields import fields_of
from rmqctl.output.message_rows import MessageRow, message_row
from rmqctl.output.shaping import predicate_of
from rmqctl.output.view import Format, View
from storage.counted import counted
from storage.format.errors import BodyError
from storage.read.log_cut import LogCut

from .look import Look, Place, Progress, Source
from .messages import ALL, READER, place_of, queue_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from storage.readonly import StoreView

KEPT: Final = 1000
"""The newest messages that are kept."""
_AT_ONCE: Final = 2000
"""Messages of a queue that are read together where each one must be looked at."""
_WAIT_MS: Final = 250
_PAUSE_S: Final = 0.1
_SHARE: Final = 3
"""The pause after a step, in times of its own work: other work goes on meanwhile."""
_LONGEST_PAUSE_S: Final = 5.0

Keep = Callable[[Any, Any], bool]
"""Whether a message and its row are wanted."""


def filter_words(place: Place) -> tuple[str, ...]:
    """The filter options of a place; as typed if they cannot be taken apart."""
    text = place.names[2] if len(place.names) > 2 else ""
    try:
        return tuple(shlex.split(text))
    except ValueError:
        return (text,)


def _follow_words(place: Place) -> tuple[str, ...]:
    topic, queue = (*place.names, ALL)[:2]
    queues = () if queue == ALL else ("-Q", queue)
    return ("consume", topic, *queues, "--offset", "end", *filter_words(place), "--with-meta")


def _follow(source: Source, place: Place) -> Iterator[Any]:
    """New messages, without end.

    Without a filter, what would fall out of the kept messages at once is counted and not read. With
    one, every message is looked at; if they come faster, some wait, and the screen says how many.
    """
    topic, queue = (*place.names, ALL)[:2]
    broker = source.broker
    queue_id = queue_number(queue)
    wanted = None if queue_id is None else [queue_id]
    keep = _keep(source, filter_words(place))
    notes = Named(source.notice)
    queues = selection.queues_of(broker, topic, wanted)
    cut = one_moment(broker.view, topic, queues)
    at = {q: cut.queue_bounds(topic, q)[1] for q in queues}
    places = {q: _place(broker.view, topic, q, at[q] - 1) for q in queues}
    came = looked = left_out = 0
    while True:
        known = broker.wait_for_messages(None, 0)
        begun = time.thread_time()  # the time that the look is held is no work
        spans = []
        new: dict[int, int] = {}
        queues = selection.queues_of(broker, topic, wanted)
        cut = one_moment(broker.view, topic, queues)
        for q in queues:
            low, end = cut.queue_bounds(topic, q)
            before = at.setdefault(q, 0)
            if end < before or _is_another(
                places.get(q), _place(broker.view, topic, q, before - 1)
            ):
                notes.add(f"queue {q} of {topic} was made anew: all its messages are new")
                at[q] = low
            elif before < low:  # they were deleted while they waited here
                left_out += low - before
                at[q] = low
            new[q] = end - at[q]
        waiting = sum(new.values())
        for q, count in new.items():
            take = count
            if keep is None and waiting > KEPT:
                take = -(-KEPT * count // waiting)
                left_out += count - take
                at[q] += count - take
            take = min(take, _AT_ONCE)
            spans.append(selection.Span(q, at[q], at[q] + take))
            at[q] += take
            places[q] = _place(broker.view, topic, q, at[q] - 1)
        came = looked + left_out + sum(span.end or 0 for span in spans)
        came -= sum(span.start for span in spans)
        came += sum(max(0, broker.max_offset(topic, q) - at[q]) for q in new)
        source.advance(Progress(looked, came, "messages", left_out))  # before any of their rows
        in_order = QueuesInOrder(
            broker, [Part(topic, spans, ObjectFetcher(broker, topic, READER, None))]
        )
        while (ready := in_order.ready(KEPT)).items:
            for message in ready.items:
                row = _row(message, notes)
                if row is None:
                    left_out += 1
                    continue
                looked += 1
                if keep is None or _kept(keep, message, row, notes):
                    yield row
            ready.take(len(ready.items))
            source.advance(Progress(looked, came, "messages", left_out))
        if in_order.unreadable:
            left_out += in_order.unreadable
            notes.add(f"{counted(in_order.unreadable, 'message')} could not be read")
        source.advance(Progress(looked, came, "messages", left_out))
        yield None
        if waiting:
            left = min(_LONGEST_PAUSE_S, max(_PAUSE_S, _SHARE * (time.thread_time() - begun)))
            while left > 0:
                part = min(left, _WAIT_MS / 1000)
                time.sleep(part)
                left -= part
                source.advance(Progress(looked, came, "messages", left_out))  # it may be stopped
        else:
            broker.wait_for_messages(known, _WAIT_MS, topic)


def _place(view: "StoreView", topic: str, queue_id: int, offset: int) -> int | None:
    """Where the record of a message is in the log; None if it is not known any more."""
    unit = view.unit(topic, queue_id, offset) if offset >= 0 else None
    return None if unit is None else unit[0]


def _is_another(before: int | None, now: int | None) -> bool:
    return None not in (before, now) and before != now


def one_moment(view: "StoreView", topic: str, queues: Sequence[int]) -> LogCut:
    """One moment of queues: else one that is looked at later may be ahead of the others.

    A Java broker makes messages readable in the order of the log, some time after it has written
    them there: those before one that is readable are readable, too.
    """
    if view.has_shared_state:
        return LogCut(view)
    last = -1
    for queue_id in queues:
        low, high = view.queue_bounds(topic, queue_id)
        unit = view.unit(topic, queue_id, high - 1) if low < high else None
        last = last if unit is None else max(last, unit[0])
    return LogCut(view, last + 1)


def _row(message: Any, notes: Named) -> MessageRow | None:
    try:
        return message_row(message)
    except BodyError as error:
        notes.add(f"left out {error}")
        return None


def _kept(keep: Keep, message: Any, row: Any, notes: Named) -> bool:
    try:
        return keep(message, row)
    except BodyError as error:
        notes.add(f"left out {error}")
        return False


def _keep(source: Source, words: tuple[str, ...]) -> Keep | None:
    """The test of filter options; None if there are none."""
    given = dict(parse(words).given)
    where = given.pop("where", None)
    predicate = filter_of(given, source.zone, source.notice).predicate if given else None
    test = None
    if where is not None:
        view = View(Format.TABLE, where=where, zone=source.zone, now_ms=source.now_ms)
        test = predicate_of(fields_of(MessageRow), view)
    if predicate is None and test is None:
        return None

    def keep(message: Any, row: Any) -> bool:
        return (predicate is None or predicate(message)) and (test is None or test(row))

    return keep


def _search_words(place: Place) -> tuple[str, ...]:
    try:
        return ("message", "search", *shlex.split(place.name))
    except ValueError:
        return ("message", "search", place.name)


def _search(source: Source, place: Place) -> Iterator[Any]:
    """The hits of a search, as they are found."""
    from rmqctl.message.search.query import build_query

    others, given = parse(_search_words(place)[2:])
    options: Mapping[str, Any] = given
    pattern = others[0] if others else None
    topic = options.get("topic") or (others[1] if len(others) > 1 else None)
    filters = {name: value for name, value in given.items() if name not in ("topic", "in", "where")}
    cli = QuietCli(filters, source.zone, source.notice)
    topics = None if topic is None else [topic]
    query = build_query(cli, source.view, pattern, topics, options.get("in"))
    search = Search(source.view, query, jobs=1)
    source.advance(Progress(0, search.total_bytes, "bytes"))
    parts = search.parts()
    try:
        for part in parts:
            for offset in part.hits:
                message = source.view.look_message_by_offset(offset)
                try:
                    row = None if message is None else message_row(message)
                except BodyError:
                    row = None
                if row is None:
                    search.damaged.add(offset)
                yield row
            source.advance(Progress(search.scanned_bytes, search.total_bytes, "bytes"))
            yield None
    finally:
        parts.close()
    for tell in cli.at_end:
        tell()
    if search.damaged:
        tell_left_out(source.view, search.damaged, source.notice)
        source.notice(f"{counted(len(search.damaged), 'damaged record')} may be hits, too")


FOLLOW: Final = Look(
    "follow",
    MessageRow,
    _follow,
    _follow_words,
    ("queue_id", "queue_offset"),
    opens=place_of,
    walk=True,
    endless=True,
    named=("msg_id",),
)
SEARCH: Final = Look(
    "search",
    MessageRow,
    _search,
    _search_words,
    ("topic", "queue_id", "queue_offset"),
    opens=place_of,
    walk=True,
    named=("msg_id",),
)
