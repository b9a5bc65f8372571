"""Rates and series from earlier observations."""

import pytest
from hypothesis import example, given, settings, strategies as st

from analytics.lag.health import Observation, judge
from analytics.lag.trend import (
    LEAST_SPAN_MS,
    Trend,
    decisive_observations,
    observations,
    unchanged_since,
)
from tests.support.examples import examples

NOW = 1_700_000_000_000
S = 1000
MIN = 60 * S


def at(seconds_ago, offset):
    return NOW - seconds_ago * S, offset


def now(committed, end=1000):
    return Observation(NOW, committed, end)


def rate_out(changes, watched, look):
    return Trend(watched, NOW).rate_out(changes, look.committed_offset)


@pytest.mark.feature(54)
def test_both_rates_are_of_the_same_time():
    trend = Trend([at(60, NOW - 30 * S)], NOW)
    assert trend.rate_in([at(60, 700)], 1000) == 5.0
    assert trend.rate_out([at(60, 0)], 30) == 0.5
    assert trend.rate_in([], 1000) is trend.rate_in([at(30, 700)], 1000) is None


@pytest.mark.feature(54)
def test_the_rate_is_that_of_the_last_five_minutes():
    changes = [at(400, 0), at(300, 100), at(200, 250), at(100, 400)]
    watched = [(NOW - 400 * S, NOW - 100 * S)]
    assert rate_out(changes, watched, now(700)) == 2.0  # 600 in 300 s


@pytest.mark.feature(54)
def test_the_rate_is_that_of_the_time_that_is_known():
    assert rate_out([at(60, 0), at(30, 30)], [at(60, NOW - 30 * S)], now(60)) == 1.0


@pytest.mark.feature(48, 54)
def test_one_look_is_no_rate():
    assert rate_out([], [], now(60)) is None
    assert rate_out([at(10, 50)], [at(10, NOW)], now(60)) is None
    assert rate_out([at(60, 0)], [at(60, NOW - MIN)], now(None)) is None


def test_changes_of_unwatched_time_are_not_spread_over_watched_time():
    """Observations an hour and a minute ago: the hour's reading is not the minute's,
    and a step that happened at an unknown time has no rate."""
    changes = [at(3600, 0), at(60, 9000)]
    watched = [(NOW - 3600 * S, NOW - 3500 * S), (NOW - 60 * S, NOW - 60 * S)]
    assert rate_out(changes, watched, now(9060)) == 1.0
    assert rate_out(changes[:1], watched[:1], now(9060)) is None


def test_who_has_not_moved_for_long_reads_nothing():
    assert rate_out([at(3600, 7)], [at(3600, NOW - 3600 * S)], now(7)) == 0.0


def test_going_back_is_no_reading():
    changes = [at(100, 500), at(50, 100)]
    assert rate_out(changes, [at(100, NOW - 50 * S)], now(200)) == 1.0


def test_the_shortest_span_has_no_rate():
    span = LEAST_SPAN_MS // S
    assert rate_out([at(span - 1, 0)], [(NOW - LEAST_SPAN_MS + S, NOW)], now(10)) is None
    assert rate_out([at(span, 0)], [(NOW - LEAST_SPAN_MS, NOW)], now(15)) == 1.0


@pytest.mark.feature(50)
def test_looks_join_progress_and_ends_and_keep_what_held_when_the_time_began():
    committed = [at(5000, 1), at(900, 2), at(300, 3), at(100, 4)]
    ends = [at(5000, 10), at(300, 20)]
    found = [*observations(committed, ends, NOW), now(5, 30)]
    assert [(look.committed_offset, look.max_offset) for look in found] == [
        (2, 10),
        (3, 20),
        (4, 20),
        (5, 30),
    ]
    assert [look.at for look in found] == [NOW - 900 * S, NOW - 300 * S, NOW - 100 * S, NOW]


def test_without_changes_there_are_no_earlier_looks():
    assert observations([], [], NOW) == []


def seen_values(values):
    """Values with their times, in seconds before now, each another one than the one before."""

    def changes(some):
        ordered = sorted(some, key=lambda one: -one[0])
        before = [None, *ordered]
        return [
            at(*one) for one, last in zip(ordered, before, strict=False) if not _alike(one, last)
        ]

    return st.lists(st.tuples(st.integers(0, 900), values), max_size=6).map(changes)


def _alike(one, last):
    return last is not None and last[1] == one[1]


@pytest.mark.slow
@settings(max_examples=examples(600, short=40), deadline=None)
@example(committed=[at(5, 1), at(5, None)], ends=[at(6, 3)], offset=0, end=6, oldest=60)
@given(
    committed=seen_values(st.integers(0, 9) | st.none()),
    ends=seen_values(st.integers(3, 12) | st.none()) | seen_values(st.integers(3, 12)),
    offset=st.integers(0, 9),
    end=st.integers(6, 12),
    oldest=st.integers(0, 900),
)
def test_the_newest_observations_decide_as_all_do(committed, ends, offset, end, oldest):
    def health(earlier):
        since = unchanged_since(committed, offset, NOW)
        old = NOW - oldest * S
        return judge(NOW, offset, end, since, earlier, 0, old, members=False)

    assert health(lambda: decisive_observations(committed, ends, NOW, offset, end)) == health(
        lambda: observations(committed, ends, NOW)
    )


def counted(trend, changes, offset):
    """What a look keeps for the next one; None if nothing counts."""
    first = next((at for at, _ in changes if at > trend.known_from), None)
    return None if first is None else (trend.read(changes, offset), changes[-1][0], first)


@pytest.mark.slow
@settings(max_examples=examples(600, short=60), deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 90), st.integers(0, 9) | st.none()), min_size=1, max_size=40
    ),
    forgotten=st.integers(300, 900),  # as long as the time of rates at least
)
def test_what_was_read_is_counted_from_step_to_step_as_from_the_changes(steps, forgotten):
    changes: list[tuple[int, int | None]] = []
    seconds, earlier = 0, None
    for pause, offset in steps:
        seconds += pause
        look = NOW + seconds * S
        if not changes or changes[-1][1] != offset:
            changes.append((look, offset))
        while len(changes) > 1 and changes[1][0] <= look - forgotten * S:
            del changes[0]
        trend = Trend([(NOW, look)], look)
        if offset is None:
            continue
        count = trend.read(changes, offset)
        if earlier is not None:
            assert trend.read_again(changes, offset, earlier) in (None, count)
        earlier = counted(trend, changes, offset)


def test_a_queue_that_moves_all_the_time_is_counted_in_few_steps():
    changes, earlier = [(NOW, 0), (NOW + S, 1)], (1, NOW + S, NOW + S)
    for second in range(2, 900):
        look, offset = NOW + second * S, second * second
        changes.append((look, offset))
        trend = Trend([(NOW, look)], look)
        assert trend.read_again(changes, offset, earlier) == trend.read(changes, offset)
        earlier = counted(trend, changes, offset)
    one_time = [(NOW, 0), (NOW + S, 3), (NOW + S, 5)]  # two looks in one millisecond
    assert Trend([(NOW, NOW)], NOW + S).read_again(one_time, 5, (3, NOW + S, NOW + S)) is None


def test_of_many_observations_the_newest_are_looked_at():
    committed = [at(500 - n, n) for n in range(400)]
    [nearer] = decisive_observations(committed, [at(800, 1000)], NOW, 400, 1000)
    assert nearer == Observation(NOW - 101 * S, 399, 1000)
    [back] = decisive_observations(committed, [at(800, 1000)], NOW, 398, 1000)
    assert back == nearer
