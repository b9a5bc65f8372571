"""A rebuild of queues and index may be killed at any instant."""

import pytest

from tests.support.crash import fast_folder
from tests.support.slim import Slim

PROCESSES = 2


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize("every", [16, pytest.param(1, marks=pytest.mark.long)])
def test_nothing_that_was_readable_is_lost_and_the_next_run_finishes(every: int) -> None:
    with fast_folder() as folder:
        running = [
            Slim(
                "tests.support.killed_rebuild:killed_while_replacing",
                folder=str(folder),
                shard=shard * every,
                shards=PROCESSES * every,
            )
            for shard in range(PROCESSES)
        ]
        found = Slim.results(running)
    assert [failure for one in found for failure in one["failures"]] == []
    assert max(one["instants"] for one in found) > 150
