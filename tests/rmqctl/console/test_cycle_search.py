"""What looks have made is not searched for reference cycles; what they leave in cycles is freed."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from rmqctl.console import cycle_search
from rmqctl.console.cycle_search import CycleSearch, only_new_objects


class Node:
    """Refers to itself, so that only a search frees it."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Other tests of this process are searched as they were."""
    gc.collect()
    yield
    gc.freeze()


def test_only_new_objects_are_searched_within_the_block() -> None:
    before = gc.get_threshold()
    with only_new_objects():
        assert gc.get_threshold()[0] == before[0]
        assert min(gc.get_threshold()[1:]) > 1_000_000
    assert gc.get_threshold() == before


def test_what_a_look_has_made_is_not_searched_again() -> None:
    search, made = CycleSearch(), list[object]()
    for number in range(5):
        before = gc.get_freeze_count()
        with search.look():
            made.append([[] for _ in range(50_000 if number == 4 else 10)])
        grew = gc.get_freeze_count() - before
        assert (grew >= 50_000) is (number == 4)
        if number in (1, 3):
            assert grew == 0


def test_a_look_that_fails_counts() -> None:
    search = CycleSearch()
    with pytest.raises(ZeroDivisionError), search.look():
        raise ZeroDivisionError
    assert search._looks == 1


def test_cycles_that_looks_leave_are_freed_when_there_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cycle_search, "_SEARCH_EVERY", 10)
    search = CycleSearch()
    with search.look():
        pass
    with search.look():
        kept: list[list[int]] = [[] for _ in range(50_000)]
        node = Node()
        gone = weakref.ref(node)
        del node
    assert gone() is not None, "it was there when the look ended: it is not searched"
    monkeypatch.setattr(cycle_search, "_MORE", 0.0)
    for _ in range(8):
        with search.look():
            pass
    assert gone() is None
    assert len(kept) == 50_000
