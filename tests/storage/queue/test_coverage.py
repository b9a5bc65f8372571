"""The parts of the log that no unit covers, by the reference and by its compiled form."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from storage.format.cq_unit import CQ_STORE_UNIT
from storage.queue import coverage
from tests.support.compiled import compiled, needs_compiled

FORMS = [
    pytest.param(coverage._uncovered, id="pure"),
    pytest.param(getattr(compiled, "uncovered", None), id="compiled", marks=needs_compiled),
]


def units(*places: tuple[int, int]) -> bytes:
    return b"".join(CQ_STORE_UNIT.pack(offset, size, 7) for offset, size in places)


@pytest.mark.parametrize("form", FORMS)
def test_what_no_unit_covers(form: Any) -> None:
    assert form([], 0, 0) == []
    assert form([], 5, 9) == [(5, 9)]
    assert form([units((10, 5)), units((0, 10), (15, 5))], 0, 20) == []
    assert form([units((10, 5)), units((0, 8), (17, 3))], 0, 25) == [(8, 10), (15, 17), (20, 25)]
    assert form([units((5, 20), (0, 2))], 0, 30) == [(2, 5), (25, 30)], "in any order"
    assert form([units((5, 5), (9, 20))], 6, 12) == [(6, 12)], "not what reaches beyond"
    assert form([units((1 << 62, 10))], 1 << 62, (1 << 62) + 11) == [
        ((1 << 62) + 10, (1 << 62) + 11)
    ]


@needs_compiled
def test_wrong_arguments_are_refused() -> None:
    for arguments in (([1], 0, 1), ((), 0, 1), ([b""], "", 1), ([b""], 0, ""), ([b""], 0)):
        with pytest.raises(TypeError):
            compiled.uncovered(*arguments)


_PLACES = st.lists(
    st.tuples(st.integers(-5, 60), st.integers(-3, 12))
    | st.tuples(st.sampled_from([-(1 << 63), (1 << 63) - 1]), st.integers(-(1 << 31), 1 << 30)),
    max_size=12,
)


@needs_compiled
@example([[(0, 5)], [(0, 9)]], 0, 10)
@given(st.lists(_PLACES, max_size=4), st.integers(0, 50), st.integers(0, 70))
def test_both_forms_agree(places: list[list[tuple[int, int]]], start: int, end: int) -> None:
    blocks = [units(*block) for block in places]
    wanted = coverage._uncovered(blocks, start, end)
    assert compiled.uncovered(blocks, start, end) == wanted
    covered = {at for begin, stop in wanted for at in range(begin, stop)}
    for at in range(start, end):
        found = any(
            begin <= at < begin + size
            for block in places
            for begin, size in block
            if start <= begin < end and begin + size <= end
        )
        assert found is (at not in covered)
