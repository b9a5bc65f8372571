"""A writer may die between any two stores of the compiled forms."""

from __future__ import annotations

import pytest

from tests.support.compiled import needs_compiled
from tests.support.crash import shared_out
from tests.support.linux_forms import needs_linux_forms


@needs_compiled
@pytest.mark.crash
@pytest.mark.parametrize("every", [48, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("exclusive", "synced", "pages"),
    # An exclusive one puts in one step.
    [
        *((False, False, False), (True, False, False), (False, True, False)),
        pytest.param(True, False, True, marks=needs_linux_forms),  # no pages are made elsewhere
    ],
)
def test_a_writer_killed_between_any_two_stores_loses_and_doubles_nothing(
    exclusive, synced, pages, every
):
    found = shared_out(
        "killed_appends:killed_between_stores",
        every,
        exclusive=exclusive,
        synced=synced,
        pages=pages,
    )
    assert max(one["stores"] for one in found) > 150, "the compiled forms were not used"
