"""Sentences of a plan about its time and about rates: how long what is read again will take."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rmqctl.admin.changes import Change
from rmqctl.errors import NotFound
from storage.read.by_time import Boundary

from .wish import Making

if TYPE_CHECKING:
    from rmqctl.admin.lag.rows import LagRow

_MOST_TOPICS: Final = 3


def rule_sentence(timestamp: int, rule: Boundary, now_ms: int) -> str:
    """The rule by which the time becomes an offset, and how long ago it was."""
    from storage.parse.durations import format_duration

    away = format_duration(abs(now_ms - timestamp) // 1000 * 1000)
    when = f"{away} ago" if timestamp <= now_ms else f"in {away}"
    return f"rule: {rule.value} ({when})"


def sentences(making: Making, group: str, change: Change) -> Iterator[str]:
    """The rates of the group in each topic of a plan, and when its new lag would be read."""
    from analytics.lag.selection import Choice
    from rmqctl.admin import lag

    lags = _new_lags(change)
    if not lags:
        return
    try:
        seen = lag.look(making.view, making.broker, making.now_ms, Choice([group], sorted(lags)))
    except NotFound:  # it has no progress yet
        return
    rows = {row.topic: row for row in lag.group_rows(seen)}
    for topic in sorted(lags)[:_MOST_TOPICS]:
        yield _sentence(topic, lags[topic], rows.get(topic))
    if len(lags) > _MOST_TOPICS:
        yield f"rates of {len(lags) - _MOST_TOPICS} further topics: 'rmqctl lag show {group}'"


def _new_lags(change: Change) -> dict[str, int | None]:
    """The lag of each topic after the plan; None where that of a queue is unknown."""
    found: dict[str, int | None] = {}
    for row in change.plan:
        before = found.get(row.topic, 0)
        known = before is not None and row.lag_new is not None
        found[row.topic] = before + row.lag_new if known else None
    return found


def _sentence(topic: str, lag_new: int | None, row: "LagRow | None") -> str:
    from storage.parse.durations import format_duration

    rate_in, rate_out = (None, None) if row is None else (row.rate_in, row.rate_out)
    text = f"{topic}: in {_rate(rate_in)}, out {_rate(rate_out)}; "
    if lag_new is None or rate_in is None or rate_out is None:
        return text + "the new lag is read in ?"
    if not lag_new:
        return text + "nothing is left to read"
    gain = rate_out - rate_in
    if gain <= 0:
        return text + f"the new lag of {lag_new:,} would not go down"
    needed = format_duration(round(lag_new / gain) * 1000)
    return text + f"the new lag of {lag_new:,} is read in {needed}"


def _rate(rate: float | None) -> str:
    return "?" if rate is None else f"{rate:,.1f}/s"
