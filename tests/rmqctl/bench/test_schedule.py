"""When sends are due, by a clock of the test's own."""

import pytest

from rmqctl.bench.schedule import Schedule

MS = 1_000_000


class Clock:
    """A clock that only sleeps move; each sleep is late."""

    def __init__(self, late_ns=0):
        self.now = 0
        self.naps = 0
        self._late = late_ns

    def read(self):
        return self.now

    def sleep(self, seconds):
        self.naps += 1
        self.now += round(seconds * 1e9) + (self._late if seconds else 10_000)


@pytest.mark.slow
def test_each_tick_is_due_at_its_own_time_and_late_sleeps_do_not_add_up():
    clock = Clock(late_ns=100_000)
    schedule = Schedule(5 * MS, 5000, clock.read, clock.sleep)
    for tick in range(20_000):
        due = schedule.due(tick)
        assert due == 5 * MS + tick * 200_000
        assert 0 <= schedule.wait(due, lambda: False) - due <= 10_000


def test_a_stall_makes_later_ticks_late_and_moves_none():
    clock = Clock()
    schedule = Schedule(0, 1000, clock.read, clock.sleep)
    clock.now = 50 * MS
    late = [schedule.wait(schedule.due(tick), lambda: False) - tick * MS for tick in range(60)]
    assert late[:51] == [50 * MS - tick * MS for tick in range(51)]
    assert max(late[51:]) <= 10_000


def test_a_long_wait_ends_when_the_load_is_stopped():
    clock = Clock()
    schedule = Schedule(0, 0.001, clock.read, clock.sleep)
    assert schedule.wait(schedule.due(1), lambda: clock.naps == 3) < 1000 * MS


def test_without_a_rate_a_tick_is_due_at_once():
    clock = Clock()
    clock.now = 77
    schedule = Schedule(0, None, clock.read, clock.sleep)
    assert (schedule.due(9), clock.naps) == (77, 0)


@pytest.mark.parametrize("rate", [0.75, 3.0, 1000 / 300, 15.625, 999.0])
def test_the_ticks_before_a_time_are_those_that_are_due_by_then(rate):
    schedule = Schedule(5 * MS, rate)
    times = sorted({schedule.due(tick) + more for tick in range(30) for more in (-1, 0, 1)})
    for time in (0, 4 * MS, *times):
        ticks = schedule.ticks_before(time)
        assert schedule.due(ticks) >= time
        assert not ticks or schedule.due(ticks - 1) < time
