"""Checking a store: all of it or parts, with progress, from where a stopped check came to."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from rmqctl.admin.progress import Phase, no_phase, walked
from rmqctl.errors import NotFound

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from storage.readonly import StoreView
    from storage.tools.fsck import Finding, Part, Report
    from storage.tools.fsck.kept_part import KeptPart

LABEL: Final = "fsck"


class Check:
    """A check of a store. It reads nothing before ``run``, changes nothing and takes no lock.

    Attributes:
        start: the log offset from which the log is checked.
        resumed: whether it goes on from where an earlier check was stopped.
        reached: the log offset from which another check can go on.
        kept: what was found up to there, for :class:`CheckPlace`; None before the end of the first
            file, and for so many findings that a check has to begin again.
    """

    def __init__(
        self,
        view: "StoreView",
        *,
        parts: "Iterable[Part] | None",
        topics: Sequence[str] | None,
        start: int,
        resume_from: "KeptPart | None",
        fast: bool,
        jobs: int,
        on_finding: "Callable[[Finding], None] | None",
        max_findings: int | None,
    ) -> None:
        self._view = view
        self._parts = parts
        self._topics = topics
        self._fast = fast
        self._jobs = jobs
        self._on_finding = on_finding
        self._max_findings = max_findings
        first = max(start, view.log_min_offset())
        first -= first % view.config.mapped_file_size_commit_log  # whole files are checked
        self._resume_from = resume_from
        self.start = start
        self.resumed = resume_from is not None
        self.reached = self._first = first if resume_from is None else resume_from.position
        self.kept: bytes | None = None

    @property
    def has_moved(self) -> bool:
        """Whether ``reached`` is past where it began, so that resuming saves work."""
        return self.reached > self._first

    def run(self, phase: Phase = no_phase) -> "Report":
        """Check. OSError if the device fails.

        An exception of ``phase`` stops it; ``kept`` is what CheckPlace stores for another check.
        """
        from broker.config import BrokerConfig
        from storage.tools.fsck import fsck
        from storage.tools.fsck.fsck import MAX_FINDINGS

        def keep(position: int, kept: bytes | None) -> None:
            self.reached, self.kept = position, kept

        return fsck(
            self._view,
            only=self._parts,
            topics=self._topics,
            start=self.start,
            fast=self._fast,
            jobs=self._jobs,
            progress=walked(phase, LABEL),
            on_finding=self._on_finding,
            max_findings=self._max_findings or MAX_FINDINGS,
            check_broker=BrokerConfig.from_record,
            resume=self._resume_from,
            keep=keep,
        )


def check(
    view: "StoreView",
    broker: "Broker",
    *,
    parts: Iterable[str] | None = None,
    topics: Sequence[str] | None = None,
    from_timestamp: int | None = None,
    resume_from: "KeptPart | None" = None,
    fast: bool = False,
    jobs: int = 1,
    on_finding: "Callable[[Finding], None] | None" = None,
    max_findings: int | None = None,
) -> Check:
    """Check log, queues, index, offsets and settings against each other.

    ``parts`` are some of log, queue, index, offset and config. ``topics`` limits it to queues of
    topics; NotFound for an unknown one. The log is checked from its beginning; with
    ``from_timestamp``, from the newest file that begins before that store time; else from where a
    stopped check of the same parts and topics came to: ``resume_from`` is what CheckPlace read, and
    its findings are reported with the others. It does not count if the store was changed before
    that place, by a repair or the deletion of old files. ``fast`` reads only files, ends and
    samples. ``jobs`` is the number of processes that share the log. ``on_finding`` gets each
    finding, those of a store that rmqctl has open as they come. At most ``max_findings`` (default:
    10,000) are kept in the report.
    """
    from storage.tools.fsck import Part

    for topic in topics or ():
        if broker.topic(topic) is None:
            raise NotFound(f"topic {topic} does not exist in {view.root}")
    start = 0 if from_timestamp is None else file_at_time(view, from_timestamp)
    if from_timestamp is not None or (resume_from is not None and not resume_from.holds(view)):
        resume_from = None
    return Check(
        view,
        parts=None if parts is None else [Part(name) for name in parts],
        topics=topics,
        start=start,
        resume_from=resume_from,
        fast=fast,
        jobs=jobs,
        on_finding=on_finding,
        max_findings=max_findings,
    )


def file_at_time(view: "StoreView", timestamp: int) -> int:
    """First offset of the newest log file that begins before a store time, else 0.

    A file whose first record cannot be read is skipped; an older one is used.
    """
    size = view.config.mapped_file_size_commit_log
    end = view.log_max_offset()
    offset = end - end % size
    while offset > view.log_min_offset():
        first = view.look_message_by_offset(offset)
        if first is not None and first.store_timestamp < timestamp:
            return offset
        offset -= size
    return 0
