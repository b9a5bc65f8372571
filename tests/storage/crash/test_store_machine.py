"""Any order of puts, reads, queries, flushes, closes and kills, against lists and dicts."""

from __future__ import annotations

import pytest

from tests.support.slim import Slim


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize(
    ("examples", "steps"), [(8, 30), pytest.param(600, 50, marks=pytest.mark.long)]
)
def test_the_store_is_a_list_with_dicts_whatever_happens(examples, steps):
    running = [
        Slim("tests.support.store_machine:run_machine", examples=examples, steps=steps, seed=seed)
        for seed in (examples, examples + 1)
    ]
    assert Slim.results(running) == ["", ""]
