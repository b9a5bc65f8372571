"""A rebuild of queues and index may be killed at any instant."""

import pytest

from tests.support.crash import shared_out


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize("every", [24, pytest.param(1, marks=pytest.mark.long)])
def test_nothing_that_was_readable_is_lost_and_the_next_run_finishes(every: int) -> None:
    found = shared_out("killed_rebuild:killed_while_replacing", every)
    assert max(one["instants"] for one in found) > 150
