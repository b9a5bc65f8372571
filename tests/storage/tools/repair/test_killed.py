"""A repair may be killed at any instant, and the disk may be full."""

import pytest

from tests.support.crash import shared_out

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
@pytest.mark.parametrize(
    "function",
    ["killed_while_repairing", pytest.param("full_while_repairing", marks=pytest.mark.long)],
)
@pytest.mark.parametrize("every", [204, LONG])
def test_nothing_that_was_readable_is_lost_and_the_next_run_finishes(every, function):
    found = []
    for kind in KINDS:
        found += shared_out(f"killed_repair:{function}", every, name="small-files-4.9", kind=kind)
    assert min(one["instants"] for one in found) > 10
