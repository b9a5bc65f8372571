"""Buckets of unread messages, against counting them one by one."""

import random
from bisect import bisect_right

import pytest

from analytics.lag.exact_times import Part
from analytics.lag.health import Health
from analytics.lag.histogram import AGE_EDGES, SIZE_EDGES, Ages, by_size
from analytics.lag.queue_position import QueuePosition
from analytics.lag.totals import QueueLag, add_up, drain_ms, over_groups, skew
from analytics.lag.trend import StoredSince
from storage.readonly import StoreView
from storage.store import MessageStore
from tests.support.hand_made import TINY as HAND_MADE, HandMade
from tests.support.samples import TINY, Sample

T = 1_700_000_000_000
QUEUES = 3


@pytest.fixture
def root(tmp_path):
    """Messages of three queues, stored over four days, many at the same time."""
    rng = random.Random(7)
    times = sorted(T + rng.randrange(4 * 86_400) * 1000 for _ in range(60))
    now = [T]
    path = tmp_path / "s"
    MessageStore.create(path, TINY)
    with MessageStore.open(path, TINY, clock=lambda: now[0]) as store:
        for number, time in enumerate(times):
            now[0] = time
            for _ in range(rng.randrange(1, 4)):
                sample = Sample(f"m{number}", "T", rng.randrange(QUEUES), rng.randrange(1, 1500))
                store.put_message(sample.inner())
    return path


@pytest.fixture(params=["each", "many", "search"])
def way(request, monkeypatch):
    """How ages are found: message by message, with NumPy too, or by searches."""
    if request.param == "many":
        monkeypatch.setattr("analytics.lag.exact_times._WORTH_NUMPY", 1)
    elif request.param == "search":
        monkeypatch.setattr("analytics.lag.histogram.EACH_TIME_UP_TO", -1)
    return request.param


def parts_of(view, committed=0):
    bounds = [view.queue_bounds("T", queue) for queue in range(QUEUES)]
    return [
        Part("T", queue, QueuePosition(low, committed, high))
        for queue, (low, high) in enumerate(bounds)
    ]


def stored(view, parts):
    """Store time and size of every unread message."""
    found = []
    for topic, queue_id, what in parts:
        for offset in range(what.first_unread or 0, what.max_offset):
            time = view.store_timestamp(topic, queue_id, offset)
            found.append((time, view.unit(topic, queue_id, offset)[1]))
    return found


@pytest.mark.slow
@pytest.mark.feature(46)
@pytest.mark.parametrize("committed", [0, 5])
def test_ages_are_counted_as_one_would_by_hand(root, committed, way):
    as_of = T + 4 * 86_400_000
    with StoreView.open(root, TINY) as view:
        parts = parts_of(view, committed)
        counts = [0] * (len(AGE_EDGES) + 1)
        sizes = [0] * (len(AGE_EDGES) + 1)
        for time, size in stored(view, parts):
            number = bisect_right(AGE_EDGES, as_of - time)
            counts[number] += 1
            sizes[number] += size
        found = Ages(view, parts, as_of).buckets(AGE_EDGES)
    assert [bucket.messages for bucket in found] == counts
    assert [bucket.total_bytes for bucket in found] == sizes
    assert [bucket.low for bucket in found] == [None, *AGE_EDGES]
    assert [bucket.high for bucket in found] == [*AGE_EDGES, None]


@pytest.mark.feature(46)
def test_an_edge_belongs_to_the_older_side(root, way):
    with StoreView.open(root, TINY) as view:
        parts = parts_of(view)
        times = sorted(time for time, _ in stored(view, parts))
        as_of, edge = times[-1] + 1000, times[-1] + 1000 - times[30]
        found = Ages(view, parts, as_of).buckets([edge])
        older = sum(time <= times[30] for time in times)
    assert [bucket.messages for bucket in found] == [len(times) - older, older]


