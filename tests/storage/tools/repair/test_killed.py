"""A repair may be killed at any instant, and the disk may be full."""

import pytest

from tests.support.crash import fast_folder
from tests.support.slim import Slim

KINDS = (
    "log: a page zeroed",
    "log: two files swapped",
    "log: a file in the middle missing",
    "log: the last records zeroed",
    "queue: two files swapped",
)
LONG = pytest.param(1, marks=pytest.mark.long)


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize("function", ["killed_while_repairing", "full_while_repairing"])
@pytest.mark.parametrize("every", [17, LONG])
def test_nothing_that_was_readable_is_lost_and_the_next_run_finishes(every, function):
    found = []
    for kind in KINDS:
        with fast_folder() as folder:
            running = [
                Slim(
                    f"tests.support.killed_repair:{function}",
                    folder=str(folder),
                    name="small-files-4.9",
                    kind=kind,
                    shard=shard,
                    shards=2 * every,
                )
                for shard in (0, every)
            ]
            found += Slim.results(running)
    assert [failure for one in found for failure in one["failures"]] == []
    assert min(one["instants"] for one in found) > 10
