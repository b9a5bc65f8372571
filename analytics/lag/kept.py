"""Values that were made of things, kept while these are the same objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from operator import is_not
from typing import Generic, TypeVar

S = TypeVar("S")
T = TypeVar("T")


def changed(before: Sequence[object], now: Sequence[object]) -> Iterable[int]:
    """The places whose object is another one; all if there are more or less of them."""
    if len(before) != len(now):
        return range(len(now))
    return compress(range(len(now)), map(is_not, now, before))


class Kept(Generic[S, T]):
    """The values of the things of the last call. Not safe for threads."""

    def __init__(self, make: Callable[[S], T]) -> None:
        self._make = make
        self._things: Sequence[S] = ()
        self._values: list[T] = []

    def of(self, things: Sequence[S]) -> Sequence[T]:
        """The value of each, until the next call; only those of other objects are made again."""
        make, values = self._make, self._values
        known = min(len(values), len(things))
        for number in changed(self._things[:known], things[:known]):
            values[number] = make(things[number])
        values[known:] = [make(thing) for thing in things[known:]]
        self._things = things
        return values
