"""Bounds of times: other work of the machine may lengthen some of several tries, not all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

TRIES: Final = 3


def best_below(limit_s: float, attempt: Callable[[], float]) -> None:
    """An attempt, which gives the seconds it took, takes less than the limit; AssertionError if
    none of some does."""
    took: list[float] = []
    while not took or took[-1] >= limit_s:
        assert len(took) < TRIES, f"each of {took} s is {limit_s} s or more"
        took.append(attempt())
