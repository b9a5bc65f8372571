"""The overview: what needs attention, the counts, groups by lag, and the last changes."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from rmqctl.console import attention, overview
from rmqctl.console.attention import AttentionRow
from rmqctl.console.cells import fitted
from rmqctl.console.charts import bar, spark
from rmqctl.console.drawing import Line, Role, Span, spread, text_line
from rmqctl.console.group_pane import MapPane
from rmqctl.console.looks import (
    audit,
    dead_letters,
    groups,
    lag,
    new_letters,
    retries,
    store,
    topics,
)
from rmqctl.console.looks.look import Look, Place
from rmqctl.console.parts import DrawnPane, TailedPane
from rmqctl.console.specs import PaneSpec, ScreenSpec
from rmqctl.output.cells import ELLIPSIS
from storage.clock import now_ms


class SummaryPane(DrawnPane):
    """The counts."""

    makes = MappingProxyType({"sums": (groups.GROUPS, overview.sums_of)})

    def body(self, width: int, height: int) -> list[Line]:
        """The lines."""
        now = now_ms()
        lags, all_topics = self.rows_of(groups.GROUPS), self.rows_of(topics.TOPICS)
        sums = None if lags is None else self.made("sums")
        letters, new = self.rows_of(dead_letters.GROUPS), self.rows_of(new_letters.NEW)
        levers, risks = self.rows_of(store.LEVERS), self.rows_of(lag.RISKS)
        lines = [
            overview.groups_line(sums),
            self.made_of(
                "topics", lambda: overview.topics_line(all_topics, sums), all_topics, sums
            ),
            self.made_of(
                *("letters", lambda: overview.dead_letters_line(letters, now, new)),
                *(letters, new),
                at=now // 1000,
            ),
            overview.delayed_line(self.rows_of(retries.AGENDA), now),
            self.made_of(
                *("disk", lambda: overview.disk_line(levers, risks, width)),
                *(levers, risks),
                at=width,
            ),
        ]
        if width >= 120 and (trends := self.rows_of(lag.TRENDS)):
            total = trends.total if isinstance(trends, lag.TrendRows) else []
            cells = min(40, width - 88)
            lag_part = overview.lag_line(total, sums, cells)
            lines[0] = spread(lines[0], [*lag_part, Span(" ")], width)
        return lines


def _trends_of(rows: Iterable[Any]) -> Mapping[tuple[str, str], Sequence[int | None]]:
    return {(row.group, row.topic): row.lags for row in rows}


class AttentionPane(TailedPane):
    """What needs attention; the command is that of the row under the cursor."""

    TAIL = ("1 H", 13)
    makes = MappingProxyType(
        {
            "of lag": (groups.GROUPS, lambda rows: attention.placed(attention.of_lag(rows))),
            "of risks": (lag.RISKS, lambda rows: attention.placed(attention.of_risks(rows))),
            "trends": (lag.TRENDS, _trends_of),
        }
    )

    @property
    def looks(self) -> tuple[Look, ...]:
        """The looks whose rows it is made of."""
        return super().looks[1:]

    def rows(self) -> list[Any] | None:
        """The rows, made of those of the looks."""
        now = now_ms()
        parts = [self.rows_of(look) for look in _SEEN]
        return self.made_of("rows", lambda: self._rows_at(now), *parts, at=now // 1000)

    def _rows_at(self, now: int) -> list[Any]:
        counts = self.rows_of(new_letters.NEW)
        new = None if counts is None else {row.group: row.new for row in counts}
        others = [
            *attention.of_dead_letters(self.rows_of(dead_letters.GROUPS) or (), now, new),
            *attention.of_agenda(self.rows_of(retries.AGENDA) or (), now),
            *attention.of_disk(self.rows_of(store.LEVERS) or ()),
        ]
        return attention.together(
            self.made("of lag"), self.made("of risks"), attention.placed(others)
        )

    def tail(self, row: Any) -> str:
        """The lag of the last hour."""
        trends = self.made("trends")
        lags = trends.get((row.group, row.topic)) if row.lag is not None else None
        return "-" if lags is None else spark(lags, self.TAIL[1])

    def command(self) -> str:
        """The command that shows what is under the cursor."""
        row = self.row()
        if row is None:
            return groups.GROUPS.command(self.place, "--where", "status != OK")
        return str(row.command)

    def count_text(self) -> str:
        """How many rows there are, and whether all looks have been read."""
        unread = sum(part.rows is None for part in self.parts)
        more = f"   {len(self.parts) - unread} of {len(self.parts)} parts read" if unread else ""
        return super().count_text() + more

    def _nothing(self) -> str:
        if self.loading:
            return "reading ..."
        if self.error is not None or self.table.total:
            return super()._nothing()
        return "nothing needs attention"


class ByLagPane(DrawnPane):
    """The groups with the largest lag, as bars."""

    makes = MappingProxyType({"ranked": (groups.GROUPS, lambda rows: _ranked(rows))})

    def body(self, width: int, height: int) -> list[Line]:
        """The lines."""
        totals, unknown, ranked = self.made("ranked")
        shown = ranked if len(ranked) <= height else ranked[: height - 1]
        most = max(totals.values(), default=0)
        cells = max(1, width - 40)
        lines = []
        for group in shown:
            lag_text = f"{totals[group]:,}"
            if group in unknown:
                lag_text = f">={lag_text}" if totals[group] else "?"
            part = totals[group] / most if most else 0.0
            lines.append(
                [Span(f"  {fitted(group, 22)} {lag_text:>11}  "), Span(bar(part, cells), Role.WARN)]
            )
        if len(shown) < len(ranked):
            lines.append(text_line(f"  {ELLIPSIS} {len(ranked) - len(shown):,} more", Role.DIM))
        return lines or [text_line("  no group has any progress", Role.DIM)]


def _ranked(rows: Iterable[Any]) -> tuple[dict[str, int], set[str], list[str]]:
    """The lag of each group, those of which a part is unknown, and all by their lag."""
    totals: dict[str, int] = {}
    unknown: set[str] = set()
    for row in rows:
        totals[row.group] = totals.get(row.group, 0) + (row.lag or 0)
        if row.lag is None or row.unknown_queues:
            unknown.add(row.group)
    return totals, unknown, sorted(totals, key=lambda group: (-totals[group], group))


def _opens(row: Any) -> Place | None:
    if row.state == "DLQ":
        return Place("dlq", (row.group,))
    if row.state == "LATE":
        return Place("agenda")
    if row.state == "DISK":
        return Place("health")
    return None if row.group is None else Place("group", (row.group,))


ATTENTION: Final = Look(
    "attention",
    AttentionRow,
    lambda source, place: (),
    lambda place: ("lag", "show"),
    ("state", "group", "topic", "level"),
    opens=_opens,
    named=("group", "topic", "what"),
)
_SEEN: Final = (
    groups.GROUPS,
    lag.RISKS,
    dead_letters.GROUPS,
    new_letters.NEW,
    retries.AGENDA,
    store.LEVERS,
)

SCREENS: Final = {
    "overview": ScreenSpec(
        lambda place: "Overview",
        [
            PaneSpec(
                groups.GROUPS,
                also=[*_SEEN[1:], topics.TOPICS],
                wide=[lag.TRENDS],
                height=5,
                still=True,
                pane=SummaryPane,
            ),
            PaneSpec(
                ATTENTION, "NEEDS ATTENTION", also=_SEEN, wide=[lag.TRENDS], pane=AttentionPane
            ),
            PaneSpec(groups.GROUPS, "GROUPS BY LAG", height=8, room=26, still=True, pane=ByLagPane),
            PaneSpec(
                groups.QUEUES,
                "QUEUES",
                height=8,
                room=26,
                still=True,
                beside=True,
                follows=1,
                of_row=lambda row: None if row.group is None else Place("group", (row.group,)),
                pane=MapPane,
            ),
            PaneSpec(audit.CHANGES, "LAST CHANGES", height=6, room=26),
        ],
        start=1,
    ),
}
