"""A redrive may die at any call that changes files: each dead letter is sent once all the same."""

import pytest

from tests.support.crash import shared_out


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.feature(94)
@pytest.mark.parametrize("second", [False, True], ids=["first", "resumed"])
@pytest.mark.parametrize("every", [192, pytest.param(1, marks=pytest.mark.long)])
def test_a_redrive_killed_at_any_call_is_brought_to_its_end(every, second):
    found = shared_out("killed_redrive:killed_at_every_call", every, second=second)
    assert max(one["instants"] for one in found) > 60
