"""Fetches messages as the text of their rows, without an object for each."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from rmqctl.admin.queues.cursor import COLUMN, Fetched, ObjectFetcher

from .inflated_table import MOST_BYTES, InflatedTable

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from rmqctl.output.encoded_rows import Layout
    from storage.format.message import MessageExt

    from .column_filter import ColumnFilter

_PLACES: Final = ("queue_offset", "commitlog_offset")


class RowFetcher:
    """Fetches rows by a layout; messages that it cannot be applied to are fetched as objects, in
    the place of their rows: unusual records, and bodies that are large or cannot be inflated.

    Rows for which a filter does not hold are None; objects are not filtered.
    """

    def __init__(
        self,
        broker: "EmbeddedBroker",
        topic: str,
        layout: "Layout",
        objects: ObjectFetcher,
        wanted: "ColumnFilter | None" = None,
    ) -> None:
        self._broker = broker
        self._topic = topic
        self._layout = layout
        self._objects = objects
        self._wanted = wanted
        fields = layout.fields.union(_PLACES)
        self._fields = fields if wanted is None else fields | wanted.fields

    def __call__(self, queue_id: int, offset: int, count: int) -> Fetched:
        """See rmqctl.admin.queues.cursor.Fetcher."""
        table = InflatedTable(self._fields, min(count, COLUMN))
        end = self._broker.max_offset(self._topic, queue_id)
        filled = self._broker.fill_table(table, self._topic, queue_id, offset, end)
        if not table.rows or table.size > MOST_BYTES:  # nothing readable, or a large body
            return self._objects(queue_id, offset, 1)
        following, taken = filled.next_offset, table.rows
        left = table.inflate()
        offsets, places = (memoryview(table.buffer(name)).cast("q") for name in _PLACES)
        if table.rows < taken:
            following = offsets[table.rows]
            offsets, places = offsets[: table.rows], places[: table.rows]
        messages: dict[int, MessageExt | None] = {
            row: one for row, one in table.messages.items() if row < table.rows
        }
        for row in left - messages.keys():
            messages[row] = self._message(queue_id, offsets[row])
        return Fetched(
            offsets, places, self._rows(table, messages), following, more=following < end
        )

    def _message(self, queue_id: int, offset: int) -> "MessageExt | None":
        """The message at an offset; None if the subscription leaves it out."""
        found = self._objects(queue_id, offset, 1)
        return found.items[0] if tuple(found.queue_offsets) == (offset,) else None

    def _rows(
        self, table: InflatedTable, messages: "dict[int, MessageExt | None]"
    ) -> Sequence[Any]:
        chosen = None
        if self._wanted is not None:
            chosen = bytearray(b"\1" * table.rows)
            for row in messages:
                chosen[row] = 0
            self._wanted.test(table, chosen)
        rows: Sequence[Any] = self._layout.rows(table, chosen)
        if messages:
            rows = list(rows)
            for row, message in messages.items():
                rows[row] = message
        return rows
