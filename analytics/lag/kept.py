"""Values that were made of the lag of a group in a topic, kept while it is the same object."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from .lag_snapshot import GroupLag

T = TypeVar("T")


class Kept(Generic[T]):
    """The values of the last snapshot. Not safe for threads."""

    def __init__(self, make: Callable[[GroupLag], T]) -> None:
        self._make = make
        self._known: dict[int, tuple[GroupLag, T]] = {}

    def of(self, group_lags: Iterable[GroupLag]) -> list[T]:
        """The value of each; those of a :class:`.repeated_look.RepeatedLook` that did not change
        are not made again."""
        before, make = self._known, self._make
        known = self._known = {}
        found: list[T] = []
        for group_lag in group_lags:
            entry = before.get(id(group_lag))  # it is held here, so no other one has its id
            if entry is None:
                entry = group_lag, make(group_lag)
            known[id(group_lag)] = entry
            found.append(entry[1])
        return found
