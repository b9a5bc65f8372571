"""The sums of a group's queues: of columns, by compiled code, and queue by queue."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from analytics.lag import totals
from analytics.lag.health import Health
from analytics.lag.queue_position import QueuePosition
from analytics.lag.totals import QueueLag, add_up, all_known
from analytics.lag.unknown import unknown_parts
from tests.support.compiled import compiled, needs_compiled
from tests.support.examples import examples

_OFFSETS = st.integers(0, 20)
_RATES = st.none() | st.floats(0, 1_000)


@st.composite
def _queues(draw: st.DrawFn) -> list[QueueLag]:
    known = draw(st.booleans())
    rates = st.none() if draw(st.booleans()) else _RATES
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
                draw(rates),
                draw(rates),
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


def _queue(queue_id: int, committed: int | None, **others: Any) -> QueueLag:
    """A queue of a repeated look, which has counts instead of rates."""
    position = QueuePosition(10, committed, 30)
    return QueueLag(queue_id, position, 5, 7, None, None, Health.OK, 9)._replace(**others)


@needs_compiled
def test_queues_whose_lag_is_known_are_added_up_by_compiled_code() -> None:
    sums_known = compiled.sums_known
    queues = [_queue(3, 4), _queue(5, 30), _queue(8, 2, lag_bytes=None, risk_timestamp=None)]
    assert sums_known(queues) == (54, 10, 7, 28, 14, 9, 1, 8, Health.OK, True, True)
    assert sums_known([_queue(3, 30)]) == (0, 5, 7, 0, 0, 9, 0, None, Health.OK, True, True)
    times = [_queue(n, 5, oldest_unread_timestamp=(1 << 40) + n) for n in (2, 1, 3)]
    assert sums_known(times)[2] is times[1].oldest_unread_timestamp  # not one more object a row
    differ = [_queue(1, 5), _queue(2, 5, status=Health.WARN)]
    assert sums_known(differ)[8] is None
    rates = [_queue(1, 5, rate_in=0.5, rate_out=1.0), _queue(2, 5, rate_in=2.0)]
    assert sums_known(rates)[9:] == (False, True)
    assert add_up(rates) == totals._add_up_each(rates)
    assert add_up(differ) == totals._add_up_each(differ)
    unusual = [
        _queue(1, None),
        _queue(1, 31),
        _queue(1, 5, lag_bytes=1 << 60),
        _queue(1, 5, risk_timestamp=-1),
    ]
    assert [sums_known([queue]) for queue in unusual] == [None] * len(unusual)
    assert [sums_known(odd) for odd in ([], (), None, [5], [(1,)])] == [None] * 5
    largest = [_queue(n, 5, lag_bytes=1 << 53) for n in range(2)]
    assert sums_known(largest) is None
    assert add_up(largest).lag_bytes == 1 << 54


@pytest.mark.slow
@given(_queues())
def test_all_is_known_unless_the_lag_of_a_queue_is_not(queues: list[QueueLag]) -> None:
    assert all_known(queues) is all(queue.unread.lag is not None for queue in queues)
    unknown = any(totals.is_unknown(queue.unread) for queue in queues)
    assert bool(unknown_parts(queues)) is unknown
