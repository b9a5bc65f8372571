"""Services of a broker that are killed repeatedly: repeats do not grow with the kills."""

import pytest

from tests.support.crash import fast_folder
from tests.support.slim import Slim

IN_HAND = 4 * 32
"""What a consumer may have given back without having noted it: a batch of each queue."""


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize(
    ("service", "most"),
    [
        ("delivery", 0),
        ("checks", 0),
        pytest.param("giving-back", IN_HAND, marks=pytest.mark.long),
        ("giving-back-by-four", IN_HAND),
    ],
)
@pytest.mark.parametrize("kills", [10, pytest.param(200, marks=pytest.mark.long)])
def test_a_service_killed_at_random_repeats_a_batch_a_kill_at_most(service, most, kills):
    with fast_folder() as folder:
        found = Slim(
            "tests.support.killed_services:campaign",
            folder=str(folder),
            service=service,
            seed=kills,
            kills=kills,
        ).result()
    assert found["failures"] == []
    assert found["kills"] >= kills
    assert found["useful"] >= kills // 10, "most kills came before anything was done"
    assert found["most_repeated_a_kill"] <= most, found
