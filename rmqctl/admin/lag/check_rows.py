"""The result of ``lag check``."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, NamedTuple


class Verdict(StrEnum):
    """The verdicts of monitoring plug-ins; ``code`` is the exit code."""

    OK = "OK"
    """Within all limits, or healthy (exit code 0)."""
    WARNING = "WARNING"
    """Above a warning limit, or not keeping up (exit code 1)."""
    CRITICAL = "CRITICAL"
    """Above a critical limit, or not moving (exit code 2)."""
    UNKNOWN = "UNKNOWN"
    """A value that is needed is unknown (exit code 3)."""

    @property
    def code(self) -> int:
        """0 ok, 1 warning, 2 critical, 3 unknown."""
        return list(Verdict).index(self)


class CheckedGroup(NamedTuple):
    """The verdict about a group in a topic."""

    group: Annotated[str, "the consumer group"]
    topic: Annotated[str, "the topic"]
    verdict: Annotated[Verdict, "OK, WARNING, CRITICAL or UNKNOWN"]
    reasons: Annotated[list[str], "why it is not OK"]
    lag: Annotated[int | None, "unread messages"]
    lag_bytes: Annotated[int | None, "bytes in the log of those that are still stored"]
    oldest_unread_age_ms: Annotated[int | None, "age of the oldest of those"]
    rate_in: Annotated[float | None, "messages stored per second"]
    rate_out: Annotated[float | None, "messages read per second"]
    status: Annotated[str, "OK, UNKNOWN, WARN, REWIND, STALL or STOP"]
    retry: Annotated[int | None, "messages of the group that wait for a retry"]
    dlq: Annotated[int, "the group's dead letters"]
    lost: Annotated[int | None, "messages deleted before the group read them"]
    risk_timestamp: Annotated[int | None, "when its oldest unread message may be deleted"]
    unknown_queues: Annotated[int, "queues that are not in the sums"]
    unknown: Annotated[Sequence[str], "what is unknown, and why; numbers leave it out"] = ()


class CheckResult(NamedTuple):
    """The outcome of ``lag check``."""

    as_of: Annotated[int, "time of the check"]
    verdict: Annotated[
        Verdict,
        "the worst: CRITICAL, WARNING, UNKNOWN, OK; with limits CRITICAL, UNKNOWN, WARNING, OK",
    ]
    code: Annotated[int, "the exit code: 0, 1, 2 or 3"]
    summary: Annotated[str, "summary in one line"]
    groups: Annotated[list[CheckedGroup], "the verdict of each group and topic"]
