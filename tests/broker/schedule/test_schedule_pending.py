"""Delayed delivery with puts under way: nothing is passed over before it is stored."""

from __future__ import annotations

import os
from concurrent.futures import Executor, Future

import pytest

from broker.config import BrokerConfig
from broker.schedule.pending import PendingDelayLevel
from broker.schedule.schedule import DelayOffsets
from storage.configs.delay_offsets import load_delay_offsets, save_delay_offsets
from storage.errors import StoreBrokenError
from storage.format.message import SCHEDULE_TOPIC, Message
from storage.results import PutMessageResult, PutMessageStatus
from tests.broker.schedule.test_schedule import store_waiting

pytestmark = pytest.mark.conformance("H13")

START = 1_700_000_000_000


class ByHand(Executor):
    """Runs what it was given when, and in which order, the test says so."""

    def __init__(self):
        self.waiting = []

    def submit(self, function, /, *args, **how):
        future: Future[object] = Future()
        self.waiting.append((future, lambda: function(*args, **how)))
        return future

    def finish(self, number=0):
        future, run = self.waiting.pop(number)
        try:
            future.set_result(run())
        except (OSError, ValueError) as error:
            future.set_exception(error)

    def shutdown(self, wait=True, *, cancel_futures=False):
        while wait and self.waiting:
            self.finish()


class Bench:
    """One level over a store, with a clock, a store that may refuse, and puts by hand."""

    def __init__(self, broker, config, clock):
        self.broker = broker
        self.clock = clock
        self.refusing = False
        self.executor = ByHand()
        store = broker.store
        self.level = PendingDelayLevel(
            1,
            1_000,
            config,
            view=lambda: store.view,
            put=self.put,
            now=lambda: clock[0],
            executor=self.executor,
        )
        self.level.load(None)

    def put(self, records):
        if self.refusing:
            return PutMessageResult(PutMessageStatus.SERVICE_NOT_AVAILABLE)
        return self.broker.store.put(records)

    def send(self, *bodies):
        for body in bodies:
            self.broker.send(Message("T", body, delay_time_level=1), 0)

    def pass_time(self, ms):
        self.clock[0] += ms
        return self.level.run() - self.clock[0]

    def progress(self):
        return self.level.delivered, self.level.pending

    def bodies(self):
        end = self.broker.max_offset("T", 0)
        found = [self.broker.view.get_message("T", 0, at, 1).messages[0] for at in range(end)]
        return [message.body for message in found]


@pytest.fixture
def bench(open_broker):
    clock = [START]
    config = BrokerConfig(schedule_async_deliver_max_pending_limit=3)
    return Bench(open_broker(clock=lambda: clock[0]), config, clock)


def test_the_offset_advances_over_the_finished_head_only(bench):
    bench.send(b"a", b"b", b"c")
    assert bench.pass_time(1_000) == 0
    assert bench.level.offset == 3
    bench.executor.finish(1)
    bench.executor.finish(1)
    assert bench.pass_time(10) == 10
    assert bench.progress() == (None, 3)
    bench.executor.finish(0)
    bench.pass_time(10)
    assert bench.progress() == (3, 0)
    assert bench.bodies() == [b"b", b"c", b"a"]


def test_a_real_queue_that_can_be_none_stops_nothing(bench):
    store_waiting(bench.broker, REAL_QID="2147483648")
    bench.send(b"after it")
    bench.pass_time(1_000)
    bench.executor.finish()
    bench.executor.finish()
    bench.pass_time(10)
    assert bench.progress() == (2, 0)
    assert bench.bodies() == [b"after it"]


def test_only_so_many_puts_are_under_way(bench):
    bench.send(*(b"%d" % n for n in range(10)))
    assert bench.pass_time(1_000) == 10
    assert bench.level.pending == 4  # RocketMQ looks whether there are more than the limit
    assert bench.pass_time(100) == 10
    assert bench.level.pending == 4
    bench.executor.finish()
    bench.pass_time(10)
    assert bench.level.pending == 4
    assert bench.level.offset == 5


