"""Percentiles of the histogram beside those of the sorted values."""

import random
from array import array

import pytest

from rmqctl.bench.histogram import Histogram

PERCENTS = [0, 1, 25, 50, 90, 99, 99.9, 99.99, 100]


def exact(values, percent):
    """The smallest value that so many percent of the values do not exceed (nearest rank)."""
    ordered = sorted(values)
    rank = max(1, -int(-round(len(ordered) * percent / 100, 6) // 1))
    return ordered[rank - 1]


def samples():
    chance = random.Random(7)
    return {
        "small": [chance.randrange(2048) for _ in range(5000)],
        "uniform": [chance.randrange(10**9) for _ in range(5000)],
        "exponential": [int(chance.expovariate(1 / 200_000)) for _ in range(20_000)],
        "of every size": [int(2 ** chance.uniform(0, 52)) for _ in range(5000)],
        "powers of two": [(1 << bits) + more for bits in range(1, 52) for more in (-1, 0, 1)],
        "one": [123_456_789],
    }


@pytest.mark.parametrize("name", samples())
@pytest.mark.parametrize("together", [False, True])
def test_percentiles_have_three_digits(name, together):
    values = samples()[name]
    histogram = Histogram()
    if together:
        histogram.record_all(array("q", values))
    else:
        for value in values:
            histogram.record(value)
    assert (histogram.count, histogram.largest) == (len(values), max(values))
    assert histogram.mean == sum(values) / len(values)
    for percent in PERCENTS:
        truth, found = exact(values, percent), histogram.percentile(percent)
        assert truth <= found <= truth + truth / 1024, percent
        if truth < 2048:
            assert found == truth


def test_all_at_once_is_one_by_one():
    values = [value for part in samples().values() for value in part]
    one_by_one, together = Histogram(), Histogram()
    for value in values:
        one_by_one.record(value, 3)
    together.record_all(array("q", values), 3)
    assert together.parts()[:2] == one_by_one.parts()[:2]
    assert dict(together.parts()[2]) == dict(one_by_one.parts()[2])


@pytest.mark.slow
def test_parts_of_another_process_add_up():
    halves = [Histogram(), Histogram()]
    whole = Histogram()
    for number, value in enumerate(samples()["exponential"]):
        halves[number % 2].record(value)
        whole.record(value)
    halves[0].add(halves[1])
    assert halves[0].count == whole.count
    assert [halves[0].percentile(at) for at in PERCENTS] == [
        whole.percentile(at) for at in PERCENTS
    ]


def test_nothing_recorded_is_unknown():
    assert (Histogram().percentile(50), Histogram().mean) == (None, None)


def test_a_time_before_its_begin_counts_as_none():
    histogram = Histogram()
    histogram.record(-5)
    assert (histogram.percentile(100), histogram.largest) == (0, 0)
