"""Scanning one store's small files and the heads of its queues, and finding what is to be
counted."""

from __future__ import annotations

import re
import warnings as python_warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import uuid4

from analytics.engines.task import CountTask
from analytics.kernels.partials import CHUNK, MINUTE_MS, QueueTask
from analytics.lag.delayed import doubt_of_level
from analytics.lag.lag_snapshot import LagSnapshot, Readers, look_at
from analytics.lag.selection import Choice, Offsets
from storage.configs.consumer_offsets import split_topic_at_group
from storage.configs.delay_offsets import load_delay_offsets
from storage.configs.topics import TopicConfig, queues_with
from storage.counted import counted
from storage.errors import IncompleteStoreWarning, StoreError
from storage.format.cq_unit import CQ_STORE_UNIT_SIZE
from storage.format.names import CONSUMEQUEUE, file_name
from storage.readonly import StoreView

from .copies import log_marks
from .losses import noted_losses

if TYPE_CHECKING:
    from analytics.lag.totals import QueueLag

    from .stores import StoreRef

EACH_TIME_UP_TO: Final = 200_000
"""Messages up to which each one's time is read: it takes some 10 ms, and does not rely on
clocks."""
EACH_TAG_UP_TO: Final = 20_000
"""Messages up to which each one's tag is read: it takes 0.2 s, and distinguishes tags of one
hash."""
_PER_CORE: Final = 3
_USUAL: Final = 8 * CHUNK
"""Messages of a task where there are many: a quarter of a second, so that progress is visible."""
_MOST_WORKS: Final = 1_000
"""From here on tasks get larger instead of more."""
INCOMPLETE: Final = "incomplete: "
"""What a warning of messages that a store has lost begins with, in kept reports, too."""


class ScannedDelays(NamedTuple):
    """Delayed messages of one level that have not been delivered."""

    level: int
    messages: int | None
    """None: unknown, as the level's saved offset lies beyond its end."""


class Orphan(NamedTuple):
    """Progress in a topic that does not exist."""

    group: str
    topic: str


class StoreWarning(NamedTuple):
    """A sentence about a store, and the group and topic that it is about: None is any.

    One that has a topic only is about groups whose progress is there without the topic (orphans),
    or about a queue of it.
    """

    text: str
    group: str | None = None
    topic: str | None = None


class ScannedQueue(NamedTuple):
    """A queue with messages to count; ``number`` is its index among the store's."""

    number: int
    topic: str
    queue_id: int
    cuts: tuple[int, ...]
    end: int


@dataclass(frozen=True)
class StoreScan:
    """Results of scanning one store. Pickles."""

    ref: StoreRef
    snapshot: LagSnapshot
    """Without the bytes of unread messages: they come with the counts."""
    queues: tuple[ScannedQueue, ...]
    minutes: tuple[int, int]
    """First and last minute (since 1970) in which something unread was stored."""
    each_time: bool
    """Read the time of each record: there are few, or the ends cannot be read."""
    each_tag: bool
    """Read the tag of each record: there are few."""
    log: tuple[int, int]
    """Begin and end of the commit log."""
    marks: frozenset[str]
    """Marks of the first records of log files: copies of one log have some in common."""
    agenda: tuple[ScannedDelays, ...] = ()
    orphans: tuple[Orphan, ...] = ()
    warnings: tuple[StoreWarning, ...] = field(default=())
    is_damaged: bool = False
    """The store has lost messages, or a queue seems to end before its real end."""

    @property
    def backlog(self) -> int:
        """Messages to be counted."""
        return sum(queue.end - queue.cuts[0] for queue in self.queues)


