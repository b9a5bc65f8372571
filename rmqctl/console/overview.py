"""The counts of the overview, from the rows of commands. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

from analytics.lag.health import Health, worst
from rmqctl.admin.lag.rows import LagRow
from storage.parse.durations import format_duration

from .charts import UNKNOWN, bar, short, spark
from .drawing import Line, Role, Span, text_line
from .health import amount_at_risk, groups_in_doubt
from .looks.new_letters import NEW_MS

_LABEL: Final = 15
_ROLES: Final = {"STALL": Role.BAD, "STOP": Role.BAD, "REWIND": Role.BAD, "WARN": Role.WARN}


def states_of(rows: Iterable[LagRow]) -> "Counter[str]":
    """The number of groups in each state; a group has the worst state of its topics."""
    states: dict[str, set[str]] = {}
    for row in rows:
        states.setdefault(row.group, set()).add(row.status)
    known = Counter(map(frozenset, states.values()))  # few are different
    found: Counter[str] = Counter()
    for statuses, count in known.items():
        found[worst(map(Health, statuses)).value] += count
    return found


class Sums(NamedTuple):
    """The sums of the rows of all groups and topics."""

    states: "Counter[str]"
    rate_in: float | None
    """Messages stored per second; None: unknown for a topic."""
    rate_out: float | None
    lag: int
    """Of those whose lag is known."""
    is_whole: bool
    """Whether all are known, of each queue."""


def sums_of(rows: Sequence[LagRow]) -> Sums:
    """Add up."""
    known = [row.lag for row in rows if row.lag is not None]
    rates_in = {row.topic: row.rate_in for row in rows}.values()
    rates_out = [row.rate_out for row in rows]
    return Sums(
        states_of(rows),
        _total(rates_in),
        _total(rates_out),
        sum(known),
        len(known) == len(rows) and not any(row.unknown_queues for row in rows),
    )


def groups_line(sums: Sums | None) -> Line:
    """How many groups are in each state."""
    if sums is None:
        return _line("GROUPS", UNKNOWN)
    states = sums.states
    line = _line(f"GROUPS {states.total():,}", "")
    for health in sorted(Health, key=lambda health: -health.rank):
        count = states[health.value]
        role = _ROLES.get(health.value, Role.TEXT) if count else Role.DIM
        line.append(Span(f"{health.value} {count:,}  ", role))
    return line


def topics_line(rows: Sequence[Any] | None, sums: Sums | None) -> Line:
    """Topics, their queues and messages, and the rates of what is read."""
    if rows is None:
        return _line("TOPICS", UNKNOWN)
    text = (
        f"queues {sum(row.read_queues for row in rows):,}   "
        f"messages {sum(row.messages for row in rows):,}"
    )
    if sums is not None:
        text += f"   in {_rate(sums.rate_in)}   out {_rate(sums.rate_out)}"
    return _line(f"TOPICS {len(rows):,}", text)


def dead_letters_line(
    rows: Sequence[Any] | None, now_ms: int, new: Sequence[Any] | None = None
) -> Line:
    """Dead letters that are not handled, and how many came of late; ``new`` None: unknown."""
    if rows is None:
        return _line("DEAD LETTERS", UNKNOWN)
    having = [row for row in rows if row.unhandled]
    text = f"{sum(row.unhandled for row in having):,} unhandled in {_groups(len(having))}"
    newest = [row.newest_timestamp for row in having]
    if newest:
        text += f"   newest {UNKNOWN if None in newest else ago(now_ms - max(newest))}"
    unknown = new is None or any(row.new is None for row in new)
    count = UNKNOWN if unknown else f"{sum(row.new for row in new or ()):,}"
    text += f"   +{count} in {format_duration(NEW_MS)}"
    return _line("DEAD LETTERS", text, Role.WARN if having else Role.TEXT)


def delayed_line(rows: Sequence[Any] | None, now_ms: int) -> Line:
    """Messages that wait for their time; the levels of which it is unknown are named."""
    if rows is None:
        return _line("DELAYED", UNKNOWN)
    known = [row.messages for row in rows if row.messages is not None]
    line = _line("DELAYED", f"{sum(known):,} waiting")
    if unknown := [row for row in rows if row.messages is None]:
        line.append(Span(f", level {_levels(unknown)} unknown", Role.WARN))
    coming = [
        row.next_timestamp
        for row in rows
        if row.next_timestamp is not None and row.next_timestamp > now_ms
    ]
    if coming:
        line.append(Span(f"   next in {format_duration(min(coming) - now_ms)}"))
    bad = [row for row in rows if row.state != "OK"]
    if bad:
        states = ", ".join(sorted({row.state for row in bad}))
        overdue = [row.overdue for row in bad if row.overdue is not None]
        count = f" {sum(overdue):,}" if overdue else ""
        line.append(Span(f"   {states}{count} (level {_levels(bad)})", Role.BAD))
    return line


def _levels(rows: Sequence[Any]) -> str:
    return ", ".join(str(level) for level in sorted({row.level for row in rows}))


def disk_line(rows: Sequence[Any] | None, risks: Sequence[Any] | None, width: int) -> Line:
    """How full the disk is, and what is deleted unread next."""
    if not rows:
        return _line("DISK", UNKNOWN)
    used, limit = rows[0].used_percent, rows[0].any_hour_percent
    full = used > limit
    line = _line("DISK", f"{used:.0f} % of {limit:.0f} %", Role.BAD if full else Role.TEXT)
    if width >= 120:
        line.append(Span("  " + bar(used / 100, 20, filled_up=True)))
    coming = [row for row in risks or () if row.at_risk]
    unknown = groups_in_doubt(risks or ())
    if risks is None:
        line.append(Span(f"   unread and deleted soon: {UNKNOWN}"))
    elif coming:
        first = min(coming, key=lambda row: (row.risk_in_ms is None, row.risk_in_ms or 0))
        when = "now" if not first.risk_in_ms else f"in {format_duration(first.risk_in_ms)}"
        more = f" and {len(coming) - 1} more" if len(coming) > 1 else ""
        text = f"   {amount_at_risk(first)} deleted unread {when}: {first.group}{more}"
        line += text_line(text, Role.BAD)
    elif unknown:
        line += text_line(f"   unread and deleted soon: {unknown}", Role.WARN)
    return line


def lag_line(trends: Sequence[int | None], sums: Sums | None, cells: int) -> Line:
    """The lag of all groups within the last hour."""
    total = UNKNOWN
    if sums is not None and (sums.lag or sums.is_whole):  # what is known in part is never 0
        total = f"{'' if sums.is_whole else 'at least '}{short(sums.lag)}"
    line = [Span("LAG ", Role.HEAD), Span(f"{total}  ")]
    return [*line, Span(spark(trends, cells)), Span("  1 h", Role.DIM)]


def ago(milliseconds: int) -> str:
    """How long ago, in words."""
    return f"{format_duration(max(0, milliseconds) // 1000 * 1000 or 0)} ago"


def _total(rates: Collection[float | None]) -> float | None:
    return None if None in rates else sum(rate for rate in rates if rate is not None)


def _rate(total: float | None) -> str:
    return f"{UNKNOWN}/s" if total is None else f"{total:,.1f}/s"


def _groups(count: int) -> str:
    return f"{count:,} group{'' if count == 1 else 's'}"


def _line(label: str, text: str, role: Role = Role.TEXT) -> Line:
    return [Span(f" {label:<{_LABEL - 1}} ", Role.HEAD), *text_line(text, role)]
