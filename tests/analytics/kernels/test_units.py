"""Units are read wherever they are: after a gap, and from the queue's first message of now on."""

from __future__ import annotations

from pathlib import Path

from analytics.kernels.units import read_units
from analytics.lag.exact_times import Part
from analytics.lag.histogram import by_size
from analytics.lag.queue_position import QueuePosition
from analytics.sink.commit import _ids_of_queue
from rmqctl.admin.messages.search.tags import find_tag
from storage.format.message import PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX
from storage.format.names import file_name
from storage.read.log_offsets import first_at, place_from
from storage.read.tag_filter import TagFilter
from storage.readonly import StoreView
from tests.support.hand_made import TINY, HandMade

LONG = TINY.with_(mapped_file_size_consume_queue=2000)
"""100 units in a queue file."""


def unique(number: int) -> dict[str, str]:
    return {PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX: f"id {number}"}


def gap_among_rebuilt_units(root: Path) -> HandMade:
    """Message 10 is nowhere, those after 4 have no units: they are found in the log."""
    store = HandMade(LONG, clean=False)
    for offset in range(20):
        if offset != 10:
            store.put(queue_offset=offset, unit=offset < 5, tags="a", properties=unique(offset))
    store.write(root)
    return store


def delete_first_log_file(root: Path) -> None:
    (root / "commitlog" / file_name(0)).unlink()


def test_units_after_a_gap_of_the_same_file_are_read(tmp_path: Path) -> None:
    store = gap_among_rebuilt_units(tmp_path)
    with StoreView.open(tmp_path) as view:
        assert view.queue_bounds("T", 0) == (0, 20)
        units = read_units(view, "T", 0, 0, 20)
        last = store.messages[-1].commitlog_offset
        assert place_from(view, "T", 0, 10, 20) == (11, store.messages[10].commitlog_offset)
        assert first_at(view, "T", 0, last, 0, 20) == 19
    sizes = [message.size for message in store.messages]
    assert units.sizes.tolist() == [*sizes[:10], 0, *sizes[10:]]


def test_sizes_after_a_gap_are_in_the_distribution(tmp_path: Path) -> None:
    store = gap_among_rebuilt_units(tmp_path)
    with StoreView.open(tmp_path) as view:
        (bucket,) = by_size(view, [Part("T", 0, QueuePosition(0, 0, 20))], ())
    assert (bucket.messages, bucket.total_bytes) == (19, sum(one.size for one in store.messages))


def test_ids_after_a_gap_are_known_as_stored(tmp_path: Path) -> None:
    gap_among_rebuilt_units(tmp_path)
    with StoreView.open(tmp_path) as view:
        found = _ids_of_queue(view, "T", 0, 0)
    assert found == {f"id {number}" for number in range(20) if number != 10}


def test_tags_after_a_gap_are_found(tmp_path: Path) -> None:
    store = gap_among_rebuilt_units(tmp_path)
    with StoreView.open(tmp_path) as view:
        found = list(find_tag(view, ["T"], TagFilter("a", frozenset("a"))))
    assert found == [one.commitlog_offset for one in store.messages]


def test_units_are_read_from_the_first_message_that_is_still_there(tmp_path: Path) -> None:
    store = HandMade(LONG)
    for _ in range(30):
        store.put()
    store.write(tmp_path)
    delete_first_log_file(tmp_path)
    kept = [m for m in store.messages if m.commitlog_offset >= LONG.mapped_file_size_commit_log]
    gone = len(store.messages) - len(kept)
    with StoreView.open(tmp_path) as view:
        assert view.min_offset_in_queue("T", 0) == gone > 0
        units = read_units(view, "T", 0, 0, 30)
        assert place_from(view, "T", 0, 0, 30) == (gone, kept[0].commitlog_offset)
    assert units.sizes.tolist() == [0] * gone + [message.size for message in kept]


def test_a_damaged_place_and_a_missing_unit_leave_the_other_units_as_they_are(
    tmp_path: Path,
) -> None:
    store = HandMade(LONG)
    for _ in range(20):
        store.put()
    store.queues["T", 0][20 * 4] ^= 0x10
    store.queues["T", 0][20 * 15 : 20 * 16] = bytes(20)
    store.write(tmp_path)
    with StoreView.open(tmp_path) as view:
        units = read_units(view, "T", 0, 0, 20)
    places = [message.commitlog_offset for message in store.messages]
    places[4] += 0x10 << 56
    places[15] = places[14]
    assert units.places.tolist() == places
    assert units.sizes[15] == 0
