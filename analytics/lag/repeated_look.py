"""Looking again and again at the lag of a store: what did not change is not computed again.

A look equals :func:`.lag_snapshot.look_at` with the same history. What it gave for a group in a
queue holds while its committed offset, the queue's bounds and ``rate_in``, the time from which on
files may be deleted, and whether the group has members stay as they are, and until a time
(:mod:`.validity`) at which the passing of time alone may change it. What is unknown because a unit
or a record could not be read is read again with each look; what was read once is not, as a log only
grows.

A GroupLag that did not change is the same object in the next snapshot, so that what was made of it
may be kept, too (:class:`.kept.Kept`).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from storage.configs.consumer_offsets import topic_at_group
from storage.coordination.shared_state import SharedStateBounds
from storage.read.log_cut import LogCut
from storage.retention import LogFile, due_of, log_files, rules_of

from .lag_snapshot import (
    Depths,
    GroupInQueue,
    GroupLag,
    Head,
    LagSnapshot,
    QueueNow,
    Readers,
    read_queue_ids,
)
from .queue_position import unread_bytes
from .selection import Offsets
from .totals import QueueLag
from .trend import RATE_WINDOW_MS, TREND_WINDOW_MS, StoredSince, Trend
from .validity import AT_ONCE, Validity

if TYPE_CHECKING:
    from storage.configs.offset_samples import SampleHistory
    from storage.configs.topics import TopicConfig
    from storage.read.bounds import Bounds
    from storage.readonly import StoreView

_FORGET_EVERY: Final = 100
"""Looks after which old observations are discarded."""
_NONE: Final[Offsets] = {}


class _Moment(NamedTuple):
    """What is the same for all queues in one look."""

    view: StoreView
    as_of: int
    trend: Trend
    files: Sequence[LogFile]
    files_changed: bool
    arrivals: StoredSince
    history: SampleHistory
    cut: LogCut
    chosen: Readers

    def bounds(self, topic: str, queue_id: int) -> tuple[int, int]:
        """The bounds of a queue, as :func:`.lag_snapshot.look_at` takes them."""
        low, high = self.cut.queue_bounds(topic, queue_id)
        written = self.view.max_offset_in_queue(topic, queue_id)
        if written > high:  # what is committed was read, though it lies past the cut
            for key, offsets in self.chosen.offsets.items():
                committed = offsets.get(queue_id, -1) if key[1] == topic else -1
                if high < committed <= written:
                    high = committed
        return low, high


class RepeatedLook:
    """Looks at one store, with a history: earlier observations, then the looks themselves."""

    def __init__(self, view: StoreView, history: SampleHistory) -> None:
        self._view = view
        self._history = history
        self._looks = 0
        self._as_of = 0
        self._queues: dict[str, dict[int, _Queue]] = {}
        self._pairs: dict[tuple[str, str], _Pair] = {}
        self._files: Sequence[LogFile] = []
        self._bounds: tuple[Bounds | None, int] = None, 0
        self._watched_since: int | None = None

    def look(self, topics: Mapping[str, TopicConfig], chosen: Readers, as_of: int) -> LagSnapshot:
        """Look at a store whose progress was read before, and keep what was observed."""
        try:
            return self._look(topics, chosen, as_of)
        except BaseException:
            self._forget()  # some of it may be of this look, and some of the one before
            raise

    def _forget(self) -> None:
        self._queues, self._pairs, self._files = {}, {}, []

    def _look(self, topics: Mapping[str, TopicConfig], chosen: Readers, as_of: int) -> LagSnapshot:
        moment = self._moment(chosen, as_of)
        before, self._pairs = self._pairs, {}
        changed: dict[str, Collection[int]] = {}
        stale: list[tuple[_Pair, Sequence[int]]] = []
        for key, offsets in chosen.offsets.items():
            group, topic = key
            if topic not in changed:
                changed[topic] = self._refresh(topic, moment)
            queues = self._queues[topic]
            pair = before.get(key)
            if pair is None or pair.queues is not queues:
                pair = _Pair(topic, group, queues)
            self._pairs[key] = pair
            has_members = chosen.members.get(group, 0) > 0
            config = topics.get(topic)
            if (
                pair.until <= as_of
                or offsets is not pair.offsets
                or config is not pair.config
                or has_members is not pair.has_members
                or changed[topic]
            ):
                which = pair.stale(offsets, config, changed[topic], as_of, has_members)
                self._add_queues(pair, which, moment)
                if which:
                    stale.append((pair, which))
        self._queues = {topic: self._queues[topic] for topic in changed}
        self._read_heads(stale, moment)
        _judge(stale, moment)
        self._observe(stale, moment)
        depths = Depths(self._view, chosen.all_offsets)
        group_lags = [
            pair.group_lag(depths.of(group), chosen.members.get(group, 0))
            for (group, _), pair in self._pairs.items()
        ]
        return LagSnapshot(as_of, group_lags, self._view.progress_doubt())

    def _moment(self, chosen: Readers, as_of: int) -> _Moment:
        view = self._view
        bounds = view.bounds
        made = bounds.made() if isinstance(bounds, SharedStateBounds) else 0
        if self._bounds[0] is not bounds or self._bounds[1] != made or as_of < self._as_of:
            self._forget()
        self._bounds, self._as_of = (bounds, made), as_of
        trend = Trend(self._history.watched, as_of)
        if trend.watched_since != self._watched_since:
            self._pairs = {}  # rates are of another time
        self._watched_since = trend.watched_since
        rules = rules_of(view.root, view.config)
        cut = LogCut(view)
        files = log_files(view.root, view.config, rules, cut.log_end, as_of)
        files_changed, self._files = files != self._files, files
        arrivals = StoredSince(view, as_of - RATE_WINDOW_MS)
        return _Moment(
            view, as_of, trend, files, files_changed, arrivals, self._history, cut, chosen
        )

    def _refresh(self, topic: str, moment: _Moment) -> Collection[int]:
        """Read the bounds of a topic's queues; gives the ids of those that changed."""
        queues = self._queues.setdefault(topic, {})
        return [queue_id for queue_id, queue in queues.items() if queue.refresh(moment)]

    def _add_queues(self, pair: _Pair, which: Sequence[int], moment: _Moment) -> None:
        for queue_id in which:
            if queue_id not in pair.queues:
                queue = pair.queues[queue_id] = _Queue(pair.topic, queue_id)
                queue.refresh(moment)

    def _read_heads(self, stale: Iterable[tuple[_Pair, Sequence[int]]], moment: _Moment) -> None:
        """Read the first unread messages that are not known, each queue's at once."""
        missing: dict[_Queue, set[int]] = defaultdict(set)
        for pair, which in stale:
            for queue_id in which:
                queue = pair.queues[queue_id]
                first = queue.first_unread(pair.offsets.get(queue_id))
                if first is not None and first not in queue.heads:
                    missing[queue].add(first)
        for queue, offsets in missing.items():
            queue.read(offsets, moment)

    def _observe(self, stale: Iterable[tuple[_Pair, Sequence[int]]], moment: _Moment) -> None:
        """Keep what was seen, and until when it holds: only what is new is an observation."""
        committed: dict[str, dict[str, int]] = {}
        ends: dict[str, dict[str, int]] = {}
        for pair, which in stale:
            offsets = committed.setdefault(pair.place, {})
            highs = ends.setdefault(pair.topic, {})
            for queue_id in which:
                highs[str(queue_id)] = pair.queues[queue_id].high
                offset = pair.offsets.get(queue_id)
                if offset is not None:
                    offsets[str(queue_id)] = offset
        as_of, history = moment.as_of, moment.history
        sample = {"at": as_of, "committed": committed, "ends": ends}
        again = bool(history.watched) and history.watched[-1].end >= as_of
        history.add(sample, is_first=not self._looks)
        validity = Validity(moment.trend, as_of, again=again)
        for pair, which in stale:
            pair.keep_until(which, validity, history)
        self._looks += 1
        if not self._looks % _FORGET_EVERY:
            history.forget_before(as_of - TREND_WINDOW_MS)
            self._forget_heads()

    def _forget_heads(self) -> None:
        """Forget messages that are no group's first unread one any more."""
        needed: dict[_Queue, set[int]] = defaultdict(set)
        for pair in self._pairs.values():
            for queue_id, queue in pair.queues.items():
                first = queue.first_unread(pair.offsets.get(queue_id))
                if first is not None:
                    needed[queue].add(first)
        for queues in self._queues.values():
            for queue in queues.values():
                queue.keep_heads(needed[queue])


