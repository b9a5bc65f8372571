"""Counters and their rates."""

from __future__ import annotations

import pytest

from client.runtime.stats import ConsumerStatsManager, StatsItemSet, StatsSnapshot, start_sampling


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
            stats.inc_consume_rt("group", "T", 20)
        stats.inc_consume_ok_tps("group", "T", 30)
        stats.inc_consume_failed_tps("group", "T", 1)
        stats.inc_pull_rt("group", "T", 4)
        stats.inc_pull_tps("group", "T", 32)
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
    stats.inc_consume_rt("group", "T", 100)
    stats.inc_consume_rt("group", "T", 50)
    scheduler.advance(600_000)
    assert stats.consume_rt.minute("T@group") == StatsSnapshot()
    assert stats.consume_status("group", "T").consume_rt == 75.0


@pytest.mark.conformance("B20")
def test_the_first_look_stands_beside_a_zero_one_interval_earlier(clock):
    counters = StatsItemSet("X")
    counters.add_value("k", 100, 4)
    item = counters.item("k")
    assert item is not None
    assert item.minute() == item.hour() == item.day() == StatsSnapshot()
    item.sample_minute(clock.now_ms())
    item.sample_hour(clock.now_ms())
    item.sample_day(clock.now_ms())
    assert item.minute() == StatsSnapshot(100, 10.0, 4, 25.0)
    assert item.hour() == StatsSnapshot(100, 100 / 600, 4, 25.0)
    assert item.day() == StatsSnapshot(100, 100 / 3600, 4, 25.0)


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
    minute, hour, day = counters.minute("k"), counters.hour("k"), counters.day("k")
    assert (minute.sum, minute.tps) == (60, 1.0)
    assert (hour.sum, hour.times) == (3_600, 1)
    assert (day.sum, day.times, day.tps) == (24 * 3_600, 24, 1.0)
    scheduler.advance(50_000)
    assert counters.minute("k").sum == 60
    scheduler.advance(10_000)
    assert counters.minute("k").sum == 0


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
