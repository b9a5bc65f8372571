"""Busy and idle writers at once, some of them killed: each gets the lock, and nothing is lost."""

from __future__ import annotations

import os

import pytest

from tests.support.crash import fast_folder
from tests.support.slim import Slim

HELD_ON_AT_ALL = os.uname().machine in {"x86_64", "i686"}


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize(
    "deaths", [15, pytest.param(500, marks=pytest.mark.long)], ids=["some", "many"]
)
def test_no_writer_starves_and_a_death_with_the_write_lock_stops_no_other(deaths: int) -> None:
    with fast_folder() as folder:
        found = Slim("tests.support.crowd:crowd", folder=str(folder), seed=deaths, deaths=deaths)
        result = found.result()
    assert result["failures"] == []
    assert result["messages"] > 10 * deaths
    assert result["held on"] > 0 or not HELD_ON_AT_ALL
