"""Which half messages are copies of others: by the unique id, else by content and checks."""

import pytest

from broker.transaction.copies import HalfCopies
from storage.format.message import (
    PROPERTY_PRODUCER_GROUP,
    PROPERTY_REAL_TOPIC,
    PROPERTY_TRANSACTION_CHECK_TIMES,
    PROPERTY_TRANSACTION_PREPARED_QUEUE_OFFSET,
    TRANS_CHECK_MAX_TIME_TOPIC,
    TRANS_HALF_TOPIC,
)
from storage.readonly import StoreView
from tests.support.hand_made import START_MS, TINY, HandMade

CONFIG = TINY.with_(mapped_file_size_commit_log=1 << 20, mapped_file_size_consume_queue=20 * 2000)


class Halves:
    """A store of half messages, all born at one time unless said."""

    def __init__(self):
        self.made = HandMade(CONFIG)

    def put(self, body=b"body", *, unique="", times=None, born=0, to=TRANS_HALF_TOPIC, **more):
        pairs = {PROPERTY_PRODUCER_GROUP: "g", PROPERTY_REAL_TOPIC: "T", **more}
        if unique:
            pairs["UNIQ_KEY"] = unique
        if times is not None:
            pairs[PROPERTY_TRANSACTION_CHECK_TIMES] = str(times)
            pairs[PROPERTY_TRANSACTION_PREPARED_QUEUE_OFFSET] = str(times * 7)
        self.made.timestamp = START_MS + born
        return self.made.put(to, 0, body, properties=pairs, step_ms=0).queue_offset

    def copies(self, folder, first=0, *, wanted=True):
        with StoreView.open(self.made.write(folder), CONFIG) as view:
            found = HalfCopies(view, first, wanted=wanted)
            end = view.max_offset_in_queue(TRANS_HALF_TOPIC, 0)
            followed = [offset for offset in range(end) if found.is_followed(offset)]
            others = {o: sorted(found.others(o)) for o in range(end) if found.others(o)}
            halves = [
                m
                for o in range(view.min_offset_in_queue(TRANS_HALF_TOPIC, 0), end)
                for m in view.get_message(TRANS_HALF_TOPIC, 0, o, 1).messages
            ]
            return followed, others, [found.is_aside(half) for half in halves]


@pytest.fixture
def halves():
    return Halves()


def test_the_last_one_of_an_id_counts(halves, tmp_path):
    for unique in "abacab":
        halves.put(unique=unique)
    assert halves.copies(tmp_path)[:2] == ([0, 1, 2], {4: [0, 2], 5: [1]})


@pytest.mark.parametrize(
    "other",
    [{PROPERTY_PRODUCER_GROUP: "other"}, {PROPERTY_REAL_TOPIC: "other"}, {"born": 1}],
    ids=["group", "topic", "birth"],
)
def test_an_id_of_another_producer_is_another_transaction(other, halves, tmp_path):
    halves.put(unique="a")
    halves.put(unique="a", **other)
    assert halves.copies(tmp_path)[:2] == ([], {})


def test_without_an_id_a_copy_has_one_check_more(halves, tmp_path):
    for times in (None, 1, 2):
        halves.put(times=times)
    assert halves.copies(tmp_path)[:2] == ([0, 1], {2: [0, 1]})


def test_without_an_id_equal_messages_are_two_transactions(halves, tmp_path):
    for times in (0, 0, 1, 1):
        halves.put(times=times)
    assert halves.copies(tmp_path / "a")[:2] == ([0, 1], {2: [0], 3: [1]})
    halves.put(times=1)
    assert halves.copies(tmp_path / "b")[:2] == ([0, 1], {2: [0], 3: [1]})
    halves.put(times=3)
    assert halves.copies(tmp_path / "c")[:2] == ([0, 1], {2: [0], 3: [1]})


@pytest.mark.parametrize("other", [{"body": b"BODY"}, {"born": 1}, {"X": "y"}])
def test_without_an_id_other_content_is_another_transaction(other, halves, tmp_path):
    halves.put(times=0)
    halves.put(times=1, **other)
    assert halves.copies(tmp_path)[:2] == ([], {})


@pytest.mark.parametrize("times", ["x", "-1", "\u0661", "9" * 10, ""])
def test_a_number_of_checks_that_is_none_counts_as_0(times, halves, tmp_path):
    halves.put(**{PROPERTY_TRANSACTION_CHECK_TIMES: times})
    halves.put(times=1)
    assert halves.copies(tmp_path)[:2] == ([0], {1: [0]})


def test_they_are_looked_for_from_an_offset_on(halves, tmp_path):
    for _ in range(3):
        halves.put(unique="a")
    assert halves.copies(tmp_path / "a", 1)[:2] == ([1], {2: [1]})
    assert halves.copies(tmp_path / "b", wanted=False) == ([], {}, [False] * 3)


def test_there_may_be_more_than_one_read_gives(halves, tmp_path):
    for number in range(100):
        halves.put(unique=f"{number % 50}")
    assert halves.copies(tmp_path)[0] == list(range(50))


def test_a_queue_whose_first_messages_are_deleted_is_read_from_its_first(halves, tmp_path):
    halves.made.queue_starts[TRANS_HALF_TOPIC, 0] = 40
    halves.made.queues[TRANS_HALF_TOPIC, 0] = bytearray()
    for _ in range(2):
        halves.put(unique="a")
    assert halves.copies(tmp_path)[:2] == ([40], {41: [40]})


def test_what_was_put_aside_behind_the_first_half_message_counts(halves, tmp_path):
    halves.put(unique="old", to=TRANS_CHECK_MAX_TIME_TOPIC)
    for unique in ("old", "a", "b"):
        halves.put(unique=unique)
    halves.put(unique="b", to=TRANS_CHECK_MAX_TIME_TOPIC)
    assert halves.copies(tmp_path)[2] == [False, False, True]
