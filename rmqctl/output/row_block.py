"""The text of many rows in one piece of memory, and rows of several queues in one order."""

from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from operator import lt
from typing import Any, Final, TypeAlias, overload

from rmqctl import native

MOST_PARTS: Final = 255
"""Most queues whose rows are put in order; a byte a row says from which one it is."""
Part: TypeAlias = "tuple[Any, RowBlock]"
"""Places in the log of rows that ascend, int64 each, and the rows."""


class RowText(bytes):
    """One row with its line end."""

    __slots__ = ()


class RowBlock(Sequence["RowText | None"]):
    """Rows with their line ends. A row that a filter has left out is None, and has no text; nor has
    a row for which ``--where`` does not hold.

    A slice has the same memory.
    """

    __slots__ = ("_ends", "_first", "_kept", "_last", "_text")

    def __init__(
        self,
        text: Any,
        ends: Any,
        kept: Any = None,
        first: int = 0,
        last: int | None = None,
    ) -> None:
        """``ends`` are an int64 each, after a first one; ``kept`` is a byte a row, 0 for those
        that are left out, None for none. The rows are [first, last) of these."""
        self._text = text
        self._ends = memoryview(ends).cast("B").cast("q")
        self._kept = kept
        self._first = first
        self._last = len(self._ends) - 1 if last is None else last

    def __len__(self) -> int:
        return self._last - self._first

    @overload
    def __getitem__(self, at: int) -> RowText | None: ...

    @overload
    def __getitem__(self, at: slice) -> "RowBlock": ...

    def __getitem__(self, at: int | slice) -> "RowText | RowBlock | None":
        if isinstance(at, slice):
            first, last, step = at.indices(len(self))
            assert step == 1
            first, last = self._first + first, self._first + max(first, last)
            return RowBlock(self._text, self._ends, self._kept, first, last)
        row = range(self._first, self._last)[at]
        if self._kept is not None and not self._kept[row]:
            return None
        return RowText(self._text[self._ends[row] : self._ends[row + 1]])

    def __iter__(self) -> "Iterator[RowText | None]":
        return map(self.__getitem__, range(len(self)))

    @property
    def text(self) -> memoryview:
        """The text of all rows."""
        return memoryview(self._text)[self._ends[self._first] : self._ends[self._last]]

    @property
    def kept(self) -> int:
        """How many rows are not left out."""
        if self._kept is None:
            return len(self)
        return int(self._kept.count(1, self._first, self._last))

    @property
    def written(self) -> int:
        """How many rows have a text."""
        ends = self._ends[self._first : self._last + 1].tolist()
        return sum(map(lt, ends, ends[1:]))

    def upto(self, kept: int) -> "RowBlock":
        """The rows up to the one that is the last of so many that are not left out."""
        if self._kept is None:
            return self[:kept]
        if kept >= self.kept:
            return self
        at = self._first
        for _ in range(kept):
            at = self._kept.index(1, at) + 1
        return self[: at - self._first]

    def replaced(self, rows: "dict[int, bytes]") -> "RowBlock":
        """The same with another text of some rows."""
        kept = None if self._kept is None else self._kept[self._first : self._last]
        texts = [rows.get(number, row or b"") for number, row in enumerate(self)]
        return RowBlock(b"".join(texts), _ends_of(texts), kept)

    @staticmethod
    def of(texts: Sequence[bytes]) -> "RowBlock":
        """Some rows, none of which is left out."""
        return RowBlock(b"".join(texts), _ends_of(texts))

    @staticmethod
    def merged(parts: "Sequence[Part]") -> "tuple[RowBlock, bytes]":
        """The rows of several queues in the order of the log; and which part each is of.

        There are at most MOST_PARTS parts.
        """
        given = tuple(
            (places, block._text, block._ends, block._first, block._kept) for places, block in parts
        )
        text, ends, order, kept = merged_rows(given)
        return RowBlock(text, ends, kept), order


def _ends_of(texts: Sequence[bytes]) -> "array[int]":
    return array("q", accumulate(map(len, texts), initial=0))


def _merged_rows(parts: "Sequence[tuple[Any, Any, Any, int, Any]]") -> tuple[Any, Any, Any, Any]:
    """Text, ends, order and kept of the rows from the first one of each part on, as many as it has
    places."""
    rows = sorted(
        (place, number, first + at)
        for number, (places, _, _, first, _) in enumerate(parts)
        for at, place in enumerate(memoryview(places).cast("B").cast("q"))
    )
    ends = [list(pairwise(memoryview(part[2]).cast("B").cast("q"))) for part in parts]
    texts = [bytes(parts[part][1][slice(*ends[part][row])]) for _, part, row in rows]
    kept = None
    if any(part[4] is not None for part in parts):
        whole = [part[4] for part in parts]
        kept = bytes(1 if (mask := whole[part]) is None else mask[row] for _, part, row in rows)
    return b"".join(texts), _ends_of(texts).tobytes(), bytes(part for _, part, _ in rows), kept


merged_rows: Final = native.form("merged_rows", _merged_rows)
