"""When the process of a console searches its objects for reference cycles.

Most objects are what looks have found: it stays, and has no cycles. A search of all of them takes
as long as a look, and no key is answered meanwhile. So Python searches what is new only, and after
each look that made much nothing is searched that is there then. All is searched where there is much
more of it than before.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_FIRST_LOOKS: Final = (1, 3)
"""The first look, and the second one that read a change: what they made stays for the most part."""
_MANY_NEW: Final = 20_000
"""Objects that are searched for cycles in a few milliseconds."""
_SEARCH_EVERY: Final = 1_000
"""Looks after which memory is compared with that of before."""
_MORE: Final = 1.5
_NEVER: Final = 1 << 30


@contextmanager
def only_new_objects() -> Iterator[None]:
    """Let Python search new objects only, by itself, within the block; for looks by
    :class:`CycleSearch`."""
    before = gc.get_threshold()
    gc.set_threshold(before[0], _NEVER, _NEVER)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class CycleSearch:
    """Counts the looks of one store. For one thread."""

    def __init__(self) -> None:
        self._looks = 0
        self._blocks = 0
        """Blocks of memory after the first looks."""

    @contextmanager
    def look(self) -> Iterator[None]:
        """Make a look within the block."""
        many_new = _are_many_new()
        if self._looks and many_new:
            gc.collect()
        try:
            yield
        finally:
            self._looks += 1
            is_first = self._looks in _FIRST_LOOKS
            if is_first or many_new or _are_many_new():
                gc.freeze()
            if not self._looks % _SEARCH_EVERY and sys.getallocatedblocks() > _MORE * self._blocks:
                gc.unfreeze()
                gc.collect()
                gc.freeze()
                is_first = True
            if is_first:
                self._blocks = sys.getallocatedblocks()  # frozen objects are counted one by one


def _are_many_new() -> bool:
    count, searched, _ = gc.get_count()
    return searched > 0 or count > _MANY_NEW
