"""One look at a store: how all chosen groups stand at one moment."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from analytics.health import Look, judge
from analytics.rates import RATE_WINDOW_MS, StoredSince
from analytics.retention import LogFile, Rules, due_of, log_files
from analytics.totals import QueueLag
from analytics.trend import TREND_WINDOW_MS, looks, rates
from analytics.unread import Unread, bytes_behind
from rmqctl.lag.choosing import Choice, Readers, readers
from rmqctl.lag.retention import rules_of
from storage.configs.consumer_offsets import topic_at_group
from storage.configs.progress_samples import ProgressSamples, SampleHistory
from storage.model import dlq_topic, retry_topic

if TYPE_CHECKING:
    from broker.embedded import EmbeddedBroker
    from storage.readonly import StoreView


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
    bytes_behind: Mapping[int, int | None]
    """By the offset of the first message that somebody has not read."""
    stored: Mapping[int, int | None]
    """When those messages were stored."""
    due: Mapping[int, int | None]
    """From when on they may be deleted."""


def look(
    broker: "EmbeddedBroker",
    as_of: int,
    choice: Choice,
    history: SampleHistory | None = None,
    *,
    rules: Rules | None = None,
) -> StoreLook:
    """Look at the store now. Progress is read before the ends of queues: no lag is negative.

    ``history`` is what earlier looks told; None: the samples that the store keeps. ``rules`` is
    how files are deleted; None: as the store's settings say.
    Raises what :func:`rmqctl.lag.choosing.readers` raises.
    """
    if history is None:
        history = ProgressSamples(broker.view.root).read(as_of - TREND_WINDOW_MS)
    chosen = readers(broker, choice)
    queues = _read_queues(broker, as_of, chosen, rules or rules_of(broker.view))
    depths = _Depths(broker)
    standings = []
    for (group, topic), offsets in chosen.offsets.items():
        standing = _Group(group, topic, chosen.members.get(group, 0) > 0, as_of, history)
        rows = [
            standing.in_queue(queue_id, queues[topic, queue_id], offsets.get(queue_id))
            for queue_id in _read_by(broker, topic, offsets)
        ]
        depth = depths.retry(group), depths.dead(group)
        standings.append(Standing(group, topic, rows, *depth, chosen.members.get(group, 0)))
    return StoreLook(as_of, standings)


def _read_by(broker: "EmbeddedBroker", topic: str, offsets: Iterable[int]) -> Sequence[int]:
    """The topic's queues that consumers read, and those where there is progress."""
    config = broker.topics().get(topic)
    return sorted({*offsets, *range(config.read_queue_nums if config else 0)})


def _read_queues(
    broker: "EmbeddedBroker", as_of: int, chosen: Readers, rules: Rules
) -> dict[tuple[str, int], _Queue]:
    committed: dict[tuple[str, int], set[int]] = defaultdict(set)
    for (_, topic), offsets in chosen.offsets.items():
        for queue_id in _read_by(broker, topic, offsets):
            known = offsets.get(queue_id)
            committed[topic, queue_id].update(() if known is None else (known,))
    view = broker.view
    since = StoredSince(view, as_of - RATE_WINDOW_MS)
    files = log_files(view, rules, as_of)
    return {
        (topic, queue_id): _read_queue(view, topic, queue_id, known, since, files)
        for (topic, queue_id), known in committed.items()
    }


def _read_queue(
    view: "StoreView",
    topic: str,
    queue_id: int,
    committed: Iterable[int],
    since: StoredSince,
    files: Sequence[LogFile],
) -> _Queue:
    low, high = view.queue_bounds(topic, queue_id)
    count = since.count(topic, queue_id, low, high)
    first = {max(offset, low) for offset in committed if offset < high and low < high}
    units = {offset: view.unit(topic, queue_id, offset) for offset in first}
    return _Queue(
        low,
        high,
        None if count is None else round(count * 1000 / RATE_WINDOW_MS, 3),
        bytes_behind(view, topic, queue_id, first, high),
        {offset: view.store_timestamp(topic, queue_id, offset) for offset in first},
        {offset: due_of(files, unit[0]) for offset, unit in units.items() if unit},
    )


class _Group:
    """A group in a topic, with what earlier looks told of it."""

    def __init__(
        self, group: str, topic: str, has_members: bool, as_of: int, history: SampleHistory
    ) -> None:
        self._key = topic_at_group(topic, group)
        self._topic = topic
        self._has_members = has_members
        self._as_of = as_of
        self._history = history

    def in_queue(self, queue_id: int, queue: _Queue, committed: int | None) -> QueueLag:
        """How it stands in a queue."""
        what = Unread(queue.min_offset, committed, queue.max_offset)
        first = what.first_unread
        lag_bytes = None if what.lag is None else 0
        stored = risk = None
        if first is not None:
            lag_bytes = queue.bytes_behind[first]
            stored = queue.stored[first]
            risk = queue.due.get(first)
        now = Look(self._as_of, committed, queue.max_offset)
        changes = self._history.committed(self._key, queue_id)
        ends = self._history.ends(self._topic, queue_id)
        rate_in, rate_out = rates(changes, ends, self._history.watched, now)
        return QueueLag(
            queue_id,
            what,
            lag_bytes,
            stored,
            queue.rate_in if rate_in is None else rate_in,
            rate_out,
            judge(looks(changes, ends, now), queue.min_offset, stored, members=self._has_members),
            risk,
        )


class _Depths:
    """Retries and dead letters of groups."""

    def __init__(self, broker: "EmbeddedBroker") -> None:
        self._view = broker.view
        self._offsets = broker.consumer_offsets()
        self._queues: dict[str, list[int]] = defaultdict(list)
        for topic, queue_id in broker.view.queues():
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
