"""One check of a whole store: log, queues, index, checkpoint, offsets, settings.

Reads only, takes no lock, and may run beside writers: it notes the log's end first and the queues'
ends after it, and ignores everything whose record ends after that. What is deleted meanwhile is
ignored, too (:mod:`.deletions`). Memory does not grow with the
store: the log is read in blocks of some ten thousand records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import TYPE_CHECKING

from storage.configs.deleted_topics import DeletedTopics, read_deleted_topics
from storage.coordination.lock_owners import find_holders
from storage.errors import CorruptFileError
from storage.format.names import ABORT
from storage.queue.ext import ConsumeQueueExt
from storage.queue.written_end import tails_of
from storage.read.log_presence import missing_log
from storage.read.scan_bounds import ScanBounds
from storage.record_batch.queue_numbers import TopicNames
from storage.tools.config_recovery.own_files import salvaged_deleted_topics

from .deletions import Deletions
from .findings import Code, Finding, Report, Severity
from .index import IndexCheck
from .index_compare import EntryNotes, IndexComparison
from .jobs import LogJobs, can_fork
from .kept_part import KeptPart, encode_part
from .log import LogCheck
from .log_end import LogEndCheck
from .log_part import split_log
from .log_pass import LogPass, WalkPart, look_at
from .offsets import check_configs, check_offsets
from .own_files import check_own_files, check_shared_state
from .path_conflicts import check_places
from .permissions import check_permissions
from .queue_compare import QueueComparison
from .queues import QueueCheck
from .reported import Reported
from .spot_check import check_index_heads, check_samples, newest_record_time, units_past_end
from .state import FileCheck, check_abort, check_checkpoint, check_covered
from .tail import judge_tail, missing_files

if TYPE_CHECKING:
    from storage.readonly import StoreView
    from storage.tools.config_recovery.own_files import BrokerCheck

MAX_FINDINGS = 10_000
_MOST_KEPT = 64
"""How often a check gives its result up to there: not after each of a thousand small files."""

Keep = Callable[[int, bytes | None], None]


class Part(StrEnum):
    """A part that can be checked alone."""

    LOG = "log"
    QUEUE = "queue"
    INDEX = "index"
    OFFSET = "offset"
    CONFIG = "config"


def fsck(
    view: StoreView,
    *,
    only: Iterable[Part] | None = None,
    topics: Iterable[str] | None = None,
    start: int = 0,
    check_crc: bool = True,
    fast: bool = False,
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
    on_finding: Callable[[Finding], None] | None = None,
    max_findings: int = MAX_FINDINGS,
    check_broker: BrokerCheck | None = None,
    resume: KeptPart | None = None,
    keep: Keep | None = None,
) -> Report:
    """Check the store that ``view`` reads.

    ``only`` chooses parts; queues and index are compared with the log, so it is read for them too.
    ``topics`` limits findings about queues and index to some topics. ``start`` is a commit log
    offset; the log is read from the file that holds it. ``check_crc`` False skips the bodies;
    ``fast`` reads only files, ends and samples, not the whole log (see :mod:`.samples`); ``jobs``
    is the number of processes that divide the log (a program with threads does it alone). The
    report is the same for any number of them. ``progress`` is called with bytes done and bytes in
    all, ``on_finding`` with each finding: as it comes in a store of rmqctl's writers, else at the
    end. ``check_broker`` raises ValueError for
    settings of a broker that none can have. ``keep`` is called now and then with the log offset up
    to which was checked and the result up to there (:func:`.kept_part.encode_part`), None for one
    that is too large. ``resume`` is such a result, of a check of the same parts and topics: it
    stands for that part of the log. Raises OSError if the device fails.
    """
    parts = frozenset(Part) if only is None else frozenset(only)
    wanted = None if topics is None else frozenset(topics)
    check_crc = check_crc and Part.LOG in parts
    while True:
        # Without the shared state a record may be read before its unit exists. If a writer of
        # rmqctl came meanwhile, the store has a shared state now: check again.
        has_shared_state = view.has_shared_state
        reported: list[Finding] = []
        tell = on_finding if on_finding is None or has_shared_state else reported.append
        run = _Run(view, parts, wanted, max_findings, tell)
        run.check_broker = check_broker
        run.resume, run.keep = resume, keep
        resume = None  # a check that is done again begins anew
        try:
            run.check(start, check_crc, jobs, progress, fast=fast)
        finally:
            run.release()
        if (
            has_shared_state
            or not run.report.findings
            or not (view.has_shared_state or view.joins_writers())
        ):
            break
    if on_finding is not None:
        for finding in reported:
            on_finding(finding)
    return run.report


class _Run:
    def __init__(
        self,
        view: StoreView,
        parts: frozenset[Part],
        topics: frozenset[str] | None,
        max_findings: int,
        on_finding: Callable[[Finding], None] | None,
    ) -> None:
        self._view = view
        self._parts = parts
        self._wanted = topics
        self._max_findings = max_findings
        self._on_finding = on_finding
        self.report = Report()
        self.check_broker: BrokerCheck | None = None
        self.resume: KeptPart | None = None
        self.keep: Keep | None = None
        self._kept_to = 0
        self._topics = TopicNames()
        self._if_quiet: list[Finding] = []  # findings that hold only if no process wrote meanwhile
        self._queues: QueueCheck | None = None
        self._index: IndexCheck | None = None
        self._keys_from = 0
        self._reported = Reported()
        self._of_files: list[Finding] = []  # about lengths and names of files
        self._holes: list[tuple[str, int, int]] = []
        self._files = view.files.apart()
        self._deletions = Deletions(view)

    def check(
        self,
        start: int,
        check_crc: bool,
        jobs: int,
        progress: Callable[[int, int], None] | None,
        *,
        fast: bool = False,
    ) -> None:
        view = self._view
        holders = find_holders(view.root)
        # The order matters beside writers: a record below this end has its unit and keys.
        bounds = view.bounds
        self._keys_from = bounds.keys_from()
        log_end = whole_end = bounds.log_end()
        next_offsets = {key: bounds.next_offset(*key) for key in bounds.queues()}
        self._deletions.next_offsets = next_offsets
        log_min = min(view.log_min_offset(), log_end)
        live = bool(holders.writers) or holders.java_locked
        if holders.java_locked and isinstance(bounds, ScanBounds):
            log_end = min(log_end, self._dispatched(next_offsets))
        self.report.log_end = log_end

        self._check_files()
        log = self._log_check(max(start, log_min), log_end, check_crc)
        needs_log = self._parts & {Part.LOG, Part.QUEUE, Part.INDEX} and not fast
        if fast:
            log.last_store_timestamp = self._look_at_samples(next_offsets, log.start, log_end)
        if needs_log:
            self._walk(log, log_min, log_end, next_offsets, jobs, live=live, progress=progress)
        ahead: list[Finding] = []
        missing = None
        if Part.LOG in self._parts:
            if isinstance(bounds, ScanBounds):
                missing = missing_log(self._files, view.config, tails_of(self._files))
            if live and missing is not None:  # records being written lie in existing files
                self.emit(missing_files(view, missing, "", self._reported))
            check_abort(view.root, holders.describe(), self.emit)
            check_covered(view.root, self.emit)
            check_permissions(view.root, self.emit)
            if not live:
                closed = not (view.root / ABORT).exists()
                finished_to = self.report.finished_to = bounds.finished_to()
                past_end = LogEndCheck(
                    self._files.log, log_end, self._if_quiet.append, self._reported, closed=closed
                )
                past_end.look(finished_to)
                if start <= log_min:
                    newest = log.last_store_timestamp
                    check_checkpoint(view.root, newest, ahead.append, closed=closed)
        if not live:
            units: list[Finding] = []
            if self._queues is not None:
                self._queues.left_over(self._written_units())
                units = self._queues.past_end
            elif fast and Part.QUEUE in self._parts:
                units = units_past_end(self._files, next_offsets, self._written_units())
            keys = self._index.past_end if self._index is not None else []
            for finding in judge_tail(
                view,
                log_end,
                units,
                keys,
                ahead,
                missing=missing,
                reported=self._reported,
                of_log=Part.LOG in self._parts,
            ):
                if finding.code is Code.LOG_TAIL_LOST:
                    self._if_quiet = [f for f in self._if_quiet if not _is_its_rest(f, finding)]
                self._if_quiet.append(finding)
        self._emit_files()
        if Part.CONFIG in self._parts:
            check_configs(view, self.emit, self.report.checked)
            check_own_files(view, self.emit, self.report.checked, self.check_broker)
        if Part.OFFSET in self._parts:
            check_offsets(view, self.emit, self.report.checked)
        if self._if_quiet and bounds.log_end() == whole_end and not any(find_holders(view.root)):
            for finding in self._if_quiet:
                self.emit(finding)
        if Part.CONFIG in self._parts and not self.report.errors:
            check_shared_state(view, self.emit)  # damaged files contradict its words, too

    def release(self) -> None:
        """Unmap the files now, not at the next garbage collection: the objects that map them report
        their findings here, so both refer to each other."""
        self._queues = self._index = None

    def emit(self, finding: Finding) -> None:
        """Count a finding, and keep it while there is room."""
        report = self.report
        report.errors += finding.severity is Severity.ERROR
        report.warnings += finding.severity is Severity.WARNING
        if len(report.findings) < self._max_findings:
            report.findings.append(finding)
        else:
            report.left_out += 1
        if self._on_finding is not None:
            self._on_finding(finding)

    def _look_at_samples(
        self, next_offsets: dict[tuple[str, int], int], log_min: int, log_end: int
    ) -> int:
        """The quick check of log, queues and index; gives the newest store time."""
        wanted = {
            key: end
            for key, end in next_offsets.items()
            if self._wanted is None or key[0] in self._wanted
        }
        checked = self.report.checked
        if self._parts & {Part.LOG, Part.QUEUE}:
            check_samples(
                self._files,
                wanted,
                self.emit,
                checked,
                log_min=log_min,
                log_end=log_end,
                deletions=self._deletions,
            )
        if Part.INDEX in self._parts and self._view.config.message_index_enable:
            check_index_heads(self._view.root, self._view.config, self.emit, checked)
        return newest_record_time(self._files, next_offsets)

    # -- parts --------------------------------------------------------------------------------

    def _emit_files(self) -> None:
        """Report findings of files that the walk through the log has not reported with their
        meaning."""
        for finding in self._of_files:
            if finding.file in self._reported.files or self._deletions.has_gone(finding.file):
                continue
            self.emit(finding)

    def _check_files(self) -> None:
        emit = self._of_files.append
        files = FileCheck(self._view.root, self._view.config, emit, self.report.checked)
        self._holes = files.holes
        if Part.LOG in self._parts:
            check_places(self._view.root, emit)
            files.log()
        if Part.QUEUE in self._parts:
            files.queues()
        if Part.INDEX in self._parts:
            files.index()

    def _log_check(self, start: int, log_end: int, check_crc: bool) -> LogCheck:
        file_size = self._view.config.mapped_file_size_commit_log
        log = Part.LOG in self._parts
        return LogCheck(
            self._files.log,
            self._topics,
            self.emit if log else _ignore,
            self.report.checked,
            start=start - start % file_size,
            log_end=log_end,
            check_crc=check_crc,
            reported=self._reported if log else None,
            deletions=self._deletions,
        )

    def _is_filled(self, key: tuple[str, int], start: int, end: int) -> bool:
        """Whether readers replace the units between two offsets by reading the log."""
        bounds = self._view.bounds
        if not isinstance(bounds, ScanBounds):
            return False
        return bounds.file_units(*key) <= start and end <= bounds.rebuilt.next_offset(*key)

    def _walk(
        self,
        log: LogCheck,
        log_min: int,
        log_end: int,
        next_offsets: dict[tuple[str, int], int],
        jobs: int,
        *,
        live: bool,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        """Read the log with all comparisons, in this process or several, and report the
        findings."""
        ext, deleted = ConsumeQueueExt(self._files), self._deleted()
        with_queues = Part.QUEUE in self._parts
        if Part.INDEX in self._parts and self._view.config.message_index_enable:
            self._index = IndexCheck(
                self._view.root,
                self._view.config,
                self.emit,
                self.report.checked,
                log_min=log_min,
                log_end=log_end,
                live=live,
                emit_if_quiet=self._if_quiet.append,
                reported=self._reported,
            )
            self._index.load()
        first = max(log_min, self._deletions.log_min())  # index files may have gone meanwhile

        def with_log(log: LogCheck, reported: Reported) -> LogPass:
            queues = index = None
            if with_queues:
                queues = QueueComparison(
                    self._files,
                    ext,
                    self._topics,
                    next_offsets,
                    wanted=self._wanted,
                    deleted=deleted,
                    deletions=self._deletions,
                )
            if self._index is not None:
                index = IndexComparison(
                    self._index.files,
                    self._topics,
                    log_min=first,
                    keys_from=self._keys_from,
                    live=live,
                    wanted=self._wanted,
                    reported=reported,
                )
            return LogPass(log, queues, index)

        def begin(offset: int, emit: Callable[[Finding], None]) -> LogPass:
            reported = Reported()
            of_index = reported if Part.LOG in self._parts else Reported()
            return with_log(log.another(offset, emit, reported), of_index)

        def note(offset: int) -> None:
            if progress is not None:
                progress(offset - log.start, log_end - log.start)

        walk = with_log(log, self._reported)
        if walk.queues is not None:
            self._queues = QueueCheck(
                self._files,
                walk.queues,
                self.emit,
                self.report.checked,
                next_offsets,
                start=log.start,
                log_min=log_min,
                log_end=log_end,
                emit_if_quiet=self._if_quiet.append,
                reported=self._reported,
                holes=self._holes,
                closed=not (self._view.root / ABORT).exists(),
                filled=self._is_filled,
                deletions=self._deletions,
            )
        known = len(self.report.findings)
        self._go_on(walk)
        if jobs > 1 and log.position < log_end and can_fork():
            pieces = split_log(self._files.log, log.position, log_end, jobs)
            with LogJobs(pieces, lambda piece: look_at(piece, begin), jobs - 1) as others:
                if self._index is not None:
                    self._index.check_files()
                for piece, part in others.parts():
                    if part is None or not walk.absorb(part, log.emit):
                        walk.go(piece[1], note)
                    note(log.position)
                    self._keep(walk, log_end, known)
        else:
            if self._index is not None:
                self._index.check_files()
            while log.position < log_end:
                file_size = self._files.log.file_size
                walk.go(min(log_end, log.position - log.position % file_size + file_size), note)
                self._keep(walk, log_end, known)
        log.finish()
        if self._queues is not None:
            self._queues.finish()
        if self._index is not None and walk.index is not None:
            self._index.finish(walk.index)

    def _go_on(self, walk: LogPass) -> None:
        """Take what an earlier check has found up to where it was stopped, if it checked that."""
        if self.resume is None:
            return
        part = self.resume.part
        if (part.units is None) is not (walk.queues is None):
            return
        if (part.keys is None) is not (walk.index is None):
            return
        if part.keys is not None and self._index is not None:
            more = len(self._index.files) - len(part.keys.notes)
            if more < 0:
                return
            part.keys.notes.extend(EntryNotes() for _ in range(more))
        if walk.absorb(part, walk.log.emit):
            self._kept_to = walk.log.position

    def _keep(self, walk: LogPass, log_end: int, known: int) -> None:
        """Give the result up to here; ``known`` findings were there before the log was read."""
        log = walk.log
        least = max(self._files.log.file_size, (log_end - log.start) // _MOST_KEPT)
        if self.keep is None or log.position - max(self._kept_to, log.start) < least:
            return
        self._kept_to = log.position
        part = WalkPart(
            self.report.findings[known:],
            log.part(),
            None if walk.queues is None else walk.queues.part(),
            None if walk.index is None else walk.index.part(),
        )
        text = None if self.report.left_out else encode_part(part, self._view)
        self.keep(log.position, text)

    def _deleted(self) -> DeletedTopics:
        """Deleted topics; if their list is damaged, it is reported, and they come from other
        sources."""
        try:
            return read_deleted_topics(self._view.root)
        except CorruptFileError:
            return salvaged_deleted_topics(self._view)

    def _written_units(self) -> dict[tuple[str, int], int]:
        """Queue ends by the files, with units past the log's end."""
        return {
            (tail.key.topic, tail.key.queue_id): tail.next_offset for tail in tails_of(self._files)
        }

    def _dispatched(self, next_offsets: dict[tuple[str, int], int]) -> int:
        """End of the newest record that a running Java broker has put into a queue."""
        ends = [0]
        for (topic, queue_id), following in next_offsets.items():
            unit = self._view.unit(topic, queue_id, following - 1) if following else None
            if unit is not None:
                ends.append(unit[0] + unit[1])
        return max(ends)


def _is_its_rest(finding: Finding, lost: Finding) -> bool:
    """Whether a finding names the bytes that are left of the lost end."""
    return finding.code is Code.LOG_BEHIND_END and finding.file == lost.file


def _ignore(finding: Finding) -> None:
    """Drop findings of a part that was not requested."""
