"""Writing units and keys again that recovery finds missing (ReputMessageService)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableSequence
from typing import TYPE_CHECKING

from storage.coordination.shared_state import Word
from storage.format.cq_unit import CQ_STORE_UNIT_SIZE, PRE_BLANK
from storage.format.dispatch import DispatchRequest, read_request
from storage.format.record import read_head
from storage.log.walk import LogWalk, StretchKind
from storage.queue.record_order import OffsetRun, QueueOrder

from .unit_check import Heads, Runs, records_to_dispatch

if TYPE_CHECKING:
    from storage.append.append import Appender
    from storage.config import StoreConfig
    from storage.configs.deleted_topics import DeletedTopics
    from storage.coordination.shared_state import SharedState
    from storage.files.mapped_file_queue import MappedFileQueue
    from storage.files.read_files import ReadOnlyFiles

    from .queues import QueueRecovery
    from .store import RecoveryReport

QueueKey = tuple[str, int]


class Redispatch:
    """Compares the records of a walk with the queues and the index, and writes what they lack."""

    def __init__(
        self,
        config: StoreConfig,
        appender: Appender,
        shared: SharedState,
        queues: QueueRecovery,
        log: MappedFileQueue,
        row: ReadOnlyFiles,
        report: RecoveryReport,
        deleted: DeletedTopics,
    ) -> None:
        """Take the log for writing, and the log that the walk has read: both map it, once each."""
        self._deleted = deleted
        self._config = config
        self._appender = appender
        self._shared = shared
        self._queues = queues
        self._log = log
        self._report = report
        self._row = row
        self._gaps: set[QueueKey] = set(queues.made_anew)
        self._indexed = -1  # the record whose keys the kept index ends with

    def run(self, walked: Runs, heads: list[Heads], keys_from: int | None) -> None:
        """Bring queues and index up to the log's end.

        ``keys_from`` is the first record that lacks keys, None = the index was not checked.
        """
        report = self._report
        if not self._config.message_index_enable:
            keys_from = None
        elif keys_from is None:
            keys_from = self._keys_from()
        else:
            keys_from = max(report.log_min, keys_from)
        self._pass(records_to_dispatch(walked, heads, self._queues), self._put_units)
        if self._gaps:
            self._fill_gaps()
        if keys_from is not None:
            self._pass(self._records_between(keys_from, report.log_end), self._put_keys)
        self._note_newest_timestamp(walked)

    def _keys_from(self) -> int:
        """Log offset of the first record that may lack keys after a clean exit.

        RocketMQ adds keys only for what the queues lack too.
        """
        log_min, log_end = self._report.log_min, self._report.log_end
        header = self._appender.index.newest_header()
        start = log_min
        if header is not None and header.index_count > 1:
            start = max(log_min, header.end_phy_offset)
            self._indexed = header.end_phy_offset
        return max(start, min(log_end, self._queues.max_physic_offset()))

    def _note_newest_timestamp(self, walked: Runs) -> None:
        """Store times must not go back: remember that of the last record."""
        words = self._shared.words
        for offset, sizes in reversed(walked):
            last = offset + sum(sizes[:-1])
            file = self._log.find(last)
            if file is not None:
                head = read_head(file.read(last - file.file_from_offset, 128))
                words[Word.LAST_STORE_TIMESTAMP] = head.store_timestamp
                return

    def _pass(
        self,
        runs: Iterable[tuple[int, MutableSequence[int]]],
        put: Callable[[DispatchRequest], None],
    ) -> None:
        levels = self._appender.delay_levels_ms
        for offset, sizes in runs:
            file = self._log.find(offset)
            assert file is not None
            first = file.file_from_offset
            position = offset - first
            with memoryview(file.map) as view:
                for size in sizes:
                    put(read_request(view, position, size, levels, first=first))
                    position += size

    def _put_units(self, request: DispatchRequest) -> None:
        for key, queue_offset in self._units_of(request):
            following = self._following(key)
            if queue_offset > following or key in self._gaps:
                self._gaps.add(key)
            elif queue_offset == following:
                self._put(key, queue_offset, request.unit(), request.store_timestamp)
                self._report.units_written += 1

    def _units_of(self, request: DispatchRequest) -> Iterator[tuple[QueueKey, int]]:
        """Queue and queue offset of each unit that a record gets."""
        for topic, queue_id, queue_offset in request.units:
            if request.commitlog_offset >= self._deleted.get(topic, 0):
                yield (topic, queue_id), queue_offset

    def _following(self, key: QueueKey) -> int:
        """Queue offset after the last unit of a queue, 0 if it has none."""
        slot = self._shared.slot(*key)
        return 0 if slot is None else self._shared.next_offset(slot)

    def _put_piece(self, key: QueueKey, piece: OffsetRun) -> int:
        """Put units, after fillers where messages are missing; gives the number of fillers."""
        following = self._following(key)
        lost = piece.first - following if following else 0
        units = PRE_BLANK * lost + piece.units
        self._put(key, piece.first - lost, units, piece.store_timestamp)
        self._report.units_written += piece.end - piece.first
        return lost

    def _put(self, key: QueueKey, first: int, units: bytes, store_timestamp: int) -> None:
        shared = self._shared
        slot = shared.slot(*key)
        if slot is None:
            slot = shared.add_slot(*key)
        self._appender.queues.put(*key, first, units, store_timestamp)
        shared.set_next_offset(slot, first + len(units) // CQ_STORE_UNIT_SIZE)

    def _put_keys(self, request: DispatchRequest) -> None:
        """Add the keys of one record; those of the last record of the kept index are there
        already."""
        if request.commitlog_offset != self._indexed and request.key_hashes:
            offsets = [request.commitlog_offset] * len(request.key_hashes)
            self._appender.index.put(request.key_hashes, offsets, request.store_timestamp)
            self._report.keys_written += len(request.key_hashes)

    def _records_between(self, start: int, end: int) -> Iterator[tuple[int, MutableSequence[int]]]:
        """Runs of records between two log offsets; damage is skipped."""
        walk = LogWalk(
            self._row, start, limit=end, check_crc=False, search_all=True, as_broker=True
        )
        while (stretch := walk.next()) is not None:
            if stretch.kind in (StretchKind.RECORDS, StretchKind.DAMAGED):
                yield stretch.start, stretch.sizes

    def _fill_gaps(self) -> None:
        """Read the log from its start for units from before the walk that queues lack, and for
        queues of which the walk has met nothing.

        Where the log lacks the messages too, fillers keep the queue offsets of those after: readers
        skip them (ConsumeQueue.fillPreBlank makes such units).
        """
        report = self._report
        report.notes.append(f"{len(self._gaps)} queues rebuilt from the start of the log")
        orders: dict[QueueKey, QueueOrder] = {}
        lost: set[QueueKey] = set()

        def put(key: QueueKey, pieces: Iterable[OffsetRun]) -> None:
            for piece in pieces:
                if self._put_piece(key, piece):
                    lost.add(key)

        def take(request: DispatchRequest) -> None:
            for key, queue_offset in self._units_of(request):
                order = orders.get(key)
                if order is None:
                    order = orders[key] = QueueOrder(self._following(key) or None)
                unit = OffsetRun(queue_offset, request.unit(), request.store_timestamp)
                put(key, order.take(unit))

        self._pass(self._records_between(report.log_min, report.log_end), take)
        for key, order in orders.items():
            put(key, order.rest())
        for topic, queue_id in sorted(lost):
            report.notes.append(f"{topic} queue {queue_id}: messages are missing in the log")
