import pytest

from rmqctl.produce.rate_limit import Pace


@pytest.mark.feature(10)
@pytest.mark.parametrize("rate", [0.5, 7, 100, 4000])
def test_no_more_go_than_the_rate_allows_and_none_less(rate):
    now = [50.0]
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        now[0] += seconds

    pace = Pace(rate, lambda: now[0], sleep)
    sent = 0
    while now[0] < 60:
        sent += pace.portion(10_000)
    burst = max(1, rate / 20)  # one at the beginning; the last may go a rounding error early
    assert rate * 10 <= sent <= rate * 10 + 2 * burst
    assert slept


def test_lost_time_is_not_caught_up_by_a_burst():
    now = [0.0]
    pace = Pace(100, lambda: now[0], lambda seconds: now.__setitem__(0, now[0] + seconds))
    pace.portion(1)
    now[0] += 60
    began, sent = now[0], 0
    while now[0] < began + 1:
        sent += pace.portion(1)
    assert sent <= 100 + 2 * 100 / 20


@pytest.mark.parametrize("rate", [200, 5000, 80_000])
def test_messages_go_within_a_millisecond_of_their_time(rate):
    """The sleeps are late by up to 0.8 ms, as on a busy machine; the errors do not add up."""
    now, naps = [10.0], [0]

    def sleep(seconds):
        naps[0] += 1
        now[0] += seconds + naps[0] * 37 % 9 / 10_000

    pace = Pace(rate, lambda: now[0], sleep)
    sent = 0
    while now[0] < 12:
        count = pace.portion(4096)
        for number in range(sent, sent + count):
            late = now[0] - (10 + number / rate)
            assert -1e-6 <= late <= 0.002
        sent += count


@pytest.mark.parametrize("rate", [1e-12, 5e-324])
def test_a_wait_of_centuries_is_one_that_the_system_takes(rate):
    """time.sleep refuses more than 292 years."""
    now, slept = [1e4], []

    def sleep(seconds):
        assert seconds <= 2**63 / 1e9
        slept.append(seconds)
        now[0] += seconds
        if len(slept) == 3:
            raise TimeoutError

    pace = Pace(rate, lambda: now[0], sleep)
    assert pace.portion(5) == 1
    with pytest.raises(TimeoutError):
        pace.portion(5)
    assert min(slept) > 86_400


def test_without_a_rate_there_is_no_wait():
    slept: list[float] = []
    assert Pace(None, sleep=slept.append).portion(10_000) == 10_000
    assert not slept
