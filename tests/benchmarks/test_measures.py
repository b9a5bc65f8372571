"""Measures run from end to end, with numbers too small for a result."""

from pathlib import Path

import pytest

from benchmarks.goals import BY_KEY
from benchmarks.measures import durable, java_started, put_get, rows, single
from benchmarks.peers.known import PEERS
from benchmarks.report import Missing
from benchmarks.run import Run

pytestmark = pytest.mark.slow


class TinyRun(Run):
    """As little work as there can be."""

    def sized(self, usual: int, quick: int) -> int:
        """Give few, however many are usual."""
        return min(usual, quick, 64)


@pytest.fixture
def tiny(tmp_path: Path) -> Run:
    return TinyRun(tmp_path, rounds=1, quick=True)


def test_single_appends_are_compared_with_every_peer_or_say_why_not(tiny: Run) -> None:
    found = list(single.measure(tiny))
    skipped = {one.what.rpartition(" ")[2] for one in found if isinstance(one, Missing)}
    keys = {one.key for one in found if not isinstance(one, Missing) and one.key}
    wanted = {key for key in BY_KEY if key.startswith(("exclusive/", "shared/"))}
    assert skipped <= set(PEERS)
    assert keys == {key for key in wanted if key.partition("/")[2] not in skipped}
    assert all(ratio > 0 for one in found if not isinstance(one, Missing) for ratio in one.ratios)


def test_what_is_put_is_got_from_every_peer(tiny: Run) -> None:
    assert len(list(put_get.measure(tiny))) == len(PEERS)


def test_durable_appends_are_compared_with_the_device(tiny: Run) -> None:
    keys = [one.key for one in durable.measure(tiny)]
    assert keys == ["durable/device", "", "durable/threads"]


@pytest.mark.parametrize("batch", [1, 50])
def test_a_program_that_was_just_started_times_its_first_messages(tiny: Run, batch: int) -> None:
    assert 0 < java_started.ours(tiny, 200, batch) < 60


@pytest.mark.long
def test_rows_are_compared_with_every_program_that_is_there(tiny: Run) -> None:
    found = list(rows.measure(tiny))
    missing = {one.what.rpartition(" ")[2] for one in found if isinstance(one, Missing)}
    programs = {"rows/jsonl": "jq", "rows/json-path": "jq"}
    programs |= {"rows/csv": "sqlite3", "rows/tsv": "sqlite3"}
    wanted = {key for key in BY_KEY if key.startswith("rows/")}
    keys = {one.key for one in found if not isinstance(one, Missing)}
    assert keys == {key for key in wanted if programs.get(key) not in missing}