class _Queue:
    """A queue, and what is known of messages that are the first unread one of a group."""

    __slots__ = ("_nothing_new", "_places", "heads", "high", "id", "low", "now", "topic")

    def __init__(self, topic: str, queue_id: int) -> None:
        self.topic = topic
        self.id = queue_id
        self.low = self.high = -1
        self.heads: dict[int, Head] = {}
        self.now: QueueNow
        self._places: dict[int, int] = {}
        """Where the messages lie in the log; of each head that is wholly known."""
        self._nothing_new = False
        """Whether no message is as young as ``rate_in`` counts; none gets younger."""

    def refresh(self, moment: _Moment) -> bool:
        """Read the bounds; whether something has changed for its readers."""
        ends = moment.history.ends(self.topic, self.id)
        low, high = moment.bounds(self.topic, self.id)
        same = low == self.low and high == self.high
        rate = moment.trend.rate_in(ends, high)
        if rate is None and same and self._nothing_new:
            rate = 0.0
        elif rate is None:
            count = moment.arrivals.count(self.topic, self.id, low, high)
            rate = None if count is None else count * 1000 / RATE_WINDOW_MS
            self._nothing_new = count == 0
        elif not same:
            self._nothing_new = False
        if not same:
            self._move(low, high, moment.view)
        unknown = len(self.heads) > len(self._places)
        if unknown:
            self.heads = {offset: self.heads[offset] for offset in self._places}
        moved = moment.files_changed and self._judge_files(moment.files)
        if same and not unknown and not moved and rate == self.now.rate_in:
            if ends is not self.now.ends:
                self.now = self.now._replace(ends=ends)
            return False
        self.now = QueueNow(low, high, rate, ends, self.heads)
        return True

    def _move(self, low: int, high: int, view: StoreView) -> None:
        """Take over new bounds; the unread bytes are those of before and those of new units."""
        more: int | None = 0
        if high > self.high and self._places:
            more = unread_bytes(view, self.topic, self.id, [self.high], high)[self.high]
        kept: dict[int, Head] = {}
        if more is not None and high >= self.high:
            for offset in self._places:
                size, stored, due = self.heads[offset]
                if offset >= low and size is not None:
                    kept[offset] = size + more, stored, due
        self.heads = kept
        self._places = {offset: self._places[offset] for offset in kept}
        self.low, self.high = low, high

    def _judge_files(self, files: Sequence[LogFile]) -> bool:
        """Find out anew from when on messages may be deleted; whether one of these changed."""
        heads = {
            offset: (size, stored, due_of(files, self._places[offset]))
            for offset, (size, stored, _) in self.heads.items()
        }
        if heads == self.heads:
            return False
        self.heads = heads
        return True

    def first_unread(self, committed: int | None) -> int | None:
        """The first unread message that is still there, for a group; None without any."""
        if committed is None or committed >= self.high or self.low >= self.high:
            return None
        return max(committed, self.low)

    def read(self, offsets: Collection[int], moment: _Moment) -> None:
        """Read the heads at some offsets."""
        sizes = self._sizes(offsets, moment.view)
        places = moment.view.places(self.topic, self.id, offsets)
        for offset in offsets:
            place, stored = places.get(offset, (None, None))
            due = None if place is None else due_of(moment.files, place)
            size = sizes[offset]
            self.heads[offset] = size, stored, due
            if place is not None and stored is not None and size is not None:
                self._places[offset] = place

    def _sizes(self, offsets: Collection[int], view: StoreView) -> Mapping[int, int | None]:
        """Bytes from offsets to the end: by way of the nearest known one, if there is any."""
        if not self._places:
            return unread_bytes(view, self.topic, self.id, offsets, self.high)
        known: dict[int, int] = {self.high: 0}
        known.update((at, size) for at in self._places if (size := self.heads[at][0]) is not None)
        order = sorted(known)
        found: dict[int, int | None] = {}
        for offset in sorted(offsets, reverse=True):
            number = bisect_left(order, offset)
            after = order[number]
            before = order[number - 1] if number else None
            if before is not None and offset - before < after - offset:
                part = unread_bytes(view, self.topic, self.id, [before], offset)[before]
                size = None if part is None else known[before] - part
            else:
                part = unread_bytes(view, self.topic, self.id, [offset], after)[offset]
                size = None if part is None else known[after] + part
            found[offset] = size
            if size is not None:
                known[offset] = size
                insort(order, offset)
        return found

    def keep_heads(self, offsets: Collection[int]) -> None:
        """Forget other heads than these."""
        for offset in self.heads.keys() - offsets:
            del self.heads[offset]
            self._places.pop(offset, None)


