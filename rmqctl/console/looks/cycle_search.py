"""When the process of a console searches its objects for reference cycles.

Most objects are what looks have found: it stays, and has no cycles. A search of all of them takes
as long as a look, and no key is answered meanwhile. So Python searches what is new only. All is
searched where there is much more of it than before.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MANY_NEW: Final = 20_000
"""Objects that are searched for cycles in a few milliseconds."""
_SETTLED: Final = 3
"""Looks after which memory holds what stays: the third is the second one that read a change."""
_SEARCH_EVERY: Final = 1_000
"""Looks after which memory is compared with that of before."""
_MORE: Final = 1.5
_NEVER: Final = 1 << 30


@contextmanager
def only_new_objects() -> Iterator[None]:
    """Let Python search only objects that are made within the block, by itself, and each once."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(MANY_NEW, _NEVER, _NEVER)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class FullSearch:
    """Counts the looks at one store, and searches all objects when there are many more of them."""

    def __init__(self) -> None:
        self._looks = 0
        self._blocks = 0
        """Blocks of memory when it held what stays."""

    def after_look(self) -> None:
        """Count a look; blocks while all is searched, one look of a thousand at most."""
        self._looks += 1
        if self._looks == _SETTLED:
            self._blocks = sys.getallocatedblocks()
        if self._looks % _SEARCH_EVERY == 0 and sys.getallocatedblocks() > _MORE * self._blocks:
            gc.unfreeze()
            gc.collect()
            gc.freeze()
            self._blocks = sys.getallocatedblocks()
