"""Messages of several queues in the order in which they were stored."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain, repeat
from operator import itemgetter
from typing import Any

from .cursor import Cursor

_log_offset = itemgetter(0)
_item = itemgetter(1)


class Round:
    """Messages that can be taken now: no message that is not fetched yet was stored earlier.

    ``items`` are in log order. Items that are not taken stay.
    """

    def __init__(self, cursors: Sequence[Cursor]) -> None:
        self._cursors = [cursor for cursor in cursors if cursor.waiting]
        bounds = [bound for cursor in self._cursors if (bound := cursor.bound) is not None]
        safe = min(bounds, default=None)
        self._counts = [cursor.upto(safe) for cursor in self._cursors]
        self._order: list[tuple[int, Any, int]] | None = None
        ready = [i for i, count in enumerate(self._counts) if count]
        self.items: Sequence[Any] = ()
        if len(ready) == 1:
            self.items = self._cursors[ready[0]].peek(self._counts[ready[0]])[1]
        elif ready:
            self._order = sorted(
                chain.from_iterable(
                    zip(*self._cursors[i].peek(self._counts[i]), repeat(i)) for i in ready
                ),
                key=_log_offset,
            )
            self.items = list(map(_item, self._order))

    def take(self, count: int) -> None:
        """Take the first ``count`` items."""
        if count >= len(self.items):
            counts = dict(enumerate(self._counts))
        elif self._order is None:
            only = next(i for i, ready in enumerate(self._counts) if ready)
            counts = {only: count}
        else:
            counts = Counter(entry[2] for entry in self._order[:count])
        for i, taken in counts.items():
            self._cursors[i].take(taken)
