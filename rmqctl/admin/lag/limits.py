"""Judges groups by limits or health, with the verdicts of monitoring plug-ins. Pure."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from analytics.lag.health import Health, worst as worst_health
from rmqctl.output.values import escape_controls
from storage.counted import counted
from storage.parse.durations import format_duration

from .check_rows import CheckedGroup, CheckResult, Verdict
from .rows import LagRow
from .unknown import Unknown, UnknownParts

_BY_WORD: Final = {
    Health.OK: Verdict.OK,
    Health.UNKNOWN: Verdict.UNKNOWN,
    Health.WARN: Verdict.WARNING,
    Health.REWIND: Verdict.WARNING,
    Health.STALL: Verdict.CRITICAL,
    Health.STOP: Verdict.CRITICAL,
}
_WORSE: Final = (Verdict.OK, Verdict.UNKNOWN, Verdict.WARNING, Verdict.CRITICAL)
_NAMED_IN_SUMMARY: Final = 3


class Limit(NamedTuple):
    """Thresholds of a warning and of critical; None: no threshold."""

    warn: int | None = None
    crit: int | None = None

    @property
    def given(self) -> bool:
        """Whether there is a limit at all."""
        return self.warn is not None or self.crit is not None

    def judge(self, value: int | None) -> Verdict:
        """Judge a value; None is unknown."""
        if not self.given:
            return Verdict.OK
        if value is None:
            return Verdict.UNKNOWN
        if self.crit is not None and value > self.crit:
            return Verdict.CRITICAL
        return Verdict.WARNING if self.warn is not None and value > self.warn else Verdict.OK


_NONE: Final = Limit()


class Limits(NamedTuple):
    """Limits of: lag in messages, age of the oldest unread message in ms, dead letters, and time
    (ms) before an unread message is deleted; any that was deleted is past each limit of it.

    Without limits, the health decides.
    """

    lag: Limit = _NONE
    age: Limit = _NONE
    dlq: Limit = _NONE
    risk: Limit = _NONE

    @property
    def given(self) -> bool:
        """Whether there is a limit at all."""
        return any(limit.given for limit in self)


def check(
    rows: Iterable[LagRow],
    limits: Limits,
    as_of: int,
    unknown: UnknownParts | None = None,
    doubt: str | None = None,
) -> CheckResult:
    """Judge all groups; without any group the verdict is UNKNOWN.

    ``unknown`` gives the reasons for unknown parts of a row; None: the row's own count of queues
    does. ``doubt`` is the reason why no progress is reliable. Unknown values are UNKNOWN, unless
    the known ones are critical.
    """
    groups = []
    for row in rows:
        if unknown is None:
            parts = Unknown([_left_out(row)] if row.unknown_queues else ())
        else:
            parts = unknown.get((row.group, row.topic), Unknown())
        if doubt is not None:
            parts = parts._replace(lag=[*parts.lag, doubt])
        group = _checked(row, limits, as_of, parts)
        if doubt is not None:  # without its last progress no group is known to be OK
            status = worst_health((Health(row.status), Health.UNKNOWN))
            group = group._replace(status=status)
        groups.append(group)
    verdict = worst(group.verdict for group in groups) if groups else Verdict.UNKNOWN
    if verdict is Verdict.WARNING and any(_hides(group, limits) for group in groups):
        verdict = Verdict.UNKNOWN
    return CheckResult(as_of, verdict, verdict.code, _summary(groups, doubt), groups)


def _left_out(row: LagRow) -> str:
    return f"{row.unknown_queues} of {counted(row.queues, 'queue')} not in the sums"


def _hides(group: CheckedGroup, limits: Limits) -> bool:
    """Whether a limit concerns an unknown value of the group."""
    return limits.given and group.verdict is Verdict.UNKNOWN


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """CRITICAL before WARNING before UNKNOWN before OK, as monitoring systems rank them."""
    return max(verdicts, key=_WORSE.index, default=Verdict.OK)


def _checked(row: LagRow, limits: Limits, as_of: int, unknown: Unknown) -> CheckedGroup:
    if limits.given:
        found = list(_against_limits(row, limits, as_of))
        reasons = list(_reasons(limits, unknown))
        found += [(Verdict.UNKNOWN, reason) for reason in reasons]
        verdict = worst(verdict for verdict, _ in found)
        if reasons and verdict is not Verdict.CRITICAL:
            verdict = Verdict.UNKNOWN
    else:
        word = _BY_WORD[Health(row.status)]
        found = [(word, f"status {row.status}")]
        found += [(Verdict.UNKNOWN, reason) for reason in unknown.lag]
        verdict = worst(verdict for verdict, _ in found)
    return CheckedGroup(
        row.group,
        row.topic,
        verdict,
        [reason for judged, reason in found if judged is not Verdict.OK],
        row.lag,
        row.lag_bytes,
        row.oldest_unread_age_ms,
        row.rate_in,
        row.rate_out,
        row.status,
        row.retry,
        row.dlq,
        row.lost,
        row.risk_timestamp,
        row.unknown_queues,
        [*unknown.lag, *unknown.age],
    )


def _reasons(limits: Limits, unknown: Unknown) -> Iterable[str]:
    """Why values are unknown that a limit asks for."""
    if limits.lag.given or limits.age.given or limits.risk.given:
        yield from unknown.lag
    if limits.age.given:
        yield from unknown.age
    if limits.risk.given:
        yield from unknown.risk


def _against_limits(row: LagRow, limits: Limits, as_of: int) -> Iterable[tuple[Verdict, str]]:
    lag = "unknown" if row.lag is None else counted(row.lag, "message")
    yield _judged(limits.lag, row.lag, f"lag {lag}", "{:,}".format)
    age = row.oldest_unread_age_ms
    if age is None and row.lag == 0:
        age = 0
    text = f"age {'unknown' if age is None else format_duration(age)}"
    yield _judged(limits.age, age, text, format_duration)
    yield _judged(limits.dlq, row.dlq, counted(row.dlq, "dead letter"), "{:,}".format)
    if limits.risk.given and row.lost:
        verdict = Verdict.WARNING if limits.risk.crit is None else Verdict.CRITICAL
        yield verdict, f"{counted(row.lost, 'unread message')} deleted already"
    if row.risk_timestamp is not None:
        left = max(0, row.risk_timestamp - as_of)
        verdict = Verdict.OK
        if limits.risk.crit is not None and left <= limits.risk.crit:
            verdict = Verdict.CRITICAL
        elif limits.risk.warn is not None and left <= limits.risk.warn:
            verdict = Verdict.WARNING
        yield verdict, f"unread messages are deleted in {format_duration(left)}"


def _judged(
    limit: Limit, value: int | None, text: str, show: Callable[[int], str]
) -> tuple[Verdict, str]:
    """A verdict, and the reason with the exceeded limit."""
    verdict = limit.judge(value)
    passed = {Verdict.CRITICAL: limit.crit, Verdict.WARNING: limit.warn}.get(verdict)
    return verdict, text if passed is None else f"{text} (limit {show(passed)})"


def _summary(groups: Sequence[CheckedGroup], doubt: str | None) -> str:
    if not groups:
        return "no group has any progress" + (f": {doubt}" if doubt else "")
    bad = [group for group in groups if group.verdict is not Verdict.OK]
    if not bad:
        lag = sum(group.lag or 0 for group in groups)
        unread = f"{counted(lag, 'message')} unread"
        partly = [group for group in groups if group.unknown]
        if partly:
            names = ", ".join(escape_controls(g.group) for g in partly[:_NAMED_IN_SUMMARY])
            unread = f"at least {unread} ({names}: partly unknown)"
        return f"{counted(len(groups), 'group')} in their topics, {unread}"
    bad.sort(key=lambda group: -_WORSE.index(group.verdict))
    named = [
        f"{escape_controls(group.group)} in {escape_controls(group.topic)}: "
        + ", ".join(group.reasons)
        for group in bad[:_NAMED_IN_SUMMARY]
    ]
    more = len(bad) - len(named)
    return "; ".join([*named, *([f"{more} more"] if more else [])])
