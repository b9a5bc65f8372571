"""Delayed messages: when they are delivered, what becomes of them, and what a restart repeats."""

from __future__ import annotations

import json
import shutil

import pytest

from broker.api.pull import PullRequest
from broker.api.send_back import SendBackRequest
from broker.config import BrokerConfig
from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from broker.schedule.level import BATCH_UNITS
from broker.schedule.schedule import ScheduleMessageService
from storage.config import SMALL_STORE
from storage.configs.delay_offsets import load_delay_offsets
from storage.configs.early_deliveries import EarlyDeliveries
from storage.configs.topics import topics_file
from storage.format.delay import parse_delay_levels
from storage.format.message import SCHEDULE_TOPIC, TRANS_HALF_TOPIC, Message
from storage.results import PutMessageResult, PutMessageStatus
from tests.support import golden
from tests.support.same_records import all_messages, content, only

START = 1_700_000_000_000
LEVELS = parse_delay_levels()


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def delaying(open_broker, clock):
    broker = open_broker(clock=clock)
    broker.delayed.tick(clock.now)
    return broker


def delayed_of(broker):
    return broker.delayed


def send(broker, level, body=b"x", **how):
    return broker.send(Message("T", body, delay_time_level=level, **how), 0)


def messages(broker, topic="T", queue_id=0):
    end = broker.max_offset(topic, queue_id)
    found = [broker.view.get_message(topic, queue_id, at, 1).messages for at in range(end)]
    return [message for run in found for message in run]


def bodies(broker, topic="T"):
    return [message.body for message in messages(broker, topic)]


def tick(broker, clock, ms=0):
    """Let time pass, then tick until nothing is due; gives when the next tick is."""
    clock.now += ms
    while (due := broker.delayed.tick(clock.now)) <= clock.now:
        pass
    return min(due, broker.delayed.offsets.tick(clock.now)) - clock.now


@pytest.mark.conformance("H9", "H12")
def test_a_message_of_level_five_arrives_a_minute_after_it_was_stored(delaying, clock):
    send(delaying, 5, b"later", tags="A", keys="k")
    assert tick(delaying, clock) <= 60_000
    tick(delaying, clock, 59_999)
    assert bodies(delaying) == []
    tick(delaying, clock, 1)
    message = only(messages(delaying))
    assert message.store_timestamp - message.born_timestamp == 60_000
    assert (message.body, message.tags, message.keys) == (b"later", "A", ("k",))


@pytest.mark.conformance("H9")
def test_a_level_beyond_the_table_is_the_last_one_and_the_table_can_be_chosen(open_broker, clock):
    from dataclasses import replace

    config = replace(SMALL_STORE, message_delay_level="1s 2s 3s")
    broker = open_broker(clock=clock, store_config=config)
    send(broker, 99)
    assert only(messages(broker, SCHEDULE_TOPIC, 2)).get_property("DELAY") == "3"
    tick(broker, clock, 2_999)
    assert bodies(broker) == []
    tick(broker, clock, 1)
    assert bodies(broker) == [b"x"]


@pytest.mark.conformance("H10", "H11")
def test_a_waiting_messages_unit_holds_its_time_and_its_properties_the_real_queue(delaying):
    delaying.send(Message("T", b"x", delay_time_level=4, tags="A"), 3)
    stored = only(messages(delaying, SCHEDULE_TOPIC, 3))
    assert stored.get_property("REAL_TOPIC") == "T"
    assert stored.get_property("REAL_QID") == "3"
    unit = delaying.view.unit(SCHEDULE_TOPIC, 3, 0)
    assert unit == (stored.commitlog_offset, stored.store_size, START + LEVELS[3])


