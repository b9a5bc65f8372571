"""The health of the store: disk, deletions, processes, and its check."""

from collections import Counter
from typing import Any, Final

from rmqctl.console import health
from rmqctl.console.drawing import Line
from rmqctl.console.looks import audit, lag, store
from rmqctl.console.looks.look import Look
from rmqctl.console.opened import Identity
from rmqctl.console.panes import Pane
from rmqctl.console.parts import DrawnPane
from rmqctl.console.reading import Batch
from rmqctl.console.specs import PaneSpec, ScreenSpec
from storage.clock import now_ms


class FactsPane(DrawnPane):
    """The facts."""

    _store: Identity = ()
    """That of the store of the rows."""

    def take(self, batch: Batch) -> None:
        """Take rows."""
        super().take(batch)
        if batch.error is None:
            self._store = batch.store

    def body(self, width: int, height: int) -> list[Line]:
        """The lines."""
        now = now_ms()
        info, levers, status = (
            self._one(look) for look in (store.INFO, store.LEVERS, store.STATUS)
        )
        last: health.LastCheck | None = self.session.get(health.KEPT)
        if last is not None and last.store != self._store:
            last = None  # of another store, which lay here before
        return [
            health.log_line(info, levers),
            health.deletion_line(info, levers, now),
            health.unread_line(self.rows_of(lag.RISKS)),
            health.who_line(info, None if status is None else status.services),
            health.state_line(info),
            health.check_line(info, last, now),
        ]

    def _one(self, look: Look) -> Any:
        rows = self.rows_of(look)
        return rows[0] if rows else None


class CheckPane(Pane):
    """The findings of a check; how many there were is kept for the screen of the store."""

    def take(self, batch: Batch) -> None:
        """Take findings. A check that was stopped before its first one leaves those of the check
        before, and what is kept of it."""
        super().take(batch)
        shown = self.as_of is None or self.as_of == batch.as_of
        if batch.complete and batch.error is None and shown:
            further = any(store.FURTHER in note for note in batch.notices)
            counts = Counter(str(row.severity) for row in self.table.all_rows)
            whole = not (further or batch.stopped)
            self.session[health.KEPT] = health.LastCheck(batch.as_of, counts, whole, batch.store)


SCREENS: Final = {
    "health": ScreenSpec(
        lambda place: "Store",
        [
            PaneSpec(
                store.INFO,
                also=[store.LEVERS, lag.RISKS, store.STATUS],
                height=6,
                still=True,
                pane=FactsPane,
            ),
            PaneSpec(store.DISK, "DISK", share=2),
            PaneSpec(audit.CHANGES, "LAST CHANGES", height=4, tall=8),
        ],
        keys=("check",),
        start=1,
    ),
    "check": ScreenSpec(lambda place: "Store > check", [PaneSpec(store.FINDINGS, pane=CheckPane)]),
}
