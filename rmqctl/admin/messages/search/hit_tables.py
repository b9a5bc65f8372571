"""Messages at places in the log as the text of their rows, without an object for each."""

from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from rmqctl.output.values import LONG
from storage.read.message_table import MessageTable
from storage.read.place_table import fill_from_places

if TYPE_CHECKING:
    from storage.readonly import StoreView

_TOGETHER: Final = 4096
_BYTES: Final = LONG
"""Most bytes of a table; a message of more is written in parts, so it is given as an object."""
_MOST_SINGLY: Final = 128


class RowMaker(Protocol):
    """How rows are made of a table."""

    @property
    def fields(self) -> frozenset[str]:
        """The fields that a table needs."""
        ...

    @property
    def has_bodies(self) -> bool:
        """Whether it needs the bodies of messages."""
        ...

    def rows(self, table: MessageTable) -> Sequence[Any]:
        """The text of each row (rmqctl.output.row_block.RowBlock)."""
        ...


def rows_at(
    view: "StoreView", layout: RowMaker, places: Sequence[int]
) -> "Iterator[Sequence[Any]]":
    """The rows of messages at commit log offsets, which ascend, some at a time.

    In the place of a row that the layout cannot make is the message, or its offset where none can
    be read: unusual records, compressed and large bodies.
    """
    column = memoryview(array("q", places))
    log, end = view.files.log, view.log_max_offset()
    at, singly = 0, 1
    while at < len(column):
        table = MessageTable(layout.fields, _TOGETHER, _BYTES)
        taken = fill_from_places(table, log, column[at : at + _TOGETHER], end)
        if table.size > _BYTES:
            taken = 0
        elif taken:
            rows = layout.rows(table)
            if packed := table.buffer("stored_body_packed") if layout.has_bodies else b"":
                rows = list(rows)
                for row in memoryview(packed).cast("i"):
                    rows[row] = _message(view, column[at + row])
            yield rows
            del rows
        at += taken
        singly = 1 if taken > singly else min(2 * singly, _MOST_SINGLY)
        if at < len(column) and not (taken and table.is_full):
            yield [_message(view, place) for place in column[at : at + singly]]
            at += singly


def _message(view: "StoreView", place: int) -> Any:
    message = view.look_message_by_offset(place)
    return place if message is None else message
