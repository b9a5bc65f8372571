"""Fetches messages as the text of their rows, without an object for each."""

from typing import TYPE_CHECKING, Any, Final

from rmqctl.admin.queues.cursor import COLUMN, Fetched, ObjectFetcher
from rmqctl.output.values import LONG
from storage.read.message_table import MessageTable

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from rmqctl.output.encoded_rows import Layout
    from storage.format.message import MessageExt

_PLACES: Final = ("queue_offset", "commitlog_offset")
_BYTES: Final = LONG
"""Most bytes of a table; a message of more is written in parts, so it is fetched as an object."""


class _RowTable(MessageTable):
    """A table that keeps the messages that compiled code does not take: they may have text that is
    no UTF-8, which columns cannot hold as it is."""

    def __init__(self, fields: frozenset[str], most_rows: int) -> None:
        super().__init__(fields, most_rows, _BYTES)
        self.messages: dict[int, MessageExt] = {}
        """By their row."""

    def add(self, message: "MessageExt", queue_offset: int) -> None:
        """Add a message, and keep it."""
        self.messages[self.rows] = message
        super().add(message, queue_offset)


class RowFetcher:
    """Fetches rows by a layout; messages that it cannot be applied to are fetched as objects.

    These are in the place of their rows: unusual records, and all messages of a queue from the
    first compressed body on.
    """

    def __init__(
        self, broker: "EmbeddedBroker", topic: str, layout: "Layout", objects: ObjectFetcher
    ) -> None:
        self._broker = broker
        self._topic = topic
        self._layout = layout
        self._objects = objects
        self._compressed: set[int] = set()
        """Queues with compressed bodies."""

    def __call__(self, queue_id: int, offset: int, count: int) -> Fetched:
        """See rmqctl.admin.queues.cursor.Fetcher."""
        if queue_id in self._compressed:
            return self._objects(queue_id, offset, count)
        table = _RowTable(self._layout.fields.union(_PLACES), min(count, COLUMN))
        end = self._broker.max_offset(self._topic, queue_id)
        filled = self._broker.fill_table(table, self._topic, queue_id, offset, end)
        if self._layout.has_bodies and table.buffer("stored_body_packed"):
            self._compressed.add(queue_id)
            return self._objects(queue_id, offset, count)
        if not table.rows or table.size > _BYTES:  # nothing readable, or a large body
            return self._objects(queue_id, offset, 1)
        rows: list[Any] = self._layout.rows(table)
        for row, message in table.messages.items():
            rows[row] = message
        offsets, places = (memoryview(table.buffer(name)).cast("q") for name in _PLACES)
        following = filled.next_offset
        return Fetched(offsets, places, rows, following, more=following < end)
