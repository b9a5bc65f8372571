"""A group in a topic in looks that are repeated: what was found, and what of it still holds.

Most groups have read all, and nothing moves: what is found of such a group is the same object for
all groups that read these queues.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from storage.configs.consumer_offsets import topic_at_group

from .counts import GroupCounts, Read
from .health import PATIENCE_MS, Health
from .kept_queue import KeptQueue, LookMoment
from .lag_snapshot import GroupInQueue, read_queue_ids
from .selection import Offsets
from .totals import QueueLag
from .trend import RATE_WINDOW_MS, Trend
from .validity import AT_ONCE, FOREVER, Validity

if TYPE_CHECKING:
    from storage.configs.offset_samples import Change, SampleHistory
    from storage.configs.topics import TopicConfig

_NONE: Final[Offsets] = {}
_new: Final = tuple.__new__
_NOT_READ: Final[Read] = (None, 0)
_NO_QUEUES: Final[frozenset[int]] = frozenset()


class _AllRead(NamedTuple):
    """The state in some queues of every group that has read all that is there."""

    ends: list[int]
    states: list[QueueLag]
    rows: Mapping[int, QueueLag]


class _Reads(NamedTuple):
    """What was read in some queues."""

    by_queue: Mapping[int, Read]
    in_order: Sequence[Read]


class Quiet:
    """What was read in queues in which nothing was, one object for all groups."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[int, ...], int], _Reads] = {}

    def of(self, ids: tuple[int, ...], since: int) -> _Reads:
        """In these queues, since a time (ms)."""
        found = self._known.get((ids, since))
        if found is None:
            reads: list[Read] = [(0, since)] * len(ids)
            found = _Reads(dict(zip(ids, reads, strict=True)), reads)
            self._known[ids, since] = found
        return found


