"""Delayed delivery (ScheduleMessageService of 4.9): 18 levels, driven by ticks.

One process of a store does it: the one elected to run the timed services. Its offsets are in
config/delayOffset.json (DelayOffsets), written with each batch. The next process searches the log
for messages that the previous one delivered and did not note (arrived.py): after a kill nothing
comes again, and nothing is lost.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from storage.configs.delay_offsets import DelayOffsetFile
from storage.configs.delivery_notes import DeliveryNote, DeliveryNotes
from storage.configs.early_deliveries import EarlyDeliveries
from storage.errors import StoreBrokenError, StoreClosedError
from storage.format.delay import CLOCK_STEP_MS
from storage.format.message import SCHEDULE_TOPIC

from .level import DelayLevel

if TYPE_CHECKING:
    from broker.config import BrokerConfig
    from storage.readonly import StoreView
    from storage.results import PutMessageResult

logger = logging.getLogger("rmqctl.broker")

DELAY_FOR_A_PERIOD_MS: Final = 10_000
"""When to retry after an unexpected error."""


class DelayOffsets:
    """The files and their timer. ``delivered`` gives the levels with deliveries, or loaded ones.

    The offsets are written with each batch, so that a Java broker that opens the store after a kill
    delivers one batch again at most. The notes are written before each batch, so that rmqctl
    delivers none again. Neither waits for the device: another thread syncs every 10 s while
    something is delivered, and at the end, because the delivering thread would be late. Only the
    process that is elected to deliver writes the files. Safe for threads.
    """

    def __init__(
        self, root: Path, interval_ms: int, delivered: Callable[[], Mapping[int, int]]
    ) -> None:
        self._file = DelayOffsetFile(root)
        self._notes = DeliveryNotes(root)
        self._interval_ms = interval_ms
        self._delivered = delivered
        self._lock = threading.Lock()  # one writer; guards the fields below
        self._saved: dict[int, int] = {}
        self._due: int | None = None
        self._cannot_note = False
        self._closed = False

    def load(self) -> Mapping[int, int]:
        """Read the offsets. Raises CorruptFileError."""
        with self._lock:
            self._saved = self._file.load()
            return self._saved

    def notes(self) -> Mapping[int, DeliveryNote]:
        """Read what the previous process was about to do."""
        try:
            return self._notes.read()
        except OSError:
            logger.exception("what was delivered last is looked for in more of the log")
            return {}

    def intend(self, level: int, offset: int, log_offset: int) -> None:
        """Note what a level is about to deliver."""
        try:
            self._notes.write(level, DeliveryNote(offset, log_offset))
        except OSError:  # the previous note is valid, too
            if not self._cannot_note:
                self._cannot_note = True
                logger.exception("delivery goes on without notes: after a kill it takes longer")

    def write(self) -> None:
        """Write the delivery offsets, without waiting for the device where that is possible.

        Nothing after ``close``: another process delivers.
        """
        with self._lock:
            if self._closed:
                return
            offsets = {**self._saved, **self._delivered()}
            if offsets != self._saved:
                self._file.write(offsets)
                self._saved = offsets

    def tick(self, now_ms: int) -> int:
        """Sync the file if it is time; gives when to call again, ms."""
        latest = now_ms + self._interval_ms
        if self._due is None or self._due > latest:  # the start; or the clock was moved back
            self._due = latest
        if self._due <= now_ms:
            self._due = latest
            self.persist()
        return self._due

    def persist(self) -> None:
        """Write the file unless it is up to date, and sync it. Raises StoreNotWritableError."""
        self.write()
        self._file.sync()

    def close(self) -> None:
        """Release the files, for good."""
        with self._lock:
            self._closed = True
        self._notes.close()
        self._file.close()


class LevelProgress(NamedTuple):
    """Position of a level: the next offset to deliver, and the queue's end."""

    level: int
    offset: int
    max_offset: int


class ScheduleMessageService:
    """Delivers delayed messages of one store. For one thread; call ``shutdown`` at the end.

    ``put`` is MessageStore.put, ``now`` the store's clock, ms. ``settle`` completes what a killed
    writer left in the log. ``offsets`` needs ticks too, from another thread if there is one.
    """

    def __init__(
        self,
        root: Path,
        config: BrokerConfig,
        delays_ms: Sequence[int],
        *,
        view: Callable[[], StoreView],
        put: Callable[..., PutMessageResult],
        now: Callable[[], int],
        settle: Callable[[], None] = lambda: None,
    ) -> None:
        self._view = view
        self._settle = settle
        self.offsets = DelayOffsets(root, config.flush_delay_offset_interval_ms, self._delivered)
        ended = EarlyDeliveries(root).of
        make_level: Callable[..., DelayLevel] = DelayLevel
        if config.enable_schedule_async_deliver:
            from .pending import PendingDelayLevel

            make_level = partial(PendingDelayLevel, config=config)
        intend = self.offsets.intend
        self._levels = [
            make_level(level, delay_ms, view=view, put=put, now=now, ended=ended, intend=intend)
            for level, delay_ms in enumerate(delays_ms, 1)
        ]
        self._due: list[int] | None = None

    def tick(self, now_ms: int) -> int:
        """Do what is due; gives when to call again, ms since the epoch, perhaps at once.

        A level that fails runs again 10 s later; the others go on. Raises CorruptFileError for
        a delayOffset.json that cannot be read, and StoreBrokenError if the store refuses writes.
        """
        if self._due is None:
            self._settle()
            saved, notes = self.offsets.load(), self.offsets.notes()
            for level in self._levels:
                level.load(saved.get(level.level), notes.get(level.level))
            self.offsets.write()
            self._due = [now_ms] * len(self._levels)
        for number, level in enumerate(self._levels):
            # Further ahead than any due time: the clock was moved back.
            if not now_ms < self._due[number] <= now_ms + _longest_pause(level):
                try:
                    self._due[number] = level.run()
                    self.offsets.write()
                except (StoreBrokenError, StoreClosedError):
                    raise  # each level would fail, for as long as the store is open
                except Exception:
                    logger.exception("delay level %d", level.level)
                    self._due[number] = now_ms + DELAY_FOR_A_PERIOD_MS
        return min(self._due)

    def shutdown(self) -> None:
        """Wait for pending puts and write the offset of each level. Calling twice is fine."""
        try:
            for level in self._levels:
                level.settle()
            self.offsets.persist()
        finally:
            self.offsets.close()

    def progress(self) -> list[LevelProgress]:
        """Give the position of each level (ScheduleMessageService.buildRunningStats)."""
        view = self._view()
        return [
            LevelProgress(
                level.level,
                level.delivered or 0,
                view.max_offset_in_queue(SCHEDULE_TOPIC, level.queue_id),
            )
            for level in self._levels
        ]

    def _delivered(self) -> dict[int, int]:
        return {
            level.level: level.delivered for level in self._levels if level.delivered is not None
        }


def _longest_pause(level: DelayLevel) -> int:
    return max(level.delay_ms, DELAY_FOR_A_PERIOD_MS) + CLOCK_STEP_MS
