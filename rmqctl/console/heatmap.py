"""The heat map: a cell for each queue that a group reads. Pure."""

from collections.abc import Sequence
from typing import Final

from rmqctl.admin.lag.rows import LagQueueRow
from rmqctl.output.cells import ELLIPSIS

from .cells import fitted
from .charts import UNKNOWN, heat, span
from .drawing import Line, Role, Span, text_line
from .shapes import HEAT

NO_PROGRESS: Final = "x"
LEGEND: Final = (
    f"{HEAT[0]} 0  {HEAT[1]} <1k  {HEAT[2]} <10k  {HEAT[3]} <100k  {HEAT[4]} more  "
    f"{NO_PROGRESS} no progress  {UNKNOWN} unknown"
)
_TOPIC: Final = 16
_RANGE: Final = 9
_LEFT: Final = _TOPIC + _RANGE + 4
Key = tuple[str, str, int]
"""Group, topic and queue."""
_STATES: Final = {"STALL": Role.BAD, "STOP": Role.BAD, "REWIND": Role.BAD, "WARN": Role.WARN}


def shape(row: LagQueueRow) -> str:
    """The shape of a queue."""
    if row.committed_offset is None:
        return HEAT[0] if row.min_offset == row.max_offset else NO_PROGRESS
    return heat(row.lag)


def in_order(rows: Sequence[LagQueueRow]) -> list[LagQueueRow]:
    """The queues as they stand in the map: topics with the largest lag first."""
    lags: dict[str, int] = {}
    for row in rows:
        lags[row.topic] = lags.get(row.topic, 0) + (row.lag or 0)
    return sorted(rows, key=lambda row: (-lags[row.topic], row.topic, row.queue_id))


def map_lines(
    rows: Sequence[LagQueueRow], width: int, height: int, at: Key | None = None
) -> list[Line]:
    """The map in so many lines. It says how many queues have no room in it; the line with the
    queue ``at`` is always shown."""
    each = max(1, (width - _LEFT) // 2)
    lines: list[list[LagQueueRow]] = []
    for row in in_order(rows):
        if not lines or lines[-1][0].topic != row.topic or len(lines[-1]) == each:
            lines.append([])
        lines[-1].append(row)
    left_out = 0
    if len(lines) > height:
        here = next((n for n, line in enumerate(lines) if any(_key(r) == at for r in line)), 0)
        first = max(0, min(here, here - height + 2))
        shown = lines[first : first + height - 1]
        left_out = len(rows) - sum(map(len, shown))
        lines = shown
    found = [_line(line, at) for line in lines]
    if left_out:
        found.append(text_line(f"  {ELLIPSIS} {left_out:,} of {len(rows):,} queues more", Role.DIM))
    return found


def _line(rows: Sequence[LagQueueRow], at: Key | None) -> Line:
    ids = span([row.queue_id for row in rows])
    line = [Span(f"  {fitted(rows[0].topic, _TOPIC)} {fitted(ids, _RANGE, right=True)} ")]
    for row in rows:
        cell = shape(row)
        role = _STATES.get(row.status, Role.DIM if cell == HEAT[0] else Role.TEXT)
        line += [Span(" "), Span(cell, Role.CURSOR if _key(row) == at else role)]
    return line


def _key(row: LagQueueRow) -> Key:
    return row.group, row.topic, row.queue_id
