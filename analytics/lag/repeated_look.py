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

The first look reads all queues. Where there are many, it may be made in parts: each gives the
groups that have been looked at, all as of the first part.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import compress
from operator import is_not
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from storage.coordination.shared_state import SharedStateBounds
from storage.read.log_cut import LogCut
from storage.retention import LogFile, LogFilesDue, log_files, rules_of

from .counts import CountedLags, GroupCounts, Rates
from .kept_pair import KeptPair, Quiet, Stale, judge
from .kept_queue import KeptQueue, LookMoment
from .lag_snapshot import (
    QUEUES_AT_ONCE,
    Depths,
    LagSnapshot,
    Readers,
)
from .selection import Offsets
from .trend import RATE_WINDOW_MS, TREND_WINDOW_MS, StoredSince, Trend
from .validity import AT_ONCE, Validity

if TYPE_CHECKING:
    from storage.configs.offset_samples import SampleHistory
    from storage.configs.topics import TopicConfig
    from storage.read.bounds import Bounds
    from storage.readonly import StoreView

_FORGET_EVERY: Final = 100
"""Looks after which old observations are discarded."""
_POSITIONS_A_QUEUE: Final = 8
"""To judge so many takes about as long as to read a queue."""
_MOST_PAUSE_MS: Final = 30_000
"""A part that is asked for so long after the one before begins a new look."""

_Numbered = tuple[int, Sequence[int]]
"""The number of a group in its topic, and the queues in which it is judged again."""


