"""Cutting stores into ranges of queues: the work of one task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from analytics.datasource.query.bounds import BEGIN, END, QueueBound
from analytics.datasource.query.selection import Selection
from analytics.datasource.query.topics import TopicChoice
from storage.format.cq_unit import PRE_BLANK_SIZE
from storage.read.log_offsets import first_at, place_from
from storage.readonly import StoreView

if TYPE_CHECKING:
    from analytics.datasource.query.bounds import Progress
    from analytics.datasource.query.options import Options, TaskSize
    from analytics.report.stores import StoreRef

QueueLimits = Callable[[str, int, int, int], tuple[int, int]]
"""From topic, queue id, min and max offset to the first message and the end."""

_LEAST: Final = 20_000
"""Messages that justify a task of their own."""
_LEAST_PIECE: Final = 1_000
"""Messages of a queue that justify a look into it by another task."""
_TOGETHER: Final = 64
"""Most queues that are cut together: each task has a range of each of them."""
_USUAL: Final = 8
"""Tasks where there is little to read."""
_SAMPLES: Final = 3
_EACH_SAMPLE: Final = 20_000
_MOST_SAMPLES: Final = 64
_NEVER: Final = 1 << 63
"""An offset that no record has."""
UNIT_BYTES: Final = 20
"""Of a message in its queue."""


class Range(NamedTuple):
    """The messages [first, end) of a queue."""

    broker: str
    path: str
    topic: str
    queue_id: int
    first: int
    end: int
    row_bytes: int = 1
    """About the bytes that are read for a message."""
    places: tuple[int, int] | None = None
    """The part of the log whose records named the messages, if no look at the queue has shown that
    it has them; see ``ranges``."""

    @property
    def messages(self) -> int:
        """How many messages."""
        return self.end - self.first

    @property
    def named(self) -> Range | None:
        """This, if only records of the log have named it."""
        return self if self.places is not None else None

    def is_there(self, view: StoreView) -> bool:
        """Whether the queue's first and last unit of it name records of its part of the log."""
        _, _, topic, queue_id, first, end, _, places = self
        return places is not None and all(
            _lies_in(view.unit(topic, queue_id, at), *places) for at in (first, end - 1)
        )

    def ranges(self, view: StoreView) -> Iterator[Range]:
        """The range as the queue has it: a topic that was deleted and made again has other
        messages at the same offsets. Units that name no record count with the message after them,
        whatever part of the log theirs lie in: so a batch has the same ones as by queues."""
        if self.places is None:
            yield self
            return
        _, _, topic, queue_id, first, end, *_ = self
        low, high = view.queue_bounds(topic, queue_id)
        first, end = max(first, low), min(end, high)
        begin, limit = self.places
        if not _lies_in(view.unit(topic, queue_id, first), begin, limit):
            first = first_at(view, topic, queue_id, begin, first, end)
        if not _lies_in(view.unit(topic, queue_id, end - 1), begin, limit):
            end = first_at(view, topic, queue_id, limit, first, end)
        if first < end:
            first = _with_hole(view, topic, queue_id, low, first)
            yield self._replace(first=first, end=end, places=None)


def queue_ranges(
    stores: Sequence[StoreRef],
    topics: TopicChoice,
    chosen: Selection,
    limits: Callable[[StoreView, StoreRef], QueueLimits] | None = None,
    *,
    records: bool = True,
) -> Iterator[Range]:
    """The selected range of each queue, whole; queues without messages are left out.

    RocketMQ's own topics are read only if ``topics`` selects them, whatever the filters select.
    ``limits`` gives more bounds of the queues of a store. ``records``: these are read, not only
    units.
    """
    for ref in stores:
        if not chosen.wants("broker", ref.broker):
            continue
        with StoreView.open(ref.path) as view:
            limit = None if limits is None else limits(view, ref)
            yield from store_ranges(view, ref, topics, chosen, limit, records=records)


def store_ranges(
    view: StoreView,
    ref: StoreRef,
    topics: TopicChoice,
    chosen: Selection,
    limit: QueueLimits | None = None,
    *,
    records: bool = True,
) -> Iterator[Range]:
    """The same of one store."""
    for topic, queue_id in view.queues():
        if not (chosen.wants("topic", topic) and chosen.wants("queue_id", queue_id)):
            continue
        if not topics.wants(ref.broker, topic, queue_id):
            continue
        first, end = _bounds(view, topic, queue_id, chosen, limit)
        if first >= end:
            continue
        size = _row_bytes(view, topic, queue_id, first, end) if records else UNIT_BYTES
        for run in _runs(first, end, chosen.queue_offsets):
            yield Range(ref.broker, ref.path, topic, queue_id, *run, size)


def _runs(first: int, end: int, offsets: frozenset[int] | None) -> Iterator[tuple[int, int]]:
    """The range, or the runs of consecutive offsets in it."""
    if offsets is None:
        yield first, end
        return
    start = stop = None
    for offset in sorted(one for one in offsets if first <= one < end):
        if start is not None and offset == stop:
            stop = offset + 1
            continue
        if start is not None and stop is not None:
            yield start, stop
        start, stop = offset, offset + 1
    if start is not None and stop is not None:
        yield start, stop