@pytest.mark.conformance("H14", "H15")
def test_a_delivered_message_is_an_ordinary_one_of_its_real_queue(delaying, clock):
    result = send(delaying, 1, b"abc" * 3000, tags="A", keys="k", flag=5)
    before = only(messages(delaying, SCHEDULE_TOPIC, 0))
    clock.now += 1_000
    tick(delaying, clock)
    after = only(messages(delaying))
    moved = {"topic": "T", "queue_id": 0, "store_size": after.store_size}
    assert content(after) == {**content(before), **moved}
    assert after.property_bytes == before.property_bytes
    assert after.msg_id == before.msg_id == result.msg_id
    assert after.commitlog_offset > before.commitlog_offset
    assert delaying.view.unit("T", 0, 0)[2] == ord("A")
    assert only(delaying.query_unique("T", result.msg_id)).commitlog_offset == (
        after.commitlog_offset
    )


@pytest.mark.conformance("H12")
def test_the_head_of_a_level_decides_and_levels_do_not_wait_for_each_other(delaying, clock):
    send(delaying, 2, b"first")
    clock.now += 3_000
    send(delaying, 1, b"overtakes")
    send(delaying, 2, b"second")
    assert tick(delaying, clock) <= 1_000
    assert tick(delaying, clock, 1_000) == 1_000
    assert bodies(delaying) == [b"overtakes"]
    assert tick(delaying, clock, 1_000) <= 1_000
    assert bodies(delaying) == [b"overtakes", b"first"]
    tick(delaying, clock, 3_000)
    assert bodies(delaying) == [b"overtakes", b"first", b"second"]


def test_an_idle_store_is_looked_at_as_seldom_as_its_shortest_delay_allows(delaying, clock):
    assert tick(delaying, clock) == 1_000
    looked = 0
    for _ in range(60):
        looked += 1
        tick(delaying, clock, tick(delaying, clock))
    assert clock.now - START >= looked * 1_000


@pytest.mark.conformance("H12")
def test_whatever_is_stored_at_any_time_is_delivered_when_it_is_due(delaying, clock):
    """Ticks come only when the last one said so; nothing else wakes the service."""
    due = clock.now + tick(delaying, clock)
    for step in range(0, 30_000, 70):
        clock.now = START + step
        if step % 210 == 0:
            send(delaying, 1 + step % 2, str(clock.now).encode())
        while due <= clock.now:
            due = delaying.delayed.tick(clock.now)
    late = [
        message.store_timestamp - int(message.body) - LEVELS[message.delay_time_level - 1]
        for message in messages(delaying)
    ]
    assert len(late) > 100
    assert min(late) >= 0
    assert max(late) < 100


@pytest.mark.conformance("H12")
def test_a_restart_goes_on_from_delay_offset_json(open_broker, clock, root):
    broker = open_broker(clock=clock)
    send(broker, 1, b"a")
    tick(broker, clock, 1_000)
    send(broker, 1, b"b")
    broker.delayed.shutdown()
    assert load_delay_offsets(root) == {1: 1}
    text = (root / "config" / "delayOffset.json").read_text()
    assert text == '{\n\t"offsetTable":{1:1\n\t}\n}'
    broker.close()
    again = open_broker(clock=clock)
    tick(again, clock, 1_000)
    assert bodies(again) == [b"a", b"b"]


@pytest.mark.conformance("H12")
def test_progress_is_written_with_each_batch_and_on_the_device_every_ten_seconds(
    open_broker, clock, root
):
    broker = open_broker(clock=clock)
    tick(broker, clock)
    send(broker, 1, b"a")
    tick(broker, clock, 1_000)
    assert load_delay_offsets(root) == {1: 1}
    send(broker, 1, b"b")
    tick(broker, clock, 1_000)
    assert load_delay_offsets(root) == {1: 2}
    bak = root / "config" / "delayOffset.json.bak"
    assert not bak.exists()
    tick(broker, clock, 8_000)
    assert bak.read_text() == (root / "config" / "delayOffset.json").read_text()


