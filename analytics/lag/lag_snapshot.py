"""A snapshot of a store: the lag of groups at one moment."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from storage import native
from storage.configs.consumer_offsets import topic_at_group
from storage.configs.offset_samples import Change, OffsetSamples, SampleHistory
from storage.errors import CorruptFileError
from storage.format.message import dlq_topic, retry_topic
from storage.format.shapes import time_or_none
from storage.read.log_cut import LogCut
from storage.retention import LogFilesDue, RetentionRules, log_files, rules_of

from .delayed import targets_in_doubt, waiting_counts
from .health import PATIENCE_MS, Health, judge
from .queue_lag import Columns, QueueColumns
from .queue_position import QueuePosition, unread_bytes
from .ready_retries import ready_retries
from .selection import Offsets
from .totals import QueueLag
from .trend import (
    RATE_WINDOW_MS,
    TREND_WINDOW_MS,
    StoredSince,
    Trend,
    decisive_observations,
    unchanged_since,
)

if TYPE_CHECKING:
    from storage.configs.topics import TopicConfig
    from storage.readonly import StoreView


class Readers(NamedTuple):
    """Readers of topics: (group, topic) to the committed offsets, and the number of live
    members."""

    offsets: Mapping[tuple[str, str], Offsets]
    members: Mapping[str, int]
    all_offsets: Mapping[tuple[str, str], Offsets]
    """Also of groups and topics that were not chosen."""


class GroupLag(NamedTuple):
    """A group in a topic: its queues in order, with its retries and dead letters of all topics."""

    group: str
    topic: str
    queues: Sequence[QueueLag]
    retry: int | None
    """None if the file with the delivery offsets cannot be read, or that of a level with retries
    lies beyond its end."""
    dlq: int
    members: int
    """Consumers of the group that live now."""


Depth = tuple[int | None, int]
"""Retries of a group that wait (None: unknown), and its dead letters, both of all topics."""


class LagSnapshot(NamedTuple):
    """The lag at ``as_of`` (ms)."""

    as_of: int
    group_lags: Sequence[GroupLag]
    doubt: str | None = None
    """Why progress may not be the groups' last; None without a reason."""
    delayed: Mapping[int, int | None] | None = None
    """Messages that wait by delay level; None where that is unknown."""
    left: int = 0
    """Groups in topics that are not in it, as they have not been looked at yet."""
    depths: Mapping[str, Depth] = {}
    """Waiting retries and dead letters of groups that were asked for, where there may be any."""


class QueueNow(NamedTuple):
    """Data that is the same for all groups that read a queue."""

    min_offset: int
    max_offset: int
    rate_in: float | None
    ends: Sequence[Change]
    """Its ends in earlier observations."""
    heads: Mapping[int, Head]
    """By the offset of a message that is a group's first unread one."""


class QueuesNow(NamedTuple):
    """Queues that a group reads, and their members as columns."""

    ids: tuple[int, ...]
    queues: list[QueueNow]
    lows: Sequence[int]
    highs: list[int]
    rates_in: Sequence[float | None]


Head = tuple[int | None, int | None, int | None]
"""A message: bytes from there to the end of its queue, its store time, and from when on it may be
deleted."""
_Unread = tuple[int | None, int | None, Health, int | None]
NO_HEAD: Final[Head] = (None, None, None)
QUEUES_AT_ONCE: Final = 100
"""Queues whose bounds are read before their messages: their files are still mapped then."""
_new: Final = tuple.__new__  # what a NamedTuple's own __new__ does, in half the time
_Then = Callable[[Sequence[Change], int | None], int | None]
"""From the observed progress and the current one to the progress at a time."""


