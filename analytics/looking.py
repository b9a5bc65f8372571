"""One look at a store: how groups stand at one moment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from storage.configs.consumer_offsets import topic_at_group
from storage.configs.progress_samples import Change, ProgressSamples, SampleHistory
from storage.model import dlq_topic, retry_topic

from .health import Health, Look, judge
from .rates import RATE_WINDOW_MS, StoredSince
from .retention import Rules, due_of, log_files, rules_of
from .totals import QueueLag
from .trend import TREND_WINDOW_MS, Trend, looks, seen_since
from .unread import Unread, bytes_behind

if TYPE_CHECKING:
    from storage.configs.topics import TopicConfig
    from storage.readonly import StoreView

Offsets = Mapping[int, int]
"""Queue id to committed offset."""


class Readers(NamedTuple):
    """Who reads what: (group, topic) to the committed offsets, and how many members live."""

    offsets: Mapping[tuple[str, str], Offsets]
    members: Mapping[str, int]
    all_offsets: Mapping[tuple[str, str], Offsets]
    """Of those, too, that were not chosen."""


class Standing(NamedTuple):
    """A group in a topic: its queues in order, with its retries and dead letters of all topics."""

    group: str
    topic: str
    queues: Sequence[QueueLag]
    retry: int
    dlq: int
    members: int
    """Consumers of the group that live now."""


class StoreLook(NamedTuple):
    """What was seen at ``as_of`` (ms)."""

    as_of: int
    standings: Sequence[Standing]


class _Queue(NamedTuple):
    """What is the same for all groups that read a queue."""

    min_offset: int
    max_offset: int
    rate_in: float | None
    ends: Sequence[Change]
    """Where its end was, by earlier looks."""
    heads: Mapping[int, tuple[int | None, int | None, int | None]]
    """By the offset of a message that is somebody's first unread one: bytes from there to the end,
    when it was stored, and from when on it may be deleted."""


_NO_HEAD: Final = (None, None, None)


def look_at(
    view: StoreView,
    topics: Mapping[str, TopicConfig],
    chosen: Readers,
    as_of: int,
    history: SampleHistory | None = None,
    rules: Rules | None = None,
) -> StoreLook:
    """Look at a store whose progress was read before: so no lag is negative.

    ``history`` is what earlier looks told; None: the samples that the store keeps. ``rules`` is
    how files are deleted; None: as the store's settings say.
    """
    if history is None:
        history = ProgressSamples(view.root).read(as_of - TREND_WINDOW_MS)
    read_by = {
        (group, topic): _read_queue_ids(topics.get(topic), offsets)
        for (group, topic), offsets in chosen.offsets.items()
    }
    queues = _Queues(view, as_of, rules or rules_of(view), history).read(chosen, read_by)
    trend = Trend(history.watched, as_of)
    depths = _Depths(view, chosen.all_offsets)
    standings = []
    for (group, topic), offsets in chosen.offsets.items():
        key = topic_at_group(topic, group)
        members = chosen.members.get(group, 0)
        rows = []
        for queue_id in read_by[group, topic]:
            changes = history.committed(key, queue_id)
            queue = queues[topic, queue_id]
            committed = offsets.get(queue_id)
            rows.append(_stand(queue_id, queue, committed, changes, trend, as_of, members > 0))
        depth = depths.retry(group), depths.dead(group)
        standings.append(Standing(group, topic, rows, *depth, members))
    return StoreLook(as_of, standings)


def _read_queue_ids(config: TopicConfig | None, offsets: Iterable[int]) -> Sequence[int]:
    """The topic's queues that consumers read, and those where there is progress."""
    return sorted({*offsets, *range(config.read_queue_nums if config else 0)})


def _stand(
    queue_id: int,
    queue: _Queue,
    committed: int | None,
    changes: Sequence[Change],
    trend: Trend,
    as_of: int,
    has_members: bool,
) -> QueueLag:
    """How a group stands in a queue. Called for each group and queue, so it is short of steps."""
    low, high, log_rate_in, ends, heads = queue
    what = Unread(low, committed, high)
    lag_bytes = stored = risk = None
    if committed is not None and committed <= high:
        first = committed if committed > low else low
        if first < high:
            lag_bytes, stored, risk = heads.get(first, _NO_HEAD)
        else:
            lag_bytes = 0
    rate_in, rate_out = trend.rates(changes, ends, committed, high)
    if committed == high:
        status = Health.OK
    else:
        now = Look(as_of, committed, high)
        since = seen_since(changes, now)
        status = judge(
            now, since, lambda: looks(changes, ends, as_of), low, stored, members=has_members
        )
    if rate_in is None:
        rate_in = log_rate_in
    return QueueLag(queue_id, what, lag_bytes, stored, rate_in, rate_out, status, risk)


class _Queues:
    """Reads queues, each once however many groups read it."""

    def __init__(self, view: StoreView, as_of: int, rules: Rules, history: SampleHistory) -> None:
        self._view = view
        self._history = history
        self._since = StoredSince(view, as_of - RATE_WINDOW_MS)
        self._files = log_files(view, rules, as_of)

    def read(
        self, chosen: Readers, read_by: Mapping[tuple[str, str], Sequence[int]]
    ) -> dict[tuple[str, int], _Queue]:
        """Read all queues that somebody reads, by topic and queue id."""
        committed: dict[tuple[str, int], set[int]] = {}
        for key, offsets in chosen.offsets.items():
            topic = key[1]
            for queue_id in read_by[key]:
                known = committed.setdefault((topic, queue_id), set())
                offset = offsets.get(queue_id)
                if offset is not None:
                    known.add(offset)
        return {queue: self._queue(*queue, known) for queue, known in committed.items()}

    def _queue(self, topic: str, queue_id: int, committed: Iterable[int]) -> _Queue:
        view = self._view
        low, high = view.queue_bounds(topic, queue_id)
        count = self._since.count(topic, queue_id, low, high)
        first = {max(offset, low) for offset in committed if offset < high and low < high}
        behind = bytes_behind(view, topic, queue_id, first, high)
        places = view.places(topic, queue_id, first)
        heads: dict[int, tuple[int | None, int | None, int | None]] = {}
        for offset, total in behind.items():
            place, stored = places.get(offset, (None, None))
            due = None if place is None else due_of(self._files, place)
            heads[offset] = total, stored, due
        rate = None if count is None else count * 1000 / RATE_WINDOW_MS
        return _Queue(low, high, rate, self._history.ends(topic, queue_id), heads)


class _Depths:
    """Retries and dead letters of groups."""

    def __init__(
        self, view: StoreView, offsets: Mapping[tuple[str, str], Mapping[int, int]]
    ) -> None:
        self._view = view
        self._offsets = offsets
        self._queues: dict[str, list[int]] = defaultdict(list)
        for topic, queue_id in view.queues():
            self._queues[topic].append(queue_id)

    def retry(self, group: str) -> int:
        """Messages in the group's retry topic not read yet; it is read from its start."""
        topic = retry_topic(group)
        committed = self._offsets.get((group, topic), {})
        total = 0
        for queue_id in self._queues.get(topic, ()):
            low, high = self._view.queue_bounds(topic, queue_id)
            total += max(0, high - max(low, committed.get(queue_id, low)))
        return total

    def dead(self, group: str) -> int:
        """Messages in the group's dead letter topic."""
        topic = dlq_topic(group)
        bounds = [self._view.queue_bounds(topic, queue) for queue in self._queues.get(topic, ())]
        return sum(high - low for low, high in bounds)
