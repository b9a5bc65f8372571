"""What is unread of one queue, by segment, minute and tag: rows that can be added up.

All groups are counted in one pass. A queue's *cuts* are the distinct offsets from which some group
has not read; segment ``i`` lies between cut ``i`` and the next one, the last segment ends at the
end of the queue. A group at cut ``i`` has not read the sum of the segments from ``i`` on, so the
cost does not depend on the number of groups.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from storage import native
from storage.format.java_hash import tags_code

from .edges import DisorderError, MinuteEdges, UnreadableRecordError
from .units import read_units

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from numpy.typing import NDArray

    from storage.format.message import MessageExt
    from storage.readonly import StoreView

    from .edges import TimesOf
    from .units import Units

MINUTE_MS: Final = 60_000
UNKNOWN_MINUTE: Final = -1
"""The minute of messages whose store time cannot be read."""
NO_UNIT: Final = 0
"""The key of messages whose units are missing."""
DELETED: Final = 1
"""The key of messages that were deleted before they were counted."""
CHUNK: Final = 1 << 20
"""Units that are processed together: about 100 MB of memory at most."""
_SAMPLE: Final = 1024
_MANY: Final = 64


class QueueTask(NamedTuple):
    """A part of a queue to be counted: the messages [first, end), with one ``queue`` number in the
    plan and the ``cuts`` of the whole queue (ascending, the first at or before ``first``)."""

    queue: int
    topic: str
    queue_id: int
    cuts: tuple[int, ...]
    first: int
    end: int


class PartialCounts(NamedTuple):
    """Counted messages, column by column; ``key`` is a minute (since 1970) or a tag's number."""

    queue: NDArray[np.int32]
    segment: NDArray[np.int32]
    key: NDArray[np.int64]
    messages: NDArray[np.int64]
    bytes: NDArray[np.int64]

    def __len__(self) -> int:
        """How many rows there are (not columns)."""
        return len(self.key)


NO_CELLS: Final = PartialCounts(
    np.zeros(0, np.int32),
    np.zeros(0, np.int32),
    np.zeros(0, np.int64),
    np.zeros(0, np.int64),
    np.zeros(0, np.int64),
)


class Partials(NamedTuple):
    """Results of a task. ``disorder``: store times go back, so that other parts of the log that
    were counted by their order may be wrong."""

    minutes: PartialCounts
    tags: PartialCounts
    missing: PartialCounts
    """Messages whose units are missing (of key NO_UNIT), and those that were deleted since the plan
    (DELETED): they are in the counts of the other two, but have no bytes and no time."""
    texts: dict[tuple[str, int], str | None]
    """Tags by topic and number: the queue's hash, or a number made here. None where that is no hash
    of the message's tag; without an entry if no message was found that can be read."""
    places: dict[tuple[str, int], tuple[int, int]]
    """Queue id and offset of the message that has such a text, where it was found by its hash."""
    disorder: bool

    @property
    def is_damaged(self) -> bool:
        """Whether units are missing of messages that have not been deleted."""
        return bool((self.missing.key == NO_UNIT).any())


def count_unread(
    view: StoreView,
    task: QueueTask,
    edges: MinuteEdges,
    times_of: TimesOf,
    *,
    each_time: bool = False,
    each_tag: bool = False,
) -> Partials:
    """Count one task. ``edges`` are minutes' beginnings that lie around all times of the backlog.

    ``each_time``: read the time of every record, as is done anyway in each chunk in which store
    times are out of order, units are missing, or a record is met that cannot be read. ``each_tag``:
    read every tag, too, which distinguishes tags of the same hash; 10 us a message.
    """
    minutes: list[PartialCounts] = []
    tags: list[PartialCounts] = []
    missing: list[PartialCounts] = []
    texts: dict[int, str | None] = {0: None}
    places: dict[int, int] = {}
    disorder = False
    for first in range(task.first, task.end, CHUNK):
        end = min(first + CHUNK, task.end)
        units = read_units(view, task.topic, task.queue_id, first, end)
        segments = _segments(task.cuts, first, end)
        is_whole = _are_whole(units)
        if not is_whole:
            low = view.min_offset_in_queue(task.topic, task.queue_id)
            missing += _missing(task.queue, units, segments, low - first)
        found: PartialCounts | None = None
        if is_whole and not each_time:  # missing units have no order
            try:
                found = _by_edges(task.queue, units, segments, edges, times_of)
            except DisorderError:
                disorder = True
            except UnreadableRecordError:
                pass  # its neighbours have their order
        if found is None:
            found = _by_records(task.queue, units, segments, times_of)
        minutes.append(found)
        if each_tag:
            tags.append(_by_key(task.queue, units, segments, _tag_keys(view, task, units, texts)))
        else:
            by_tag = _by_key(task.queue, units, segments, units.tags)
            wanted = set(by_tag.key.tolist()) - texts.keys()
            _note_texts(view, task, units, wanted, texts, places)
            tags.append(by_tag)
        del units  # before the next ones are read
    del texts[0]
    by_topic = {(task.topic, tag): text for tag, text in texts.items()}
    queue_id = task.queue_id
    of_texts = {(task.topic, tag): (queue_id, offset) for tag, offset in places.items()}
    return Partials(add_up(minutes), add_up(tags), add_up(missing), by_topic, of_texts, disorder)


