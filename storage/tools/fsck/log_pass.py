"""One walk through a part of the log: its records, their units and their keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from .findings import Finding
from .index_compare import IndexComparison, IndexPart
from .log import LogCheck
from .log_part import LogPart, LogRange
from .queue_compare import QueueComparison, QueuePart

MOST_FINDINGS: Final = 1000
"""Findings of one part that are passed on; the reporting process walks a part with more."""


class WalkPart(NamedTuple):
    """Results of a part of the log, small and to be pickled."""

    findings: list[Finding]
    log: LogPart
    units: QueuePart | None
    keys: IndexPart | None


class LogPass:
    """Checks the log and compares each block with queues and index; None = not wanted."""

    def __init__(
        self, log: LogCheck, queues: QueueComparison | None, index: IndexComparison | None
    ) -> None:
        self.log = log
        self.queues = queues
        self.index = index

    def go(self, until: int, progress: Callable[[int], None] | None = None) -> None:
        """Walk on to ``until``; ``progress`` is called with the log offset after each block."""
        for block, unsure in self.log.blocks(until):
            if self.queues is not None:
                self.queues.compare(block, unsure)
            if self.index is not None:
                self.index.compare(block, unsure)
            if progress is not None:
                progress(block.end)

    def absorb(self, part: WalkPart, emit: Callable[[Finding], None]) -> bool:
        """Add the results of another walk; False if this one has to walk the part itself."""
        if not self.log.absorb(part.log):
            return False
        for finding in part.findings:
            emit(finding)
        if self.queues is not None and part.units is not None:
            self.queues.absorb(part.units)
        if self.index is not None and part.keys is not None:
            self.index.absorb(part.keys)
        return True


class TooManyFindings(Exception):
    """A part of the log is so damaged that its findings are not passed on."""


def look_at(
    piece: LogRange, begin: Callable[[int, Callable[[Finding], None]], LogPass]
) -> WalkPart | None:
    """Walk through one part of the log; None if it has too many findings.

    ``begin`` makes a walk that begins at a log offset and calls a function with its findings.
    """
    findings: list[Finding] = []

    def note(finding: Finding) -> None:
        if len(findings) == MOST_FINDINGS:
            raise TooManyFindings
        findings.append(finding)

    walk = begin(piece[0], note)
    try:
        walk.go(piece[1])
    except TooManyFindings:
        return None
    return WalkPart(
        findings,
        walk.log.part(),
        None if walk.queues is None else walk.queues.part(),
        None if walk.index is None else walk.index.part(),
    )
