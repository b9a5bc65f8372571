"""A queue in looks that are repeated: its bounds, what came, and its first unread messages."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from storage.format.shapes import time_or_none
from storage.read.log_cut import LogCut
from storage.retention import LogFilesDue

from .few_units import few_units
from .health import Health
from .lag_snapshot import Head, QueueNow, Readers
from .queue_position import QueuePosition, unread_bytes
from .totals import QueueLag
from .trend import RATE_WINDOW_MS, StoredSince, Trend
from .validity import AT_ONCE, FOREVER

if TYPE_CHECKING:
    from storage.configs.offset_samples import Change, SampleHistory
    from storage.readonly import StoreView


class LookMoment(NamedTuple):
    """What is the same for all queues in one look."""

    view: StoreView
    as_of: int
    trend: Trend
    due: LogFilesDue
    files_changed: bool
    arrivals: StoredSince
    history: SampleHistory
    cut: LogCut
    chosen: Readers

    def bounds(self, queues: Sequence[KeptQueue]) -> list[tuple[int, int]]:
        """The bounds of queues, as :func:`.lag_snapshot.look_at` takes them."""
        places = [queue.place for queue in queues]
        found = self.cut.each_queue_bounds(places, [queue.high for queue in queues])
        if self.cut.is_whole or self.view.bounds.finished_to() <= self.cut.log_end:
            return found
        for number, written in enumerate(self.view.each_queue_bounds(places)):
            low, high = found[number]
            if written.max_offset > high:  # what is committed was read, though it lies past the cut
                found[number] = low, self._committed(*places[number], high, written.max_offset)
        return found

    def _committed(self, topic: str, queue_id: int, high: int, written: int) -> int:
        for key, offsets in self.chosen.offsets.items():
            committed = offsets.get(queue_id, -1) if key[1] == topic else -1
            if high < committed <= written:
                high = committed
        return high


class KeptQueue:
    """A queue, and what is known of messages that are the first unread one of a group."""

    __slots__ = (
        *("_arrived", "_by_log", "_caught_up", "_first_new", "_nothing_new", "_places"),
        *("heads", "high", "low", "now", "observed", "place", "until"),
    )

    def __init__(self, topic: str, queue_id: int) -> None:
        self.place = topic, queue_id
        self.low = self.high = -1
        self.heads: dict[int, Head] = {}
        self.now: QueueNow
        self.observed = -1
        """The end that was observed last."""
        self.until = AT_ONCE
        """When the messages that were stored have to be counted again, if the end stays."""
        self._arrived: int | None = None
        """Messages that were stored in the known part of the five minutes, or in all of them."""
        self._by_log = True
        """Whether it is all of them: the log shows it."""
        self._places: dict[int, int] = {}
        """Where the messages lie in the log; of each head that is wholly known."""
        self._first_new: tuple[int, int] | None = None
        """Log offset and size of the first message that is counted by the log: as long as that one
        counts, those after it do."""
        self._nothing_new = False
        """Whether no message is as young as is counted; none gets younger."""
        self._caught_up: QueueLag | None = None

    def begin(self, low: int, high: int, moment: LookMoment) -> None:
        """Take over the bounds of a queue that was not read before."""
        self.low, self.high = low, high
        self._count(moment, same=False)
        self.now = QueueNow(low, high, None, moment.history.ends(*self.place), self.heads)

    def is_stale(self, as_of: int) -> bool:
        """Whether something has to be found out anew, though bounds and files are as before."""
        return self.until <= as_of or len(self.heads) > len(self._places)

    def refresh(self, low: int, high: int, moment: LookMoment) -> bool:
        """Take over the bounds; whether something has changed for its readers."""
        same = low == self.low and high == self.high
        if not same:
            self._move(low, high, moment.view)
        if not same or self.until <= moment.as_of:
            self._count(moment, same=same)
        unknown = len(self.heads) > len(self._places)
        if unknown:
            self.heads = {offset: self.heads[offset] for offset in self._places}
        moved = moment.files_changed and self._judge_files(moment.due)
        if same and not unknown and not moved:
            return False
        self.now = QueueNow(low, high, None, moment.history.ends(*self.place), self.heads)
        return True

    def observe(self, ends: Sequence[Change], as_of: int) -> None:
        """Take note of what was observed of its end, now included."""
        if self.now.ends is not ends:
            self.now = self.now._replace(ends=ends)
        if ends[-1][0] == as_of:  # it is counted on from here
            self.until = AT_ONCE

    def _count(self, moment: LookMoment, *, same: bool) -> None:
        """Count the messages that were stored lately."""
        trend, ends = moment.trend, moment.history.ends(*self.place)
        count = None if trend.span_s is None else trend.arrived(ends, self.high)
        self._by_log, self.until = count is None, AT_ONCE
        if count is not None:
            self._nothing_new = self._nothing_new and same
            self._first_new = None
            known_from = trend.known_from or 0
            leaves = next((at for at, _ in ends if at > known_from), None)
            self.until = FOREVER if leaves is None else leaves + RATE_WINDOW_MS
        elif same and self._nothing_new:
            count, self.until = 0, FOREVER
        elif same and self._first_new is not None and moment.arrivals.counts(*self._first_new):
            count = self._arrived
        else:
            count = self._count_by_log(moment.arrivals)
            if self._nothing_new:
                self.until = FOREVER
        self._arrived = count

    def _count_by_log(self, arrivals: StoredSince) -> int | None:
        found = arrivals.first(*self.place, self.low, self.high)
        if found is None:
            self._nothing_new, self._first_new = False, None
            return None
        first, self._first_new = found
        self._nothing_new = first == self.high
        return self.high - first

    def rate_in(self, span_s: float | None) -> float | None:
        """How fast it grew; ``span_s`` is the length of the known part of the five minutes."""
        count = self._arrived
        if not count:
            return None if count is None else 0.0
        if self._by_log or span_s is None:
            return count * 1000 / RATE_WINDOW_MS
        return count / span_s

    def _move(self, low: int, high: int, view: StoreView) -> None:
        """Take over new bounds; the unread bytes are those of before and those of new units."""
        more: int | None = 0
        if high > self.high and self._places:
            more = unread_bytes(view, *self.place, [self.high], high)[self.high]
        kept: dict[int, Head] = {}
        if more is not None and high >= self.high:
            for offset in self._places:
                size, stored, due = self.heads[offset]
                if offset >= low and size is not None:
                    kept[offset] = size + more, stored, due
        self.heads = kept
        self._places = {offset: self._places[offset] for offset in kept}
        self.low, self.high = low, high
        self._caught_up = None

    def _judge_files(self, due: LogFilesDue) -> bool:
        """Find out anew from when on messages may be deleted; whether one of these changed."""
        heads = {
            offset: (size, stored, due.of(self._places[offset]))
            for offset, (size, stored, _) in self.heads.items()
        }
        if heads == self.heads:
            return False
        self.heads = heads
        return True

    def caught_up(self) -> QueueLag:
        """The state of every group that has read all, without rates."""
        row = self._caught_up
        if row is None:
            what = QueuePosition(self.low, self.high, self.high)
            row = QueueLag(self.place[1], what, 0, None, None, None, Health.OK, None)
            self._caught_up = row
        return row

    def first_unread(self, committed: int | None) -> int | None:
        """The first unread message that is still there, for a group; None without any."""
        if committed is None or committed >= self.high or self.low >= self.high:
            return None
        return max(committed, self.low)

    def read(self, offsets: Collection[int], moment: LookMoment) -> None:
        """Read the heads at some offsets."""
        if not self._places and self._read_few(offsets, moment):
            return
        sizes = self._sizes(offsets, moment.view)
        places = moment.view.places(*self.place, offsets, (self.low, self.high))
        for offset in offsets:
            place, stored = places.get(offset, (None, None))
            due = None if place is None else moment.due.of(place)
            size = sizes[offset]
            self.heads[offset] = size, time_or_none(stored), due
            if place is not None and stored is not None and size is not None:
                self._places[offset] = place

    def _read_few(self, offsets: Collection[int], moment: LookMoment) -> bool:
        """The same in one pass where few units are unread and all are common ones; False where
        nothing was read."""
        first, high, view = min(offsets), self.high, moment.view
        units = few_units(view, *self.place, first, (self.low, high))
        if units is None:
            return False
        sums = [*accumulate([size for _, size, _ in reversed(units)])]
        for offset in offsets:
            place, size, _ = units[offset - first]
            stored = view.record_timestamp(place, size)
            due = moment.due.of(place)
            self.heads[offset] = sums[high - offset - 1], time_or_none(stored), due
            if stored is not None:
                self._places[offset] = place
        return True

    def _sizes(self, offsets: Collection[int], view: StoreView) -> Mapping[int, int | None]:
        """Bytes from offsets to the end: by way of the nearest known one, if there is any."""
        if not self._places:
            return unread_bytes(view, *self.place, offsets, self.high)
        known: dict[int, int] = {self.high: 0}
        known.update((at, size) for at in self._places if (size := self.heads[at][0]) is not None)
        order = sorted(known)
        found: dict[int, int | None] = {}
        for offset in sorted(offsets, reverse=True):
            number = bisect_left(order, offset)
            after = order[number]
            before = order[number - 1] if number else None
            if before is not None and offset - before < after - offset:
                part = unread_bytes(view, *self.place, [before], offset)[before]
                size = None if part is None else known[before] - part
            else:
                part = unread_bytes(view, *self.place, [offset], after)[offset]
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
