"""Rates and unread messages of many queues by compiled code: those of each queue by itself."""

import random

import pytest

from analytics.lag.health import PATIENCE_MS, Health
from analytics.lag.lag_snapshot import GroupInQueue, QueueNow, QueuesNow
from analytics.lag.trend import RATE_WINDOW_MS, TREND_WINDOW_MS, Trend
from storage.configs.offset_samples import WatchedQueue, _note_changes
from tests.support.compiled import native, needs_compiled

NOW = 10_000_000
LARGE = (0, 1, 1 << 52, 1 << 53, (1 << 53) + 1, (1 << 63) - 1)
pytestmark = needs_compiled


@pytest.fixture(autouse=True)
def compiled():
    """The compiled forms, also where they are turned off; else nothing would be compared."""
    from tests.support.compiled import compiled

    before, native.compiled = native.compiled, compiled
    yield
    native.compiled = before


def a_time(rng):
    return NOW - rng.choice([0, 1, PATIENCE_MS, PATIENCE_MS - 1, RATE_WINDOW_MS, TREND_WINDOW_MS])


def an_offset(rng):
    return rng.choice([None, *LARGE, *(rng.randrange(9) for _ in range(20))])


def some_changes(rng):
    times = sorted(a_time(rng) for _ in range(rng.choice([0, 0, 1, 2, 5])))
    changes = [(at, an_offset(rng)) for at in times]
    return changes or rng.choice([[], ()])


def a_trend(rng):
    watched = [
        WatchedQueue(a_time(rng) - rng.randrange(99_999), NOW) for _ in range(rng.randrange(2))
    ]
    return Trend(watched, NOW)


def a_queue(rng):
    low, high = sorted(offset or 0 for offset in (an_offset(rng), an_offset(rng)))
    heads = {}
    for offset in range(10):
        stored = rng.choice([None, a_time(rng), a_time(rng), NOW + 5, -1, 1 << 60])
        heads[offset] = rng.choice([None, 100 * offset]), stored, rng.choice([None, NOW])
    return QueueNow(low, high, 0.0, some_changes(rng), heads)


@pytest.mark.slow
def test_rates_are_those_of_each_queue():
    rng = random.Random(1)
    found = []
    for _ in range(2_000):
        trend = a_trend(rng)
        changes = [some_changes(rng) for _ in range(5)]
        offsets = [an_offset(rng) for _ in changes]
        rates = [*trend.rates_out(changes, offsets)]
        assert rates == [*map(trend.rate_out, changes, offsets)]
        assert [*map(type, rates)] == [*map(type, map(trend.rate_out, changes, offsets))]
        found += rates
    assert None in found
    assert 0.0 in found
    assert len(set(found)) > 100


@pytest.mark.slow
def test_unread_messages_are_those_of_each_queue():
    rng = random.Random(2)
    found = []
    for _ in range(2_000):
        trend, members = a_trend(rng), rng.random() < 0.5
        stand = GroupInQueue(trend, NOW, None, has_members=members)
        ids = tuple(range(5))
        queues = [a_queue(rng) for _ in ids]
        offsets = {queue_id: offset for queue_id in ids if (offset := an_offset(rng)) is not None}
        changes = {queue_id: some_changes(rng) for queue_id in ids if rng.random() < 0.9}
        lows, highs, rates, _, _ = (list(column) for column in zip(*queues, strict=True))
        now = QueuesNow(ids, queues, lows, highs, rates)
        rows = [
            stand.in_queue(
                queue_id, queues[queue_id], offsets.get(queue_id), changes.get(queue_id, ())
            )
            for queue_id in ids
        ]
        assert list(stand.in_queues(now, offsets, changes)) == rows
        found += [row.status for row in rows]
    assert {*found} == {*Health}


def test_most_queues_are_judged_without_a_call(monkeypatch):
    trend = Trend([WatchedQueue(NOW - RATE_WINDOW_MS, NOW)], NOW)
    queue = QueueNow(0, 9, 0.0, [], {5: (1, NOW - 9, None), 6: (1, NOW - PATIENCE_MS, None)})
    stand = GroupInQueue(trend, NOW, None, has_members=True)
    now = QueuesNow((0, 1, 2), [queue] * 3, [0] * 3, [9] * 3, [0.0] * 3)
    stuck = [(NOW - PATIENCE_MS, 6)]

    def refuse(*_):
        raise AssertionError("a queue was judged by itself")

    monkeypatch.setattr(Trend, "rate_out", refuse)
    monkeypatch.setattr(GroupInQueue, "_unread", refuse)
    rows = list(stand.in_queues(now, {0: 9, 1: 5, 2: 6}, {1: stuck, 2: stuck}))
    assert [row.status for row in rows] == [Health.OK, Health.OK, Health.STALL]


def test_changes_are_noted_as_one_by_one():
    rng = random.Random(3)
    note = native.compiled.note_changes
    for _ in range(500):
        rows = [list(some_changes(rng)) for _ in range(5)]
        offsets = [an_offset(rng) for _ in rows]
        wanted = [row.copy() for row in rows]
        _note_changes(wanted, offsets, NOW)
        note(rows, offsets, NOW)
        assert rows == wanted
    with pytest.raises(TypeError, match="pairs"):
        note([[5]], [5], NOW)
    with pytest.raises(TypeError, match="equally long"):
        note([[]], [], NOW)


def test_columns_of_other_lengths_are_refused():
    rates_out, unread_of = native.compiled.rates_out, native.compiled.unread_of
    with pytest.raises(TypeError, match="equally long"):
        rates_out([[]], [], 0, None, None, max)
    with pytest.raises(TypeError, match="equally long"):
        unread_of([], [1], [], 0, 0, "", "", max)
    with pytest.raises(TypeError, match="a tuple of four"):
        unread_of([None], [1], [[]], 0, 0, "", "", lambda *_: ())
