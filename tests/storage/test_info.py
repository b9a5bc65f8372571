"""The facts about a store, also where an earlier call has read most of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.info import KnownTimes, store_info
from storage.readonly import StoreView
from tests.support import golden
from tests.support.samples import TINY, Sample, new_store, open_store, prepared


def facts_by_queue(view: StoreView) -> tuple[int, int, int | None, int | None]:
    """Queues, messages, and the first and the last store time, from single messages."""
    bounds = {place: view.queue_bounds(*place) for place in view.queues()}
    ends = [
        view.store_timestamp(*place, offset)
        for place, (low, high) in bounds.items()
        for offset in {low, high - 1}
        if low < high
    ]
    times = [time for time in ends if time is not None]
    return (
        sum(high > 0 for _, high in bounds.values()),
        sum(high - low for low, high in bounds.values()),
        min(times, default=None),
        max(times, default=None),
    )


def check(view: StoreView, known: KnownTimes) -> None:
    for found in (store_info(view, known), store_info(view, known), store_info(view)):
        few = (found.queues, found.messages, found.first_timestamp, found.last_timestamp)
        assert few == facts_by_queue(view)


@pytest.mark.parametrize("name", golden.names()[::6])
def test_golden_stores(name: str) -> None:
    with StoreView.open(golden.store(name)) as view:
        check(view, {})


def test_what_is_known_is_read_again_where_the_bounds_are_others(tmp_path: Path) -> None:
    root = new_store(tmp_path / "s", TINY)
    known: KnownTimes = {}
    with open_store(root) as store, StoreView.open(root) as view:
        for number in range(60):
            store.put(prepared([Sample(f"m{number}", "T", number % 3)]))
            if not number % 6:
                check(view, known)
        assert len(known) == 3