@pytest.mark.conformance("H12")
@pytest.mark.parametrize("saved", [-5, 0, 2, 99])
def test_offsets_outside_of_their_queue_are_corrected(open_broker, clock, root, saved):
    broker = open_broker(clock=clock)
    send(broker, 1, b"a")
    send(broker, 1, b"b")
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "delayOffset.json").write_text(f'{{"offsetTable":{{1:{saved},7:3,99:4}}}}')
    tick(broker, clock, 1_000)
    assert bodies(broker) == ([b"a", b"b"] if saved < 2 else [])
    broker.delayed.shutdown()
    assert load_delay_offsets(root) == {1: 2, 7: 0, 99: 4}


def test_a_queue_that_was_cut_is_found_again_while_running(delaying, clock):
    send(delaying, 1, b"a")
    tick(delaying, clock, 1_000)
    level = delaying.delayed._levels[0]
    level.offset = 50
    assert tick(delaying, clock, 1_000) == 100
    assert level.offset == 1


@pytest.mark.conformance("H12")
@pytest.mark.slow
def test_a_delivery_time_that_lies_too_far_ahead_is_now(tmp_path, clock):
    """A real broker's message of a level of ten years; the level has two hours here."""
    root = golden.extract("retry-dlq-4.9", tmp_path)
    with EmbeddedBroker.open(root, clock=clock) as broker:
        waiting = messages(broker, SCHEDULE_TOPIC, 17)
        clock.now = waiting[-1].store_timestamp + 10_000
        before = all_messages(broker.view)
        tick(broker, clock)
        delivered = all_messages(broker.view)[len(before) :]  # all else was delivered before
        assert {message.topic for message in delivered} == {"GoldenDelayed"}
        assert [message.msg_id for message in delivered] == [m.msg_id for m in waiting]
        delayed_of(broker).shutdown()
        assert load_delay_offsets(root) == {1: 5, 2: 5, 3: 45, 4: 17, 5: 13, 18: len(waiting)}


@pytest.mark.conformance("H12")
def test_a_clock_that_steps_back_a_little_makes_nothing_early(open_broker, clock):
    broker = open_broker(clock=clock)
    send(broker, 1, b"a")
    clock.now -= 500
    tick(broker, clock)
    assert bodies(broker) == []
    tick(broker, clock, 1_500)
    assert bodies(broker) == [b"a"]


def test_a_clock_that_jumps_back_stops_nothing(delaying, clock):
    send(delaying, 1, b"a")
    tick(delaying, clock)
    clock.now -= 3_600_000
    tick(delaying, clock)
    assert bodies(delaying) == [b"a"]
    send(delaying, 1, b"b")
    tick(delaying, clock, 1_000)
    assert bodies(delaying) == [b"a", b"b"]


def test_what_can_not_be_delivered_is_passed_over(delaying, clock, caplog):
    ids = [("REAL_QID", value) for value in ("-1", "2147483648", "9" * 19)]
    for name, value in (("REAL_TOPIC", ""), ("REAL_TOPIC", TRANS_HALF_TOPIC), *ids):
        store_waiting(delaying, **{name: value})
    send(delaying, 1, b"behind them")
    tick(delaying, clock, 1_000)
    assert bodies(delaying) == [b"behind them"]
    assert delaying.max_offset(TRANS_HALF_TOPIC, 0) == 0
    assert len(caplog.records) == 5


@pytest.mark.parametrize("topic", ["a\0b", "../../outside", "a/b", "..", ".", "a\nb", "a\x7f"])
def test_a_real_topic_that_can_be_no_folder_stops_no_level(delaying, clock, root, topic):
    send(delaying, 1, b"before it")
    store_waiting(delaying, REAL_TOPIC=topic)
    send(delaying, 1, b"behind it")
    folders = [root.parent, root, root / "consumequeue"]
    before = {path for folder in folders for path in folder.iterdir()}
    tick(delaying, clock, 1_000)
    assert bodies(delaying) == [b"before it", b"behind it"]
    after = {path for folder in folders for path in folder.iterdir()}
    assert after - before == {root / "consumequeue" / "T"}
    assert {topic for topic, _ in delaying.view.queues()} == {"T", SCHEDULE_TOPIC}


