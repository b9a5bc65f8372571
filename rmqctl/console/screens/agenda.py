"""The agenda: the next hour, the delay levels, and the messages of the one under the cursor."""

from typing import Any, Final

from rmqctl.console.agenda import hour_lines
from rmqctl.console.drawing import Line
from rmqctl.console.looks import agenda, retries
from rmqctl.console.panes import Pane
from rmqctl.console.parts import DrawnPane, PartsPane
from rmqctl.console.specs import PaneSpec, ScreenSpec
from rmqctl.console.tables import shape_options
from storage.clock import now_ms

_ORDERS: Final = ("level", "topic", "group")


class HourPane(DrawnPane):
    """The next hour."""

    def body(self, width: int, height: int) -> list[Line]:
        """The lines."""
        rows, levels = self.rows_of(self.look), self.rows_of(retries.AGENDA)
        if rows is None or levels is None:
            return [self.unread(self.look, retries.AGENDA)]
        dues = [row.due_timestamp for row in rows]
        unknown = sorted({row.level for row in levels if row.messages is None})
        return hour_lines(dues, now_ms(), width, height, unknown)


class LevelsPane(Pane):
    """The levels with their targets."""

    def next_order(self) -> None:
        """Order by level, topic or group."""
        sort = self.table.view.sort
        now = sort[0] if sort else "level"
        place = _ORDERS.index(now) if now in _ORDERS else -1
        self.sort_by(_ORDERS[(place + 1) % len(_ORDERS)], descending=False)


class MessagesPane(PartsPane):
    """The messages of the level and target under the cursor."""

    by_cursor = True
    _of: tuple[int, str | None] | None = None

    def known_rows(self) -> list[Any]:
        """Those of all levels."""
        return self.rows_of(self.look) or []

    def follow(self, pane: Pane) -> None:
        """Show the messages of another level."""
        row = pane.row()
        of = None if row is None else (row.level, row.topic)
        if of != self._of:
            self._of = of
            self.changed()
            self.move_to_end(last=False)

    def changed(self) -> None:
        """Show those of the last look."""
        rows: list[Any] = self.rows_of(self.look) or []
        self.table.set_rows(row for row in rows if (row.level, row.topic) == self._of)

    def command(self) -> str:
        """The command that prints them."""
        if self._of is None:
            return super().command()
        level, topic = self._of
        view = self.table.view
        of = f"level = {level} and topic = {'null' if topic is None else quoted(topic)}"
        where = f"({view.where}) and {of}" if view.where else of
        return self.look.command(self.place, *shape_options(view._replace(where=where)))


def quoted(text: str) -> str:
    """A text of a condition."""
    mark = '"' if "'" in text else "'"
    return f"{mark}{text}{mark}"


SCREENS: Final = {
    "agenda": ScreenSpec(
        lambda place: "Agenda",
        [
            PaneSpec(
                agenda.EACH,
                height=3,
                tall=6,
                still=True,
                also=[retries.AGENDA],
                follows=1,
                pane=HourPane,
            ),
            PaneSpec(retries.AGENDA, "LEVELS", pane=LevelsPane),
            PaneSpec(agenda.EACH, "MESSAGES", follows=1, pane=MessagesPane),
        ],
        keys=("agenda_by",),
        start=1,
    ),
}