def look_at(
    view: StoreView,
    topics: Mapping[str, TopicConfig],
    chosen: Readers,
    as_of: int,
    history: SampleHistory | None = None,
    rules: RetentionRules | None = None,
    *,
    sizes: bool = True,
    until_then: bool = False,
    log_end: int | None = None,
    reads: Callable[[str, int], bool] | None = None,
    depths_of: Iterable[str] = (),
    heads: bool = True,
    trends: bool = True,
) -> LagSnapshot:
    """Read a store whose progress was read before: so no lag is negative.

    The queues that groups read end at one offset of the log, that of the call, while others write.

    ``history`` are earlier observations; None: the samples that the store keeps. ``rules`` are the
    rules for deleting files; None: those of the store's settings. ``sizes``: read the units of
    unread messages, which ``lag_bytes`` needs; without it that is None where something is unread.
    ``until_then``: ``as_of`` may be long ago, and later data has no part in rates. ``log_end``: the
    queues end there, at an earlier end of the log. ``reads``: only these queues are read.
    ``depths_of``: groups for ``depths``, chosen or not. ``heads``: read the first unread message of
    each group. ``trends``: look at what was observed before, at waiting retries and at dead
    letters; without it rates, retries and ``delayed`` are None, dead letters 0.
    """
    if history is None:
        samples = OffsetSamples(view.root)
        history = samples.read(as_of - TREND_WINDOW_MS) if trends else SampleHistory()
    progress_then = _progress_then(history, as_of) if until_then else None
    read_by = {
        (group, topic): tuple(read_queue_ids(topics.get(topic), offsets))
        for (group, topic), offsets in chosen.offsets.items()
    }
    if reads is not None:
        read_by = {
            (group, topic): tuple(queue_id for queue_id in ids if reads(topic, queue_id))
            for (group, topic), ids in read_by.items()
        }
    trend = Trend(history.watched, as_of)
    since = _Arrivals(view, as_of, trend, until_then=until_then) if trends else None
    reader = _Queues(
        view,
        as_of,
        rules or rules_of(view.root, view.config),
        history,
        since,
        LogCut(view, log_end),
        sizes=sizes,
        heads=heads,
    )
    queues = reader.read(chosen, read_by)
    depths = Depths(view, chosen.all_offsets) if trends else None
    group_lags = []
    together: dict[tuple[str, tuple[int, ...]], QueuesNow] = {}
    for (group, topic), offsets in chosen.offsets.items():
        members = chosen.members.get(group, 0)
        changes = history.queues_of(topic_at_group(topic, group))
        stand = GroupInQueue(trend, as_of, progress_then, has_members=members > 0)
        ids = read_by[group, topic]
        now = together.get((topic, ids))
        if now is None:
            now = together[topic, ids] = _together(ids, queues[topic])
        rows = stand.in_queues(now, offsets, changes) if ids else []
        depth = (None, 0) if depths is None else depths.of(group)
        group_lags.append(GroupLag(group, topic, rows, *depth, members))
    doubt = view.progress_doubt()
    if depths is None:
        return LagSnapshot(as_of, group_lags, doubt)
    some = {group: depth for group in depths_of if (depth := depths.of(group)) != (0, 0)}
    return LagSnapshot(as_of, group_lags, doubt, depths.delayed, depths=some)


def _together(ids: tuple[int, ...], of_topic: Mapping[int, QueueNow]) -> QueuesNow:
    queues = [of_topic[queue_id] for queue_id in ids]
    return QueuesNow(
        ids,
        queues,
        [queue.min_offset for queue in queues],
        [queue.max_offset for queue in queues],
        [queue.rate_in for queue in queues],
    )


def read_queue_ids(config: TopicConfig | None, offsets: Iterable[int]) -> Sequence[int]:
    """The topic's queues that consumers read, and those with progress."""
    return sorted({*offsets, *range(config.read_queue_nums if config else 0)})


def _progress_then(history: SampleHistory, as_of: int) -> _Then | None:
    """The function that gives the progress at ``as_of``; later observations are dropped.

    None if there are no observations: then the current progress counts.
    """
    if all(time.end <= as_of for time in history.watched):
        return None
    history.forget_after(as_of)
    if any(time.begin <= as_of <= time.end for time in history.watched):
        return lambda changes, _: changes[-1][1] if changes else None
    # Not watched continuously: an unchanged value has not moved in between.
    return lambda changes, now: now if changes and changes[-1][1] == now else None


