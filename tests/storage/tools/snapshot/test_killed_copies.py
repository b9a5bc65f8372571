"""A snapshot or a restore may be killed at any call that changes files."""

from __future__ import annotations

import pytest

from tests.support.crash import shared_out


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize("every", [12, pytest.param(1, marks=pytest.mark.long)])
def test_a_snapshot_is_there_as_a_whole_or_not_at_all(every):
    found = shared_out("killed_copies:killed_while_taking", every)
    assert max(one["instants"] for one in found) > 60


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize("occupied", [False, True], ids=["new target", "over a store"])
@pytest.mark.parametrize("every", [24, pytest.param(1, marks=pytest.mark.long)])
def test_a_target_is_the_old_store_or_the_restored_one_and_again_finishes(every, occupied):
    found = shared_out("killed_copies:killed_while_restoring", every, occupied=occupied)
    assert max(one["instants"] for one in found) > 150
