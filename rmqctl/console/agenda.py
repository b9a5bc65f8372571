"""The next hour of the agenda as columns. Pure."""

from collections.abc import Sequence

from .charts import columns
from .drawing import Line, Role, Span, spread, text_line

HOUR_MS = 3_600_000
_LABEL = " NEXT HOUR  "


def counts(dues: Sequence[int], now_ms: int, cells: int) -> list[int]:
    """How many messages are due in each part of the next hour; overdue ones are in the first."""
    found = [0] * cells
    for due in dues:
        ahead = due - now_ms
        if ahead < HOUR_MS:
            found[max(0, ahead * cells // HOUR_MS)] += 1
    return found


def hour_lines(
    dues: Sequence[int], now_ms: int, width: int, height: int, unknown: Sequence[int] = ()
) -> list[Line]:
    """The next hour: columns, the times below them, and what is not in it.

    ``unknown``: the delay levels of which it is unknown what waits there.
    """
    cells = max(4, width - len(_LABEL) - 1)
    overdue = sum(due <= now_ms for due in dues)
    within = sum(now_ms < due < now_ms + HOUR_MS for due in dues)
    lines: list[Line] = []
    for n, text in enumerate(columns(counts(dues, now_ms, cells), max(1, height - 2))):
        label = _LABEL if not n else " " * len(_LABEL)
        first = Role.BAD if overdue else Role.TEXT
        lines.append([Span(label, Role.HEAD), Span(text[:1], first), Span(text[1:])])
    marks = [" "] * cells
    for quarter, text in enumerate(("now", "+15m", "+30m", "+45m")):
        at = quarter * cells // 4
        marks[at : at + len(text)] = text
    lines.append([Span(" " * len(_LABEL) + "".join(marks)[:cells], Role.DIM)])
    left = text_line(f" {len(dues):,} wait: ")
    left += text_line(f"{overdue:,} overdue", Role.BAD if overdue else Role.TEXT)
    left += text_line(f", {within:,} within the hour, {len(dues) - overdue - within:,} later")
    if unknown:
        left += text_line(f", level {', '.join(map(str, unknown))} unknown", Role.WARN)
    lines.append(spread(left, [], width))
    return lines
