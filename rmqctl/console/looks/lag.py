"""The lag of groups as looks share it: one reading for the looks of one moment, and its history."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

from analytics.lag.selection import Choice
from analytics.lag.totals import add_up
from rmqctl.admin import lag
from rmqctl.admin.lag.backlog_rows import RiskRow
from rmqctl.console.history import SLOTS, STEP_MS, LagHistory
from storage.configs.offset_samples import OffsetSamples
from storage.retention import rules_of

from .look import LAG_HISTORY, Look, Place, Source

if TYPE_CHECKING:
    from analytics.lag.lag_snapshot import LagSnapshot

_SHARED_MS: Final = 500
"""Looks that begin within this time share one reading."""
RISK_WITHIN_MS: Final = 86_400_000
"""How far ``lag risk`` looks ahead without an option."""


class TrendRow(NamedTuple):
    """The lag of a group in a topic within the last hour."""

    group: Annotated[str, "the consumer group"]
    topic: Annotated[str, "the topic"]
    members: Annotated[int, "live consumers of the group"]
    lags: Annotated[
        list[int | None],
        "lag at the end of each half minute, oldest first; null: unknown; -1: no look then",
    ]


class _Reading(NamedTuple):
    choice: Choice
    seen: "LagSnapshot"


def seen_lag(source: Source, choice: Choice) -> "LagSnapshot":
    """The lag now. Unknown parts are noticed each time."""
    known = source.memory.get("lag")
    if (
        known is None
        or known.choice != choice
        or not 0 <= source.now_ms - known.seen.as_of < _SHARED_MS
    ):
        seen = lag.look(source.view, source.broker, source.now_ms, choice)
        known = source.memory["lag"] = _Reading(choice, seen)
        _keep(source, seen)
    if known.seen.doubt is not None:
        source.notice(known.seen.doubt)
    for sentence in lag.unknown_sentences(known.seen):
        source.notice(sentence)
    return known.seen


def _keep(source: Source, seen: "LagSnapshot") -> None:
    """Keep the lag of a look; of a new group, what the samples of the store have first."""
    history: LagHistory = source.memory.setdefault(LAG_HISTORY, LagHistory())
    lags = [((one.group, one.topic), add_up(one.queues).lag) for one in seen.group_lags]
    new = [key for key, _ in lags if key not in history]
    if new:
        since = source.now_ms - SLOTS * STEP_MS
        history.begin(new, OffsetSamples(source.view.root).read(since), source.now_ms)
    history.add(seen.as_of, lags)


def _risks(source: Source, place: Place) -> Iterable[Any]:
    seen = seen_lag(source, Choice())
    rules = rules_of(source.view.root, source.view.config)
    return lag.risk_rows(source.view, seen, rules, RISK_WITHIN_MS)


def _trends(source: Source, place: Place) -> Iterable[Any]:
    seen = seen_lag(source, Choice(list(place.names) if place.screen == "group" else None))
    history: LagHistory = source.memory[LAG_HISTORY]
    for one in seen.group_lags:
        lags = history.lags((one.group, one.topic), source.now_ms)
        yield TrendRow(one.group, one.topic, one.members, lags)


RISKS: Final = Look(
    "risks",
    RiskRow,
    _risks,
    lambda place: ("lag", "risk"),
    ("group", "topic"),
    opens=lambda row: Place("group", (row.group,)),
)
TRENDS: Final = Look(
    "trends",
    TrendRow,
    _trends,
    lambda place: ("lag", "watch", *(place.names if place.screen == "group" else ())),
    ("group", "topic"),
)