class _Rest(NamedTuple):
    """A first look of which a part is done."""

    moment: LookMoment
    depths: Depths
    todo: Sequence[_Numbered]
    done: int
    """How many of these have been looked at."""
    asked: int
    """The time (ms) of the last call."""


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
        self._pairs: list[KeptPair] = []
        self._counts: list[GroupCounts | None] = []
        self._forget()

    def look(
        self,
        topics: Mapping[str, TopicConfig],
        chosen: Readers,
        as_of: int,
        most_queues: int | None = None,
    ) -> LagSnapshot:
        """Look at a store whose progress was read before, and keep what was observed.

        With ``most_queues`` a first look reads about so many, and gives the groups that read them.
        While some are ``left``, the next call goes on with it: as of the first call's time, and
        with its topics and progress.
        """
        try:
            rest = self._rest
            if rest is None or not (
                0 <= as_of - rest.asked < _MOST_PAUSE_MS and self._is_same_store(self._bounds_now())
            ):
                return self._look(topics, chosen, as_of, most_queues)
            return self._go_on(rest._replace(asked=as_of), most_queues)
        except BaseException:
            self._forget()  # some of it may be of this look, and some of the one before
            raise

    def left(self, takes: Callable[[str, str], bool]) -> int:
        """How many groups in topics, of those that ``takes`` takes, are still to be looked at."""
        if self._rest is None:
            return 0
        known = zip(self._keys, self._counts, strict=True)
        return sum(counts is None and takes(*key) for key, counts in known)

    def _forget(self) -> None:
        self._files = []
        self._rest: _Rest | None = None
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
            known.get(key) or KeptPair(key[1], key[0], self._queues[key[1]]) for key in keys
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

    def _look(
        self,
        topics: Mapping[str, TopicConfig],
        chosen: Readers,
        as_of: int,
        most_queues: int | None,
    ) -> LagSnapshot:
        moment = self._moment(chosen, as_of)
        keys = list(chosen.offsets)
        if keys != self._keys:
            self._arrange(keys)
        in_parts = most_queues is not None and not any(self._queues.values())
        todo = self._todo(topics, moment)
        rest = _Rest(moment, Depths(self._view, chosen.all_offsets), todo, 0, as_of)
        return self._go_on(rest, most_queues if in_parts else None)

    def _go_on(self, rest: _Rest, most_queues: int | None) -> LagSnapshot:
        """Do what is to be done, or a part of it.

        What is seen is an observation once all is: to judge the later parts, it was not made
        before. So what groups read is unknown until then.
        """
        moment, depths, todo, done, _ = rest
        end = self._part(todo, done, most_queues)
        is_whole = end == len(todo)
        pairs, counts, members = self._pairs, self._counts, moment.chosen.members
        stale = [(pairs[number], which) for number, which in todo[done:end] if which]
        self._add_queues(stale, moment)
        self._read_heads(stale, moment)
        judge(stale, moment)
        if is_whole:
            if done:
                stale = [(pairs[number], which) for number, which in todo if which]
            self._observe(stale, moment)
        dirty = {number for number, _ in todo[0 if is_whole else done : end]}
        for number in dirty:
            self._untils[number] = pairs[number].until
        groups = self._of_group if is_whole else {self._keys[number][0] for number in dirty}
        for group in groups:
            depth = (*depths.of(group), members.get(group, 0))
            if self._depths.get(group) != depth:
                self._depths[group] = depth
                dirty.update(n for n in self._of_group[group] if counts[n] is not None)
        for number in dirty:
            counts[number] = pairs[number].counts(self._depths[self._keys[number][0]])
        self._rest = None if is_whole else rest._replace(done=end)
        found = [one for one in counts if one is not None]
        keys = self._keys if is_whole else [*compress(self._keys, counts)]
        lags = CountedLags(keys, found, self._rates(moment), self._made)
        doubt = self._view.progress_doubt()
        return LagSnapshot(moment.as_of, lags, doubt, depths.delayed, len(self._keys) - len(keys))

    def _part(self, todo: Sequence[_Numbered], done: int, most_queues: int | None) -> int:
        """The end of the part from ``done`` on: its groups read about so many new queues."""
        if most_queues is None:
            return len(todo)
        new: set[tuple[str, int]] = set()
        positions = 0
        for end in range(done, len(todo)):
            if len(new) + positions // _POSITIONS_A_QUEUE >= most_queues:
                return end
            number, which = todo[end]
            pair = self._pairs[number]
            new.update((pair.topic, queue_id) for queue_id in which if queue_id not in pair.queues)
            positions += len(which)
        return len(todo)

    def _bounds_now(self) -> tuple[Bounds | None, int]:
        bounds = self._view.bounds
        return bounds, bounds.made() if isinstance(bounds, SharedStateBounds) else 0

    def _is_same_store(self, now: tuple[Bounds | None, int]) -> bool:
        """Whether the ends of queues are still asked of the same."""
        return self._bounds[0] is now[0] and self._bounds[1] == now[1]

    def _moment(self, chosen: Readers, as_of: int) -> LookMoment:
        view = self._view
        now = self._bounds_now()  # once: it may be another one the next time
        if self._rest is not None or not self._is_same_store(now) or as_of < self._as_of:
            self._forget()
        self._bounds, self._as_of = now, as_of
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

    def _todo(self, topics: Mapping[str, TopicConfig], moment: LookMoment) -> Sequence[_Numbered]:
        """The groups whose state may be another one than before."""
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
        todo: list[_Numbered] = []
        for number in sorted(dirty):
            pair = self._pairs[number]
            topic = pair.topic
            has_members = members.get(pair.group, 0) > 0
            of_topic_changed = changed.get(topic, ())
            which = pair.stale(
                offsets[number], self._configs[topic], of_topic_changed, has_members, moment
            )
            todo.append((number, which))
        return todo

    def _refresh(self, moment: LookMoment) -> Mapping[str, Collection[int]]:
        """Read the bounds of queues; gives the ids of those that changed, by topic."""
        some = [queue for queues in self._queues.values() for queue in queues.values()]
        read_at = self._now(moment)
        if read_at is None or read_at != self._read_at:
            bounds = moment.bounds(some)
        else:
            if not moment.files_changed:
                as_of = moment.as_of
                some = [queue for queue in some if queue.is_stale(as_of)]
            bounds = [(queue.low, queue.high) for queue in some]
        self._read_at = read_at
        changed: dict[str, list[int]] = {}
        for queue, (low, high) in zip(some, bounds, strict=True):
            if queue.refresh(low, high, moment):
                changed.setdefault(queue.place[0], []).append(queue.place[1])
        return changed

    def _now(self, moment: LookMoment) -> tuple[int, int] | None:
        """What is as before if no queue has changed; None if that cannot be known."""
        bounds = self._bounds[0]
        if not isinstance(bounds, SharedStateBounds) or not moment.cut.is_whole:
            return None
        return moment.cut.log_end, bounds.files_generation()

    def _add_queues(self, stale: Stale, moment: LookMoment) -> None:
        """Read queues that were not read before, each as a whole: its file is opened once."""
        missing: dict[str, dict[int, None]] = {}
        for pair, which in stale:
            ids = [queue_id for queue_id in which if queue_id not in pair.queues]
            if ids:
                missing.setdefault(pair.topic, {}).update(dict.fromkeys(ids))
        new: dict[KeptQueue, set[int | None]] = {}
        for topic, of_topic in missing.items():
            queues = self._queues[topic]
            groups = [self._pairs[number].offsets for number in self._of_topic[topic]]
            of_groups = [[*map(offsets.get, of_topic)] for offsets in groups]
            for queue_id, of_queue in zip(of_topic, zip(*of_groups, strict=True), strict=True):
                queue = queues[queue_id] = KeptQueue(topic, queue_id)
                new[queue] = set(of_queue)
        all_new = list(new)
        for start in range(0, len(all_new), QUEUES_AT_ONCE):
            some = all_new[start : start + QUEUES_AT_ONCE]
            for queue, (low, high) in zip(some, moment.bounds(some), strict=True):
                queue.begin(low, high, moment)
                first = {max(at, low) for at in new[queue] if at is not None and at < high}
                if first and low < high:
                    queue.read(first, moment)

    def _read_heads(self, stale: Stale, moment: LookMoment) -> None:
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

    def _observe(self, stale: Stale, moment: LookMoment) -> None:
        """Keep what was seen, and until when it holds: only what is new is an observation."""
        committed: dict[str, Mapping[int, int]] = {}
        looked_at: dict[str, set[int]] = defaultdict(set)
        for pair, which in stale:
            looked_at[pair.topic].update(which)
            known = pair.offsets
            if which is pair.ids:  # it has every queue in which the group has progress
                committed[pair.place] = known
            else:
                offsets = {queue_id: known.get(queue_id) for queue_id in which}
                committed[pair.place] = {q: at for q, at in offsets.items() if at is not None}
        ends: dict[str, dict[int, int]] = {}
        for topic, ids in looked_at.items():
            highs, queues = ends.setdefault(topic, {}), self._queues[topic]
            for queue_id in sorted(ids):
                queue = queues[queue_id]
                if queue.observed != queue.high:  # else it is no observation
                    queue.observed = highs[queue_id] = queue.high
        as_of, history = moment.as_of, moment.history
        again = bool(history.watched) and history.watched[-1].end >= as_of
        history.add_seen(as_of, committed, ends, is_first=not self._looks)
        trend = Trend(history.watched, as_of)
        self._watched_since = trend.watched_since
        validity, quiet = Validity(trend, as_of, again=again), Quiet()
        for topic, highs in ends.items():
            observed, queues = history.ends_of(topic), self._queues[topic]
            for queue_id in highs:
                queues[queue_id].observe(observed[queue_id], as_of)
        for pair, which in stale:
            pair.keep_until(which, validity, trend, history, quiet)
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