def store_waiting(broker, **properties):
    """Store a record in level 1's queue that no client could send there."""
    from broker.send.message_builder import Schedule, stored_again
    from broker.send.send import prepared

    send(broker, 18)
    waiting = messages(broker, SCHEDULE_TOPIC, 17)[-1]
    encoded = broker._builder.encode({**waiting.properties, **properties})
    inner = stored_again(waiting, SCHEDULE_TOPIC, 0, encoded, schedule=Schedule(1, 1_000))
    broker.store.put(prepared([inner]))


def test_many_messages_go_with_few_puts_and_in_order(open_broker, clock):
    broker = open_broker(clock=clock)
    count = BATCH_UNITS * 2 + 10
    broker.send_column("T", [b"%d" % n for n in range(count)], 0, properties={"DELAY": "1"})
    puts = []

    def put(records):
        puts.append(len(records))
        return broker.store.put(records)

    service = service_over(broker, clock, put=put)
    clock.now += 1_000
    while service.tick(clock.now) <= clock.now:
        pass
    assert [int(body) for body in bodies(broker)] == list(range(count))
    assert puts == [BATCH_UNITS, BATCH_UNITS, 10]


def test_of_a_batch_only_what_was_sent_before_its_time_is_left_out(open_broker, clock, root):
    broker = open_broker(clock=clock)
    for body in (b"a", b"early", b"c", b"early too", b"e"):
        send(broker, 1, body)
        send(broker, 2, body)
    places = [unit[0] for unit in broker.view.units(SCHEDULE_TOPIC, 0, 0, 5)]
    puts = []

    def put(records):
        puts.append(len(records))
        return broker.store.put(records)

    service = service_over(broker, clock, put=put)
    service.tick(clock.now)
    # Of the other level the same queue offsets; and an offset with the place of another message.
    EarlyDeliveries(root).add({0: [(1, places[1]), (3, places[3]), (4, places[0])]})
    clock.now += 1_000
    service.tick(clock.now)
    assert bodies(broker) == [b"a", b"c", b"e"]
    assert puts == [3]
    clock.now += 4_000
    service.tick(clock.now)
    assert bodies(broker)[3:] == [b"a", b"early", b"c", b"early too", b"e"]
    service.shutdown()
    assert load_delay_offsets(root) == {1: 5, 2: 5}


def service_over(broker, clock, *, put=None, config=None):
    store = broker.store
    return ScheduleMessageService(
        store.root,
        config or BrokerConfig(),
        LEVELS,
        view=lambda: store.view,
        put=put or store.put,
        now=clock,
    )


def test_what_the_store_does_not_take_is_tried_again_and_holds_up_its_level_only(
    open_broker, clock
):
    broker = open_broker(clock=clock)
    for body in (b"a", b"poison", b"c"):
        send(broker, 1, body)
    send(broker, 2, b"other level")
    busy = True

    def put(records):
        if busy and b"poison" in bytes(records.buffer):
            return PutMessageResult(PutMessageStatus.OS_PAGECACHE_BUSY)
        return broker.store.put(records)

    service = service_over(broker, clock, put=put)
    clock.now += 5_000
    while (due := service.tick(clock.now)) <= clock.now:
        pass
    assert due == clock.now + 100
    assert bodies(broker) == [b"a", b"other level"]
    clock.now += 100
    assert service.tick(clock.now) == clock.now + 100
    busy = False
    clock.now += 100
    service.tick(clock.now)
    assert bodies(broker) == [b"a", b"other level", b"poison", b"c"]


def test_a_level_that_breaks_is_tried_again_after_ten_seconds(open_broker, clock, caplog):
    broker = open_broker(clock=clock)
    send(broker, 1, b"a")
    broken = True

    def put(records):
        if broken:
            raise OSError(5, "no disk")
        return broker.store.put(records)

    service = service_over(broker, clock, put=put)
    clock.now += 1_000
    service.tick(clock.now)
    broken = False
    clock.now += 9_999
    service.tick(clock.now)
    assert bodies(broker) == []
    assert "no disk" in caplog.text
    clock.now += 1
    service.tick(clock.now)
    assert bodies(broker) == [b"a"]


