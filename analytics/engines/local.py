"""Work in this process, without a JVM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class LocalEngine:
    """Processes one item after the other."""

    name: Final = "local"
    cores: Final = 1
    is_here: Final = True
    """Whether work is done in this process, so that a small request costs little."""

    def map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        progress: Callable[[int], None] | None = None,
    ) -> list[R]:
        """Apply a function to each item, in order. ``progress`` is called with the number
        finished."""
        found = []
        for number, item in enumerate(items, 1):
            found.append(function(item))
            if progress is not None:
                progress(number)
        return found
