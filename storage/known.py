"""The least or the greatest of values some of which may be unknown."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def of_all(choose: Callable[[list[int]], int], values: Iterable[int | None]) -> int | None:
    """``choose`` (min, max) of some values; None without any, or if one of them is unknown."""
    found = list(values)
    known = [value for value in found if value is not None]
    return choose(known) if known and len(known) == len(found) else None
