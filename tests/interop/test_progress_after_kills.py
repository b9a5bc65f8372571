"""Processes that commit are killed thousands of times, and a Java broker runs in between.

Java's file may be older than ours then: no acknowledged commit and no move is lost.
"""

from pathlib import Path

import pytest

from storage.configs.progress import ProgressFile
from storage.configs.progress_table import QueueProgress
from tests.interop.cluster import running_cluster
from tests.support.cli import run
from tests.support.java import Release
from tests.support.slim import Slim

pytestmark = [pytest.mark.interop, pytest.mark.crash, pytest.mark.long]

TURNS = 5
KILLS = 2_000


def test_no_progress_is_lost_by_kills_with_a_java_broker_in_between(
    java49: Release, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    init = run("store", "init", store, "--small")
    assert run("-S", store, "produce", "T", "--count", "8", "--template", "%i").code == 0
    numbers = dict(line.split("=") for line in init.lines if not line.startswith("storePath"))
    sizes = {name: int(value) for name, value in numbers.items()}
    for turn in range(TURNS):
        killed = Slim(
            "tests.support.killed_commits:killed_at_any_time",
            folder=str(store),
            shard=turn,
            kills=KILLS,
            seed=turn,
            export=turn == 0,
        )
        (found,) = Slim.results([killed])
        assert not found["failures"]
        before = {int(q): QueueProgress(*known) for q, known in found["best"].items()}
        with running_cluster(java49, store, tmp_path, sizes) as cluster:
            cluster.stop()
        after = ProgressFile(store).read()
        for queue_id, (generation, offset) in before.items():
            now = after.get("T@g", queue_id)
            assert now.generation >= generation
            assert now.generation > generation or (now.offset or 0) >= (offset or 0)