def given_limits(
    options: Options, crossed: list[str] | None = None, progress: Progress | None = None
) -> Callable[[StoreView, StoreRef], QueueLimits] | None:
    """The bounds of a batch: ``startingOffset``, ``endingOffset`` and their times. Queues that end
    before they begin are added to ``crossed``. ``progress`` of the group of ``startingOffset``, if
    it was read before."""
    if (options.starting, options.ending) == (BEGIN, END):
        return None
    fail = options.fail_on_data_loss
    topics_are_given = options.topics != TopicChoice()

    def of_store(view: StoreView, ref: StoreRef) -> QueueLimits:
        start = QueueBound(options.starting, view, ref, fail=fail, progress=progress)
        end = QueueBound(options.ending, view, ref, fail=fail)

        def of_queue(topic: str, queue_id: int, low: int, high: int) -> tuple[int, int]:
            if not (topics_are_given or start.reads(topic)):
                return high, high
            first = start.offset(topic, queue_id, low, high, low)
            limit = end.offset(topic, queue_id, low, high, high)
            if crossed is not None and limit < first:
                crossed.append(f"{ref.broker}: queue {queue_id} of {topic} ({first}, {limit})")
            return first, limit

        return of_queue

    return of_store


def tasks_of(ranges: Sequence[Range], size: TaskSize) -> list[list[Range]]:
    """Pack ranges into tasks of about the same number of bytes: a long one is cut, small ones are
    joined. A task reads the same part of several queues: these lie near each other in the log, so
    that it reads a part of the log, and not all of it for one queue."""
    total = sum(part.messages * part.row_bytes for part in ranges)
    messages = sum(part.messages for part in ranges)
    if size.least is None:
        each = max(-(-total // _USUAL), -(-total * _LEAST // max(1, messages)))
    else:
        each = -(-total // size.least)
    each = max(1, min(each, size.most_bytes))
    tasks: list[list[Range]] = []
    room = 0
    for whole in _along_the_log(ranges, each):
        first = whole.first
        while first < whole.end:
            if room <= 0:
                tasks.append([])
                room = each
            end = min(whole.end, first + max(1, -(-room // whole.row_bytes)))
            tasks[-1].append(whole._replace(first=first, end=end))
            room -= (end - first) * whole.row_bytes
            first = end
    return tasks


def _along_the_log(ranges: Iterable[Range], each: int) -> Iterator[Range]:
    """The ranges in another order, long ones in pieces: first the first pieces of queues of a
    store, then the second ones, of about ``each`` bytes together."""
    for _, found in groupby(ranges, lambda part: part.path):
        short: list[Range] = []
        long: list[Range] = []
        for part in found:
            (long if part.messages >= 2 * _LEAST_PIECE else short).append(part)
        for start in range(0, len(long), _TOGETHER):
            yield from _in_turn(long[start : start + _TOGETHER], each)
        yield from short


def _in_turn(queues: Sequence[Range], each: int) -> Iterator[Range]:
    count = -(-sum(part.messages * part.row_bytes for part in queues) // each)
    turns: list[list[Range]] = [[] for _ in range(count)]
    for part in queues:
        pieces = min(count, part.messages // _LEAST_PIECE)
        ends = [part.first + part.messages * piece // pieces for piece in range(pieces + 1)]
        for piece, (first, end) in enumerate(pairwise(ends)):
            turns[piece * count // pieces].append(part._replace(first=first, end=end))
    for turn in turns:
        yield from turn


def _row_bytes(view: StoreView, topic: str, queue_id: int, first: int, end: int) -> int:
    """The usual size of a record, by some units that are spread over the range."""
    count = min(end - first, _SAMPLES + (end - first) // _EACH_SAMPLE, _MOST_SAMPLES)
    step = max(1, (end - first - 1) // max(1, count - 1))
    units = (view.unit(topic, queue_id, at) for at in range(first, end, step))
    sizes = [unit[1] for unit in units if unit is not None and 0 < unit[1] < PRE_BLANK_SIZE]
    return max(1, sum(sizes) // len(sizes)) if sizes else 1


def _lies_in(unit: tuple[int, int, int] | None, begin: int, end: int) -> bool:
    """Whether a unit names a record of a part of the log."""
    return unit is not None and 0 < unit[1] < PRE_BLANK_SIZE and begin <= unit[0] < end


def _with_hole(view: StoreView, topic: str, queue_id: int, low: int, first: int) -> int:
    """The first of the units right before a message that name no record; the message without."""
    if first > low and place_from(view, topic, queue_id, first - 1, first)[1] is None:
        return first_at(view, topic, queue_id, _NEVER, low, first)
    return first


def _bounds(
    view: StoreView,
    topic: str,
    queue_id: int,
    chosen: Selection,
    limits: QueueLimits | None,
) -> tuple[int, int]:
    """Positions limit the range; times do not: a broker whose clock went back stored messages out
    of the order of time, and a sample of records does not show that."""
    low, high = view.queue_bounds(topic, queue_id)
    first, limit = max(low, chosen.queue_offset[0]), min(high, chosen.queue_offset[1])
    whole = Selection()
    if chosen.commitlog_offset != whole.commitlog_offset:
        start, end = chosen.commitlog_offset
        first = max(first, first_at(view, topic, queue_id, start, low, high))
        limit = min(limit, first_at(view, topic, queue_id, end, low, high))
    if limits is not None:
        start, end = limits(topic, queue_id, low, high)
        first, limit = max(first, start), min(limit, end)
    return first, limit