class _Pair:
    """A group in a topic: what was found, and what of it still holds."""

    __slots__ = (
        "_group_lag",
        "_rows",
        "_untils",
        "config",
        "group",
        "has_members",
        "ids",
        "offsets",
        "place",
        "queues",
        "topic",
        "until",
    )

    def __init__(self, topic: str, group: str, queues: dict[int, _Queue]) -> None:
        self.topic = topic
        self.group = group
        self.place = topic_at_group(topic, group)
        self.queues = queues
        self.ids: Sequence[int] = ()
        self.offsets: Offsets = _NONE
        self.config: TopicConfig | None = None
        self.has_members = False
        self.until = AT_ONCE
        """When the first of its queues has to be judged again."""
        self._rows: dict[int, QueueLag] = {}
        self._untils: dict[int, int] = {}
        self._group_lag: GroupLag | None = None

    def stale(
        self,
        offsets: Offsets,
        config: TopicConfig | None,
        changed: Collection[int],
        as_of: int,
        has_members: bool,
    ) -> Sequence[int]:
        """Take over what is there now; gives the queues that have to be judged again."""
        before, untils = self.offsets, self._untils
        if config is not self.config or offsets.keys() != before.keys() or not self.ids:
            ids = read_queue_ids(config, offsets)
            if ids != self.ids:
                for queue_id in set(self.ids).difference(ids):  # it changes unseen from now on
                    del untils[queue_id], self._rows[queue_id]
                self._group_lag = None
                self.ids = ids
        all_anew = has_members is not self.has_members
        self.offsets, self.config, self.has_members = offsets, config, has_members
        return [
            queue_id
            for queue_id in self.ids
            if untils.get(queue_id, AT_ONCE) <= as_of
            or queue_id in changed
            or offsets.get(queue_id) != before.get(queue_id)
            or all_anew
        ]

    def take(self, queue_id: int, row: QueueLag) -> None:
        """Note the state in a queue."""
        if row != self._rows.get(queue_id):
            self._rows[queue_id] = row
            self._group_lag = None

    def keep_until(self, which: Iterable[int], validity: Validity, history: SampleHistory) -> None:
        """Note until when the states in some queues hold."""
        untils, changes = self._untils, history.queues_of(self.place)
        for queue_id in which:
            ends = history.ends(self.topic, queue_id)
            row = self._rows[queue_id]
            untils[queue_id] = validity.until(row, changes.get(queue_id, ()), ends)
        self.until = min((untils[queue_id] for queue_id in self.ids), default=AT_ONCE)

    def group_lag(self, depth: tuple[int | None, int], members: int) -> GroupLag:
        """The result; the same object as before if it is equal."""
        known = self._group_lag
        if known is None:
            rows = [self._rows[queue_id] for queue_id in self.ids]
            known = self._group_lag = GroupLag(self.group, self.topic, rows, *depth, members)
        elif known.members != members or (known.retry, known.dlq) != depth:
            known = self._group_lag = GroupLag(
                self.group, self.topic, known.queues, *depth, members
            )
        return known


def _judge(stale: Iterable[tuple[_Pair, Sequence[int]]], moment: _Moment) -> None:
    states = {
        has_members: GroupInQueue(moment.trend, moment.as_of, None, has_members=has_members)
        for has_members in (False, True)
    }
    for pair, which in stale:
        state = states[pair.has_members].in_queue
        changes = moment.history.queues_of(pair.place)
        for queue_id in which:
            committed = pair.offsets.get(queue_id)
            queue = pair.queues[queue_id].now
            pair.take(queue_id, state(queue_id, queue, committed, changes.get(queue_id, ())))
