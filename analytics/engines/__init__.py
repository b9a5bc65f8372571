"""Engines that do the work: this process, or Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Engine(Protocol):
    """Applies a function to many items."""

    @property
    def name(self) -> str:
        """``local`` or ``spark``."""
        ...

    @property
    def cores(self) -> int:
        """How many items are processed at the same time."""
        ...

    @property
    def is_here(self) -> bool:
        """Whether it works on this machine."""
        ...

    def map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        progress: Callable[[int], None] | None = None,
    ) -> list[R]:
        """Apply the function to each item; the order stays. ``progress`` is called with the number
        of finished items."""
        ...