def scan(ref: StoreRef, as_of: int, choice: Choice) -> StoreScan:
    """Scan one store. Progress is read first, then the ends of queues.

    What an IncompleteStoreWarning would say is among the scan's warnings: it may come from another
    machine. Raises the errors of ``StoreView.open``.
    """
    with noted_losses() as lost, StoreView.open(ref.path) as view:
        view.reads_log_at_random()
        table = progress_of(view)
        topics = known_topics(view)
        choice.add_retry_topics(table, view, topics)
        orphans = tuple(
            Orphan(group, topic)
            for group, topic in sorted(table)
            if topic not in topics and choice.names(group, topic)
        )
        chosen = {
            (group, topic): table[group, topic]
            for group, topic in sorted(table)
            if choice.takes(group, topic)
        }
        who = Readers(chosen, {}, table)
        of_all_topics = choice._replace(topics=None)  # other stores may have the chosen topics
        groups = {group for group, topic in table if of_all_topics.takes(group, topic)}
        snapshot = look_at(
            view, topics, who, as_of, sizes=False, until_then=True, depths_of=sorted(groups)
        )
        queues = tuple(_counted(snapshot))
        minutes, unreadable = _minutes(view, queues)
        end = view.lost_end()
        if end is not None:
            lost[end.removeprefix(f"{view.root}: ")] = None
        damaged = (*(StoreWarning(INCOMPLETE + sentence) for sentence in lost),)
        damaged += tuple(_damaged(view, snapshot))
        warnings = [
            *(StoreWarning(sentence) for sentence in (*_unread_parts(view), *_doubts(snapshot))),
            *damaged,
            *_odd(snapshot),
        ]
        agenda = tuple(_agenda(view, snapshot, warnings))
        log = view.log_min_offset(), view.log_max_offset()
        marks = frozenset(log_marks(view, *log))
    backlog = sum(queue.end - queue.cuts[0] for queue in queues)
    return StoreScan(
        ref,
        snapshot,
        queues,
        minutes,
        unreadable or backlog <= EACH_TIME_UP_TO,
        backlog <= EACH_TAG_UP_TO,
        log,
        marks,
        agenda,
        orphans,
        tuple(warnings),
        is_damaged=bool(damaged),
    )


@contextmanager
def without_known_losses(scans: Sequence[StoreScan]) -> Iterator[None]:
    """No IncompleteStoreWarning that says what warnings of the scans say."""
    with python_warnings.catch_warnings():
        for one in scans:
            for text, *_ in one.warnings:
                if text.startswith(INCOMPLETE):
                    known = re.escape(text.removeprefix(INCOMPLETE))
                    python_warnings.filterwarnings("ignore", known, IncompleteStoreWarning)
        yield


def known_topics(view: StoreView) -> dict[str, TopicConfig]:
    """All topics: those with settings, and those known only from queues.

    Raises CorruptFileError.
    """
    topics = dict(view.topics())
    queues: dict[str, list[int]] = {}
    for topic, queue_id in view.queues():
        if topic not in topics:
            queues.setdefault(topic, []).append(queue_id)
    for topic, queue_ids in queues.items():
        topics[topic] = TopicConfig(topic, queues_with(queue_ids), 0)
    return topics


def tasks_of(queue: ScannedQueue, most: int) -> Iterator[QueueTask]:
    """Cut a queue into tasks of at most ``most`` messages."""
    _, topic, queue_id, cuts, end = queue
    for first in range(cuts[0], end, most):
        yield QueueTask(queue.number, topic, queue_id, cuts, first, min(first + most, end))


def progress_of(view: StoreView) -> dict[tuple[str, str], Offsets]:
    """Committed offsets by group and topic. Raises CorruptFileError and StoreVersionError."""
    table: dict[tuple[str, str], Offsets] = {}
    for key, offsets in view.consumer_offsets().items():
        split = split_topic_at_group(key)
        if split is not None:
            topic, group = split
            table[group, topic] = offsets
    return table


def _counted(snapshot: LagSnapshot) -> Iterator[ScannedQueue]:
    cuts: dict[tuple[str, int], set[int]] = defaultdict(set)
    ends: dict[tuple[str, int], int] = {}
    for group_lag in snapshot.group_lags:
        for queue in group_lag.queues:
            first = queue.unread.first_unread
            if first is not None:
                place = (group_lag.topic, queue.queue_id)
                cuts[place].add(first)
                ends[place] = queue.unread.max_offset
    for number, (place, firsts) in enumerate(sorted(cuts.items())):
        yield ScannedQueue(number, *place, tuple(sorted(firsts)), ends[place])


