"""What a check of a store can find, as values.

Severities: ``error`` a message is unreadable or wrong; ``warning`` derived data (units, index,
checkpoint) is stale or missing and can be made again from the log; ``info`` worth knowing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Code(StrEnum):
    """What was found. The values are stable: scripts may compare them."""

    # log
    RECORD_DAMAGED = "RECORD_DAMAGED"
    RECORD_MISPLACED = "RECORD_MISPLACED"
    RECORD_REPEATED = "RECORD_REPEATED"
    PROPERTIES_DAMAGED = "PROPERTIES_DAMAGED"
    LOG_BYTES_LOST = "LOG_BYTES_LOST"
    LOG_FILE_MISSING = "LOG_FILE_MISSING"
    LOG_FILE_LENGTH = "LOG_FILE_LENGTH"
    LOG_TORN_TAIL = "LOG_TORN_TAIL"
    LOG_BEHIND_END = "LOG_BEHIND_END"
    LOG_FILE_AHEAD = "LOG_FILE_AHEAD"
    BLANK_MISSING = "BLANK_MISSING"
    BLANK_WRONG = "BLANK_WRONG"
    STORE_TIME_BACK = "STORE_TIME_BACK"
    # queues
    UNIT_MISSING = "UNIT_MISSING"
    UNIT_WRONG = "UNIT_WRONG"
    UNIT_WITHOUT_RECORD = "UNIT_WITHOUT_RECORD"
    UNIT_BEHIND_END = "UNIT_BEHIND_END"
    TAG_HASH_WRONG = "TAG_HASH_WRONG"
    QUEUE_GAP = "QUEUE_GAP"
    QUEUE_FILE_MISSING = "QUEUE_FILE_MISSING"
    QUEUE_FILE_LENGTH = "QUEUE_FILE_LENGTH"
    QUEUE_FILE_EMPTY = "QUEUE_FILE_EMPTY"
    # index
    INDEX_KEY_MISSING = "INDEX_KEY_MISSING"
    INDEX_ENTRY_WRONG = "INDEX_ENTRY_WRONG"
    INDEX_TIME_WRONG = "INDEX_TIME_WRONG"
    INDEX_CHAIN_BROKEN = "INDEX_CHAIN_BROKEN"
    INDEX_HEADER_WRONG = "INDEX_HEADER_WRONG"
    INDEX_FILE_LENGTH = "INDEX_FILE_LENGTH"
    INDEX_BEHIND_END = "INDEX_BEHIND_END"
    # checkpoint, shutdown, offsets, settings
    CHECKPOINT_MISSING = "CHECKPOINT_MISSING"
    CHECKPOINT_SHORT = "CHECKPOINT_SHORT"
    CHECKPOINT_AHEAD = "CHECKPOINT_AHEAD"
    NOT_CLOSED = "NOT_CLOSED"
    OFFSET_BEHIND_END = "OFFSET_BEHIND_END"
    OFFSET_BELOW_START = "OFFSET_BELOW_START"
    OFFSET_WITHOUT_QUEUE = "OFFSET_WITHOUT_QUEUE"
    CONFIG_UNREADABLE = "CONFIG_UNREADABLE"
    CONFIG_FROM_BAK = "CONFIG_FROM_BAK"
    TOPIC_UNKNOWN = "TOPIC_UNKNOWN"
    FOREIGN_FILE = "FOREIGN_FILE"
    NOT_COVERED = "NOT_COVERED"


class Finding(NamedTuple):
    """One thing found. ``file`` is relative to the store, ``position`` a byte in it or None.

    ``what`` was found, which ``effect`` it has on users, and what would ``fix`` it ("" if nothing
    has to be done).
    """

    code: Code
    severity: Severity
    file: str
    position: int | None
    what: str
    effect: str
    fix: str


@dataclass(slots=True)
class Checked:
    """How much was looked at."""

    records: int = 0
    units: int = 0
    index_entries: int = 0
    offsets: int = 0
    files: int = 0


@dataclass(slots=True)
class Report:
    """Outcome of a check: ``ok`` means no finding of severity error.

    At most ``max_findings`` are kept; ``left_out`` counts the rest. ``log_end`` is the commit log
    offset up to which the store was looked at: a later check may start there.
    """

    checked: Checked = field(default_factory=Checked)
    findings: list[Finding] = field(default_factory=list)
    left_out: int = 0
    errors: int = 0
    warnings: int = 0
    log_end: int = 0

    @property
    def ok(self) -> bool:
        """Whether every message is readable and right."""
        return self.errors == 0

    @property
    def healthy(self) -> bool:
        """Whether there is nothing to mend at all."""
        return self.errors == 0 and self.warnings == 0

    def as_dict(self) -> dict[str, Any]:
        """The report with the keys of the command line's JSON."""
        return {
            "ok": self.ok,
            "checked": asdict(self.checked),
            "findings": [finding._asdict() for finding in self.findings],
        }
