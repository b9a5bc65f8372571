"""One store's part of a report; partial reports of many stores, from any processes, are combined.

Pure: the same scan and counts give the same partial report.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from analytics.kernels.partials import DELETED

from .amounts import Amounts
from .scan import StoreWarning

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.kernels.partials import PartialCounts, Partials
    from analytics.lag.lag_snapshot import Depth, GroupLag

    from .scan import Orphan, ScannedDelays, ScannedQueue, StoreScan
    from .stores import StoreRef

Place = tuple[str, str]
"""Group and topic."""
Tags = dict[str | None, tuple[int, int]]
"""Messages and bytes by tag; None: no tag, one that cannot be read, or a number that is no hash of
one."""
_QUEUE_BITS: Final = 32


class PartialReport(NamedTuple):
    """A store's partial report. Pickles."""

    ref: StoreRef
    log: tuple[int, int]
    """Begin and end of the commit log."""
    marks: frozenset[str]
    """Marks of records, most of them the first ones of log files: copies of one log have some in
    common, and none at one place that differ."""
    group_lags: Sequence[GroupLag]
    minutes: Mapping[Place, Amounts]
    """By minute (since 1970, UNKNOWN_MINUTE for an unknown one)."""
    tags: Mapping[Place, Tags]
    agenda: Sequence[ScannedDelays]
    orphans: Sequence[Orphan]
    warnings: Sequence[StoreWarning]
    is_damaged: bool | None = False
    """Some queues lack units: they were counted as far as they can be read; None: not known."""
    depths: Mapping[str, Depth] = {}
    """Waiting retries and dead letters of groups of the store, whatever topics were chosen."""


def share_of(scan: StoreScan, counted: Partials) -> PartialReport:
    """Combine the scan with the counts of its queues."""
    places: dict[Place, list[tuple[int, int]]] = defaultdict(list)
    plan = {(queue.topic, queue.queue_id): queue for queue in scan.queues}
    sizes = _unread_bytes(scan.queues, counted)
    group_lags = []
    for group_lag in scan.snapshot.group_lags:
        queues = []
        for queue in group_lag.queues:
            first = queue.unread.first_unread
            if first is not None:
                known = plan[group_lag.topic, queue.queue_id]
                segment = known.cuts.index(first)
                places[group_lag.group, group_lag.topic].append((known.number, segment))
                queue = queue._replace(lag_bytes=sizes[known.number][segment])
            queues.append(queue)
        group_lags.append(group_lag._replace(queues=queues))
    minutes = dict(_by_queue(scan.queues, places, counted.minutes))
    tags = dict(_by_queue(scan.queues, places, counted.tags))
    return PartialReport(
        scan.ref,
        scan.log,
        scan.marks,
        group_lags,
        minutes,
        {place: _by_text(place[1], amounts, counted.texts) for place, amounts in tags.items()},
        scan.agenda,
        scan.orphans,
        [one._replace(text=f"{scan.ref.broker}: {one.text}") for one in _warnings(scan, counted)],
        scan.is_damaged or counted.is_damaged,
        scan.snapshot.depths,
    )


def _begins(
    queues: Sequence[ScannedQueue], cells: PartialCounts
) -> tuple[list[list[int]], list[int]]:
    """The beginnings of the rows of each queue's segments, and the end of each queue's rows."""
    order = (cells.queue.astype(np.int64) << _QUEUE_BITS) + cells.segment
    first = [
        (queue.number << _QUEUE_BITS) + segment
        for queue in queues
        for segment in range(len(queue.cuts))
    ]
    at = iter(np.searchsorted(order, np.array(first, np.int64)).tolist())
    begins = [[next(at) for _ in queue.cuts] for queue in queues]
    end = [(queue.number + 1) << _QUEUE_BITS for queue in queues]
    return begins, np.searchsorted(order, np.array(end, np.int64)).tolist()


