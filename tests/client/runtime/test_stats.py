"""Counters and their rates."""

from __future__ import annotations

import pytest

from client.runtime.stats import (
    DAY,
    HOUR,
    MINUTE,
    ConsumerStatsManager,
    StatsItemSet,
    StatsSnapshot,
    start_sampling,
)


@pytest.fixture
def stats(clock, scheduler):
    manager = ConsumerStatsManager(clock)
    manager.start(scheduler)
    scheduler.advance(0)  # the first look, at nothing yet
    return manager


@pytest.mark.conformance("B20")
def test_numbers_match_a_known_load(stats, scheduler):
    # 30 messages and one failure in 3 calls a second, each of 20 ms; a pull of 4 ms brings 32.
    for _ in range(60):
        for _ in range(3):
            stats.consume_rt.add_value("T@group", 20)
        stats.consume_ok_tps.add_value("T@group", 30)
        stats.consume_failed_tps.add_value("T@group", 1)
        stats.pull_rt.add_value("T@group", 4)
        stats.pull_tps.add_value("T@group", 32)
        scheduler.advance(1_000)
    status = stats.consume_status("group", "T")
    assert status.consume_rt == 20.0
    assert status.consume_ok_tps == 30.0
    assert status.consume_failed_tps == 1.0
    assert status.pull_rt == 4.0
    assert status.pull_tps == 32.0
    assert status.consume_failed_msgs == 0, "the hour is looked at each 10 minutes"
    scheduler.advance(600_000)
    assert stats.consume_status("group", "T").consume_failed_msgs == 60
    assert stats.consume_status("group", "Other") == (0.0, 0.0, 0.0, 0.0, 0.0, 0)


@pytest.mark.conformance("B20")
def test_the_time_of_an_idle_minute_is_the_hours(stats, scheduler):
    stats.consume_rt.add_value("T@group", 100)
    stats.consume_rt.add_value("T@group", 50)
    scheduler.advance(600_000)
    assert stats.consume_rt.last(MINUTE, "T@group") == StatsSnapshot()
    assert stats.consume_status("group", "T").consume_rt == 75.0


@pytest.mark.conformance("B20")
def test_the_first_look_stands_beside_a_zero_one_interval_earlier(clock):
    counters = StatsItemSet("X")
    counters.add_value("k", 100, 4)
    item = counters.item("k")
    assert item is not None
    assert item.last(MINUTE) == item.last(HOUR) == item.last(DAY) == StatsSnapshot()
    item.sample(MINUTE, clock.now_ms())
    item.sample(HOUR, clock.now_ms())
    item.sample(DAY, clock.now_ms())
    assert item.last(MINUTE) == StatsSnapshot(100, 10.0, 4, 25.0)
    assert item.last(HOUR) == StatsSnapshot(100, 100 / 600, 4, 25.0)
    assert item.last(DAY) == StatsSnapshot(100, 100 / 3600, 4, 25.0)


@pytest.mark.conformance("B20")
def test_seven_looks_make_a_minute_and_an_hour_and_twenty_five_a_day(clock, scheduler):
    counters = StatsItemSet("X")
    counters.add_value("k", 0, 0)
    start_sampling([counters], clock, scheduler)
    for _ in range(26):
        counters.add_value("k", 3_600)
        scheduler.advance(3_600_000)
    counters.add_value("k", 60)
    scheduler.advance(10_000)
    minute, hour, day = (
        counters.last(MINUTE, "k"),
        counters.last(HOUR, "k"),
        counters.last(DAY, "k"),
    )
    assert (minute.sum, minute.tps) == (60, 1.0)
    assert (hour.sum, hour.times) == (3_600, 1)
    assert (day.sum, day.times, day.tps) == (24 * 3_600, 24, 1.0)
    scheduler.advance(50_000)
    assert counters.last(MINUTE, "k").sum == 60
    scheduler.advance(10_000)
    assert counters.last(MINUTE, "k").sum == 0


def test_counters_are_found_and_forgotten_by_key():
    counters = StatsItemSet("X")
    counters.add_value("T@b", 1)
    counters.add_value("T@a", 2, 5)
    assert counters.keys() == ["T@a", "T@b"]
    item = counters.item("T@a")
    assert item is not None
    assert (item.value, item.times) == (2, 5)
    counters.delete("T@a")
    assert counters.item("T@a") is None
