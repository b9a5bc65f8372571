"""Tables whose compressed bodies are inflated, as far as they are small and can be."""

from array import array
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

from rmqctl.output.values import LONG
from storage.format.compress import decompress
from storage.format.errors import BodyError
from storage.read.message_table import MessageTable

if TYPE_CHECKING:
    from storage.format.message import MessageExt

MOST_BYTES: Final = LONG
"""Most bytes of a table, and of an inflated body; a message of more is written in parts, so it is
fetched as an object."""
_INFLATED_BYTES: Final = 8 << 20
"""Most bytes of the inflated bodies of a table."""
_BODY: Final = "stored_body"


class InflatedTable(MessageTable):
    """A table that keeps the messages that compiled code does not take: they may have text that is
    no UTF-8, which columns cannot hold as it is."""

    def __init__(self, fields: frozenset[str], most_rows: int) -> None:
        """``fields`` without bodies: these are checked, as a single read does, and not inflated."""
        self._inflates = _BODY in fields
        super().__init__(fields | {_BODY, "sys_flag"}, most_rows, MOST_BYTES)
        self.messages: dict[int, MessageExt] = {}
        """By their row."""

    def add(self, message: "MessageExt", queue_offset: int) -> None:
        """Add a message, and keep it."""
        self.messages[self.rows] = message
        super().add(message, queue_offset)

    def inflate(self) -> set[int]:
        """Inflate the bodies; gives the rows of those that are too large or cannot be inflated.

        The table ends before the first row for which the bodies together are too large. Only once
        all rows are there.
        """
        if not self._inflates or not self.buffer(f"{_BODY}_packed"):
            return set()
        body, ends_buffer = self.buffer(_BODY), self.buffer(f"{_BODY}_ends")
        flags = array("i", bytes(self.buffer("sys_flag")))
        ends = array("i", bytes(ends_buffer))
        sizes = [end - begin for begin, end in pairwise(ends)]
        pieces: list[bytes | bytearray] = []
        left: set[int] = set()
        room, copied = _INFLATED_BYTES, 0
        for row in array("i", bytes(self.buffer(f"{_BODY}_packed"))):
            begin, end = ends[row], ends[row + 1]
            try:
                inflated = decompress(bytes(body[begin:end]), flags[row], MOST_BYTES)
            except BodyError:
                left.add(row)
                inflated = b""
            room -= len(inflated)
            if room < 0:
                self.rows = row
                break
            pieces += (body[copied:begin], inflated)
            sizes[row] = len(inflated)
            copied = end
        pieces.append(body[copied : ends[self.rows]])
        ends_buffer[:] = array("i", accumulate(sizes[: self.rows], initial=0)).tobytes()
        body[:] = b"".join(pieces)
        return left
