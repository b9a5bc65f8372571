"""The screens of consumer groups."""

from typing import Any, Final

from rmqctl.console.charts import spark
from rmqctl.console.group_pane import FiguresPane, MapPane, QueuesPane
from rmqctl.console.looks import audit, groups, lag
from rmqctl.console.parts import TailedPane
from rmqctl.console.specs import PaneSpec, ScreenSpec


class GroupsPane(TailedPane):
    """The groups; on a wide screen with their members and the lag of the last hour."""

    TAIL = ("MEMBERS  1 H", 22)

    def changed(self) -> None:
        """Show the rows of the last look."""
        super().changed()
        trends = self.rows_of(lag.TRENDS) or ()
        self._trends = {(row.group, row.topic): row for row in trends}

    def tail(self, row: Any) -> str:
        """Its members, and its lag."""
        found = self._trends.get((row.group, row.topic))
        return f"{'?':>7}" if found is None else f"{found.members:>7}  {spark(found.lags, 13)}"


SCREENS: Final = {
    "groups": ScreenSpec(
        lambda place: "Groups", [PaneSpec(groups.GROUPS, wide=[lag.TRENDS], pane=GroupsPane)]
    ),
    "group": ScreenSpec(
        lambda place: f"Groups > {place.name}",
        [
            PaneSpec(
                groups.GROUP,
                also=[lag.TRENDS, groups.MEMBERS],
                height=4,
                tall=7,
                still=True,
                pane=FiguresPane,
            ),
            PaneSpec(
                groups.QUEUES, "QUEUES", height=4, tall=7, still=True, pane=MapPane, follows=3
            ),
            PaneSpec(groups.MEMBERS, "MEMBERS", height=4, tall=7, beside=True),
            PaneSpec(groups.QUEUES, "QUEUES", pane=QueuesPane, share=2),
            PaneSpec(audit.HISTORY, "LAST CHANGES", height=3, tall=6),
        ],
        start=3,
    ),
    "history": ScreenSpec(
        lambda place: f"Groups > {place.name} > history", [PaneSpec(audit.HISTORY)]
    ),
}
