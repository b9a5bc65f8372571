"""A listener that takes rows of a table: it gets the same messages, and all rules hold for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker.api.offsets import OffsetCommit
from client.consumer.consumer_config import ConsumerConfig
from client.hooks import ConsumeMessageHook, FilterMessageHook
from client.listener.listener import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus
from storage import native
from storage.configs.topics import TopicConfig
from storage.format.message import SCHEDULE_TOPIC, Message, retry_topic
from storage.read.message_rows import MessageRows
from storage.store import MessageStore
from tests.support.consumers import Heard, pull_until, pull_what_is_there, rebalance, turn
from tests.support.consuming import QUEUE, Door, progress, queue_of
from tests.support.samples import SMALL

SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
LATER = ConsumeConcurrentlyStatus.RECONSUME_LATER
ROWS = {"pull_batch_size": 32, "consume_message_batch_max_size": 32}
MakeConsumer = Callable[..., Any]

pytestmark = pytest.mark.skipif(native.compiled is None, reason="needs RMQCTL_PURE to be empty")


@pytest.fixture
def broker(open_broker: Callable[[], Any], tmp_path: Path) -> Any:
    config = SMALL.with_(
        mapped_file_size_commit_log=8 << 20, mapped_file_size_consume_queue=1_000 * 20
    )
    MessageStore.create(tmp_path / "broker-a", config)
    return open_broker()


class Calls(Heard):
    """Notes how each call came, too."""

    def __init__(self, answer: Callable[[Any, Any], Any] = lambda messages, context: SUCCESS):
        super().__init__(answer)
        self.kinds: list[tuple[type, int]] = []

    def consume_message(self, messages: Any, context: Any) -> Any:
        self.kinds.append((type(messages), len(messages)))
        return super().consume_message(messages, context)

    @property
    def as_rows(self) -> int:
        return sum(count for kind, count in self.kinds if kind is MessageRows)


def started(make_consumer: MakeConsumer, heard: Calls, **settings: Any) -> Any:
    """A consumer with one thread that takes rows, with its queues."""
    config = ConsumerConfig(consume_thread_min=1, consume_thread_max=1, **{**ROWS, **settings})
    consumer = make_consumer("g", config=config)
    consumer.register_message_listener(heard, fields=())
    return consumer


def consume(consumer: Any, heard: Calls, count: int) -> None:
    consumer.start()
    rebalance(consumer)
    pull_until(consumer, lambda: len(heard.messages) >= count)
    pull_until(consumer, lambda: progress(consumer) == count)


def test_a_backlog_comes_as_rows_and_in_order(broker: Any, make_consumer: MakeConsumer) -> None:
    queue_of(broker, 900, begin=0)
    heard = Calls()
    consume(started(make_consumer, heard), heard, 900)
    assert heard.bodies == [b"%d" % n for n in range(900)]
    assert heard.kinds == [(MessageRows, 512), (MessageRows, 388)], "16 pulls, and the rest"
    first = heard.messages[0].properties
    assert (first["MIN_OFFSET"], first["MAX_OFFSET"]) == ("0", "900")
    assert int(first["CONSUME_START_TIME"])


def test_a_few_messages_come_as_ever(broker: Any, make_consumer: MakeConsumer) -> None:
    queue_of(broker, 63, begin=0)
    heard = Calls()
    consume(started(make_consumer, heard), heard, 63)
    assert heard.kinds == [(tuple, 32), (tuple, 31)]


@pytest.mark.parametrize("status", [LATER, None, "error", "ack_index"])
def test_what_fails_is_sent_back_message_by_message(
    broker: Any, make_consumer: MakeConsumer, status: object
) -> None:
    queue_of(broker, 100, begin=0)

    def answer(messages: Any, context: Any) -> Any:
        if messages[0].reconsume_times:
            return SUCCESS
        if status == "ack_index":
            context.ack_index = 59
            return SUCCESS
        if status == "error":
            raise ValueError("no")
        return status

    heard = Calls(answer)
    consumer = started(make_consumer, heard)
    consume(consumer, heard, 100)
    assert heard.as_rows == 100
    failed = range(60 if status == "ack_index" else 0, 100)
    retries = [
        message
        for offset in range(0, 100, 32)
        for message in broker.view.get_message(SCHEDULE_TOPIC, 2, offset, 32).messages
    ]
    assert [int(message.body) for message in retries] == list(failed)
    assert {message.get_property("REAL_TOPIC") for message in retries} == {retry_topic("g")}
    assert {message.reconsume_times for message in retries} == {1}


def test_a_queue_that_is_dropped_meanwhile_makes_no_progress(
    broker: Any, make_consumer: MakeConsumer
) -> None:
    queue_of(broker, 300, begin=0)
    door = Door(0)
    heard = Calls(door)
    consumer = started(make_consumer, heard)
    consumer.start()
    rebalance(consumer)
    pull_what_is_there(consumer)
    heard.wait_for(300)
    process_queue = consumer.process_queues[QUEUE]
    assert process_queue.msg_count == 300
    assert process_queue.msg_size == sum(len(b"%d" % n) for n in range(300))
    assert process_queue.get_max_span() == 299
    process_queue.dropped = True
    door.opened.set()
    consumer.shutdown()
    assert broker.query_consumer_offset("g", "T", 0).offset == 0


class Sees(ConsumeMessageHook):
    def consume_message_before(self, context: Any) -> None:
        """Nothing."""

    def consume_message_after(self, context: Any) -> None:
        """Nothing."""


class Takes(FilterMessageHook):
    def filter_message(self, context: Any) -> None:
        context.messages = [one for one in context.messages if one.queue_offset % 2]


@pytest.mark.parametrize("why", ["hook", "filter", "timer", "one by one", "tags", "orderly"])
def test_messages_are_objects_where_something_looks_at_each(
    broker: Any, make_consumer: MakeConsumer, why: str
) -> None:
    broker.update_topic(TopicConfig("T", 1, 1))
    for n in range(100):
        broker.send(Message("T", b"%d" % n, tags="AB"[n % 2]), 0)
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 0)])
    settings = {
        "timer": {"resend_after_if_still_un_ack_ms": 60_000},
        "one by one": {"consume_message_batch_max_size": 1},
    }.get(why, {})
    answer = ConsumeOrderlyStatus.SUCCESS if why == "orderly" else SUCCESS
    heard = Calls(lambda messages, context: answer)
    consumer = started(make_consumer, heard, **settings)
    if why == "hook":
        consumer.consume_hooks.append(Sees())
    elif why == "filter":
        consumer.filter_message_hooks.append(Takes())
    elif why == "tags":
        consumer.subscribe("T", "B")
    elif why == "orderly":
        consumer.register_message_listener_orderly(heard)
    consumer.start()
    turn(consumer)
    half = why in ("filter", "tags")
    pull_until(consumer, lambda: len(heard.messages) == (50 if half else 100))
    assert heard.as_rows == 0
    wanted = range(1, 100, 2) if half else range(100)
    assert sorted(int(body) for body in heard.bodies) == list(wanted)


def test_rows_of_a_member_go_to_the_next_one(broker: Any, make_consumer: MakeConsumer) -> None:
    """What was pulled and not consumed when a member leaves."""
    queue_of(broker, 700, begin=0)
    heard = Calls()
    consumer = started(make_consumer, heard)
    consumer.start()
    rebalance(consumer)
    assert consumer.instance.pull_service.run_once()
    heard.wait_for(512)
    consumer.shutdown()
    assert broker.query_consumer_offset("g", "T", 0).offset == 512
    again = Calls()
    second = started(make_consumer, again)
    second.start()
    rebalance(second)
    pull_until(second, lambda: progress(second) == 700)
    assert again.bodies == [b"%d" % n for n in range(512, 700)]
