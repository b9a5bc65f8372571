"""A damaged store time may lie in any year: no memory is taken for the minutes up to it."""

import pytest

from analytics.engines import task

_THIS_YEAR = 29_000_000


@pytest.mark.parametrize("minutes", [(0, _THIS_YEAR), (_THIS_YEAR, 781_000_000), (5, -7)])
def test_minutes_far_apart_make_no_edges(minutes, tmp_path):
    from storage.config import SMALL_STORE
    from storage.store import MessageStore

    MessageStore.create(tmp_path / "s", SMALL_STORE)
    try:
        _, edges = task._of(task.CountTask("job", str(tmp_path / "s"), (), minutes))
        assert len(edges.times) == 0
    finally:
        task.forget()