class KeptPair:
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
        self._rows: Mapping[int, QueueLag] = {}
        self._read: Mapping[int, Read] = {}
        """Both by queue id; replaced, not changed: other groups may have the same objects."""
        self._fresh: Collection[int] = ()
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
                    del untils[queue_id]
                    self._read_untils.pop(queue_id, None)
                self._rows = {q: row for q, row in self._rows.items() if q in ids}
                self._read = {q: read for q, read in self._read.items() if q in ids}
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
        judged: dict[int, QueueLag] = {}
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
                judged[queue_id] = _new(QueueLag, (*row[:6], stopped, row[7]))
        if judged:
            self._rows, self._states = {**rows, **judged}, None
        return left

    def note_fresh(self, which: Sequence[int], changes: Mapping[int, Sequence[Change]]) -> None:
        """Note in which of these queues its progress was not observed before."""
        self._fresh = [q for q in which if not changes.get(q)] if changes else which

    def take(self, rows: Mapping[int, QueueLag]) -> None:
        """Note the states in some queues."""
        known = self._rows
        changed = {q: row for q, row in rows.items() if row != known.get(q)}
        if changed:
            self._rows = {**known, **changed}
            self._states = None

    def take_all_read(self, all_read: _AllRead) -> bool:
        """Note the state in all queues at once, if all that is there has been read."""
        ids, offsets = self.ids, self.offsets
        if [*offsets.values()] != all_read.ends or tuple(offsets) != ids:
            return False
        if self._rows != all_read.rows:
            self._rows, self._states = all_read.rows, all_read.states
        return True

    def keep_until(
        self,
        which: Iterable[int],
        validity: Validity,
        trend: Trend,
        history: SampleHistory,
        quiet: Quiet,
    ) -> None:
        """Note what was read in some queues, and until when the states hold."""
        all_changes, fresh = history.queues_of(self.place), self._fresh
        if which is self.ids and self._keep_as_first_known(validity, trend, history, quiet):
            return
        found: dict[int, Read] = {}
        untils, ends, rows = self._untils, history.ends_of(self.topic), self._rows
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
                found[queue_id] = read
            untils[queue_id] = until
        if found:
            self._read, self._reads = {**self._read, **found}, None
        self.until = min(map(untils.__getitem__, self.ids), default=AT_ONCE)

    def _keep_as_first_known(
        self, validity: Validity, trend: Trend, history: SampleHistory, quiet: Quiet
    ) -> bool:
        """The same for all queues in few steps, if the group has progress in each, and that is as
        it was when it was known first, as in the first look."""
        ids, known_from = self.ids, trend.known_from
        all_changes = history.queues_of(self.place)
        if known_from is None or tuple(self.offsets) != ids or tuple(all_changes) != ids:
            return False
        if self._fresh and trend.span_s is not None:
            return False
        since = {changes[-1][0] for changes in all_changes.values()}
        if len(since) != 1 or max(since) > known_from:
            return False
        reads = quiet.of(ids, *since)
        if reads.by_queue != self._read:
            self._read, self._reads = reads
        self._read_untils.clear()
        self._untils = untils = dict.fromkeys(ids, FOREVER)
        ends = history.ends_of(self.topic)
        for queue_id, row in self._rows.items():
            _, committed, high = row.unread
            if committed is not None and committed < high:
                changes = all_changes[queue_id]
                untils[queue_id] = validity.of_status(row, changes, ends[queue_id])
        self.until = min(untils.values())
        return True

    def _keep_read_until(self, queue_id: int, until: int) -> None:
        if until < FOREVER:
            self._read_untils[queue_id] = until
        elif queue_id in self._read_untils:
            del self._read_untils[queue_id]
            if not self._read_untils:
                self._read_untils.clear()  # a dictionary that was emptied keeps its room

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
        read_until, count = self._read_untils.get(queue_id, AT_ONCE), None
        if read_until != AT_ONCE:
            before, since = self._read[queue_id]
            if before is not None:
                # It holds until the first change that counted leaves: Validity.of_count.
                earlier = before, since, read_until - RATE_WINDOW_MS
                count = trend.read_again(changes, committed, earlier)
        if count is None:
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
        if known is not None and known.queues is states and known.read is reads:
            if known[-3:] != depth:
                known = known._replace(retry=depth[0], dlq=depth[1], members=depth[2])
        else:
            if states is None:
                states = self._states = [*map(self._rows.__getitem__, self.ids)]
            if reads is None:
                read = self._read
                reads = self._reads = [read.get(queue_id, _NOT_READ) for queue_id in self.ids]
            known = GroupCounts(self.group, self.topic, self.ids, states, reads, *depth)
        self._counts = known
        return known


Stale = Sequence[tuple[KeptPair, Sequence[int]]]
"""Groups in topics, and the queues in which they are judged again."""


def _all_read(queues: Sequence[KeptQueue]) -> _AllRead:
    states = [queue.caught_up() for queue in queues]
    return _AllRead([queue.high for queue in queues], states, {row.queue_id: row for row in states})


def judge(stale: Stale, moment: LookMoment) -> None:
    """Find the states of groups in these queues."""
    states = {
        has_members: GroupInQueue(None, moment.as_of, None, has_members=has_members)
        for has_members in (False, True)
    }
    all_read: dict[tuple[str, Sequence[int]], _AllRead] = {}
    for pair, which in stale:
        all_changes = moment.history.queues_of(pair.place)
        queues, offsets = pair.queues, pair.offsets
        pair.note_fresh(which, all_changes)
        if which is pair.ids:
            place = pair.topic, which
            known = all_read.get(place)
            if known is None:
                known = all_read[place] = _all_read([queues[queue_id] for queue_id in which])
            if pair.take_all_read(known):
                continue
        state, rows = states[pair.has_members].in_queue, {}
        for queue_id in which:
            changes, committed = all_changes.get(queue_id, ()), offsets.get(queue_id)
            queue = queues[queue_id]
            if committed == queue.high:
                rows[queue_id] = queue.caught_up()
            else:
                rows[queue_id] = state(queue_id, queue.now, committed, changes)
        pair.take(rows)
