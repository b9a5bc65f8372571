"""Looking again and again at the lag of a store: what did not change is not computed again.

A look equals :func:`.lag_snapshot.look_at` with the same history. What it gave for a group in a
queue holds while its committed offset, the queue's bounds, the time from which on files may be
deleted, and whether the group has members stay as they are, and until a time (:mod:`.validity`) at
which the passing of time alone may change it. Rates change with each moment, so counts of messages
are kept instead (:mod:`.counts`). What is unknown because a unit or a record could not be read is
read again with each look; what was read once is not, as a log only grows.

Most groups are as they were, so they are passed over without a step of Python: lists of what was
and of what is are compared as a whole. A GroupCounts, or a GroupLag, that did not change is the
same object in the next snapshot, so that what was made of it may be kept, too
(:class:`.kept.Kept`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import compress
from operator import is_not
from typing import TYPE_CHECKING, Any, Final

from storage.configs.consumer_offsets import topic_at_group
from storage.coordination.shared_state import SharedStateBounds
from storage.read.log_cut import LogCut
from storage.retention import LogFile, LogFilesDue, log_files, rules_of

from .counts import CountedLags, GroupCounts, Rates, Read
from .health import PATIENCE_MS, Health
from .kept_queue import KeptQueue, LookMoment
from .lag_snapshot import (
    QUEUES_AT_ONCE,
    Depths,
    GroupInQueue,
    LagSnapshot,
    Readers,
    read_queue_ids,
)
from .selection import Offsets
from .totals import QueueLag
from .trend import RATE_WINDOW_MS, TREND_WINDOW_MS, StoredSince, Trend
from .validity import AT_ONCE, FOREVER, Validity

if TYPE_CHECKING:
    from storage.configs.offset_samples import Change, SampleHistory
    from storage.configs.topics import TopicConfig
    from storage.read.bounds import Bounds
    from storage.readonly import StoreView

_FORGET_EVERY: Final = 100
"""Looks after which old observations are discarded."""
_NONE: Final[Offsets] = {}
_new: Final = tuple.__new__
_NOT_READ: Final[Read] = (None, 0)
_NO_QUEUES: Final[frozenset[int]] = frozenset()

_Stale = Sequence[tuple["_Pair", Sequence[int]]]
"""Groups in topics, and the queues in which they are judged again."""


class RepeatedLook:
    """Looks at one store, with a history: earlier observations, then the looks themselves."""

    def __init__(self, view: StoreView, history: SampleHistory) -> None:
        self._view = view
        self._history = history
        self._looks = 0
        self._as_of = 0
        self._files: Sequence[LogFile] = []
        self._bounds: tuple[Bounds | None, int] = None, 0
        self._watched_since: int | None = None
        self._keys: list[tuple[str, str]] = []
        self._pairs: list[_Pair] = []
        self._counts: list[GroupCounts | None] = []
        self._forget()

    def look(self, topics: Mapping[str, TopicConfig], chosen: Readers, as_of: int) -> LagSnapshot:
        """Look at a store whose progress was read before, and keep what was observed."""
        try:
            return self._look(topics, chosen, as_of)
        except BaseException:
            self._forget()  # some of it may be of this look, and some of the one before
            raise

    def _forget(self) -> None:
        self._files = []
        self._queues: dict[str, dict[int, KeptQueue]] = {}
        self._read_at: tuple[int, int] | None = None
        """The log's end and the generation of files at which the queues were read; None: they have
        to be read."""
        self._made: dict[tuple[str, str], Any] = {}
        self._arrange([])

    def _arrange(self, keys: list[tuple[str, str]]) -> None:
        """Have a place for each group in its topic, in this order; known ones are kept."""
        known = {} if not keys else dict(zip(self._keys, self._pairs, strict=True))
        counts = {} if not keys else dict(zip(self._keys, self._counts, strict=True))
        topics = {topic for _, topic in keys}
        self._queues = {topic: self._queues.get(topic, {}) for topic in topics}
        self._keys = keys
        self._pairs = [
            known.get(key) or _Pair(key[1], key[0], self._queues[key[1]]) for key in keys
        ]
        self._counts = [counts.get(key) for key in keys]
        self._offsets: list[Offsets] = [pair.offsets for pair in self._pairs]
        self._untils = [pair.until for pair in self._pairs]
        self._of_topic: dict[str, list[int]] = {topic: [] for topic in topics}
        self._of_group: dict[str, list[int]] = {group: [] for group, _ in keys}
        for number, (group, topic) in enumerate(keys):
            self._of_topic[topic].append(number)
            self._of_group[group].append(number)
        self._configs: dict[str, TopicConfig | None] = {}
        self._depths: dict[str, tuple[int | None, int, int]] = {}
        self._made = {key: made for key, made in self._made.items() if key in counts}

    def _look(self, topics: Mapping[str, TopicConfig], chosen: Readers, as_of: int) -> LagSnapshot:
        moment = self._moment(chosen, as_of)
        keys = list(chosen.offsets)
        if keys != self._keys:
            self._arrange(keys)
        stale, dirty = self._stale(topics, moment)
        self._read_heads(stale, moment)
        _judge(stale, moment)
        self._observe(stale, moment)
        pairs, untils = self._pairs, self._untils
        for number in dirty:
            untils[number] = pairs[number].until
        depths = Depths(self._view, chosen.all_offsets)
        for group, numbers in self._of_group.items():
            depth = (*depths.of(group), chosen.members.get(group, 0))
            if self._depths.get(group) != depth:
                self._depths[group] = depth
                dirty.update(numbers)
        counts = self._counts
        for number in dirty:
            counts[number] = pairs[number].counts(self._depths[keys[number][0]])
        found = [one for one in counts if one is not None]
        lags = CountedLags(self._keys, found, self._rates(moment), self._made)
        return LagSnapshot(as_of, lags, self._view.progress_doubt())

    def _moment(self, chosen: Readers, as_of: int) -> LookMoment:
        view = self._view
        bounds = view.bounds
        made = bounds.made() if isinstance(bounds, SharedStateBounds) else 0
        if self._bounds[0] is not bounds or self._bounds[1] != made or as_of < self._as_of:
            self._forget()
        self._bounds, self._as_of = (bounds, made), as_of
        trend = Trend(self._history.watched, as_of)
        if trend.watched_since != self._watched_since:
            self._count_anew()
        rules = rules_of(view.root, view.config)
        cut = LogCut(view)
        files = log_files(view.root, view.config, rules, cut.log_end, as_of)
        files_changed, self._files = files != self._files, files
        arrivals = StoredSince(view, as_of - RATE_WINDOW_MS)
        return LookMoment(
            *(view, as_of, trend, LogFilesDue(files), files_changed),
            *(arrivals, self._history, cut, chosen),
        )

    def _count_anew(self) -> None:
        """Count of another time on what was read. What is 0 stays 0: the time is shorter."""
        for number, pair in enumerate(self._pairs):
            pair.count_anew()
            self._untils[number] = pair.until
        for queues in self._queues.values():
            for queue in queues.values():
                queue.until = AT_ONCE

    def _stale(
        self, topics: Mapping[str, TopicConfig], moment: LookMoment
    ) -> tuple[_Stale, set[int]]:
        """The groups whose state may be another one than before, and their numbers."""
        as_of, members = moment.as_of, moment.chosen.members
        offsets = list(moment.chosen.offsets.values())
        numbers = range(len(offsets))
        dirty = set(compress(numbers, map(is_not, offsets, self._offsets)))
        dirty.update(compress(numbers, map(as_of.__ge__, self._untils)))
        self._offsets = offsets
        changed = self._refresh(moment)
        for topic, of_topic in self._of_topic.items():
            config = topics.get(topic)
            if topic not in self._configs or self._configs[topic] is not config:
                self._configs[topic] = config
                dirty.update(of_topic)
            if topic in changed:
                dirty.update(of_topic)
        for group, of_group in self._of_group.items():
            pair = self._pairs[of_group[0]]
            if pair.has_members is not (members.get(group, 0) > 0):
                dirty.update(of_group)
        stale: list[tuple[_Pair, Sequence[int]]] = []
        for number in sorted(dirty):
            pair = self._pairs[number]
            topic = pair.topic
            has_members = members.get(pair.group, 0) > 0
            of_topic_changed = changed.get(topic, ())
            which = pair.stale(
                offsets[number], self._configs[topic], of_topic_changed, has_members, moment
            )
            if which:
                stale.append((pair, which))
        self._add_queues(stale, moment)
        return stale, dirty

    def _refresh(self, moment: LookMoment) -> Mapping[str, Collection[int]]:
        """Read the bounds of queues; gives the ids of those that changed, by topic."""
        all_queues = [queue for queues in self._queues.values() for queue in queues.values()]
        read_at = self._now(moment)
        if read_at is None or read_at != self._read_at:
            bounds = moment.bounds(all_queues)
        else:
            bounds = [(queue.low, queue.high) for queue in all_queues]
        self._read_at = read_at
        changed: dict[str, list[int]] = {}
        for queue, (low, high) in zip(all_queues, bounds, strict=True):
            if queue.refresh(low, high, moment):
                changed.setdefault(queue.place[0], []).append(queue.place[1])
        return changed

    def _now(self, moment: LookMoment) -> tuple[int, int] | None:
        """What is as before if no queue has changed; None if that cannot be known."""
        bounds = self._bounds[0]
        if not isinstance(bounds, SharedStateBounds) or not moment.cut.is_whole:
            return None
        return moment.cut.log_end, bounds.files_generation()

    def _add_queues(self, stale: _Stale, moment: LookMoment) -> None:
        """Read queues that were not read before, each as a whole: its file is opened once."""
        new: dict[KeptQueue, set[int | None]] = {}
        for pair, which in stale:
            queues, offsets = pair.queues, pair.offsets
            for queue_id in which:
                queue = queues.get(queue_id)
                if queue is None:
                    queue = queues[queue_id] = KeptQueue(pair.topic, queue_id)
                    new[queue] = set()
                if queue in new:
                    new[queue].add(offsets.get(queue_id))
        all_new = list(new)
        for start in range(0, len(all_new), QUEUES_AT_ONCE):
            some = all_new[start : start + QUEUES_AT_ONCE]
            for queue, (low, high) in zip(some, moment.bounds(some), strict=True):
                queue.refresh(low, high, moment)
                first = {queue.first_unread(offset) for offset in new[queue]} - {None}
                if first:
                    queue.read([offset for offset in first if offset is not None], moment)

    def _read_heads(self, stale: _Stale, moment: LookMoment) -> None:
        """Read the first unread messages that are not known, each queue's at once."""
        missing: dict[KeptQueue, set[int]] = defaultdict(set)
        for pair, which in stale:
            committed, queues = pair.offsets, pair.queues
            for queue_id in which:
                queue = queues[queue_id]
                first = queue.first_unread(committed.get(queue_id))
                if first is not None and first not in queue.heads:
                    missing[queue].add(first)
        for queue, offsets in missing.items():
            queue.read(offsets, moment)

    def _observe(self, stale: _Stale, moment: LookMoment) -> None:
        """Keep what was seen, and until when it holds: only what is new is an observation."""
        committed: dict[str, Mapping[int, int]] = {}
        ends: dict[str, dict[int, int]] = {}
        for pair, which in stale:
            highs, queues = ends.setdefault(pair.topic, {}), pair.queues
            for queue_id in which:
                queue = queues[queue_id]
                if queue.observed != queue.high:  # else it is no observation
                    queue.observed = highs[queue_id] = queue.high
            known = pair.offsets
            if which is pair.ids:  # it has every queue in which the group has progress
                committed[pair.place] = known
            else:
                offsets = {queue_id: known.get(queue_id) for queue_id in which}
                committed[pair.place] = {q: at for q, at in offsets.items() if at is not None}
        as_of, history = moment.as_of, moment.history
        again = bool(history.watched) and history.watched[-1].end >= as_of
        history.add_seen(as_of, committed, ends, is_first=not self._looks)
        trend = Trend(history.watched, as_of)
        self._watched_since = trend.watched_since
        validity = Validity(trend, as_of, again=again)
        for topic, highs in ends.items():
            observed, queues = history.ends_of(topic), self._queues[topic]
            for queue_id in highs:
                queues[queue_id].observe(observed[queue_id], as_of)
        for pair, which in stale:
            pair.keep_until(which, validity, trend, history)
        self._looks += 1
        if not self._looks % _FORGET_EVERY:
            history.forget_before(as_of - TREND_WINDOW_MS)
            self._forget_heads()

    def _forget_heads(self) -> None:
        """Forget messages that are no group's first unread one any more."""
        needed: dict[KeptQueue, set[int]] = defaultdict(set)
        for pair in self._pairs:
            for queue_id, queue in pair.queues.items():
                first = queue.first_unread(pair.offsets.get(queue_id))
                if first is not None:
                    needed[queue].add(first)
        for queues in self._queues.values():
            for queue in queues.values():
                queue.keep_heads(needed[queue])

    def _rates(self, moment: LookMoment) -> Rates:
        span_s = moment.trend.span_s
        rate_in = {
            topic: {queue_id: queue.rate_in(span_s) for queue_id, queue in queues.items()}
            for topic, queues in self._queues.items()
        }
        return Rates(moment.trend.start, span_s, rate_in)


