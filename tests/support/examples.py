"""How many examples a test takes: all in a long run, a share of them in a shorter one."""

from collections.abc import Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from hypothesis import settings

_USUAL = 100


def examples(most: int, short: int | None = None) -> int:
    """How many a test of properties takes: ``most`` in a run of all tests, or the share of them
    that the profile of a shorter one has; no more than ``short`` there."""
    share = min(settings().max_examples, _USUAL)
    count = max(1, most * share // _USUAL)
    return count if short is None or share == _USUAL else min(count, short)


def one_in(count: int, these: Iterable[Any]) -> list[ParameterSet]:
    """Every so many of them, from the first on; the others are marked as long."""
    return [
        pytest.param(value, marks=() if not n % count else pytest.mark.long)
        for n, value in enumerate(these)
    ]
