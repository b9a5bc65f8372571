"""The sums of a group's queues: by columns where all is known, else queue by queue."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from analytics.lag import totals
from analytics.lag.health import Health
from analytics.lag.queue_position import QueuePosition
from analytics.lag.totals import QueueLag, add_up, all_known
from analytics.lag.unknown import unknown_parts
from tests.support.examples import examples

_OFFSETS = st.integers(0, 20)
_RATES = st.none() | st.floats(0, 1_000)


@st.composite
def _queues(draw: st.DrawFn) -> list[QueueLag]:
    known = draw(st.booleans())
    found = []
    for queue_id in range(draw(st.integers(0, 9))):
        low, high = sorted((draw(_OFFSETS), draw(_OFFSETS)))
        committed = draw(st.integers(0, high) if known else st.none() | st.integers(0, 25))
        found.append(
            QueueLag(
                queue_id,
                QueuePosition(low, committed, high),
                draw(st.none() | st.integers(0, 1 << 40)),
                draw(st.none() | st.integers(0, 1 << 41)),
                draw(_RATES),
                draw(_RATES),
                draw(st.sampled_from(Health)),
                draw(st.none() | st.integers(0, 1 << 41)),
            )
        )
    return found


@pytest.mark.slow
@settings(max_examples=examples(300, short=20))
@given(_queues())
def test_columns_and_single_queues_have_the_same_sums(queues: list[QueueLag]) -> None:
    assert add_up(queues) == totals._add_up_each(queues)


@pytest.mark.slow
@given(_queues())
def test_all_is_known_unless_the_lag_of_a_queue_is_not(queues: list[QueueLag]) -> None:
    assert all_known(queues) is all(queue.unread.lag is not None for queue in queues)
    unknown = any(totals.is_unknown(queue.unread) for queue in queues)
    assert bool(unknown_parts(queues)) is unknown