def _unread_bytes(queues: Sequence[ScannedQueue], counted: Partials) -> list[list[int | None]]:
    """Bytes from each segment of each queue to its end; None where some are not known."""
    found: list[list[int | None]] = []
    begins, ends = _begins(queues, counted.minutes)
    gaps, gap_ends = _begins(queues, counted.missing)
    total = np.concatenate(([0], np.cumsum(counted.minutes.bytes)))
    for starts, end, missing, last in zip(begins, ends, gaps, gap_ends, strict=True):
        sums: list[int] = (total[end] - total[starts]).tolist()
        found.append(
            [None if gap < last else size for size, gap in zip(sums, missing, strict=True)]
        )
    return found


def _by_queue(
    queues: Sequence[ScannedQueue],
    places: Mapping[Place, Sequence[tuple[int, int]]],
    cells: PartialCounts,
) -> Iterator[tuple[Place, Amounts]]:
    """The unread messages of each group in a topic: the segments from its offset on, summed up."""
    begins, ends = _begins(queues, cells)
    by_topic: dict[str, list[Place]] = defaultdict(list)
    for place in places:
        by_topic[place[1]].append(place)
    for topic, of_topic in groupby(queues, attrgetter("topic")):
        numbers = [queue.number for queue in of_topic]
        low, high = begins[numbers[0]][0], ends[numbers[-1]]
        names, codes = np.unique(cells.key[low:high], return_inverse=True)
        messages, sizes = cells.messages[low:high], cells.bytes[low:high]
        for place in by_topic[topic]:
            tails = [
                slice(begins[queue][segment] - low, ends[queue] - low)
                for queue, segment in places[place]
            ]
            which = np.concatenate([codes[tail] for tail in tails])
            yield (
                place,
                _amounts(
                    names,
                    np.bincount(which, np.concatenate([messages[tail] for tail in tails])),
                    np.bincount(which, np.concatenate([sizes[tail] for tail in tails])),
                ),
            )


def _amounts(names: NDArray[np.int64], messages: NDArray[Any], sizes: NDArray[Any]) -> Amounts:
    some = np.flatnonzero(messages)  # floats are exact to 2 ** 53
    return Amounts(names[some], messages[some].astype(np.int64), sizes[some].astype(np.int64))


def _by_text(topic: str, amounts: Amounts, texts: Mapping[tuple[str, int], str | None]) -> Tags:
    found: Tags = {}
    for key, messages, size in zip(*(column.tolist() for column in amounts), strict=True):
        text = texts.get((topic, key))
        before = found.get(text, (0, 0))
        found[text] = (before[0] + messages, before[1] + size)
    return found


def about_orphans(orphans: Sequence[Orphan]) -> dict[str, str]:
    """A sentence for each topic that does not exist and in which groups have progress."""
    lost: dict[str, list[str]] = defaultdict(list)
    for orphan in orphans:
        lost[orphan.topic].append(orphan.group)
    return {
        topic: f"{'group' if len(groups) == 1 else 'groups'} {', '.join(groups)}: progress in "
        f"{topic}, which does not exist"
        for topic, groups in lost.items()
    }


def _warnings(scan: StoreScan, counted: Partials) -> Iterator[StoreWarning]:
    yield from scan.warnings
    for topic, sentence in about_orphans(scan.orphans).items():
        yield StoreWarning(sentence, None, topic)
    without = "without bytes, time and tag"
    deleted = int(counted.missing.messages[counted.missing.key == DELETED].sum())
    if deleted:
        yield StoreWarning(
            f"1 message was deleted before it was counted: it is counted {without}"
            if deleted == 1
            else f"{deleted:,} messages were deleted before they were counted: they are counted "
            f"{without}"
        )
    missing = int(counted.missing.messages.sum()) - deleted
    if missing:
        yield StoreWarning(
            f"1 message has no unit in its queue: it is counted {without}"
            if missing == 1
            else f"{missing:,} messages have no unit in their queue: they are counted {without}"
        )
    if counted.disorder:
        yield StoreWarning(
            "store times go back in the log: the time of every unread message was read"
        )
