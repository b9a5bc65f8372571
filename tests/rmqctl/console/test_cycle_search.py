"""What looks have made is not searched for reference cycles; what they leave in cycles is freed."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from rmqctl.console.looks import cycle_search
from rmqctl.console.looks.cycle_search import MANY_NEW, FullSearch, only_new_objects


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


@pytest.mark.slow
def test_an_object_is_searched_once_at_most() -> None:
    before = gc.get_threshold()
    seen: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            seen.append(info["generation"])

    gc.callbacks.append(note)
    try:
        with only_new_objects():
            seen.clear()
            kept: list[list[int]] = [[] for _ in range(40 * MANY_NEW)]
            found = [*seen]
    finally:
        gc.callbacks.remove(note)
    assert len(found) >= 30
    assert set(found) == {0}
    assert gc.get_threshold() == before
    assert len(kept) == 40 * MANY_NEW


@pytest.mark.slow
def test_cycles_of_new_objects_are_freed() -> None:
    with only_new_objects():
        node = Node()
        gone = weakref.ref(node)
        del node
        kept: list[list[int]] = [[] for _ in range(2 * MANY_NEW)]
    assert gone() is None
    assert kept


@pytest.mark.slow
@pytest.mark.parametrize(("more", "freed"), [(0.0, True), (1.5, False)])
def test_all_is_searched_when_there_is_much_more(
    monkeypatch: pytest.MonkeyPatch, more: float, freed: bool
) -> None:
    monkeypatch.setattr(cycle_search, "_SEARCH_EVERY", 10)
    monkeypatch.setattr(cycle_search, "_MORE", more)
    search = FullSearch()
    node = Node()
    gone = weakref.ref(node)
    del node
    gc.freeze()
    for _ in range(9):
        search.after_look()
    assert gone() is not None
    search.after_look()
    assert (gone() is None) is freed
