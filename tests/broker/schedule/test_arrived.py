"""Which delayed messages have arrived, as the log shows, whatever program wrote the copies."""

from pathlib import Path

import pytest

from broker.schedule.arrived import DeliveredMessages, Since, since_due
from storage.format.message import SCHEDULE_TOPIC
from storage.format.properties import encode_properties
from storage.format.record import encode_record
from storage.readonly import StoreView
from tests.support.hand_made import START_MS, TINY, HandMade

CONFIG = TINY.with_(mapped_file_size_commit_log=1 << 20, mapped_file_size_consume_queue=20 * 3000)
LEVEL = 2
EXACT = Since(0, None, exact=True)


class Log:
    """A store in which messages wait and arrive."""

    def __init__(self) -> None:
        self.made = HandMade(CONFIG)
        self.ended: set[tuple[int, int]] = set()

    def wait(self, body=b"body", *, unique="", topic="T", queue=0, **more):
        pairs = {"REAL_TOPIC": topic, "REAL_QID": str(queue), "DELAY": "3", **more}
        if unique:
            pairs["UNIQ_KEY"] = unique
        stored = self.made.put(SCHEDULE_TOPIC, LEVEL, body, properties=pairs)
        return pairs, body, topic, queue, self.made.timestamp - 1, stored

    def arrive(self, waiting, *, body=None, born=0, properties=None):
        pairs, own_body, topic, queue, was_born, _ = waiting
        made, now = self.made, self.made.timestamp
        made.timestamp = was_born + born + 1 - 1000
        put = made.put(
            topic, queue, own_body if body is None else body, properties=properties or pairs
        )
        made.timestamp = now
        return put

    def after(self, folder: Path, offset=0, since=EXACT):
        with StoreView.open(self.made.write(folder), CONFIG) as view:
            found = DeliveredMessages(view, LEVEL, since, lambda _: self.ended).after(offset)
        return found.offset, set(found.others)


@pytest.fixture
def log():
    return Log()


def test_those_that_arrived_one_behind_the_other_are_passed(log, tmp_path):
    waiting = [log.wait(b"%d" % n, unique=f"id-{n}") for n in range(5)]
    for one in waiting[:3]:
        log.arrive(one)
    assert log.after(tmp_path) == (3, set())


def test_nothing_has_arrived(log, tmp_path):
    log.wait(unique="a")
    log.made.put("T", 0, b"other")
    assert log.after(tmp_path) == (0, set())
    assert Log().after(tmp_path / "empty") == (0, set())


def test_those_behind_one_that_has_not_arrived_are_told(log, tmp_path):
    waiting = [log.wait(b"%d" % n, unique=f"id-{n}", queue=n % 2) for n in range(6)]
    for number in (1, 3, 4):
        log.arrive(waiting[number])
    assert log.after(tmp_path) == (0, {1, 3, 4})
    assert log.after(tmp_path, 3) == (5, set())


@pytest.mark.parametrize(
    "other", ["body", "born", "property", "more properties", "place in the log"]
)
def test_a_record_that_differs_is_no_copy(other, log, tmp_path):
    waiting = log.wait(unique="a")
    pairs = waiting[0]
    since = EXACT
    if other == "body":
        log.arrive(waiting, body=b"BODY")
    elif other == "born":
        log.arrive(waiting, born=1)
    elif other == "property":
        log.arrive(waiting, properties={**pairs, "UNIQ_KEY": "b"})
    elif other == "more properties":
        log.arrive(waiting, properties={**pairs, "X": "y"})
    else:
        since = EXACT._replace(log_offset=log.arrive(waiting).commitlog_offset + 1)
    assert log.after(tmp_path, since=since) == (0, set())


def test_the_place_where_copies_begin_is_the_first_that_counts(log, tmp_path):
    waiting = log.wait(unique="a")
    log.made.put("T", 0, b"before")
    place = log.arrive(waiting).commitlog_offset
    assert log.after(tmp_path, since=EXACT._replace(log_offset=place)) == (1, set())