@pytest.mark.slow
@pytest.mark.conformance("H6", "H7", "H8")
def test_sixteen_retries_come_after_growing_waits_and_the_seventeenth_failure_is_final(
    delaying, clock
):
    delaying.send(Message("T", b"x"), 0)
    message = only(messages(delaying))
    first_failure = clock.now
    waits, seen = [], [message.reconsume_times]
    for attempt in range(16):
        failed_at = clock.now
        delaying.send_message_back(SendBackRequest("g", "T", message.commitlog_offset, ""))
        while delaying.max_offset("%RETRY%g", 0) == attempt:
            tick(delaying, clock, tick(delaying, clock))
        message = messages(delaying, "%RETRY%g")[-1]
        waits.append((message.store_timestamp - failed_at) // 1000)
        seen.append(message.reconsume_times)
    assert waits == [
        10,
        30,
        60,
        120,
        180,
        240,
        300,
        360,
        420,
        480,
        540,
        600,
        1200,
        1800,
        3600,
        7200,
    ]
    assert (clock.now - first_failure) // 1000 == 17_140
    assert seen == list(range(17))
    assert messages(delaying, "%DLQ%g") == []
    delaying.send_message_back(SendBackRequest("g", "T", message.commitlog_offset, ""))
    letter = only(messages(delaying, "%DLQ%g"))
    assert (letter.reconsume_times, letter.get_property("RETRY_TOPIC")) == (17, "T")
    [read] = delaying.pull(PullRequest("monitor", "%DLQ%g", 0, 0)).messages
    delaying.send(Message("T", read.body), 0)
    assert bodies(delaying) == [b"x", b"x"]


@pytest.mark.conformance("H18")
def test_the_topic_of_delayed_messages_exists_from_the_start(tmp_path, clock):
    create_store(tmp_path / "made", SMALL_STORE, clock=clock)
    topic = topics_file(tmp_path / "made").read(0).items[SCHEDULE_TOPIC]
    assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm) == (18, 18, 6)


@pytest.mark.conformance("H18")
def test_a_broker_that_starts_writes_the_topic_of_delayed_messages(open_broker, root):
    broker = open_broker()
    assert topics_file(root).read(0).get(SCHEDULE_TOPIC) is None
    broker.start_services()
    assert topics_file(root).read(0).items[SCHEDULE_TOPIC].read_queue_nums == 18


@pytest.mark.slow
def test_a_store_that_rmqctl_did_not_make_is_delivered_from_only_on_request(open_broker, root):
    shutil.rmtree(root / "rmqctl")
    broker = open_broker()
    broker.start_services()
    assert topics_file(root).read(0).get(SCHEDULE_TOPIC) is None
    assert not broker.elected
    broker.close()
    asked = open_broker()
    send(asked, 1)
    asked.start_services(deliver=True)
    known = asked.wait_for_messages(None, 0)
    for _ in range(20):
        if asked.max_offset("T", 0):
            break
        known = asked.wait_for_messages(known, 1_000, "T")
    assert bodies(asked) == [b"x"]
    asked.close()
    assert json.loads((root / "config" / "delayOffset.json").read_text().replace("1:", '"1":'))


def test_a_service_that_was_never_ticked_writes_nothing(open_broker, root):
    broker = open_broker()
    broker.delayed.shutdown()
    broker.close()
    assert not (root / "config" / "delayOffset.json").exists()


def test_progress_can_be_shown(delaying, clock):
    send(delaying, 1)
    send(delaying, 1)
    tick(delaying, clock, 1_000)
    send(delaying, 1)
    first = delaying.delayed.progress()[0]
    assert first == (1, 2, 3)
    assert len(delaying.delayed.progress()) == 18
