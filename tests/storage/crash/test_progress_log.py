"""Acknowledged progress is there after any death, and after a power loss; the next commit works.

The log of progress is in storage/configs/progress_log.py, its crash table in
docs/internals/offsets.md.
"""

from __future__ import annotations

import pytest

from tests.support.crash import fast_folder, shared_out
from tests.support.slim import Slim

pytestmark = [pytest.mark.crash, pytest.mark.slow]
OLD = pytest.mark.parametrize("old", [False, True], ids=["new", "of version 1"])


@OLD
@pytest.mark.parametrize("every", [12, pytest.param(1, marks=pytest.mark.long)])
def test_a_process_killed_at_any_instant_loses_no_commit_and_no_move(old, every):
    found = shared_out("killed_commits:killed_at_every_instant", every, old=old)
    assert max(one["instants"] for one in found) > 80, "the work has become too small"


@OLD
@pytest.mark.parametrize("every", [12, pytest.param(1, marks=pytest.mark.long)])
def test_a_power_loss_at_any_sync_loses_no_commit_and_no_move(old, every):
    found = shared_out("killed_commits:cut_at_every_sync", every, seed=every, old=old)
    assert min(one["cuts"] for one in found) > 80, "the work has become too small"


@pytest.mark.parametrize("kills", [20, pytest.param(5_000, marks=pytest.mark.long)])
def test_processes_killed_at_any_time_lose_no_commit_and_no_move(kills):
    with fast_folder() as folder:
        runs = [
            Slim(
                "tests.support.killed_commits:killed_at_any_time",
                folder=str(folder / f"{shard}"),
                shard=shard,
                kills=kills,
                seed=kills,
            )
            for shard in range(2)
        ]
        for one in Slim.results(runs):
            assert not one["failures"]
            assert len(one["best"]) == 3
