"""Counting by key: the compiled form gives what the reference gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from analytics.kernels import partials
from analytics.kernels.units import Units
from storage import native
from tests.support.compiled import compiled, needs_compiled

FAR = st.integers(-(2**63), 2**63 - 1)
KEYS = st.lists(st.one_of(st.integers(-3, 3), FAR), max_size=200)
MOST_KEYS = 1024


def counted(keys: list[int], starts: list[int]) -> list[tuple[int, ...]]:
    count = len(keys)
    sizes = np.arange(1, count + 1, dtype=np.int64) * 7_000
    places = np.cumsum(sizes) - sizes
    units = Units(0, places, sizes, np.zeros(count, np.int64))
    segments = np.array(sorted(min(start, count) for start in starts), np.int64)
    found = partials._by_key(5, units, segments, np.array(keys, np.int64))
    return list(zip(*(column.tolist() for column in found), strict=True))


def both(keys: list[int], starts: list[int]) -> None:
    by_compiled = counted(keys, starts)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(partials, "tally", native.references["tally"])
        assert by_compiled == counted(keys, starts)
    assert sum(row[3] for row in by_compiled) == len(keys)


@needs_compiled
@given(keys=KEYS, starts=st.lists(st.integers(0, 200), max_size=6))
@settings(deadline=None)
def test_both_forms_agree(keys, starts):
    both(keys, [0, *starts])


@needs_compiled
@pytest.mark.parametrize("distinct", [MOST_KEYS, MOST_KEYS + 1, 5_000])
def test_many_keys_are_left_to_the_reference(distinct):
    keys = [number * number % distinct - 7 for number in range(3 * distinct)] + list(
        range(distinct)
    )
    both(keys, [0, distinct, distinct])
    rows = compiled.tally(*[np.arange(distinct)] * 2, np.zeros(1, np.int64))
    assert (rows is None) == (distinct > MOST_KEYS)


@needs_compiled
@pytest.mark.parametrize(
    "given_columns",
    [
        ([1, 2], [1], [0]),
        ([1, 2], [1, 2], [1, 0]),
        ([1, 2], [1, 2], [0, 3]),
        ([1, 2], [1, 2], [-1]),
        ([1], [1], [2]),
    ],
)
def test_columns_that_do_not_belong_together_are_refused(given_columns):
    with pytest.raises(ValueError, match="columns of int64 and ascending starts"):
        compiled.tally(*(np.array(column, np.int64) for column in given_columns))
