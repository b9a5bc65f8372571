"""What is unread of a queue, against what was put into it."""

import pytest

from analytics.lag.queue_position import (
    OffsetState,
    QueuePosition,
    last_consumed_timestamp,
    oldest_unread_timestamp,
    unread_bytes,
)
from storage.format.cq_unit import CQ_STORE_UNIT_SIZE
from storage.readonly import StoreView
from tests.support.samples import START_MS, TINY, Sample, open_store

SIZES = [10, 500, 33, 1200, 1, 77, 900, 40, 5, 650]


@pytest.fixture
def root(tmp_path):
    """Ten messages of different sizes in three queue files, and others between them."""
    (tmp_path / "s").mkdir()
    with open_store(tmp_path / "s") as store:
        for number, size in enumerate(SIZES):
            store.put_message(Sample(f"m{number}", "T", 1, size).inner())
            store.put_message(Sample(f"n{number}", "other", 0, 200).inner())
    return tmp_path / "s"


def unread(view, committed):
    low, high = view.queue_bounds("T", 1)
    return QueuePosition(low, committed, high)


def sizes_of_records(view):
    return [view.unit("T", 1, offset)[1] for offset in range(len(SIZES))]


@pytest.mark.parametrize(
    ("low", "committed", "high", "state", "lag", "lost", "ahead", "first"),
    [
        (0, None, 9, OffsetState.NONE, None, None, 0, None),
        (0, 0, 0, OffsetState.CAUGHT_UP, 0, 0, 0, None),
        (0, 9, 9, OffsetState.CAUGHT_UP, 0, 0, 0, None),
        (4, 9, 9, OffsetState.CAUGHT_UP, 0, 0, 0, None),
        (0, 2, 9, OffsetState.BEHIND, 7, 0, 0, 2),
        (2, 2, 9, OffsetState.BEHIND, 7, 0, 0, 2),
        (4, 2, 9, OffsetState.LOST, 7, 2, 0, 4),
        (9, 2, 9, OffsetState.LOST, 7, 7, 0, None),
        (0, 12, 9, OffsetState.AHEAD, None, None, 3, None),
    ],
)
def test_each_place_of_an_offset_has_its_meaning(
    low, committed, high, state, lag, lost, ahead, first
):
    what = QueuePosition(low, committed, high)
    assert what.state is state
    assert (what.lag, what.lost, what.ahead, what.first_unread) == (lag, lost, ahead, first)


@pytest.mark.parametrize("committed", range(len(SIZES)))
def test_bytes_and_times_are_those_of_the_messages_that_are_unread(root, committed):
    with StoreView.open(root, TINY) as view:
        what = unread(view, committed)
        assert tuple(what) == (0, committed, len(SIZES))
        assert what.first_unread == committed
        sizes = unread_bytes(view, "T", 1, (committed,), what.max_offset)
        assert sizes == {committed: sum(sizes_of_records(view)[committed:])}
        times = [view.store_timestamp("T", 1, offset) or 0 for offset in range(len(SIZES))]
        assert times == sorted(times)
        assert times[0] > START_MS
        assert oldest_unread_timestamp(view, "T", 1, what) == times[committed]
        before = times[committed - 1] if committed else None
        assert last_consumed_timestamp(view, "T", 1, what) == before


def test_who_has_read_everything_has_no_oldest_message(root):
    with StoreView.open(root, TINY) as view:
        what = unread(view, len(SIZES))
        assert (what.lag, what.first_unread) == (0, None)
        assert oldest_unread_timestamp(view, "T", 1, what) is None
        last = view.store_timestamp("T", 1, len(SIZES) - 1)
        assert last_consumed_timestamp(view, "T", 1, what) == last


@pytest.mark.parametrize("committed", [None, len(SIZES) + 3])
def test_without_a_lag_nothing_is_known(root, committed):
    with StoreView.open(root, TINY) as view:
        what = unread(view, committed)
        assert what.first_unread is None
        assert oldest_unread_timestamp(view, "T", 1, what) is None
        assert last_consumed_timestamp(view, "T", 1, what) is None


def test_many_offsets_are_summed_in_one_pass(root):
    with StoreView.open(root, TINY) as view:
        sizes = sizes_of_records(view)
        found = unread_bytes(view, "T", 1, [7, 0, 3, 3, 9], len(SIZES))
        assert found == {offset: sum(sizes[offset:]) for offset in (0, 3, 7, 9)}


def test_both_ways_to_add_up_agree(root, monkeypatch):
    with StoreView.open(root, TINY) as view:
        without = unread_bytes(view, "T", 1, range(len(SIZES)), len(SIZES))
        monkeypatch.setattr("analytics.lag.queue_position._WORTH_NUMPY", 1)
        assert unread_bytes(view, "T", 1, range(len(SIZES)), len(SIZES)) == without


@pytest.mark.parametrize("worth_numpy", [1, 1_000_000])
def test_units_that_name_no_record_make_the_bytes_before_them_unknown(
    root, worth_numpy, monkeypatch
):
    monkeypatch.setattr("analytics.lag.queue_position._WORTH_NUMPY", worth_numpy)
    path = root / "consumequeue" / "T" / "1" / f"{4 * CQ_STORE_UNIT_SIZE:020d}"
    data = bytearray(path.read_bytes())
    data[CQ_STORE_UNIT_SIZE : 2 * CQ_STORE_UNIT_SIZE] = bytes(CQ_STORE_UNIT_SIZE)
    path.write_bytes(data)
    with StoreView.open(root, TINY) as view:
        found = unread_bytes(view, "T", 1, [3, 5, 6], len(SIZES))
        assert found[3] is None
        assert found[5] is None
        assert found[6] == sum(sizes_of_records(view)[6:])


def test_a_queue_file_that_is_missing_makes_the_bytes_before_it_unknown(root):
    (root / "consumequeue" / "T" / "1" / f"{4 * CQ_STORE_UNIT_SIZE:020d}").unlink()
    with StoreView.open(root, TINY) as view:
        found = unread_bytes(view, "T", 1, [3, 8], len(SIZES))
        assert found[3] is None
        assert found[8] is not None


def test_units_are_seen_up_to_the_end_of_the_queue_and_of_their_file(root):
    with StoreView.open(root, TINY) as view:

        def seen(offset, end):
            units = view.unit_view("T", 1, offset, end)
            return None if units is None else len(units) // CQ_STORE_UNIT_SIZE

        assert seen(8, 100) == 2
        assert seen(8, 9) == 1
        assert seen(1, 100) == 3
        assert seen(10, 100) is seen(3, 3) is seen(-1, 5) is None
        assert view.unit_view("nope", 0, 0, 1) is None