class _Pair:
    """A group in a topic: what was found, and what of it still holds."""

    __slots__ = (
        *("_counts", "_fresh", "_read", "_read_untils", "_reads", "_rows", "_states", "_untils"),
        *("config", "group", "has_members", "ids", "offsets", "place", "queues", "topic", "until"),
    )

    def __init__(self, topic: str, group: str, queues: dict[int, KeptQueue]) -> None:
        self.topic = topic
        self.group = group
        self.place = topic_at_group(topic, group)
        self.queues = queues
        self.ids: tuple[int, ...] = ()
        self.offsets: Offsets = _NONE
        self.config: TopicConfig | None = None
        self.has_members = False
        self.until = AT_ONCE
        """When the first of its queues has to be judged again."""
        self._rows: dict[int, QueueLag] = {}
        self._read: dict[int, Read] = {}
        self._fresh: set[int] = set()
        """Queues whose progress was not observed before this look."""
        self._untils: dict[int, int] = {}
        self._read_untils: dict[int, int] = {}
        """Until when what was read holds; the other ones hold on."""
        self._counts: GroupCounts | None = None
        """The last result."""
        self._states: Sequence[QueueLag] | None = None
        self._reads: Sequence[Read] | None = None
        """Both in the order of queues, as the last result has them; None if one has changed."""

    def stale(
        self,
        offsets: Offsets,
        config: TopicConfig | None,
        changed: Collection[int],
        has_members: bool,
        moment: LookMoment,
    ) -> Sequence[int]:
        """Take over what is there now; gives the queues that have to be judged again."""
        before, untils = self.offsets, self._untils
        if config is not self.config or offsets.keys() != before.keys() or not self.ids:
            ids = tuple(read_queue_ids(config, offsets))
            if ids != self.ids:
                for queue_id in set(self.ids).difference(ids):  # it changes unseen from now on
                    del untils[queue_id], self._rows[queue_id], self._read[queue_id]
                    self._read_untils.pop(queue_id, None)
                self._states = self._reads = None
                self.ids = ids
        all_anew = has_members is not self.has_members or not untils
        self.offsets, self.config, self.has_members = offsets, config, has_members
        if all_anew:
            return self.ids
        ids = self.ids
        found: list[int] = []
        if offsets is not before:
            found += [q for q in ids if offsets.get(q) != before.get(q)]
        if changed:
            found += [q for q in ids if q in changed]
        as_of = moment.as_of
        if self.until <= as_of or len(untils) < len(ids):
            due = [q for q in ids if untils.get(q, AT_ONCE) <= as_of and q not in found]
            found += self._not_stopped(due, moment) if due else due
            if not found:
                self.until = min(map(untils.__getitem__, ids), default=AT_ONCE)
        return found if len(found) < 2 else sorted({*found})

    def _not_stopped(self, due: Iterable[int], moment: LookMoment) -> Sequence[int]:
        """Of some queues in which nothing moved, judge those in which that is so for a minute now;
        gives the others.

        As :func:`.health.judge` does, in few steps: it comes for all queues with a lag at once, a
        minute after the first look, and a minute after each move.
        """
        as_of, left, changes = moment.as_of, [], moment.history.queues_of(self.place)
        rows, untils, read_untils = self._rows, self._untils, self._read_untils
        stopped = Health.STALL if self.has_members else Health.STOP
        for queue_id in due:
            row, observed = rows.get(queue_id), changes.get(queue_id)
            if row is None or not observed:
                left.append(queue_id)
                continue
            _, (_, committed, high), _, oldest, _, _, status, _ = row
            since, offset = observed[-1]
            read_until = read_untils.get(queue_id, FOREVER)
            if (
                committed is None
                or committed >= high
                or offset != committed
                or read_until <= as_of
                or as_of - since < PATIENCE_MS
                or as_of - (oldest or 0) < PATIENCE_MS
            ):
                left.append(queue_id)
                continue
            untils[queue_id] = read_until
            if status is not stopped:
                rows[queue_id] = _new(QueueLag, (*row[:6], stopped, row[7]))
                self._states = None
        return left

    def take(self, queue_id: int, row: QueueLag, *, fresh: bool) -> None:
        """Note the state in a queue; ``fresh``: its progress was not observed before."""
        if fresh:
            self._fresh.add(queue_id)
        if row != self._rows.get(queue_id):
            self._rows[queue_id] = row
            self._states = None

    def keep_until(
        self, which: Iterable[int], validity: Validity, trend: Trend, history: SampleHistory
    ) -> None:
        """Note what was read in some queues, and until when the states hold."""
        untils, all_changes, fresh = self._untils, history.queues_of(self.place), self._fresh
        ends, rows = history.ends_of(self.topic), self._rows
        known_from, may_be_as_then = trend.known_from or 0, trend.known_from is not None
        counted = fresh if trend.span_s is not None else _NO_QUEUES
        for queue_id in which:
            row = rows[queue_id]
            _, committed, high = row.unread
            read, until = _NOT_READ, FOREVER
            if committed is not None:
                changes = all_changes[queue_id]
                since = changes[-1][0]
                if may_be_as_then and since <= known_from and queue_id not in counted:
                    read, until = (0, since), FOREVER  # it is as it was when it was known first
                else:
                    read, until = self._read_now(queue_id, committed, changes, validity, trend)
                self._keep_read_until(queue_id, until)
                if committed < high:
                    until = min(until, validity.of_status(row, changes, ends[queue_id]))
            if read != self._read.get(queue_id):
                self._read[queue_id] = read
                self._reads = None
            untils[queue_id] = until
        fresh.clear()
        self.until = min(map(untils.__getitem__, self.ids), default=AT_ONCE)

    def _keep_read_until(self, queue_id: int, until: int) -> None:
        if until < FOREVER:
            self._read_untils[queue_id] = until
        elif queue_id in self._read_untils:
            del self._read_untils[queue_id]

    def _read_now(
        self,
        queue_id: int,
        committed: int,
        changes: Sequence[Change],
        validity: Validity,
        trend: Trend,
    ) -> tuple[Read, int]:
        """What was read in a queue, and until when that holds."""
        if queue_id in self._fresh and trend.span_s is not None:
            return _NOT_READ, AT_ONCE  # it is known from now on
        count = trend.read(changes, committed)
        return (count, changes[-1][0]), validity.of_count(count, changes)

    def count_anew(self) -> None:
        """Count with the next look what was read, where that may be another number."""
        for queue_id, (count, _) in self._read.items():
            if count != 0:
                self._untils[queue_id] = self._read_untils[queue_id] = AT_ONCE
                self.until = AT_ONCE

    def counts(self, depth: tuple[int | None, int, int]) -> GroupCounts:
        """The result, with retries, dead letters and members of the group; the same object as
        before if it is equal. Its queues are the same object if these are equal."""
        known, states, reads = self._counts, self._states, self._reads
        if known is not None and states is not None and reads is not None:
            if known[-3:] != depth:
                known = known._replace(retry=depth[0], dlq=depth[1], members=depth[2])
        else:
            if states is None:
                states = self._states = [*map(self._rows.__getitem__, self.ids)]
            if reads is None:
                reads = self._reads = [*map(self._read.__getitem__, self.ids)]
            known = GroupCounts(self.group, self.topic, self.ids, states, reads, *depth)
        self._counts = known
        return known


def _judge(stale: _Stale, moment: LookMoment) -> None:
    states = {
        has_members: GroupInQueue(None, moment.as_of, None, has_members=has_members)
        for has_members in (False, True)
    }
    for pair, which in stale:
        state, take = states[pair.has_members].in_queue, pair.take
        all_changes = moment.history.queues_of(pair.place)
        queues, offsets = pair.queues, pair.offsets
        for queue_id in which:
            changes, committed = all_changes.get(queue_id, ()), offsets.get(queue_id)
            queue = queues[queue_id]
            if committed == queue.high:
                row = queue.caught_up()
            else:
                row = state(queue_id, queue.now, committed, changes)
            take(queue_id, row, fresh=not changes)