@pytest.mark.parametrize("batch", [1, 2, 512])
def test_equal_messages_are_counted(batch, log, tmp_path, monkeypatch):
    monkeypatch.setattr("broker.schedule.arrived._BATCH", batch)
    waiting = log.wait()
    log.made.timestamp -= 1000
    log.wait()
    log.made.timestamp -= 1000
    log.wait()
    log.arrive(waiting)
    assert log.after(tmp_path / "one") == (1, set())
    log.arrive(waiting)
    assert log.after(tmp_path / "two") == (2, set())
    log.arrive(waiting)
    log.arrive(waiting)
    assert log.after(tmp_path / "more than wait") == (3, set())


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_copy_may_be_a_byte_longer_or_shorter(more, log, tmp_path):
    """A Java broker writes a last separator or none, and a topic's length in one byte or two."""
    pairs, _, topic, queue, born, stored = log.wait(unique="a")
    unit = log.made.put(topic, queue, b"body", properties=pairs)
    del log.made.log[-unit.size :]
    encoded = encode_properties(pairs)
    encoded = encoded + b"\x02" if more == 1 else encoded.rstrip(b"\x02") if more == -1 else encoded
    record = encode_record(
        topic=topic,
        queue_id=queue,
        body=b"body",
        properties=encoded,
        queue_offset=0,
        physical_offset=unit.commitlog_offset,
        store_timestamp=born + 5,
        born_timestamp=born,
        born_host=bytes(8),
        store_host=bytes(8),
        sys_flag=0,
        version=1,
    )
    log.made.log += record
    log.made.queues.clear()
    log.made.add_unit(SCHEDULE_TOPIC, LEVEL, stored.commitlog_offset, stored.size, 0)
    log.made.add_unit(topic, queue, unit.commitlog_offset, len(record), 0)
    assert log.after(tmp_path) == (1, set())


@pytest.mark.parametrize("number", [None, "7", "8", "12"])
def test_the_number_in_a_light_queue_is_told_anew_or_left_out(number, log, tmp_path):
    """This broker leaves it out, a Java broker keeps it or makes a new one."""
    light = {"INNER_MULTI_DISPATCH": "%LMQ%l", "INNER_MULTI_QUEUE_OFFSET": "7"}
    waiting = log.wait(unique="a", **light)
    properties = {**waiting[0], "INNER_MULTI_QUEUE_OFFSET": number}
    if number is None:
        del properties["INNER_MULTI_QUEUE_OFFSET"]
    log.arrive(waiting, properties=properties)
    assert log.after(tmp_path) == (1, set())


def test_an_ended_one_is_not_looked_for_and_does_not_end_the_search(log, tmp_path):
    waiting = [log.wait(b"%d" % n, unique=f"id-{n}") for n in range(3)]
    for one in waiting:
        log.arrive(one)
    log.ended = {(0, waiting[0][5].commitlog_offset)}
    assert log.after(tmp_path) == (0, {1, 2})
    log.ended = {(0, waiting[0][5].commitlog_offset + 1)}
    assert log.after(tmp_path) == (3, set()), "that is another message of this place"


def test_without_a_note_only_a_message_with_an_id_is_known_again(log, tmp_path):
    waiting = [log.wait(b"0"), log.wait(b"1", unique="b")]
    for one in waiting:
        log.arrive(one)
    since = Since(0, START_MS, exact=False)
    assert log.after(tmp_path, since=since) == (0, {1})
    assert log.after(tmp_path, since=EXACT) == (2, set())


