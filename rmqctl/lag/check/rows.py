"""What ``lag check`` finds."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, NamedTuple


class Verdict(StrEnum):
    """The words of monitoring plug-ins; ``code`` is the exit code."""

    OK = "OK"
    """Within all limits, or doing fine (exit code 0)."""
    WARNING = "WARNING"
    """Over a limit that warns, or not keeping up (exit code 1)."""
    CRITICAL = "CRITICAL"
    """Over a critical limit, or not moving (exit code 2)."""
    UNKNOWN = "UNKNOWN"
    """What was asked about can not be known (exit code 3)."""

    @property
    def code(self) -> int:
        """0 ok, 1 warning, 2 critical, 3 unknown."""
        return list(Verdict).index(self)


class CheckedGroup(NamedTuple):
    """A group in a topic, judged."""

    group: Annotated[str, "the consumer group"]
    topic: Annotated[str, "the topic"]
    verdict: Annotated[Verdict, "OK, WARNING, CRITICAL or UNKNOWN"]
    reasons: Annotated[list[str], "why it is not OK"]
    lag: Annotated[int | None, "messages that it has not read"]
    lag_bytes: Annotated[int | None, "bytes in the log of those that are still there"]
    oldest_unread_age_ms: Annotated[int | None, "how long ago the oldest of those was stored"]
    rate_in: Annotated[float | None, "messages stored a second"]
    rate_out: Annotated[float | None, "messages read a second"]
    status: Annotated[str, "OK, UNKNOWN, WARN, REWIND, STALL or STOP"]
    retry: Annotated[int | None, "the group's messages that wait for their next attempt"]
    dlq: Annotated[int, "the group's dead letters"]
    lost: Annotated[int | None, "messages that were deleted before it read them"]
    risk_timestamp: Annotated[int | None, "from when on its oldest unread message may be deleted"]
    unknown_queues: Annotated[int, "queues that are not in the sums"]
    unknown: Annotated[Sequence[str], "what is not known, and why; numbers leave it out"] = ()


class CheckResult(NamedTuple):
    """The outcome of ``lag check``."""

    as_of: Annotated[int, "when it was looked"]
    verdict: Annotated[Verdict, "the worst: CRITICAL, then WARNING, then UNKNOWN, then OK"]
    code: Annotated[int, "the exit code: 0, 1, 2 or 3"]
    summary: Annotated[str, "one line"]
    groups: Annotated[list[CheckedGroup], "each group and topic"]
