"""SIGKILL at any instruction: every acknowledged message is there once; others go on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.crash import fast_folder
from tests.support.slim import Slim

MANY = pytest.mark.parametrize(
    "kills", [30, pytest.param(1000, marks=pytest.mark.long)], ids=["some", "many"]
)


@pytest.mark.crash
@pytest.mark.slow
@MANY
def test_a_writer_killed_at_random_loses_and_doubles_nothing(kills):
    found = kill_at_random("one_writer", kills)
    assert [failure for one in found for failure in one["failures"]] == []
    assert sum(one["messages"] for one in found) > 5 * kills


@pytest.mark.crash
@pytest.mark.slow
@MANY
def test_writers_killed_at_random_do_not_harm_those_that_go_on(kills):
    found = kill_at_random("several_writers", kills)
    assert [failure for one in found for failure in one["failures"]] == []
    assert sum(one["messages"] for one in found) > 10 * kills


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize("openers", [60, pytest.param(2000, marks=pytest.mark.long)])
def test_java_is_never_in_beside_processes_that_open_close_or_die_and_abort_is_right(openers):
    with fast_folder() as folder:
        found = Slim.results(
            [
                Slim(
                    "tests.support.comings:come_and_go",
                    folder=str(folder),
                    seed=seed,
                    openers=openers // 2,
                )
                for seed in (openers, openers + 1)
            ]
        )
    assert [failure for one in found for failure in one["failures"]] == []
    assert sum(one["messages"] for one in found) > openers


def kill_at_random(function: str, kills: int) -> list[dict[str, Any]]:
    """Two processes at once, each with half the kills and a seed of its own."""
    with fast_folder() as folder:
        running = [
            Slim(
                f"tests.support.random_kills:{function}",
                folder=str(folder),
                seed=seed,
                kills=kills // 2,
            )
            for seed in (kills, kills + 1)
        ]
        return Slim.results(running)