def add_up(parts: Sequence[PartialCounts]) -> PartialCounts:
    """Add cells of the same queue, segment and key; sorted by these."""
    if not any(map(len, parts)):
        return NO_CELLS
    queue = np.concatenate([part.queue for part in parts])
    segment = np.concatenate([part.segment for part in parts])
    key = np.concatenate([part.key for part in parts])
    order = np.lexsort((key, segment, queue))
    queue, segment, key = queue[order], segment[order], key[order]
    changes = (np.diff(queue) != 0) | (np.diff(segment) != 0) | (np.diff(key) != 0)
    starts = np.concatenate(([0], np.flatnonzero(changes) + 1))
    messages = np.concatenate([part.messages for part in parts])[order]
    sizes = np.concatenate([part.bytes for part in parts])[order]
    return PartialCounts(
        queue[starts],
        segment[starts],
        key[starts],
        np.add.reduceat(messages, starts),
        np.add.reduceat(sizes, starts),
    )


def _segments(cuts: tuple[int, ...], first: int, end: int) -> NDArray[np.int64]:
    """Where in the units [first, end) each segment begins, clipped; one for each cut."""
    return np.clip(np.array(cuts, np.int64), first, end) - first


def _cells(
    queue: int,
    segment: NDArray[np.int64],
    key: NDArray[np.int64],
    messages: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> PartialCounts:
    some = messages > 0
    return PartialCounts(
        np.full(int(some.sum()), queue, np.int32),
        segment[some].astype(np.int32),
        key[some],
        messages[some],
        sizes[some],
    )


def _are_whole(units: Units) -> bool:
    """Whether no unit is missing."""
    return int(np.count_nonzero(units.sizes)) == len(units)


def _missing(
    queue: int, units: Units, segments: NDArray[np.int64], deleted: int
) -> Iterator[PartialCounts]:
    """The missing units; those of the first ``deleted`` messages by themselves."""
    gone = np.flatnonzero(units.sizes == 0)
    split = int(np.searchsorted(gone, deleted))
    nothing = np.zeros(len(segments), np.int64)
    for key, some in ((DELETED, gone[:split]), (NO_UNIT, gone[split:])):
        count = np.bincount(np.searchsorted(segments, some, "right") - 1, minlength=len(segments))
        yield _cells(queue, np.arange(len(segments)), nothing + key, count, nothing)


def _by_edges(
    queue: int, units: Units, segments: NDArray[np.int64], edges: MinuteEdges, times_of: TimesOf
) -> PartialCounts:
    """By minute without reading each record: minutes end where edges lie."""
    at = edges.positions(units.places, units.sizes, times_of)
    # Between two neighbours of these all units have one segment and one minute.
    bounds = np.unique(np.concatenate((segments, at, [len(units)])))
    starts, ends = bounds[:-1], bounds[1:]
    segment = np.searchsorted(segments, starts, "right") - 1
    minute = np.searchsorted(at, starts, "right") - 1
    if (minute < 0).any():
        raise DisorderError  # older than the first edge
    return _cells(
        queue,
        segment,
        edges.times[minute] // MINUTE_MS,
        ends - starts,
        np.add.reduceat(units.sizes, starts) if len(starts) else ends,
    )


def _by_records(
    queue: int, units: Units, segments: NDArray[np.int64], times_of: TimesOf
) -> PartialCounts:
    """By minute with a read of each record."""
    stored = times_of(units.places, units.sizes)
    minute = np.where(stored < 0, UNKNOWN_MINUTE, stored // MINUTE_MS)
    return _by_key(queue, units, segments, minute)


def _examples(tags: NDArray[np.int64], wanted: Collection[int]) -> Iterator[tuple[int, int]]:
    """An offset at which each of these tags can be found."""
    if len(wanted) > _MANY:
        distinct, where = np.unique(tags, return_index=True)
        first = dict(zip(distinct.tolist(), where.tolist(), strict=True))
        yield from ((tag, first[tag]) for tag in wanted)
        return
    for tag in wanted:
        found = int((tags[:_SAMPLE] == tag).argmax())
        yield tag, found if tags[found] == tag else int((tags == tag).argmax())


def _further_examples(
    tags: NDArray[np.int64], wanted: Sequence[int]
) -> Iterator[tuple[int, Sequence[int]]]:
    """Where else these tags can be found: some places of each, from near its first one to its last
    one, so that most lie elsewhere in the log."""
    order = np.argsort(tags, kind="stable")
    names = np.array(wanted, np.int64)
    begins = np.searchsorted(tags, names, "left", sorter=order).tolist()
    ends = np.searchsorted(tags, names, "right", sorter=order).tolist()
    for tag, begin, end in zip(wanted, begins, ends, strict=True):
        some = dict.fromkeys((begin + 1, (begin + end) // 2, end - 1))
        yield tag, [int(order[at]) for at in some if begin < at < end]


def _note_texts(
    view: StoreView,
    task: QueueTask,
    units: Units,
    wanted: Collection[int],
    texts: dict[int, str | None],
    places: dict[int, int],
) -> None:
    """Note the texts of these tags in ``texts``: of the first message that tells, of a few; and in
    ``places`` its offset."""

    def notes(offset: int, tag: int) -> bool:
        """Note what a message says, if it can be read; whether that is a text."""
        message = _message(view, task, offset)
        if message is not None:
            texts[tag] = _text(message, tag)
            places[tag] = offset
        return texts.get(tag) is not None

    without = []
    for tag, example in _examples(units.tags, wanted):
        if not notes(units.first + example, tag):
            without.append(tag)
    if without:
        for tag, examples in _further_examples(units.tags, without):
            any(notes(units.first + at, tag) for at in examples)


def _tag_keys(
    view: StoreView, task: QueueTask, units: Units, texts: dict[int, str | None]
) -> NDArray[np.int64]:
    """A number for the tag of each message, noted in ``texts``; 0 for none."""
    numbers: dict[str, int] = {}
    keys = np.zeros(len(units), np.int64)
    for at, tag in enumerate(units.tags.tolist()):
        message = _message(view, task, units.first + at) if tag else None
        text = None if message is None else _text(message, tag)
        if text is None:
            continue
        number = numbers.get(text)
        if number is None:
            digest = blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).digest()
            number = numbers[text] = int.from_bytes(digest, "big", signed=True) or 1
            texts[number] = text
        keys[at] = number
    return keys


def _message(view: StoreView, task: QueueTask, offset: int) -> MessageExt | None:
    unit = view.unit(task.topic, task.queue_id, offset)
    if unit is None:
        return None
    return view.message_of_unit(task.topic, task.queue_id, offset, unit)


def _text(message: MessageExt, tag: int) -> str | None:
    """The tag of a message, if the number in the queue is its hash."""
    text = message.tags
    return text if text is not None and tags_code(text) == tag else None


def _by_key(
    queue: int, units: Units, segments: NDArray[np.int64], keys: NDArray[np.int64]
) -> PartialCounts:
    """Count by segment and by a key of each unit."""
    rows = tally(keys, units.sizes, segments)
    if rows is not None:
        segment, key, count, size = np.frombuffer(rows, np.int64).reshape(-1, 4).T
        return _cells(queue, segment, key, count, size)
    names, codes = _encoded(keys)
    lengths = np.diff(segments, append=len(units))
    bins = len(names) * len(lengths)
    if bins > max(len(units), _SAMPLE):
        return _by_sorting(queue, np.repeat(np.arange(len(lengths)), lengths), keys, units.sizes)
    if len(lengths) > 1:
        codes += np.repeat(np.arange(len(lengths)) * len(names), lengths)
    return _cells(
        queue,
        np.repeat(np.arange(len(lengths)), len(names)),
        np.tile(names, len(lengths)),
        np.bincount(codes, minlength=bins),
        np.bincount(codes, units.sizes, minlength=bins).astype(np.int64),
    )


def _by_sorting(
    queue: int,
    segment: NDArray[np.int64],
    keys: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> PartialCounts:
    """Count by key where hardly two messages have the same one."""
    return add_up([_cells(queue, segment, keys, np.ones(len(keys), np.int64), sizes)])


def _encoded(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """The different values, sorted, and which of them each key is.

    They are few as a rule, and sorting all keys costs more than everything else together.
    """
    names = np.unique(keys[:_SAMPLE])
    while True:
        codes = np.searchsorted(names, keys)
        np.minimum(codes, len(names) - 1, out=codes)
        new = keys[names[codes] != keys]
        if not new.size:
            return names, codes
        names = np.union1d(names, new if len(names) > _SAMPLE else new[:_SAMPLE])


tally: Final = native.form("tally", native.nothing)