def test_copies_are_looked_for_from_a_time_on(log, tmp_path):
    early, late = log.wait(b"0", unique="a"), log.wait(b"1", unique="b")
    log.arrive(early)
    log.made.timestamp += 200_000
    last = log.made.put("T", 0, b"1", properties=late[0])
    log.made.messages.pop()
    del log.made.log[-last.size :]
    log.made.queues["T", 0] = log.made.queues["T", 0][:-20]
    now = log.made.timestamp
    assert log.after(tmp_path / "a", since=Since(0, START_MS, exact=False)) == (1, set())
    assert log.after(tmp_path / "b", since=Since(0, now + 1000, exact=False)) == (0, set())
    assert since_due(7, now) == Since(7, now - 60_000, exact=False)
    assert since_due(7, 5) == Since(7, 0, exact=False)


@pytest.mark.parametrize("batch", [1, 3, 512])
def test_batches_make_no_difference(batch, log, tmp_path, monkeypatch):
    monkeypatch.setattr("broker.schedule.arrived._BATCH", batch)
    waiting = [log.wait(b"%d" % n, unique=f"id-{n}", queue=n % 2) for n in range(10)]
    log.made.put("T", 0, b"between")
    for number in range(7):
        log.arrive(waiting[number])
        log.made.put("T", number % 2, b"other")
    assert log.after(tmp_path / "a") == (7, set())
    assert log.after(tmp_path / "b", 2) == (7, set())


def test_what_names_no_topic_is_passed_over(log, tmp_path, monkeypatch):
    """It waits for ever; the messages after it have arrived all the same."""
    monkeypatch.setattr("broker.schedule.arrived._BATCH", 1)
    log.made.put(SCHEDULE_TOPIC, LEVEL, b"lost", properties={"DELAY": "3"})
    log.arrive(log.wait(unique="a"))
    assert log.after(tmp_path) == (0, {1})


def test_copies_after_missing_units_are_found(log, tmp_path):
    """A file of the queue of the copies is gone."""
    small = CONFIG.with_(mapped_file_size_consume_queue=20 * 4)
    log.made.config = small
    waiting = [log.wait(b"%d" % n, unique=f"id-{n}") for n in range(12)]
    for one in waiting[:4]:
        log.arrive(one)
    for _ in range(4):
        log.made.put("T", 0, b"other")
    for one in waiting[4:8]:
        log.arrive(one)
    root = log.made.write(tmp_path)
    (root / "consumequeue" / "T" / "0" / f"{20 * 4:020}").unlink()
    with StoreView.open(root, small) as view:
        found = DeliveredMessages(view, LEVEL, EXACT, lambda _: ()).after(0)
    assert (found.offset, set(found.others)) == (8, set())


def test_copies_after_a_gap_of_the_waiting_ones_are_found(log, tmp_path):
    small = CONFIG.with_(mapped_file_size_consume_queue=20 * 4)
    log.made.config = small
    for one in [log.wait(b"%d" % n, unique=f"id-{n}") for n in range(12)]:
        log.arrive(one)
    root = log.made.write(tmp_path)
    (root / "consumequeue" / SCHEDULE_TOPIC / str(LEVEL) / f"{20 * 4:020}").unlink()
    with StoreView.open(root, small) as view:
        found = DeliveredMessages(view, LEVEL, EXACT, lambda _: ()).after(0)
    assert (found.offset, set(found.others)) == (4, {8, 9, 10, 11})


def test_copies_begin_in_a_queue_with_missing_units(log, tmp_path):
    """The middle of the queue is gone: the search for the first copy meets it first."""
    small = CONFIG.with_(mapped_file_size_consume_queue=20 * 4)
    log.made.config = small
    waiting = log.wait(unique="a")
    place = log.arrive(waiting).commitlog_offset
    for _ in range(11):
        log.made.put("T", 0, b"other")
    root = log.made.write(tmp_path)
    (root / "consumequeue" / "T" / "0" / f"{20 * 4:020}").unlink()
    since = EXACT._replace(log_offset=place)
    with StoreView.open(root, small) as view:
        found = DeliveredMessages(view, LEVEL, since, lambda _: ()).after(0)
    assert (found.offset, set(found.others)) == (1, set())