class GroupInQueue:
    """A group's state in queues. Few steps: there may be tens of thousands of them."""

    __slots__ = ("_as_of", "_has_members", "_then", "_trend")

    def __init__(
        self,
        trend: Trend | None,
        as_of: int,
        progress_then: _Then | None,
        *,
        has_members: bool,
    ) -> None:
        """Without a ``trend`` no rates are made."""
        self._trend = trend
        self._then = progress_then
        self._as_of = as_of
        self._has_members = has_members

    def in_queue(
        self,
        queue_id: int,
        queue: QueueNow,
        committed: int | None,
        changes: Sequence[Change],
    ) -> QueueLag:
        """In one queue; ``changes`` are its earlier observations."""
        low, high, rate_in, _, _ = queue
        what = _new(QueuePosition, (low, committed, high))
        then = committed if self._then is None else self._then(changes, committed)
        rate_out = None if self._trend is None else self._trend.rate_out(changes, then)
        lag_bytes, stored, status, risk = self._unread(queue, committed, changes)
        return _new(QueueLag, (queue_id, what, lag_bytes, stored, rate_in, rate_out, status, risk))

    def in_queues(
        self,
        queues: QueuesNow,
        offsets: Offsets,
        all_changes: Mapping[int, Sequence[Change]],
    ) -> QueueColumns:
        """In some queues; see :meth:`in_queue`."""
        ids, of_now, lows, highs, rates_in = queues
        committed = _in_order(offsets, ids)
        changes = [*all_changes.values()]
        if tuple(all_changes) != ids:
            changes = [all_changes.get(queue_id, ()) for queue_id in ids]
        count = len(ids)
        nothing, good = (None,) * count, (Health.OK,) * count
        then = committed if self._then is None else [*map(self._then, changes, committed)]
        rates_out = nothing if self._trend is None else self._trend.rates_out(changes, then)
        if committed == highs:
            sizes = (0,) * count
            return QueueColumns(
                Columns(
                    *(ids, lows, committed, highs, sizes, nothing),
                    *(rates_in, rates_out, good, nothing),
                )
            )
        stuck = Health.STALL if self._has_members else Health.STOP
        lag_bytes, stored, statuses, risks = unread_of(
            of_now, committed, changes, self._as_of, PATIENCE_MS, Health.OK, stuck, self._unread
        )
        return QueueColumns(
            Columns(
                *(ids, lows, committed, highs, lag_bytes, stored),
                *(rates_in, rates_out, statuses, risks),
            )
        )

    def _unread(self, queue: QueueNow, committed: int | None, changes: Sequence[Change]) -> _Unread:
        """What is unread in a queue: its bytes, the time of its oldest message, the health, and
        from when on that message may be deleted."""
        low, high, _, ends, heads = queue
        if committed == high:
            return 0, None, Health.OK, None
        lag_bytes = stored = risk = None
        as_of = self._as_of
        if committed is not None and committed < high:
            lag_bytes, stored, risk = heads.get(committed if committed > low else low, NO_HEAD)
            if low == high:
                lag_bytes = 0
            if stored is not None and as_of - stored < PATIENCE_MS:
                return lag_bytes, stored, Health.OK, risk  # as judge, without a call
        status = judge(
            as_of,
            committed,
            high,
            unchanged_since(changes, committed, as_of),
            lambda: decisive_observations(changes, ends, as_of, committed, high),
            low,
            stored,
            members=self._has_members,
        )
        return lag_bytes, stored, status, risk


def _unread_of(
    queues: list[QueueNow],
    committed: list[int | None],
    changes: list[Sequence[Change]],
    _as_of: int,
    _patience: int,
    _ok: Health,
    _stuck: Health,
    one: Callable[[QueueNow, int | None, Sequence[Change]], _Unread],
    /,
) -> tuple[Sequence[Any], ...]:
    """What :meth:`GroupInQueue._unread` gives for some queues, at least one, as columns."""
    return tuple(zip(*map(one, queues, committed, changes), strict=True))


unread_of: Final = native.form("unread_of", _unread_of)


class _Queues:
    """Reads queues, each once however many groups read it."""

    def __init__(
        self,
        view: StoreView,
        as_of: int,
        rules: RetentionRules,
        history: SampleHistory,
        arrivals: _Arrivals | None,
        moment: LogCut,
        *,
        sizes: bool,
        heads: bool,
    ) -> None:
        self._view = view
        self._sizes = sizes
        self._heads = heads
        self._history = history
        self._arrivals = arrivals
        self._moment = moment
        files = log_files(view.root, view.config, rules, self._moment.log_end, as_of)
        self._due = LogFilesDue(files)

    def read(
        self, chosen: Readers, read_by: Mapping[tuple[str, str], tuple[int, ...]]
    ) -> dict[str, dict[int, QueueNow]]:
        """Read all queues with a reading group, by topic and queue id."""
        committed = _committed(chosen, read_by)
        found: dict[str, dict[int, QueueNow]] = {topic: {} for topic in committed}
        queues = [(topic, queue_id) for topic, of in committed.items() for queue_id in of]
        for start in range(0, len(queues), QUEUES_AT_ONCE):
            some = queues[start : start + QUEUES_AT_ONCE]
            known = [committed[topic][queue_id] for topic, queue_id in some]
            bounds = self._moment.each_queue_bounds(some, first=[*map(_smallest, known)])
            for (topic, queue_id), offsets, (low, high) in zip(some, known, bounds, strict=True):
                found[topic][queue_id] = self._queue(topic, queue_id, offsets, low, high)
        return found

    def _queue(
        self, topic: str, queue_id: int, committed: Collection[int], low: int, high: int
    ) -> QueueNow:
        view = self._view
        if committed and max(committed) > high:
            # A message may be read and committed right before the log's end is moved past it.
            written = view.max_offset_in_queue(topic, queue_id)
            high = max([high, *(offset for offset in committed if offset <= written)])
        ends = self._history.ends(topic, queue_id)
        first: set[int] = set()
        if self._heads and low < high:
            first = {max(offset, low) for offset in committed if 0 <= offset < high}
        unread = unread_bytes(view, topic, queue_id, first, high) if self._sizes else {}
        places = view.places(topic, queue_id, first, (low, high))
        heads: dict[int, Head] = {}
        for offset in first:
            place, stored = places.get(offset, (None, None))
            due = None if place is None else self._due.of(place)
            heads[offset] = unread.get(offset), time_or_none(stored), due
        arrivals = self._arrivals
        rate = None if arrivals is None else arrivals.rate(topic, queue_id, ends, low, high)
        return QueueNow(low, high, rate, ends, heads)


