"""How the timeline of a plan is drawn."""

from datetime import tzinfo
from typing import TYPE_CHECKING, Final

from rmqctl.console.charts import spark
from rmqctl.console.drawing import Line, Role, Span, text_line
from rmqctl.console.shapes import HEAT, HERE, TARGET

if TYPE_CHECKING:
    from .timeline import Timeline

HEIGHT: Final = 4
_DELETED: Final = HEAT[1]
_DAY: Final = 86_400_000


def timeline_lines(found: "Timeline", zone: tzinfo | None) -> list[Line]:
    """The lines of the picture: title, marks, messages, times."""
    from storage.parse.durations import format_duration
    from storage.parse.times import format_time

    each = format_duration(found.step_ms)
    most = f"{max(found.counts):,}"
    title = f" messages stored in each {each} (most {most})"
    legend = f"  {TARGET} target  {HERE} oldest unread  {_DELETED} deleted"
    cells = len(found.counts)
    marks = [" "] * cells
    for mark, timestamp in ((HERE, found.here_ms), (TARGET, found.target_ms)):
        cell = found.cell_of(timestamp)
        if cell is not None:
            marks[cell] = mark
    bars = list(spark(found.counts, cells))
    kept = found.kept_ms
    for n in range(cells):
        if kept is not None and found.start_ms + (n + 1) * found.step_ms <= kept:
            bars[n] = _DELETED
    end = found.start_ms + cells * found.step_ms
    part = slice(11, 16) if end - found.start_ms <= _DAY else slice(5, 16)
    first, last = (format_time(time, zone)[part] for time in (found.start_ms, end))
    times = f"  {first}{' ' * (cells - len(first) - len(last))}{last}"
    return [
        [*text_line(title, Role.TEXT), Span(legend, Role.DIM)],
        [Span("  "), Span("".join(marks), Role.MARK)],
        [Span("  "), Span("".join(bars), Role.HEAD)],
        text_line(times, Role.DIM),
    ]
