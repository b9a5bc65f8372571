"""Progress in a carved store: within the carved messages, if it was within the old ones."""

import pytest

from rmqctl.admin.store.carve_run import clamped
from storage.tools.carve.ranges import QueueRange

WHOLE = QueueRange("T", 0, 10, 20, 10, 20)
"""All that the store had."""
MIDDLE = QueueRange("T", 0, 12, 18, 10, 20)


@pytest.mark.parametrize(
    ("wanted", "offset", "expected"),
    [
        (WHOLE, 10, 10),
        (WHOLE, 20, 20),
        (WHOLE, 9, 9),  # below the store's minimum: messages are lost to it, as they were
        (WHOLE, 0, 0),
        (WHOLE, 21, 21),  # beyond the end: as it was
        (MIDDLE, 12, 12),
        (MIDDLE, 11, 12),
        (MIDDLE, 9, 12),
        (MIDDLE, 15, 15),
        (MIDDLE, 18, 18),
        (MIDDLE, 19, 18),
        (MIDDLE, 21, 18),
    ],
)
def test_progress_is_brought_within_what_went_over(wanted, offset, expected):
    assert clamped(offset, wanted, wanted.end) == expected


def test_progress_at_the_end_follows_messages_that_were_lost_at_it():
    """Two at the end could not be read: a group past them goes on with the next ones."""
    assert [clamped(offset, WHOLE, 18) for offset in (17, 18, 19, 20, 21)] == [17, 18, 18, 18, 21]