@pytest.mark.feature(46)
@pytest.mark.parametrize("share", [0.01, 0.5, 0.9, 1.0])
def test_quantiles_of_ages_are_exact(root, share, way):
    as_of = T + 4 * 86_400_000
    with StoreView.open(root, TINY) as view:
        parts = parts_of(view)
        ages = sorted(as_of - time for time, _ in stored(view, parts))
        wanted = max(1, -int(-len(ages) * share // 1))
        assert Ages(view, parts, as_of).quantiles([share]) == [ages[wanted - 1]]
        assert Ages(view, [], as_of).quantiles([share]) == [None]


@pytest.mark.feature(46)
def test_what_can_not_be_read_has_no_age(tmp_path, way):
    made = HandMade(HAND_MADE)
    for _ in range(40):
        made.put("T", 0, step_ms=60_000)
    bad = [0, 1, 19, 20, 21, 30]
    for number in bad:
        at = made.messages[number].commitlog_offset
        made.log[at + 4 : at + 8] = bytes(4)
    made.write(tmp_path)
    as_of = made.timestamp
    ages = [as_of - m.store_timestamp for n, m in enumerate(made.messages) if n not in bad][::-1]
    with StoreView.open(tmp_path, HAND_MADE) as view:
        parts = [Part("T", 0, QueuePosition(0, 0, 40))]
        buckets = Ages(view, parts, as_of).buckets([600_000, 1_200_000])
        half, oldest = Ages(view, parts, as_of).quantiles([0.5, 1.0])
        nothing = Ages(view, [Part("T", 0, QueuePosition(0, 19, 22))], as_of).quantiles([0.5])
    assert oldest == max(ages)
    if way == "search":  # unreadable ones count with their neighbours
        assert sum(bucket.messages for bucket in buckets) == 40
        assert half in ages
        return
    assert [bucket.messages for bucket in buckets] == [
        sum(low <= age < high for age in ages)
        for low, high in [(0, 600_000), (600_000, 1_200_000), (1_200_000, 1 << 40)]
    ]
    assert half == ages[len(ages) // 2 - 1]
    assert buckets[2].total_bytes == sum(
        m.size for n, m in enumerate(made.messages) if n not in bad and n < 20
    )
    assert nothing == [None]


@pytest.mark.feature(46)
def test_ages_hold_where_clocks_went_back(tmp_path):
    rng = random.Random(3)
    made = HandMade(HAND_MADE)
    for _ in range(90):
        made.put("T", rng.randrange(2), step_ms=rng.choice([1000, 1000, 60_000, -90_000]))
    made.write(tmp_path)
    times = sorted(message.store_timestamp for message in made.messages)
    as_of = times[-1] + 1
    with StoreView.open(tmp_path, HAND_MADE) as view:
        parts = [Part("T", n, QueuePosition(0, 0, view.queue_bounds("T", n)[1])) for n in range(2)]
        assert Ages(view, parts, as_of).quantiles([0.5, 1.0]) == [
            as_of - times[45],
            as_of - times[0],
        ]
        young, old = Ages(view, parts, as_of).buckets([60_000])
    assert young.messages == sum(as_of - time < 60_000 for time in times)
    assert old.messages == 90 - young.messages


@pytest.mark.feature(46)
@pytest.mark.parametrize("worth_numpy", [1, 1 << 30])
def test_sizes_are_those_of_the_records(root, worth_numpy, monkeypatch):
    monkeypatch.setattr("analytics.lag.histogram._WORTH_NUMPY", worth_numpy)
    with StoreView.open(root, TINY) as view:
        parts = parts_of(view)
        sizes = [size for _, size in stored(view, parts)]
        found = by_size(view, parts, SIZE_EDGES)
    assert sum(bucket.messages for bucket in found) == len(sizes)
    assert sum(bucket.total_bytes or 0 for bucket in found) == sum(sizes)
    for bucket in found:
        low, high = bucket.low or 0, bucket.high or 1 << 40
        assert bucket.messages == sum(low <= size < high for size in sizes)


@pytest.mark.feature(54)
def test_what_came_in_since_a_time_is_counted_by_the_log(root):
    with StoreView.open(root, TINY) as view:
        parts = parts_of(view)
        times = [time for time, _ in stored(view, parts)]
        for since in [0, *sorted(set(times))[::7], T + 10**12]:
            counter = StoredSince(view, since)
            counts = [
                counter.count(topic, queue, what.min_offset, what.max_offset)
                for topic, queue, what in parts
            ]
            assert None not in counts
            assert sum(count or 0 for count in counts) == sum(time >= since for time in times)


def queue(number, lag, *, lag_bytes=0, rate_in=1.0, rate_out=None, status=Health.OK):
    committed = None if lag is None else 100 - lag
    what = QueuePosition(0, committed, 100)
    times = (None, rate_in, rate_out, status, None)
    return QueueLag(number, what, None if lag is None else lag_bytes, *times)


@pytest.mark.feature(42, 48, 58)
def test_sums_leave_out_what_is_unknown_and_count_it():
    total = add_up([queue(0, 30), queue(1, None), queue(2, 10), queue(3, 0)])
    assert (total.queues, total.lag, total.unknown_queues) == (4, 40, 1)
    assert (total.worst_queue_id, total.skew) == (0, 2.25)
    nothing = add_up([queue(0, None), queue(1, None)])
    assert (nothing.lag, nothing.lag_bytes, nothing.skew) == (None, None, None)
    assert (nothing.drain_ms, nothing.unknown_queues) == (None, 2)


@pytest.mark.feature(43, 48)
def test_a_queue_whose_bytes_are_unknown_is_counted_too():
    total = add_up([queue(0, 30, lag_bytes=300), queue(1, 5, lag_bytes=None)])
    assert (total.lag, total.lag_bytes, total.unknown_queues) == (35, 300, 1)


@pytest.mark.feature(51)
@pytest.mark.parametrize(
    ("lag", "rate_in", "rate_out", "expected"),
    [
        (100, 1.0, 3.0, 50_000),
        (0, None, None, 0),
        (None, 1.0, 3.0, None),
        (100, 3.0, 3.0, None),
        (100, 3.0, 1.0, None),
        (100, None, 3.0, None),
        (100, 1.0, None, None),
    ],
)
def test_a_forecast_needs_both_rates_and_more_out_than_in(lag, rate_in, rate_out, expected):
    assert drain_ms(lag, rate_in, rate_out) == expected


@pytest.mark.feature(58)
def test_skew_is_one_when_even_and_the_number_of_queues_when_one_has_it_all():
    assert skew([5, 5, 5]) == 1.0
    assert skew([0, 12, 0]) == 3.0
    assert skew([0, 0]) is skew([]) is None


@pytest.mark.feature(42)
def test_over_groups_what_comes_in_counts_once():
    slow = [queue(0, 50, rate_out=2.0), queue(1, 0, rate_out=1.0)]
    quick = [queue(0, 10, rate_out=6.0), queue(1, 0, rate_out=1.0, status=Health.STOP)]
    total = over_groups([slow, quick])
    assert (total.queues, total.lag, total.rate_in, total.rate_out) == (2, 60, 2.0, 10.0)
    assert (total.drain_ms, total.worst_queue_id, total.status) == (50_000, 0, Health.STOP)
    assert total.skew == 2.0
