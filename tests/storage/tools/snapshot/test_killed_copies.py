"""A snapshot or a restore may be killed at any call that changes files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.crash import fast_folder
from tests.support.slim import Slim

PROCESSES = 2


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.long)])
def test_a_snapshot_is_there_as_a_whole_or_not_at_all(every):
    with fast_folder() as folder:
        found = killed_at_instants(folder, every, "killed_while_taking")
    assert [failure for one in found for failure in one["failures"]] == []
    assert max(one["instants"] for one in found) > 60


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize("occupied", [False, True], ids=["new target", "over a store"])
@pytest.mark.parametrize("every", [12, pytest.param(1, marks=pytest.mark.long)])
def test_a_target_is_the_old_store_or_the_restored_one_and_again_finishes(every, occupied):
    with fast_folder() as folder:
        found = killed_at_instants(folder, every, "killed_while_restoring", occupied=occupied)
    assert [failure for one in found for failure in one["failures"]] == []
    assert max(one["instants"] for one in found) > 150


def killed_at_instants(
    folder: Path, every: int, function: str, **arguments: Any
) -> list[dict[str, Any]]:
    """All instants, or each ``every``-th, shared out between processes."""
    running = [
        Slim(
            f"tests.support.killed_copies:{function}",
            folder=str(folder),
            shard=shard * every,
            shards=PROCESSES * every,
            **arguments,
        )
        for shard in range(PROCESSES)
    ]
    return Slim.results(running)
