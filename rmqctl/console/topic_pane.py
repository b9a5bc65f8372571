"""The panes that are drawn for one topic: its figures, the shares of its queues, its hours."""

from collections.abc import Sequence
from typing import Any, Final

from rmqctl.admin.topics.rows import TopicQueueRow
from rmqctl.output.cells import ELLIPSIS
from storage.clock import now_ms
from storage.parse.durations import format_duration

from .charts import UNKNOWN, bar, columns
from .drawing import Line, Role, Span, text_line
from .looks import topics
from .parts import DrawnPane

_BAR: Final = 11
_CELL: Final = _BAR + 6


def figures(rows: Sequence[TopicQueueRow], lags: Sequence[Any] | None, now: int) -> Line:
    """The messages of a topic, how fast they come, and how old they are."""
    held = [row for row in rows if row.count]
    first = [row.first_timestamp for row in held if row.first_timestamp is not None]
    last = [row.last_timestamp for row in held if row.last_timestamp is not None]
    old, new = (_age(min(first, default=None), now), _age(max(last, default=None), now))
    if len(first) < len(held):
        old = f">={old}" if first else UNKNOWN
    if len(last) < len(held):
        new = f"<={new}" if last else UNKNOWN
    rates = {row.rate_in for row in lags or ()}
    if None in rates or lags is None:
        rate = f"in {UNKNOWN}/s"
    else:
        rate = f"in {max(rates):,.1f}/s" if rates else "in - (no group reads it)"
    return [
        Span(" MESSAGES ", Role.HEAD),
        Span(f"{sum(row.count for row in rows):,}   {rate}"),
        Span(f"   oldest {old}"),
        Span(f"   newest {new}"),
    ]


def _age(timestamp: int | None, now: int) -> str:
    return "-" if timestamp is None else format_duration(max(0, now - timestamp))


def settings(row: Any) -> Line:
    """The settings of a topic."""
    allowed = [word for bit, word in ((4, "read"), (2, "write")) if row.perm & bit]
    order = ", ordered" if row.order else ""
    text = (
        f" {row.kind}{order}   perm {row.perm} ({', '.join(allowed) or 'nothing'})   "
        f"{row.read_queues} read, {row.write_queues} write queues"
    )
    return text_line(text)


def skew(rows: Sequence[TopicQueueRow]) -> float | None:
    """The fullest queue divided by the mean of all; 1 is even. None without messages."""
    total = sum(row.count for row in rows)
    return max(row.count for row in rows) * len(rows) / total if total else None


def share_lines(
    rows: Sequence[TopicQueueRow], width: int, height: int, at: int | None
) -> list[Line]:
    """The number of messages of each queue as bars, several a line; the fullest is a whole bar."""
    most = max((row.count for row in rows), default=0)
    each = max(1, (width - 1) // _CELL)
    room = each * height
    shown = rows if len(rows) <= room else rows[: each * (height - 1)]
    lines: list[Line] = []
    for n, row in enumerate(shown):
        if n % each == 0:
            lines.append([Span(" ")])
        here = row.queue_id == at
        text = bar(row.count / most if most else 0.0, _BAR)
        lines[-1] += [
            Span(f"{row.queue_id:>4} ", Role.CURSOR if here else Role.DIM),
            Span(f"{text:<{_BAR}} "),
        ]
    if len(shown) < len(rows):
        left = len(rows) - len(shown)
        lines.append(text_line(f" {ELLIPSIS} {left:,} of {len(rows):,} queues more", Role.DIM))
    return lines


class FiguresPane(DrawnPane):
    """Figures and settings of a topic."""

    def body(self, width: int, height: int) -> list[Line]:
        """The lines."""
        rows = self.rows_of(topics.QUEUES)
        described = self.rows_of(topics.DESCRIPTION)
        lines = [settings(described[0])] if described else []
        if rows is not None:
            lines.append(figures(rows, self.rows_of(topics.READERS), now_ms()))
        return lines


class SharesPane(DrawnPane):
    """The shares of the queues; the queue under the cursor of the list is marked."""

    _at: int | None = None

    def follow(self, pane: Any) -> None:
        """Mark the queue of the list's cursor."""
        row = pane.row()
        self._at = None if row is None else row.queue_id

    def title(self, width: int) -> Line:
        """The title, with the skew."""
        rows = self.rows_of(self.look)
        uneven = skew(rows) if rows else None
        text = "-" if uneven is None else f"{uneven:.1f}"
        return [*super().title(width), Span(f"messages of each, skew {text} ", Role.DIM)]

    def body(self, width: int, height: int) -> list[Line]:
        """The lines."""
        return share_lines(self.rows_of(self.look) or [], width, height, self._at)


class HoursPane(DrawnPane):
    """The messages of the last hours of storing."""

    def body(self, width: int, height: int) -> list[Line]:
        """The lines."""
        rows = self.rows_of(self.look) or []
        if not rows:
            return [text_line("  no message", Role.DIM)]
        counts = {row.from_timestamp: row.messages for row in rows}
        hour, newest = 3_600_000, max(counts)
        cells = min(width - 4, (newest - min(counts)) // hour + 1)
        values = [counts.get(newest - (cells - 1 - n) * hour, 0) for n in range(cells)]
        lines: list[Line] = [
            [Span("  "), Span(text)] for text in columns(values, max(1, height - 1))
        ]
        zone = self.table.view.zone
        begin = time_text(newest - (cells - 1) * hour, zone)
        older = sum(1 for at in counts if at <= newest - cells * hour)
        more = f"   {older:,} older hours have no room" if older else ""
        text = f"  an hour each, from {begin} to {time_text(newest, zone)}{more}"
        lines.append(text_line(text, Role.DIM))
        return lines


def time_text(timestamp: int, zone: Any) -> str:
    """A time without seconds."""
    from storage.parse.times import near_datetime

    return near_datetime(timestamp, zone).strftime("%Y-%m-%d %H:%M")
