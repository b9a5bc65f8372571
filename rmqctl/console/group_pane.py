"""The panes that are drawn for one group: its figures and trend, and the map of its queues."""

from collections.abc import Sequence
from datetime import tzinfo
from typing import Any

from analytics.lag.health import Health, worst
from rmqctl.admin.lag.rows import LagRow
from rmqctl.console.looks.history import NO_LOOK, SLOTS, STEP_MS, added
from rmqctl.console.specs import PaneSpec
from rmqctl.output.cells import ELLIPSIS
from rmqctl.output.view import View
from storage.clock import now_ms
from storage.parse.durations import format_duration
from storage.parse.times import near_datetime

from .attention import status_words
from .charts import UNKNOWN, trend
from .drawing import Line, Role, Span, spread, text_line, width_of
from .heatmap import LEGEND, in_order, map_lines
from .looks import groups, lag
from .looks.look import Place
from .panes import Pane
from .parts import DrawnPane
from .shapes import RULE

_ROLES = {"OK": Role.GOOD, "UNKNOWN": Role.WARN, "WARN": Role.WARN}


def figures(rows: Sequence[LagRow], width: int, now: int) -> Line:
    """The sums of a group over its topics; what has no room is left out from the end."""
    known = [row.lag for row in rows if row.lag is not None]
    unknown = len(known) < len(rows) or any(row.unknown_queues for row in rows)
    total = f"{sum(known):,}" if known else UNKNOWN
    ages = [row.oldest_unread_age_ms for row in rows if row.oldest_unread_age_ms is not None]
    unaged = any(row.lag != 0 and row.oldest_unread_age_ms is None for row in rows)
    risks = [row.risk_timestamp for row in rows if row.risk_timestamp is not None]
    retry = rows[0].retry
    pieces = [
        f"LAG {'>=' if unknown and known else ''}{total}",
        f"oldest {_oldest(ages, unknown=unknown or unaged)}",
        f"in {_sum([row.rate_in for row in rows])} out {_sum([row.rate_out for row in rows])}",
        f"drains {_drains(rows)}",
        f"retry {UNKNOWN if retry is None else f'{retry:,}'}",
        f"dlq {rows[0].dlq:,}",
    ]
    if risks:
        pieces.append(f"RISK in {format_duration(max(0, min(risks) - now))}")
    shown = len(pieces)
    while shown > 1 and len("  ".join(pieces[:shown])) + 1 + 2 * (shown < len(pieces)) > width:
        shown -= 1
    more = f" {ELLIPSIS}" if shown < len(pieces) else ""
    return [Span(f" {'  '.join(pieces[:shown])}{more}")]


def _oldest(ages: Sequence[int], *, unknown: bool) -> str:
    if not ages:
        return UNKNOWN if unknown else "-"
    return f"{'>=' if unknown else ''}{format_duration(max(ages))}"


def _sum(rates: Sequence[float | None]) -> str:
    known = [rate for rate in rates if rate is not None]
    return f"{sum(known):,.1f}/s" if len(known) == len(rates) else f"{UNKNOWN}/s"


def _drains(rows: Sequence[LagRow]) -> str:
    """The time of the slowest topic; never, where no more is read than comes."""
    slowest = 0
    for row in rows:
        if row.lag == 0:
            continue
        if row.drain_ms is None:
            never = row.lag and row.rate_in is not None and row.rate_out is not None
            return "never" if never else UNKNOWN
        slowest = max(slowest, row.drain_ms)
    return format_duration(slowest)


def trend_lines(
    lags: Sequence[int | None], width: int, height: int, now: int, zone: tzinfo | None
) -> list[Line]:
    """The lag of the last hour; with four lines and more, the times below it."""
    looked = [n for n, value in enumerate(lags) if value != NO_LOOK]
    times = height >= 4
    lines = trend(lags, width - 1, height - times)
    found = [[Span(" "), Span(line)] for line in lines]
    if times:
        cells = width - 8
        marks = [" "] * cells
        for quarter in range(4):
            text = near_datetime(now - (4 - quarter) * 900_000, zone).strftime("%H:%M")
            at = quarter * cells // 4
            marks[at : at + len(text)] = text
        found.append([Span(" " * 8 + "".join(marks)[:cells], Role.DIM)])
    if looked and looked[0] > SLOTS // 4 and not times:
        since = format_duration((len(lags) - looked[0]) * STEP_MS)
        found[0][-1] = Span(found[0][-1].text[:8])
        found[0].append(Span(f"lag of the last hour, known for {since}", Role.DIM))
    return found


class FiguresPane(DrawnPane):
    """State, figures and trend of a group."""

    def body(self, width: int, height: int) -> list[Line]:
        """The lines."""
        now = now_ms()
        rows: list[LagRow] | None = self.rows_of(groups.GROUP)
        if rows is None:
            return [self.unread(groups.GROUP)]
        if not rows:
            return [text_line(" the group has no progress and no members", Role.DIM)]
        status = worst(Health(row.status) for row in rows).value
        state = [
            Span(" "),
            Span(status, _ROLES.get(status, Role.BAD)),
            Span(f": {status_words(status, sum(row.unknown_queues for row in rows))}"),
        ]
        trends = self.rows_of(lag.TRENDS) or []
        members = UNKNOWN if not trends else str(trends[0].members)
        models = {row.message_model for row in self.rows_of(groups.MEMBERS) or ()}
        model = f"{', '.join(sorted(filter(None, models)))}, " if models - {None} else ""
        topics = f"{len(rows)} topic{'' if len(rows) == 1 else 's'}, "
        right = text_line(f"{model}{topics}{members} member{'' if members == '1' else 's'} ")
        lines = [spread(state, right, width), figures(rows, width, now)]
        if height > 2 and trends:
            whole = added(row.lags for row in trends)
            lines += trend_lines(whole, width, height - 2, now, self.table.view.zone)
        return lines


class MapPane(DrawnPane):
    """The heat map; it marks the queue that is under the cursor of the list."""

    def __init__(self, spec: PaneSpec, place: Place, view: View) -> None:
        super().__init__(spec, place, view)
        self._at: Any = None

    def follow(self, pane: Pane) -> None:
        """Mark the queue of the list's cursor."""
        self._at = pane.cursor_key() if pane.look is self.look else None

    def title(self, width: int) -> Line:
        """The title, with the meaning of the shapes where it has room."""
        name = f" of {self.place.name}" if self.spec.of_row and self.place.names else ""
        title = text_line(f"{RULE * 2} {self.spec.title}{name}  ", Role.HEAD)
        if width_of(title) + len(LEGEND) < width:
            title.append(Span(f"{LEGEND} ", Role.DIM))
        return title

    def body(self, width: int, height: int) -> list[Line]:
        """The lines."""
        rows = self.rows_of(self.look) or []
        says = width_of(self.title(width)) < len(LEGEND) and height >= 4
        lines = map_lines(rows, width, height - says, self._at)
        if not lines:
            lines.append(text_line("  no queue", Role.DIM))
        if says:
            lines.append([Span(f"  {LEGEND}", Role.DIM)])
        return lines


class QueuesPane(Pane):
    """The list of queues."""

    def step(self, by: int) -> None:
        """Move the cursor to the next queue of the map, or the one before."""
        rows, key = in_order(self.table.shown), self.cursor_key()
        keys = [self.table.key_of(row) for row in rows]
        if key in keys:
            there = keys[max(0, min(keys.index(key) + by, len(keys) - 1))]
            self.cursor = self.table.place_of(there) or 0
