"""Delayed delivery that is interrupted at any instant: no message comes twice, none is lost."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from broker.config import BrokerConfig
from broker.schedule import level
from broker.schedule.schedule import ScheduleMessageService
from broker.send.message_builder import Schedule, stored_again
from broker.send.send import prepared
from storage.configs.delay_offsets import load_delay_offsets
from storage.configs.delivery_notes import DeliveryNotes
from storage.format.delay import parse_delay_levels
from storage.format.message import SCHEDULE_TOPIC, Message
from tests.support.broken_off import BrokenOff, broken_off
from tests.support.cli import run

START = 1_700_000_000_000
ASYNC = BrokerConfig(enable_schedule_async_deliver=True)


class Bench:
    def __init__(self, open_broker, root, config=None):
        self.now = START
        self.root = root
        self.config = config or BrokerConfig()
        self.broker = open_broker(clock=lambda: self.now)
        self.sent = 0

    def send(self, count=1, delay=1, **properties):
        for _ in range(count):
            properties = {"DELAY": str(delay), **properties}
            self.broker.send(Message("T", b"%d" % self.sent, properties=properties), self.sent % 2)
            self.sent += 1

    def service(self, put=None):
        store = self.broker.store
        return ScheduleMessageService(
            self.root,
            self.config,
            parse_delay_levels("1s 5s"),
            view=lambda: store.view,
            put=put or store.put,
            now=lambda: self.now,
        )

    def deliver(self, service=None):
        service = service or self.service()
        while service.tick(self.now) <= self.now:
            pass
        return service

    def bodies(self):
        view = self.broker.view
        return sorted(
            int(message.body)
            for queue_id in (0, 1)
            for offset in range(view.max_offset_in_queue("T", queue_id))
            for message in view.get_message("T", queue_id, offset, 1).messages
        )


@pytest.fixture
def bench(open_broker, root):
    return Bench(open_broker, root)


@pytest.mark.slow
def test_wherever_delivery_is_broken_off_each_message_comes_once(bench):
    def work():
        bench.send(2)
        bench.send(1, delay=2)
        bench.now += 6_000
        bench.deliver()

    instants = 0
    for instants in broken_off(work, level):  # noqa: B007
        bench.deliver()
    bench.deliver()
    assert bench.bodies() == list(range(bench.sent))
    assert instants > 30


def stores_and_dies(bench):
    def put(records):
        bench.broker.store.put(records)
        raise BrokenOff

    return put


@pytest.mark.parametrize("lost", ["nothing", "progress", "notes", "both"])
def test_what_was_stored_last_is_found_whatever_file_is_lost(bench, lost):
    """A power loss may take the last writes of either file, or both."""
    bench.send(3)
    bench.now += 1_000
    bench.deliver().shutdown()
    progress = bench.root / "config" / "delayOffset.json"
    notes = bench.root / "rmqctl" / "deliveries"
    before = progress.read_bytes(), notes.read_bytes()
    for _ in range(5):
        bench.send(3)
        bench.now += 1_000
        with pytest.raises(BrokenOff):
            bench.deliver(bench.service(stores_and_dies(bench)))
        if lost in ("progress", "both"):
            progress.write_bytes(before[0])
        if lost in ("notes", "both"):
            notes.write_bytes(before[1])
    bench.deliver()
    assert bench.bodies() == list(range(bench.sent))


@pytest.mark.slow
def test_ten_kills_with_a_backlog_repeat_nothing(bench):
    chance = random.Random(1)
    bench.send(3_000)
    bench.now += 1_000
    for _ in range(10):
        left = [chance.randrange(3)]

        def put(records, left=left):
            result = bench.broker.store.put(records)
            left[0] -= 1
            if left[0] < 0:
                raise BrokenOff
            return result

        with suppress(BrokenOff):
            bench.deliver(bench.service(put))
    bench.deliver()
    assert bench.bodies() == list(range(3_000))


def test_equal_messages_without_an_id_are_counted(bench):
    def store_two():
        for _ in range(2):
            bench.broker.store.put(prepared([inner]))

    view = bench.broker.view
    bench.send()
    waiting = view.get_message(SCHEDULE_TOPIC, 0, 0, 1).messages[0]
    properties = {**waiting.properties}
    del properties["UNIQ_KEY"]
    encoded = bench.broker._builder.encode(properties)
    inner = stored_again(waiting, SCHEDULE_TOPIC, 0, encoded, schedule=Schedule(1, 1_000))
    bench.now += 1_000
    bench.deliver().shutdown()
    store_two()
    bench.now += 1_000
    with pytest.raises(BrokenOff):
        bench.deliver(bench.service(stores_and_dies(bench)))
    assert bench.bodies() == [0] * 3
    store_two()
    bench.now += 1_000
    bench.deliver()
    assert bench.bodies() == [0] * 5


def test_messages_delivered_one_by_one_by_threads_come_once(open_broker, root):
    bench = Bench(open_broker, root, ASYNC)
    for _ in range(4):
        bench.send(5)
        bench.now += 1_000
        service = bench.service()
        service.tick(bench.now)
        for one in service._levels:  # puts end, and nothing is written of them: as if killed
            if one._executor is not None:
                one._executor.shutdown(wait=True)
    bench.service().tick(bench.now)
    last = bench.service()
    last.tick(bench.now)
    last.shutdown()
    assert bench.bodies() == list(range(bench.sent))


def test_an_older_progress_file_repeats_nothing_that_the_log_still_shows(bench):
    bench.send(3)
    bench.now += 1_000
    bench.deliver().shutdown()
    old = (bench.root / "config" / "delayOffset.json").read_bytes()
    bench.send(3)
    bench.now += 1_000
    bench.deliver().shutdown()
    (bench.root / "config" / "delayOffset.json").write_bytes(old)
    DeliveryNotes(bench.root).path.unlink()
    bench.deliver()
    assert bench.bodies() == list(range(6))
    assert load_delay_offsets(bench.root) == {1: 6}


def test_the_notes_are_a_file_as_the_store_needs_it(bench):
    """Users who share a store by its group write them, too; nothing is written through a link."""
    bench.root.chmod(0o2770)
    (bench.root / "rmqctl").chmod(0o2770)
    notes = bench.root / "rmqctl" / "deliveries"
    notes.unlink(missing_ok=True)
    bench.send(1)
    bench.now += 1_000
    bench.deliver().shutdown()
    assert notes.stat().st_mode & 0o777 == 0o660
    elsewhere = bench.root.parent / "elsewhere"
    elsewhere.write_bytes(b"of another")
    notes.unlink()
    notes.symlink_to(elsewhere)
    bench.send(1)
    bench.now += 1_000
    bench.deliver().shutdown()
    assert elsewhere.read_bytes() == b"of another"
    assert bench.bodies() == [0, 1]


def test_a_snapshot_has_the_notes_and_its_delivery_repeats_nothing(bench, tmp_path):
    bench.send(3)
    bench.now += 1_000
    with pytest.raises(BrokenOff):
        bench.deliver(bench.service(stores_and_dies(bench)))
    bench.broker.store.flush()
    target = tmp_path / "snapshot"
    taken = run("store", "snapshot", "--save", target, "-S", bench.root)
    assert taken.code == 0, taken
    ours = "rmqctl/deliveries"
    assert (target / ours).read_bytes() == (bench.root / ours).read_bytes()
    for damaged in (b"", b"\xff" * 700, (bench.root / ours).read_bytes()[:70]):
        (bench.root / ours).write_bytes(damaged)
        checked = run("store", "fsck", "--fail-on", "warning", "-S", bench.root)
        assert checked.code == 0, checked
    bench.deliver()
    assert bench.bodies() == [0, 1, 2]
