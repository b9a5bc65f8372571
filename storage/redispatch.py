"""Writing units and keys again that recovery finds missing (ReputMessageService)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .dispatch import DispatchRequest, read_request
from .format.record import CheckKind, check_record
from .page import Word

if TYPE_CHECKING:
    from .append import Appender
    from .mapped_file_queue import MappedFileQueue
    from .page import SharedPage
    from .queue_recovery import QueueRecovery
    from .recovery import RecoveryReport

Runs = list[tuple[int, list[int]]]


class Redispatch:
    """Compares the records of a walk with the queues and the index, and writes what they lack."""

    def __init__(
        self,
        appender: Appender,
        page: SharedPage,
        queues: QueueRecovery,
        log: MappedFileQueue,
        report: RecoveryReport,
    ) -> None:
        self._appender = appender
        self._page = page
        self._queues = queues
        self._log = log
        self._report = report
        self._gaps: set[tuple[str, int]] = set()
        self._from_log_start = False  # a queue's first record seen is its first in the log

    def run(self, walked: Runs) -> None:
        """Bring queues and index up to the log's end."""
        report = self._report
        index_from = self._index_from()
        begin = walked[0][0] if walked else report.log_end
        self._from_log_start = begin == report.log_min
        if index_from is not None and index_from < begin:
            self._pass(self._records_between(index_from, begin), keys_from=index_from, units=False)
        self._pass(walked, keys_from=index_from, units=True)
        if self._gaps:
            self._fill_gaps()

    def _index_from(self) -> int | None:
        """Log offset from which keys are missing; None if the index is complete or not kept.

        After a clean exit RocketMQ adds keys only for what the queues lack too.
        """
        header = self._appender.index.newest_header()
        if self._report.clean_shutdown:
            return max(0, self._queues.max_physic_offset())
        if header is None or header.index_count <= 1:
            return self._report.log_min if header is None else max(0, header.end_phy_offset)
        return header.end_phy_offset

    def _pass(
        self, runs: Iterable[tuple[int, list[int]]], *, keys_from: int | None, units: bool
    ) -> None:
        levels = self._appender.delay_levels_ms
        for offset, sizes in runs:
            file = self._log.find(offset)
            assert file is not None
            position = offset - file.file_from_offset
            with memoryview(file.map) as view:
                for size in sizes:
                    request = read_request(view, position, size, levels)
                    place = file.file_from_offset + position
                    if units:
                        self._put_units(request)
                    if keys_from is not None and place >= keys_from:
                        self._put_keys(request, skip=place == keys_from)
                    position += size

    def _put_units(self, request: DispatchRequest) -> None:
        page = self._page
        words = page.words
        words[Word.LAST_STORE_TIMESTAMP] = max(
            words[Word.LAST_STORE_TIMESTAMP], request.store_timestamp
        )
        for topic, queue_id, queue_offset in request.units:
            slot = page.slot(topic, queue_id)
            following = 0 if slot is None else page.next_offset(slot)
            if queue_offset < following:
                continue
            if queue_offset > following and (following or not self._from_log_start):
                self._gaps.add((topic, queue_id))
                continue
            if slot is None:
                slot = page.add_slot(topic, queue_id)
            self._appender.queues.put(
                topic, queue_id, queue_offset, request.unit(), request.store_timestamp
            )
            page.set_next_offset(slot, queue_offset + 1)
            self._report.units_written += 1

    def _put_keys(self, request: DispatchRequest, *, skip: bool) -> None:
        """Add the keys of one record; the one that the kept index ends with is there already."""
        index = self._appender.index
        header = index.newest_header()
        if (
            skip
            and header is not None
            and header.index_count > 1
            and header.end_phy_offset == request.commitlog_offset
        ):
            return
        if request.key_hashes:
            places = [request.commitlog_offset] * len(request.key_hashes)
            index.put(request.key_hashes, places, request.store_timestamp)
            self._report.keys_written += len(request.key_hashes)

    def _records_between(self, start: int, end: int) -> Iterable[tuple[int, list[int]]]:
        """Records in front of the walk, one by one; files that are gone are left out."""
        while start < end:
            file = self._log.find(start)
            if file is None:
                return
            position = start - file.file_from_offset
            with memoryview(file.map) as view:
                found = check_record(view, position, file.size, check_crc=False)
            if found.kind is CheckKind.MESSAGE:
                yield start, [found.size]
                start += found.size
            else:
                start = file.file_from_offset + file.size

    def _fill_gaps(self) -> None:
        """Queues that lack units from before the walk: read the log from its start for them."""
        gaps, self._gaps = self._gaps, set()
        self._from_log_start = True
        self._report.notes.append(f"{len(gaps)} queues rebuilt from the start of the log")
        self._pass(
            self._records_between(self._report.log_min, self._report.log_end),
            keys_from=None,
            units=True,
        )
        for topic, queue_id in self._gaps:
            self._report.notes.append(f"{topic} queue {queue_id}: messages are missing in the log")
