"""Lists of messages: a part of a topic, new ones as they come, and hits of a search."""

from typing import Any, Final

from rmqctl.output.view import View

from .bodies import body_of
from .looks.look import Place
from .panes import Pane
from .screens.screen import PaneSpec
from .tables import RowTable, view_of

_SHOWN: Final = 400
"""Letters of a body in a list."""
_SHOWN_BYTES: Final = 16
COLUMNS: Final = (
    "queue_id",
    "queue_offset",
    "store_timestamp",
    "tags",
    "keys",
    "body_size",
    "body",
)


class MessageTable(RowTable):
    """Rows of messages; a body that is no text is shown as bytes."""

    def _texts(self, row: Any) -> list[str]:
        whole = body_of(row)
        if row.body is None and whole is not None:
            more = " ..." if len(whole) > _SHOWN_BYTES else ""
            row = row._replace(body=f"bytes {whole[:_SHOWN_BYTES].hex(' ')}{more}")
        elif row.body is not None and len(row.body) > _SHOWN:
            row = row._replace(body=row.body[:_SHOWN])
        return super()._texts(row)

    def searched(self, row: Any) -> list[str]:
        """The cells, and the whole body."""
        return [*self._texts(row), row.body or ""]


class MessageListPane(Pane):
    """A list of messages."""

    table_type = MessageTable

    def __init__(self, spec: PaneSpec, place: Place, view: View) -> None:
        super().__init__(spec, place, view)
        self._columns = view.columns or self.usual_columns()
        self.table.set_view(self.table.view._replace(columns=self._columns))

    def usual_columns(self) -> tuple[str, ...]:
        """The columns, unless the user has named some."""
        names = self.place.names
        one_queue = len(names) > 1 and names[1].isdigit()
        return COLUMNS[1:] if one_queue else COLUMNS

    def set_wide(self, wide: bool) -> None:
        """Show all columns, or the usual ones."""
        self.wide = wide
        view = view_of(self.table.view, wide=wide)
        self._reshape(view._replace(columns=() if wide else self._columns))

    def walk_text(self) -> str:
        """How many there are, of which the list has some."""
        if self.progress is None or self.error is not None:
            return super().walk_text()
        done, total = self.progress.done, self.progress.total
        if done < total:
            return f" of the {total:,} there (m: more)"
        return ""
