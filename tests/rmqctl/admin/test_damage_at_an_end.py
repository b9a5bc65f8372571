"""A read up to an end, with damage: a read passes over it and gives messages from beyond the end.

What is damaged before the end is counted, what is damaged after it is not.
"""

import pytest

from analytics.lag.exact_times import Part as Unread
from analytics.lag.queue_position import QueuePosition
from broker.embedded.broker import EmbeddedBroker
from rmqctl.admin.lag.backlog import name_rows
from rmqctl.admin.message_filter import MessageFilter
from rmqctl.admin.queue_scan import QueueScan
from rmqctl.admin.queues.cursor import ColumnFetcher, ObjectFetcher
from rmqctl.admin.queues.in_order import Part, QueuesInOrder
from rmqctl.admin.queues.selection import Span
from storage.readonly import StoreView
from tests.support.hand_made import TINY, HandMade

COUNT = 20
END = 5


@pytest.fixture
def damaged(tmp_path):
    """Makes a store of one queue, T 0, in which some queue offsets have a damaged body."""
    made = HandMade(
        TINY.with_(mapped_file_size_commit_log=8192, mapped_file_size_consume_queue=200)
    )
    for number in range(COUNT):
        made.put("T", 0, b"body %d" % number, tags="a" if number % 2 else "b")
    made.put("other")  # the log ends after the last whole record

    def write(*offsets):
        root = made.write(tmp_path / "s")
        (log,) = (root / "commitlog").iterdir()
        data = bytearray(log.read_bytes())
        for offset in offsets:
            data[data.index(b"body %d" % offset)] ^= 0x20
        log.write_bytes(data)
        return root, made.messages[END].store_timestamp

    return write


@pytest.mark.parametrize(
    ("offsets", "count"), [((2,), 1), ((4,), 1), ((1, 2, 3), 3), ((4, 5, 6), 1), ((7,), 0)]
)
def test_a_scan_to_a_time_counts_what_is_damaged_before_it(damaged, offsets, count):
    root, end = damaged(*offsets)
    with StoreView.open(root) as view:
        scan = QueueScan(view, "T", MessageFilter(to_timestamp=end))
        found = [message.queue_offset for message in scan.messages()]
        assert found == [number for number in range(END) if number not in offsets]
        assert scan.unreadable == count


@pytest.mark.parametrize("expression", [None, "a", "a || b"])
@pytest.mark.parametrize("offsets", [(2,), (4,), (4, 5, 6), (3, 4, 5, 6, 7), (7,)])
def test_a_queue_up_to_an_end_counts_what_is_damaged_before_it(damaged, offsets, expression):
    root, _ = damaged(*offsets)
    with EmbeddedBroker.open(root, read_only=True) as broker:
        fetch = ObjectFetcher(broker, "T", "reader", expression)
        found, unreadable = read(broker, fetch)
    mine = [number for number in range(END) if expression != "a" or number % 2]
    assert found == [number for number in mine if number not in offsets]
    assert unreadable == len(set(mine) & set(offsets))


@pytest.mark.parametrize("offsets", [(2,), (4,), (4, 5, 6), (3, 4, 5, 6, 7), (7,), range(COUNT)])
def test_bodies_up_to_an_end_count_what_is_damaged_before_it(damaged, offsets):
    root, _ = damaged(*offsets)
    with EmbeddedBroker.open(root, read_only=True) as broker:
        objects = ObjectFetcher(broker, "T", "reader", None)
        found, unreadable = read(broker, ColumnFetcher(broker, "T", 1 << 20, objects))
    assert found == [b"body %d" % number for number in range(END) if number not in offsets]
    assert unreadable == len(set(range(END)) & set(offsets))


def read(broker, fetch):
    """What a queue has up to END, by its offsets or bodies, and what it could not read of that."""
    queues = QueuesInOrder(broker, [Part("T", [Span(0, 0, END)], fetch)])
    found = []
    while (ready := queues.ready(100)).items:
        found += [getattr(item, "queue_offset", item) for item in ready.items]
        ready.take(len(ready.items))
    return found, queues.unreadable


@pytest.mark.parametrize("offsets", [(2,), (4,), (4, 5, 6), (7,)])
def test_a_backlog_has_what_was_unread_when_it_was_looked_at(damaged, offsets):
    root, _ = damaged(*offsets)
    passed: list[int] = []
    with StoreView.open(root) as view:
        rows, count = name_rows(
            view,
            [Unread("T", 0, QueuePosition(0, 0, END))],
            lambda message: ["x"],
            10,
            passed.append,
        )
    assert count == END - len(set(range(END)) & set(offsets))
    assert [row.messages for row in rows] == [count]
    assert sum(passed) == END
