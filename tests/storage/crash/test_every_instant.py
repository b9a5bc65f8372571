"""A writer may die at any mapped store, any word and any call that changes files."""

from __future__ import annotations

import pytest

from tests.support.crash import shared_out


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize(
    ("workload", "every", "least"),
    [
        ("singles", 48, 800),
        ("singles, SYNC_FLUSH", 64, 800),
        ("batches", 32, 450),
        pytest.param("run", 307, 10_000, marks=pytest.mark.long),
        pytest.param("singles", 1, 800, marks=pytest.mark.long),
        pytest.param("singles, SYNC_FLUSH", 1, 800, marks=pytest.mark.long),
        pytest.param("batches", 1, 450, marks=pytest.mark.long),
        pytest.param("run", 7, 10_000, marks=pytest.mark.long),
    ],
)
def test_a_writer_killed_at_any_instant_loses_and_doubles_nothing(workload, every, least):
    again = 8 if every < 10 else 4  # in few cases, too, some openers die
    found = shared_out(
        "every_instant:killed_at_every_instant", every, workload=workload, again=again
    )
    assert max(one["instants"] for one in found) > least, "the workload has become too small"
    assert sum(one["deaths_of_openers"] for one in found) > 10


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize("every", [48, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.conformance("A15")
def test_queues_and_index_are_made_anew_after_a_death_at_any_instant(every):
    found = shared_out("every_instant:killed_while_rebuilding", every)
    assert max(one["instants"] for one in found) > 300
