"""Messages of several queues in the order in which they were stored."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, cast

from rmqctl.output.row_block import MOST_PARTS, RowBlock

from .cursor import Cursor

if TYPE_CHECKING:
    from rmqctl.output.row_block import Part

_log_offset = itemgetter(0)
_item = itemgetter(1)
_number = itemgetter(2)


class Round:
    """Messages that can be taken now: no message that is not fetched yet was stored earlier.

    ``items`` are in log order. Items that are not taken stay.
    """

    def __init__(self, cursors: Sequence[Cursor], log_end: int | None = None) -> None:
        """``log_end``: messages from this log offset on are not taken yet."""
        self._cursors = [cursor for cursor in cursors if cursor.waiting]
        bounds = [bound for cursor in self._cursors if (bound := cursor.bound) is not None]
        if log_end is not None:
            bounds.append(log_end - 1)
        safe = min(bounds, default=None)
        self._counts = [cursor.upto(safe) for cursor in self._cursors]
        self._order: Sequence[int] | None = None
        """The cursor of each item, by its number; None where all are of one."""
        ready = [i for i, count in enumerate(self._counts) if count]
        self.items: Sequence[Any] = ()
        if len(ready) == 1:
            self.items = self._cursors[ready[0]].peek(self._counts[ready[0]])[1]
        elif ready:
            parts = [self._cursors[i].peek(self._counts[i]) for i in ready]
            if len(ready) <= MOST_PARTS and all(type(items) is RowBlock for _, items in parts):
                self.items, self._order = RowBlock.merged(cast("Sequence[Part]", parts))
            else:
                entries = sorted(
                    chain.from_iterable(
                        zip(*part, repeat(number)) for number, part in enumerate(parts)
                    ),
                    key=_log_offset,
                )
                self.items = list(map(_item, entries))
                self._order = list(map(_number, entries))
        self._ready = ready

    def take(self, count: int) -> None:
        """Take the first ``count`` items."""
        if count >= len(self.items):
            counts = dict(enumerate(self._counts))
        elif self._order is None:
            counts = {self._ready[0]: count}
        else:
            counts = {self._ready[at]: n for at, n in Counter(self._order[:count]).items()}
        for i, taken in counts.items():
            self._cursors[i].take(taken)