def _minutes(view: StoreView, queues: Sequence[ScannedQueue]) -> tuple[tuple[int, int], bool]:
    first: int | None = None
    last: int | None = None
    exact = False
    for queue in queues:
        begin = view.store_timestamp(queue.topic, queue.queue_id, queue.cuts[0])
        end = view.store_timestamp(queue.topic, queue.queue_id, queue.end - 1)
        if begin is None or end is None:
            exact = True
            continue
        first = begin if first is None else min(first, begin)
        last = end if last is None else max(last, end)
    if first is None or last is None:
        return (0, 0), True
    return (first // MINUTE_MS, last // MINUTE_MS), exact


def _agenda(
    view: StoreView, snapshot: LagSnapshot, warnings: list[StoreWarning]
) -> Iterator[ScannedDelays]:
    if snapshot.delayed is None:
        try:
            load_delay_offsets(view.root)
            reason = "its file could not be read"
        except StoreError as error:
            reason = str(error)
        warnings.append(StoreWarning(f"what is delayed is not known: {reason}"))
        return
    for level, messages in sorted(snapshot.delayed.items()):
        if messages is None:
            warnings.append(StoreWarning(doubt_of_level(level)))
        if messages != 0:
            yield ScannedDelays(level, messages)


def _unread_parts(view: StoreView) -> list[str]:
    return [f"not read: {sentence}" for sentence in view.not_covered()]


def _doubts(snapshot: LagSnapshot) -> Iterator[str]:
    if snapshot.doubt is not None:
        yield snapshot.doubt


def _damaged(view: StoreView, snapshot: LagSnapshot) -> Iterator[StoreWarning]:
    """Queues with progress past their end where there is data: a missing unit seems to end them."""
    passed = {
        (group_lag.topic, queue.queue_id, queue.unread.max_offset)
        for group_lag in snapshot.group_lags
        for queue in group_lag.queues
        if queue.unread.ahead
    }
    per_file = view.config.mapped_file_size_consume_queue // CQ_STORE_UNIT_SIZE
    for topic, queue_id, end in sorted(passed):
        folder = Path(view.root, CONSUMEQUEUE, topic, str(queue_id))
        try:
            with (folder / file_name((end - end % per_file) * CQ_STORE_UNIT_SIZE)).open("rb") as at:
                at.seek(end % per_file * CQ_STORE_UNIT_SIZE)
                if any(at.read(CQ_STORE_UNIT_SIZE)):
                    sentence = (
                        f"queue {queue_id} of {topic} is damaged at offset {end}: what comes after "
                        "that is not counted; see 'rmqctl store fsck'"
                    )
                    yield StoreWarning(sentence, None, topic)
        except FileNotFoundError:
            continue


def _odd(snapshot: LagSnapshot) -> Iterator[StoreWarning]:
    for group, topic, queues, *_ in snapshot.group_lags:
        for sentence in _oddities(group, topic, queues):
            yield StoreWarning(sentence, group, topic)


def _oddities(group: str, topic: str, queues: Sequence[QueueLag]) -> Iterator[str]:
    ahead = [queue for queue in queues if queue.unread.ahead]
    if ahead:
        where = ", ".join(f"{one.queue_id} (by {one.unread.ahead})" for one in ahead)
        yield f"group {group} is beyond the end of {topic} in queue {where}: left out of sums"
    unknown = sum(queue.unread.committed_offset is None for queue in queues)
    if unknown:
        yield (
            f"group {group} has no progress in {unknown} of {counted(len(queues), 'queue')} "
            f"of {topic}: left out of sums"
        )
    lost = sum(queue.unread.lost or 0 for queue in queues)
    if lost:
        yield (
            f"{counted(lost, 'message was', 'messages were')} deleted from {topic} before "
            f"group {group} read there"
        )
    missing = [
        queue
        for queue in queues
        if queue.unread.first_unread is not None and queue.oldest_unread_timestamp is None
    ]
    if missing:
        yield (
            f"the oldest unread message of group {group} in {topic} cannot be read in "
            f"{counted(len(missing), 'queue')}: its age is not known"
        )


def plan(scans: Sequence[StoreScan], cores: int, *, exact: bool = False) -> list[CountTask]:
    """Pack all messages to be counted into tasks for ``cores`` processes, the largest first.

    A task has parts of one store; none is smaller than a million messages only to make more tasks.
    """
    job = str(uuid4())
    total = sum(scan.backlog for scan in scans)
    each = min(-(-total // (cores * _PER_CORE)), max(_USUAL, total // _MOST_WORKS))
    each = max(CHUNK, each)
    works: list[tuple[int, CountTask]] = []
    for scan in scans:
        tasks: list[QueueTask] = []
        size = 0
        for queue in scan.queues:
            for task in tasks_of(queue, each):
                tasks.append(task)
                size += task.end - task.first
                if size >= each:
                    works.append((size, _work(job, scan, tasks, exact=exact)))
                    tasks, size = [], 0
        if tasks:
            works.append((size, _work(job, scan, tasks, exact=exact)))
    return [work for _, work in sorted(works, key=lambda sized: -sized[0])]


def _work(job: str, scan: StoreScan, tasks: Sequence[QueueTask], *, exact: bool) -> CountTask:
    each_time = exact or scan.each_time
    each_tag = exact or scan.each_tag
    return CountTask(job, scan.ref.path, tuple(tasks), scan.minutes, each_time, each_tag)
