"""The rows of hits, on request with the messages around them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from rmqctl.output.message_rows import MessageRow, message_row
from rmqctl.output.row_block import RowBlock, RowText
from storage.format.errors import BodyError
from storage.read.replaced import places_without_message

from .hit_tables import RowMaker, rows_at
from .neighbours import Neighbour
from .rows import NearRow

if TYPE_CHECKING:
    from rmqctl.admin.message_filter import Predicate
    from storage.format.message import MessageExt
    from storage.readonly import StoreView


_HELD_BYTES: Final = 8 << 20


class HitRows:
    """Makes the rows of hits, which have to come in log order.

    Attributes:
        row_type: MessageRow, or NearRow with ``around``.
        unreadable: log offsets of hits that can no longer be read, or whose bodies cannot be
            unpacked.
        neighbours: those of hits that cannot be read.
    """

    def __init__(self, view: "StoreView", matches: "Predicate", around: int = 0) -> None:
        """``around`` messages before and after each hit; ``matches`` is that of its query."""
        self._view = view
        self._matches = matches
        self.around: Final = around
        self._shown: dict[tuple[str, int], int] = {}
        self.row_type: type = NearRow if around else MessageRow
        self.unreadable: set[int] = set()
        self.neighbours: list[Neighbour] = []

    def rows(self, offset: int) -> Iterator[Any]:
        """The rows of the hit at a log offset; each message has one row."""
        message = self._view.look_message_by_offset(offset)
        if message is None:
            self.unreadable.add(offset)
        elif self.around:
            yield from self._near(message)
        else:
            try:
                yield message_row(message)
            except BodyError:
                self.unreadable.add(offset)

    def by_columns(self, layout: RowMaker, offsets: Sequence[int]) -> Iterator[Sequence[Any]]:
        """The rows of many hits, some at a time; those that the layout cannot make as objects."""
        for rows in rows_at(self._view, layout, offsets):
            if type(rows) is RowBlock:
                yield rows
                continue
            yield from self._made(list(rows))

    def _made(self, rows: list[Any]) -> Iterator[Sequence[Any]]:
        """Rows of messages beside those of the layout, until their bodies have so many bytes: small
        records may inflate to much."""
        made: list[Any] = []
        held = 0
        rows.reverse()
        while rows:
            item = rows.pop()  # a message keeps its body once it is inflated
            if type(item) is RowText:
                made.append(item)
            elif isinstance(item, int):
                self.unreadable.add(item)
            else:
                try:
                    made.append(message_row(item))
                except BodyError:
                    self.unreadable.add(item.commitlog_offset)
                    continue
                held += len(item.body)
                if held > _HELD_BYTES:
                    yield made
                    made, held = [], 0
        yield made

    def _near(self, hit: "MessageExt") -> Iterator[Any]:
        """The hit with its neighbours in its queue."""
        queue = (hit.topic, hit.queue_id)
        low, high = self._view.queue_bounds(*queue)
        first = max(low, hit.queue_offset - self.around, self._shown.get(queue, 0))
        last = min(high - 1, hit.queue_offset + self.around)
        for queue_offset in range(first, last + 1):
            if queue_offset == hit.queue_offset:
                try:
                    yield NearRow(True, *message_row(hit))
                except BodyError:
                    self.unreadable.add(hit.commitlog_offset)
            else:
                yield from self._neighbour(queue, queue_offset)
        self._shown[queue] = last + 1

    def _neighbour(self, queue: tuple[str, int], queue_offset: int) -> Iterator[Any]:
        unit = self._view.unit(*queue, queue_offset)
        message = unit and self._view.message_of_unit(*queue, queue_offset, unit)
        if message:
            try:
                yield NearRow(self._matches(message), *message_row(message))
            except BodyError:
                self.unreadable.add(message.commitlog_offset)
        elif not places_without_message(self._view, *queue, queue_offset, queue_offset + 1):
            place, size = unit[:2] if unit else (-1, 0)
            self.neighbours.append(Neighbour(*queue, queue_offset, place, size))