def _committed(
    chosen: Readers, read_by: Mapping[tuple[str, str], tuple[int, ...]]
) -> dict[str, dict[int, set[int]]]:
    """The different offsets that groups have committed in each queue, by topic and queue id."""
    columns: dict[tuple[str, tuple[int, ...]], list[list[int | None]]] = defaultdict(list)
    for key, offsets in chosen.offsets.items():
        ids = read_by[key]
        columns[key[1], ids].append(_in_order(offsets, ids))
    found: dict[str, dict[int, set[int | None]]] = {topic: {} for _, topic in chosen.offsets}
    for (topic, ids), of_groups in columns.items():
        of_topic = found[topic]
        for queue_id, of_queue in zip(ids, zip(*of_groups, strict=True), strict=True):
            of_topic[queue_id] = of_topic.get(queue_id, set()).union(of_queue)
    return {
        topic: {
            queue_id: {offset for offset in offsets if offset is not None}
            for queue_id, offsets in of.items()
        }
        for topic, of in found.items()
    }


def _in_order(offsets: Offsets, ids: tuple[int, ...]) -> list[int | None]:
    """The offsets of queues; mostly there are just these, in this order."""
    return [*offsets.values()] if tuple(offsets) == ids else [*map(offsets.get, ids)]


def _smallest(offsets: Collection[int]) -> int:
    return min(offsets, default=-1)


class _Arrivals:
    """How fast queues grew in the time before ``as_of``."""

    def __init__(self, view: StoreView, as_of: int, trend: Trend, *, until_then: bool) -> None:
        self._trend = trend
        self._since = StoredSince(view, as_of - RATE_WINDOW_MS)
        self._later = StoredSince(view, as_of + 1) if until_then else None
        self._is_whole = True
        if until_then:
            first = view.log_min_offset()
            oldest = view.look_message_by_offset(first) if first else None
            self._is_whole = oldest is None or oldest.store_timestamp <= as_of - RATE_WINDOW_MS

    def rate(
        self, topic: str, queue_id: int, ends: Sequence[Change], low: int, high: int
    ) -> float | None:
        """Messages a second; None if it was not observed, and the log does not show it either."""
        if self._later is not None:
            later = self._later.count(topic, queue_id, low, high)
            if later is None or (low and not self._is_whole):
                return None  # some of that time have been deleted
            high -= later
        rate = self._trend.rate_in(ends, high)
        if rate is None:
            count = self._since.count(topic, queue_id, low, high)
            rate = None if count is None else count * 1000 / RATE_WINDOW_MS
        return rate


class Depths:
    """Retries and dead letters of groups."""

    def __init__(
        self, view: StoreView, offsets: Mapping[tuple[str, str], Mapping[int, int]]
    ) -> None:
        self._view = view
        self._offsets = offsets
        self._queues: dict[str, list[int]] = defaultdict(list)
        for topic, queue_id in view.queues():
            self._queues[topic].append(queue_id)
        self.delayed: dict[int, int | None] | None = None
        """Messages that wait by delay level; None where that is unknown."""
        self._waiting: Counter[str] | None = None
        self._in_doubt: set[str] = set()
        with suppress(CorruptFileError):
            counts = waiting_counts(view)
            self.delayed = {
                level: None if count is None else count.total() for level, count in counts.items()
            }
            self._waiting = sum((count or Counter() for count in counts.values()), Counter())
            if None in self.delayed.values():
                self._in_doubt = set().union(*targets_in_doubt(view).values())
        self._known: dict[str, Depth] = {}

    def of(self, group: str) -> Depth:
        """Both, each group's once."""
        found = self._known.get(group)
        if found is None:
            found = self._known[group] = self.retry(group), self.dead(group)
        return found

    def retry(self, group: str) -> int | None:
        """Unread messages in the group's retry topic, which is read from its start, and those that
        wait to get there; None if either is unknown."""
        topic = retry_topic(group)
        if self._waiting is None or topic in self._in_doubt:
            return None
        bounds = {
            queue_id: self._view.queue_bounds(topic, queue_id)
            for queue_id in self._queues.get(topic, ())
        }
        committed = self._offsets.get((group, topic), {})
        ready = ready_retries(self._view, topic, bounds, committed)
        return None if ready is None else self._waiting[topic] + ready

    def dead(self, group: str) -> int:
        """Messages in the group's dead letter topic."""
        topic = dlq_topic(group)
        bounds = [self._view.queue_bounds(topic, queue) for queue in self._queues.get(topic, ())]
        return sum(high - low for low, high in bounds)
