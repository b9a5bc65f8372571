"""Queues are read one by one, and printed in the order in which messages were stored."""

from functools import partial

import pytest
from hypothesis import given, strategies as st

from rmqctl.admin.queues.cursor import Cursor, Fetched
from rmqctl.admin.queues.merge import Round


class Queues:
    """Queues of a made-up log; a message is its log offset."""

    def __init__(self, layout: list[int], fetch_size: int):
        self.places: dict[int, list[int]] = {}
        for place, queue_id in enumerate(layout):
            self.places.setdefault(queue_id, []).append(place)
        self.fetch_size = fetch_size

    def fetch(self, queue_id: int, offset: int, count: int) -> Fetched:
        places = self.places.get(queue_id, [])
        found = places[offset : offset + min(count, self.fetch_size)]
        following = offset + len(found)
        return Fetched(
            range(offset, following), found, found, following, more=following < len(places)
        )

    def end(self, queue_id: int) -> int:
        return len(self.places.get(queue_id, []))

    def cursors(self, ends: bool):
        return [
            Cursor(q, 0, len(places) if ends else None, self.fetch, partial(self.end, q))
            for q, places in sorted(self.places.items())
        ]


def read_all(cursors, take):
    """Read rounds until nothing comes; ``take`` says how many of a round's items are taken."""
    read: list[int] = []
    while True:
        for cursor in cursors:
            if not cursor.done:
                cursor.fill(1000)
        ready = Round(cursors)
        if not ready.items:
            return read
        taken = take(len(ready.items))
        read += ready.items[:taken]
        ready.take(taken)


@given(
    st.lists(st.integers(0, 4), max_size=60), st.integers(1, 7), st.booleans(), st.integers(1, 9)
)
@pytest.mark.slow
def test_every_message_comes_once_and_in_log_order(layout, fetch_size, ends, most):
    queues = Queues(layout, fetch_size)
    cursors = queues.cursors(ends)
    assert read_all(cursors, lambda ready: min(ready, most)) == list(range(len(layout)))
    for cursor in cursors:
        assert cursor.passed == len(queues.places[cursor.queue_id])
        assert cursor.done is ends


@given(st.lists(st.integers(0, 3), max_size=40), st.integers(1, 5), st.integers(0, 40))
def test_what_was_passed_is_exactly_what_was_taken(layout, fetch_size, stop):
    """A group commits after each round: neither a message more nor one less than was printed."""
    queues = Queues(layout, fetch_size)
    cursors = queues.cursors(ends=True)
    left = stop
    taken: list[int] = []
    while left:
        for cursor in cursors:
            cursor.fill(left)
        ready = Round(cursors)
        if not ready.items:
            break
        count = min(len(ready.items), left)
        taken += ready.items[:count]
        ready.take(count)
        left -= count
        for cursor in cursors:
            mine = [place for place in taken if layout[place] == cursor.queue_id]
            assert cursor.passed == len(mine)


def test_a_queue_that_stops_before_its_end_holds_no_other_back():
    queues = Queues([0, 1, 0, 1, 0, 1], 10)
    cursors = [
        Cursor(0, 0, 1, queues.fetch, lambda: 3),
        Cursor(1, 1, None, queues.fetch, lambda: 3),
    ]
    assert read_all(cursors, lambda ready: ready) == [0, 3, 5]
    assert [cursor.passed for cursor in cursors] == [1, 3]


def test_a_gap_is_passed_and_counted():
    def fetch(queue_id, offset, count):
        if offset < 5:
            return Fetched((), (), (), 5, more=True, unreadable=5 - offset)
        if offset > 5:
            return Fetched((), (), (), 6, more=False)
        return Fetched((5,), (50,), ("m",), 6, more=False)

    cursor = Cursor(0, 0, None, fetch, lambda: 6)
    assert read_all([cursor], lambda ready: ready) == ["m"]
    assert (cursor.passed, cursor.unreadable) == (6, 5)


@pytest.mark.parametrize("end", [3, None])
def test_an_unreadable_end_is_passed(end):
    def fetch(queue_id, offset, count):
        return Fetched((), (), (), 3, more=False, unreadable=3 - offset)

    cursor = Cursor(0, 0, end, fetch, lambda: 3)
    assert read_all([cursor], lambda ready: ready) == []
    assert cursor.passed == 3
    assert cursor.done is (end == 3)
