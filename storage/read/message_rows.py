"""Messages of a queue that follow each other, as a table: an object is made only of those that are
asked for.

A consumer that prints needs the bodies of a thousand messages in one piece, and a thousand offsets
that are a range. Where something is different about one of the messages (it fails, or is sent
back), they are objects again, read from the same bytes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, overload

from storage.errors import StoreError

if TYPE_CHECKING:
    from storage.format.message import MessageExt

    from .message_table import MessageTable

_BODY_ENDS: Final = "stored_body_ends"


class TableOfQueue:
    """What all slices of one read share: a table with stored bodies, and how its messages are read.

    Its first row is the message at ``first_offset`` of a queue. Safe for threads.
    """

    def __init__(
        self,
        table: MessageTable,
        first_offset: int,
        read: Callable[[], Sequence[MessageExt | None]],
    ) -> None:
        self.table: Final = table
        self.first_offset: Final = first_offset
        self.body_ends: Final = memoryview(table.buffer(_BODY_ENDS)).cast("i")
        self._read = read
        self._lock = threading.Lock()  # guards the two below
        self._messages: list[MessageExt] | None = None
        self._added: list[tuple[int, int, bytes]] = []
        """Rows [begin, end), and properties that they have besides."""

    def messages(self) -> list[MessageExt]:
        """The messages of all rows; always the same objects. StoreError if records have changed."""
        with self._lock:
            if self._messages is None:
                found = [message for message in self._read() if message is not None]
                if len(found) != self.table.rows:
                    raise StoreError(
                        f"records of {self.table.rows} messages from queue offset "
                        f"{self.first_offset} on have changed since they were read"
                    )
                for begin, end, items in self._added:
                    _add(found[begin:end], items)
                self._messages = found
            return self._messages

    def add_property_bytes(self, begin: int, end: int, items: bytes) -> None:
        """Add properties to the messages of some rows, whenever these are made."""
        with self._lock:
            if self._messages is None:
                self._added.append((begin, end, items))
            else:
                _add(self._messages[begin:end], items)


class MessageRows(Sequence["MessageExt"]):
    """Messages with consecutive queue offsets, none of whose bodies is compressed.

    ``table`` has the fields that the reader has asked for, and the stored bodies. The messages are
    its rows [begin, end). Indexing and iterating read all messages of the table once, and give the
    same objects each time; StoreError if a record is no longer what it was. A slice without a step
    is such rows again, of the same table. Safe for threads.
    """

    __slots__ = ("_whole", "begin", "end")

    def __init__(self, whole: TableOfQueue, begin: int, end: int) -> None:
        self._whole = whole
        self.begin: Final = begin
        self.end: Final = end

    def __len__(self) -> int:
        return self.end - self.begin

    @overload
    def __getitem__(self, at: int) -> MessageExt: ...

    @overload
    def __getitem__(self, at: slice) -> MessageRows: ...

    def __getitem__(self, at: int | slice) -> MessageExt | MessageRows:
        rows = range(self.begin, self.end)[at]
        if isinstance(rows, int):
            return self._whole.messages()[rows]
        if rows.step != 1:
            raise ValueError("rows of messages are sliced without a step")
        if len(rows) == len(self):
            return self
        return MessageRows(self._whole, rows.start, max(rows.start, rows.stop))

    def __iter__(self) -> Iterator[MessageExt]:
        return iter(self._whole.messages()[self.begin : self.end])

    @property
    def table(self) -> MessageTable:
        """The table, which has other rows, too, where this is a slice."""
        return self._whole.table

    @property
    def offsets(self) -> range:
        """Their queue offsets."""
        first = self._whole.first_offset
        return range(first + self.begin, first + self.end)

    @property
    def body_bytes(self) -> int:
        """Bytes of their bodies."""
        ends = self._whole.body_ends
        return ends[self.end] - ends[self.begin]

    def add_property_bytes(self, items: bytes) -> None:
        """Add properties to all of them, written as they are stored (name 1 value 2 name ...)."""
        self._whole.add_property_bytes(self.begin, self.end, items)


def offset_at(messages: Sequence[MessageExt], at: int) -> int:
    """The queue offset of one of the messages; nothing is made of rows for it."""
    if type(messages) is MessageRows:
        return messages.offsets[at]
    return messages[at].queue_offset


def _add(messages: Sequence[MessageExt], items: bytes) -> None:
    for message in messages:
        own = message.added_property_bytes
        message.added_property_bytes = own + b"\x02" + items if own else items