def test_a_message_that_breaks_a_limit_is_passed_over_at_once(bench, caplog):
    bench.send(b"large", b"b")
    put = bench.put
    refused = PutMessageResult(PutMessageStatus.MESSAGE_ILLEGAL, reason="it is too large")
    bench.level._put = lambda records: (
        refused if b"large" in bytes(records.buffer) else put(records)
    )
    bench.pass_time(1_000)
    bench.executor.finish()
    bench.executor.finish()
    bench.pass_time(10)
    assert bench.progress() == (2, 0)
    assert bench.bodies() == [b"b"]
    assert caplog.messages == [
        "delay level 1 passes over its message 0, which is for topic T: it is too large"
    ]


def test_a_failed_put_is_tried_again_with_growing_pauses_and_blocks_its_level(bench):
    bench.refusing = True
    bench.send(b"a", b"b")
    bench.pass_time(1_000)
    pauses: list[int] = []
    for _ in range(5):
        while not bench.executor.waiting:
            pauses[-1] += 10
            bench.pass_time(10)
        bench.executor.finish()
        pauses.append(0)
    # a, b, and a again: 0, 100 and 200 ms after the look, 10 ms later, that found the failure
    assert pauses[:-1] == [0, 10, 110, 210]
    bench.send(b"c")
    bench.pass_time(1_000)
    assert bench.level.offset == 2  # a has failed too often: c waits
    bench.refusing = False
    for _ in range(500):
        if bench.executor.waiting:
            bench.executor.finish()
        bench.pass_time(10)
    assert bench.level.delivered == 3
    assert bench.bodies() == [b"a", b"b", b"c"]


def test_what_can_not_be_read_is_passed_over(bench):
    bench.send(b"a", b"b")
    units = bench.broker.view.units(SCHEDULE_TOPIC, 0, 0, 2)
    bench.pass_time(1_000)
    path = bench.broker.store.root / "commitlog" / ("0" * 20)
    with path.open("r+b") as file:
        file.seek(units[0][0] + 4)
        file.write(b"\0\0\0\0")
    bench.executor.finish()
    bench.executor.finish()
    bench.pass_time(10)
    assert bench.level.delivered == 2
    assert bench.bodies() == [b"b"]


@pytest.mark.slow
def test_a_shutdown_waits_for_puts_and_leaves_failed_ones_for_the_next_start(bench):
    bench.send(b"a", b"b")
    bench.pass_time(1_000)
    bench.executor.finish()
    bench.refusing = True
    bench.level.settle()
    assert bench.level.delivered == 1
    assert bench.level.offset == 1
    assert bench.level.pending == 0


def test_the_service_delivers_this_way_if_told_to(open_broker, root):
    clock = [START]
    config = BrokerConfig(enable_schedule_async_deliver=True)
    broker = open_broker(config, clock=lambda: clock[0])
    for n in range(20):
        broker.send(Message("T", b"%d" % n, delay_time_level=1), 0)
    clock[0] += 1_000
    broker.delayed.tick(clock[0])
    broker.delayed.shutdown()
    assert broker.max_offset("T", 0) == 20
    assert load_delay_offsets(root) == {1: 20}


def test_a_store_that_refuses_writes_for_good_is_not_asked_again(open_broker):
    clock = [START]
    broker = open_broker(BrokerConfig(enable_schedule_async_deliver=True), clock=lambda: clock[0])
    broker.send(Message("T", b"a", delay_time_level=1))
    delayed, store = broker.delayed, broker.store
    delayed.tick(clock[0])
    store._break(OSError("no luck"))
    clock[0] += 1_000

    def tick_on():
        while True:
            delayed.tick(clock[0])
            os.sched_yield()

    with pytest.raises(StoreBrokenError, match="open the store anew"):
        tick_on()
    delayed.shutdown()


def test_delivery_that_was_handed_over_writes_no_offsets(root):
    delivered = {1: 3}
    offsets = DelayOffsets(root, 10_000, lambda: delivered)
    offsets.close()
    save_delay_offsets(root, {1: 7})  # of the next process
    offsets.persist()
    assert load_delay_offsets(root) == {1: 7}
