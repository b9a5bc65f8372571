"""A store as it was: ends, messages and answers by key of an earlier time."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from storage.as_of import AsOfView
from storage.errors import NotKnownError
from storage.readonly import StoreView
from tests.support.hand_made import START_MS, TINY, HandMade

ROOMY = TINY.with_(mapped_file_size_commit_log=4096, mapped_file_size_consume_queue=200)


def made(steps: list[tuple[int, str, int]], root: Path) -> HandMade:
    """Messages in the order of the log: ms since the one before, topic, queue."""
    store = HandMade(ROOMY, timestamp=START_MS)
    for step_ms, topic, queue_id in steps:
        store.put(topic, queue_id, keys=("k",), step_ms=step_ms)
    store.write(root)
    return store


STEPS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from("TU"), st.integers(0, 1)), min_size=1, max_size=40
)


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, after=st.integers(-2, 90))
def test_what_was_stored_later_is_not_there(
    steps: list[tuple[int, str, int]], after: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("past") / "store"
    store = made(steps, root)
    then = START_MS + after
    there = [message for message in store.messages if message.store_timestamp <= then]
    with AsOfView.open_at(root, then) as view:
        queues = {(message.topic, message.queue_id) for message in there}
        assert view.queues() == sorted(queues)
        for topic in "TU":
            for queue_id in (0, 1):
                mine = [m for m in there if (m.topic, m.queue_id) == (topic, queue_id)]
                assert view.queue_bounds(topic, queue_id) == (0, len(mine))
                offset = 0
                while offset < len(mine):  # a pull ends with a file of the queue
                    found = view.get_message(topic, queue_id, offset, 32).messages
                    places = [m.commitlog_offset for m in mine[offset : offset + len(found)]]
                    assert found
                    assert [m.commitlog_offset for m in found] == places
                    offset += len(found)
            with_key = view.query_message(topic, "k", 100).messages
            places = [m.commitlog_offset for m in there if m.topic == topic]
            assert [m.commitlog_offset for m in with_key] == places
        ends = [m.commitlog_offset + m.size for m in there]
        assert view.log_max_offset() == max(ends, default=0)
        for message in store.messages:
            seen = view.look_message_by_offset(message.commitlog_offset)
            assert (seen is not None) is (message in there)


def test_the_past_does_not_grow(tmp_path: Path) -> None:
    made([(1, "T", 0), (1, "T", 0)], tmp_path)
    with AsOfView.open_at(tmp_path, START_MS + 1) as view:
        assert view.queue_bounds("T", 0) == (0, 1)
        made([(1, "T", 0), (0, "T", 0), (1, "T", 0)], tmp_path)
        assert view.queue_bounds("T", 0) == (0, 1)


def test_before_what_is_left_of_a_log_nothing_is_known(tmp_path: Path) -> None:
    store = made([(10, "T", 0)] * 60, tmp_path)
    (tmp_path / "commitlog" / f"{0:020}").unlink()
    left = [message for message in store.messages if message.commitlog_offset >= 4096]
    oldest = left[0].store_timestamp
    with pytest.raises(NotKnownError, match=str(oldest)):
        AsOfView.open_at(tmp_path, oldest - 1)
    with AsOfView.open_at(tmp_path, oldest) as view:
        first = left[0].queue_offset
        assert view.queue_bounds("T", 0) == (first, first + 1)


def test_a_queue_that_was_all_deleted_keeps_its_number(tmp_path: Path) -> None:
    store = made([(10, "U", 0)] * 3 + [(10, "T", 0)] * 60, tmp_path)
    (tmp_path / "commitlog" / f"{0:020}").unlink()
    then = store.messages[-1].store_timestamp
    with AsOfView.open_at(tmp_path, then) as view, StoreView.open(tmp_path) as now:
        assert view.queue_bounds("U", 0) == now.queue_bounds("U", 0) == (3, 3)
