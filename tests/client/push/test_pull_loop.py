"""One pull after the other: what is asked for, what holds it up, and what each answer leads to."""

from __future__ import annotations

import threading

import pytest

from broker.api.offsets import OffsetCommit
from broker.api.pull import PullRequest as PullMessage, PullStatus
from broker.errors import BrokerError, BrokerSystemError, ResponseCode
from client.consumer.consumer_config import ConsumerConfig
from client.listener.listener import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus
from client.listener.process_queue import ProcessQueue
from client.offset_store.offset_store import ReadOffsetType
from storage.configs.topics import TopicConfig
from storage.format.java_hash import java_hash
from storage.format.message import Message, MessageQueue
from tests.support.consumers import (
    Heard,
    eventually,
    fill,
    pull_until,
    pull_what_is_there,
    rebalance,
    turn,
)
from tests.support.failing_broker import FailingBroker
from tests.support.messages import pulled

QUEUE = MessageQueue("T", "broker-a", 0)
SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS


def send_many(broker, count: int, body: bytes = b"x", **options) -> None:
    if broker.topic("T") is None:
        broker.update_topic(TopicConfig("T", 1, 1))
    for begin in range(0, count, 100):
        messages = [Message("T", body, **options) for _ in range(min(100, count - begin))]
        broker.send_batch(messages, 0)


def only_queue(consumer):
    return consumer.process_queues[QUEUE]


@pytest.fixture
def recorded(broker, clock) -> FailingBroker:
    """The broker, and what it was asked to pull."""
    failing = FailingBroker(broker, clock)
    failing.always("pull_async", None)
    return failing


def pulls_of(recorded: FailingBroker, topic: str = "T") -> list[PullMessage]:
    wires = [arguments[0] for name, arguments in recorded.calls if name == "pull_async"]
    return [wire for wire in wires if wire.topic == topic]


@pytest.mark.conformance("D2")
def test_a_pull_asks_for_what_4_9_asks_for(broker, recorded, make_consumer):
    fill(broker, 3, queues=1)
    pulled = threading.Event()
    heard = Heard(lambda messages, context: pulled.wait(20) and SUCCESS)
    consumer = make_consumer(listener=heard, brokers=[recorded])
    consumer.start()
    rebalance(consumer)
    assert consumer.instance.pull_service.run_once()
    assert consumer.instance.pull_service.run_once()
    version = consumer.announced("T").sub_version
    assert pulls_of(recorded)[0] == PullMessage(
        "g", "T", 0, 0, 32, None, "TAG", 15_000, None, version, consumer.client_id
    )
    pulled.set()
    eventually(lambda: len(heard.bodies) == 3 and only_queue(consumer).msg_count == 0)
    pull_what_is_there(consumer)
    assert pulls_of(recorded)[1].queue_offset == 3
    assert pulls_of(recorded)[1].commit == OffsetCommit("T", 0, 3)


@pytest.mark.conformance("D2")
def test_a_pull_says_what_is_subscribed_only_if_it_is_to(broker, recorded, make_consumer):
    fill(broker, 0, queues=1)
    config = ConsumerConfig(post_subscription_when_pull=True, pull_batch_size=7)
    consumer = make_consumer(brokers=[recorded], config=config)
    consumer.subscribe("T", "A || B")
    consumer.start()
    turn(consumer)
    (wire,) = pulls_of(recorded)
    assert (wire.expression, wire.expression_type, wire.max_msg_nums) == ("A || B", "TAG", 7)


@pytest.mark.conformance("G7", "D12")
def test_progress_goes_with_the_pulls_when_the_timer_does_not_run(broker, make_consumer):
    fill(broker, 4, queues=1)
    pulled = threading.Event()
    heard = Heard(lambda messages, context: pulled.wait(20) and SUCCESS)
    consumer = make_consumer(listener=heard)
    consumer.start()
    turn(consumer)
    pulled.set()
    eventually(lambda: len(heard.bodies) == 4 and only_queue(consumer).msg_count == 0)
    assert broker.query_consumer_offset("g", "T", 0).offset == 0
    fill(broker, 1, queues=1)  # the held pull is answered, and the next one carries the 4 or 5
    pull_until(consumer, lambda: broker.query_consumer_offset("g", "T", 0).offset in (4, 5))


@pytest.mark.conformance("D3", "D1")
def test_the_same_request_goes_round_whatever_the_answer(broker, make_consumer, monkeypatch):
    fill(broker, 2, queues=1)
    heard = Heard()
    consumer = make_consumer(listener=heard)
    consumer.subscribe("T", "wanted")
    consumer.start()
    statuses: list[PullStatus] = []
    requests: set[int] = set()
    answered = consumer.pull_loop._answered

    def note(request, subscription, begin_ms, wire, result):
        if request.message_queue == QUEUE:
            statuses.append(result.pull_status)
            requests.add(id(request))
        return answered(request, subscription, begin_ms, wire, result)

    monkeypatch.setattr(consumer.pull_loop, "_answered", note)
    turn(consumer)
    assert statuses == [PullStatus.NO_MATCHED_MSG], "then it is held, as nothing is there"
    broker.send(Message("T", b"it", tags="wanted"), 0)
    pull_until(consumer, lambda: heard.bodies)
    assert statuses == [PullStatus.NO_MATCHED_MSG, PullStatus.FOUND]
    consumer.configure(broker_suspend_max_time_ms=50)
    broker.send(Message("T", b"it", tags="wanted"), 0)
    pull_until(consumer, lambda: PullStatus.NO_NEW_MSG in statuses)
    assert statuses[2:4] == [PullStatus.FOUND, PullStatus.NO_NEW_MSG]
    assert len(requests) == 1


@pytest.mark.conformance("D4")
def test_a_tag_of_the_same_hash_passes_the_broker_and_ends_at_the_client(broker, make_consumer):
    assert java_hash("Aa") == java_hash("BB")
    broker.update_topic(TopicConfig("T", 1, 1))
    for tags in ("BB", "Aa", None, "BB", "A"):
        broker.send(Message("T", repr(tags).encode(), tags=tags), 0)
    heard = Heard()
    consumer = make_consumer(listener=heard)
    consumer.subscribe("T", "Aa")
    consumer.start()
    turn(consumer)
    heard.wait_for(1)
    assert heard.bodies == [b"'Aa'"]
    eventually(lambda: only_queue(consumer).msg_count == 0)


@pytest.mark.conformance("D4")
def test_a_pull_of_nothing_but_other_tags_still_moves_on(broker, make_consumer):
    broker.update_topic(TopicConfig("T", 1, 1))
    for _ in range(3):
        broker.send(Message("T", b"x", tags="BB"), 0)
    consumer = make_consumer()
    consumer.subscribe("T", "Aa")
    consumer.start()
    turn(consumer)
    consumer.persist_consumer_offset()
    assert broker.query_consumer_offset("g", "T", 0).offset in (0, 3)
    consumer.shutdown()


@pytest.mark.conformance("A16", "G11")
def test_listeners_see_the_bounds_of_the_queue_and_may_skip_what_is_far_behind(
    broker, make_consumer
):
    send_many(broker, 20)
    skipped = []

    def skip_far_behind(messages, context):
        for message in messages:
            pull_more = int(message.get_property("MAX_OFFSET")) - message.queue_offset
            assert message.get_property("MIN_OFFSET") == "0"
            if pull_more > 5:
                skipped.append(message.queue_offset)
        return SUCCESS

    heard = Heard(skip_far_behind)
    consumer = make_consumer(listener=heard)
    consumer.start()
    turn(consumer)
    heard.wait_for(20)
    eventually(lambda: len(skipped) == 15)
    assert sorted(skipped) == list(range(15))


# -- flow control


@pytest.mark.conformance("D5", "B17")
def test_pulling_pauses_above_1000_messages_and_goes_on_50_ms_after_they_are_fewer(
    broker, make_consumer, scheduler
):
    send_many(broker, 1100)
    stuck = threading.Event()
    consumer = make_consumer(listener=Heard(lambda messages, context: stuck.wait(20) and SUCCESS))
    consumer.start()
    turn(consumer)
    assert only_queue(consumer).msg_count == 1024, "992 are not more than 1000"
    assert consumer.pull_loop.flow_control.times == 1
    scheduler.advance(49)
    assert pull_what_is_there(consumer) == 0
    scheduler.advance(1)
    assert pull_what_is_there(consumer) == 1, "it looked, and pauses again"
    assert only_queue(consumer).msg_count == 1024
    stuck.set()
    eventually(lambda: only_queue(consumer).msg_count < 1000)
    scheduler.advance(50)
    pull_what_is_there(consumer)
    eventually(lambda: only_queue(consumer).queue_offset_max == 1099)


@pytest.mark.conformance("D5")
def test_as_many_as_allowed_are_not_too_many(broker, make_consumer):
    send_many(broker, 200)
    stuck = threading.Event()
    config = ConsumerConfig(pull_threshold_for_queue=64)
    listener = Heard(lambda messages, context: stuck.wait(20) and SUCCESS)
    consumer = make_consumer(listener=listener, config=config)
    consumer.start()
    turn(consumer)
    assert only_queue(consumer).msg_count == 96
    stuck.set()


@pytest.mark.conformance("D5")
def test_pulling_pauses_above_the_allowed_mebibytes(broker, make_consumer):
    broker.update_topic(TopicConfig("T", 1, 1))
    for _ in range(60):
        broker.send(Message("T", bytes(50_000)), 0)
    stuck = threading.Event()
    config = ConsumerConfig(pull_threshold_size_for_queue=1)
    listener = Heard(lambda messages, context: stuck.wait(20) and SUCCESS)
    consumer = make_consumer(listener=listener, config=config)
    consumer.start()
    turn(consumer)
    size = only_queue(consumer).msg_size
    assert 2 << 20 <= size < (2 << 20) + (256 << 10), "whole MiB are compared: 1.9 are not over 1"
    stuck.set()


@pytest.mark.conformance("D6", "E15")
def test_a_stuck_head_stops_pulling_when_the_span_is_over_2000_and_all_comes_again_after_a_kill(
    broker, make_consumer, scheduler
):
    """The span is that of what is *not finished*: with nothing but a stuck head it is 0."""
    send_many(broker, 2100)
    head, tail = threading.Event(), threading.Event()

    def listen(messages, context):
        if messages[0].queue_offset == 0:
            head.wait(30)
        if messages[0].queue_offset >= 2000:
            tail.wait(30)
        return SUCCESS

    heard = Heard(listen)
    consumer = make_consumer(listener=heard)
    consumer.start()
    rebalance(consumer)

    def look_again() -> int:
        pull_what_is_there(consumer)
        scheduler.advance(50)
        return int(only_queue(consumer).queue_offset_max)

    eventually(lambda: look_again() == 2015 and len(heard.bodies) >= 2000)
    for _ in range(20):
        look_again()
    assert look_again() == 2015, "a span of 1983 was not over 2000"
    tail.set()
    eventually(lambda: look_again() == 2099)
    eventually(lambda: only_queue(consumer).msg_count == 1)
    scheduler.advance(10_000)
    assert broker.query_consumer_offset("g", "T", 0).offset == 0, "the stuck one holds it back"
    broker.disconnect(consumer.client_id)  # killed
    again = Heard()
    other = make_consumer(listener=again)
    other.start()
    rebalance(other)

    def all_came_again() -> bool:
        pull_what_is_there(other)
        scheduler.advance(50)  # pulling may have run ahead by more than 1000 messages
        return len(again.messages) == 2100

    eventually(all_came_again)
    head.set()


@pytest.mark.conformance("D13")
def test_the_next_pull_comes_after_the_pull_interval(broker, recorded, make_consumer, scheduler):
    send_many(broker, 96)
    consumer = make_consumer(
        listener=Heard(), brokers=[recorded], config=ConsumerConfig(pull_interval_ms=500)
    )
    consumer.start()
    turn(consumer)
    assert [wire.queue_offset for wire in pulls_of(recorded)] == [0]
    scheduler.advance(499)
    pull_what_is_there(consumer)
    assert len(pulls_of(recorded)) == 1
    for _ in range(2):
        scheduler.advance(500)
        pull_what_is_there(consumer)
    assert [wire.queue_offset for wire in pulls_of(recorded)] == [0, 32, 64]


@pytest.mark.conformance("D13")
def test_without_an_interval_the_next_pull_comes_at_once(broker, recorded, make_consumer):
    send_many(broker, 96)
    consumer = make_consumer(listener=Heard(), brokers=[recorded])
    consumer.start()
    turn(consumer)
    assert [wire.queue_offset for wire in pulls_of(recorded)] == [0, 32, 64, 96]


@pytest.mark.conformance("D5")
def test_thresholds_of_topics_are_shared_among_all_queues_of_the_consumer(broker, make_consumer):
    fill(broker, 0, queues=3)
    config = ConsumerConfig(pull_threshold_for_topic=10, pull_threshold_size_for_topic=2)
    consumer = make_consumer(config=config)
    consumer.start()
    rebalance(consumer)
    assert len(consumer.process_queues) == 4, "the retry queue counts"
    assert consumer.pull_loop.flow_control.pull_threshold_for_queue == 2
    assert consumer.pull_loop.flow_control.pull_threshold_size_for_queue == 1, "never 0"


@pytest.mark.conformance("D5")
def test_a_share_of_a_topics_threshold_is_never_0(broker, make_consumer):
    fill(broker, 0, queues=3)
    consumer = make_consumer(config=ConsumerConfig(pull_threshold_for_topic=3))
    consumer.start()
    rebalance(consumer)
    flow_control = consumer.pull_loop.flow_control
    assert flow_control.pull_threshold_for_queue == 1
    assert flow_control.pull_threshold_size_for_queue == 100, "not for topics: as for a queue"


@pytest.mark.conformance("D6")
@pytest.mark.parametrize(("span", "pauses"), [(9, False), (10, False), (11, True)])
def test_a_span_as_long_as_allowed_is_not_too_long(make_consumer, span, pauses):
    consumer = make_consumer(config=ConsumerConfig(consume_concurrently_max_span=10))
    consumer.start()
    process_queue = ProcessQueue()
    process_queue.put_message(pulled((7, 7 + span)))
    said = consumer.pull_loop.flow_control.too_much(process_queue)
    assert said == (f"span={span} count=2" if pauses else None)


@pytest.mark.conformance("D5")
@pytest.mark.parametrize(("count", "pauses"), [(3, False), (4, False), (5, True)])
def test_as_many_messages_as_allowed_do_not_pause(make_consumer, count, pauses):
    consumer = make_consumer(config=ConsumerConfig(pull_threshold_for_queue=4))
    consumer.start()
    process_queue = ProcessQueue()
    process_queue.put_message(pulled(range(count)))
    said = consumer.pull_loop.flow_control.too_much(process_queue)
    assert said == (f"count={count} mib=0" if pauses else None)


@pytest.mark.conformance("D5")
@pytest.mark.parametrize(("count", "more"), [(3, 1), (4, 1), (5, 0)])
def test_a_queue_that_holds_as_many_as_allowed_may_be_pulled_once_more(make_consumer, count, more):
    config = ConsumerConfig(pull_threshold_for_queue=4, pull_threshold_size_for_queue=1)
    consumer = make_consumer(config=config)
    consumer.start()
    flow_control = consumer.pull_loop.flow_control
    assert flow_control.pulls_ahead(ProcessQueue(), pulled(range(count)), count) == more


@pytest.mark.conformance("F3", "F10")
def test_an_orderly_queue_is_pulled_from_where_its_former_owner_has_left_it(
    broker, recorded, make_consumer
):
    """The old owner may have gone on between the rebalance and our first pull."""
    send_many(broker, 9)
    consumer = make_consumer(brokers=[recorded])
    heard = Heard(lambda messages, context: ConsumeOrderlyStatus.SUCCESS)
    consumer.register_message_listener_orderly(heard)
    consumer.start()
    rebalance(consumer)
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 6)])
    pull_what_is_there(consumer)
    heard.wait_for(3)
    assert [wire.queue_offset for wire in pulls_of(recorded)] == [6, 9]
    only_queue(consumer).locked = False
    send_many(broker, 1)
    eventually(lambda: consumer.instance.pull_service.waiting)
    pull_what_is_there(consumer)
    assert len(pulls_of(recorded)) == 2, "not without the lock"


@pytest.mark.conformance("C15")
def test_pulls_go_by_what_the_brokers_have_heard_of(broker, make_consumer, monkeypatch):
    """A version that was not announced to a broker is refused, and the queue left alone for 1 s."""
    fill(broker, 0, queues=1)
    consumer = make_consumer()
    consumer.start()
    before = consumer.announced("T").sub_version
    meanwhile: list[tuple[int, int]] = []
    send = consumer.instance.send_heartbeat_to_all_brokers

    def heartbeat():
        meanwhile.append((consumer.announced("T").sub_version, len(meanwhile)))
        return send()

    monkeypatch.setattr(consumer.instance, "send_heartbeat_to_all_brokers", heartbeat)
    rebalance(consumer)
    assert meanwhile[0] == (before, 0)
    assert consumer.announced("T").sub_version > before


# -- what goes wrong


@pytest.mark.conformance("D1")
def test_after_a_failed_pull_the_queue_is_left_alone_for_a_second(
    broker, recorded, make_consumer, scheduler
):
    send_many(broker, 5)
    recorded.always("pull_async", BrokerSystemError("no"))
    heard = Heard()
    consumer = make_consumer(listener=heard, brokers=[recorded])
    consumer.start()
    turn(consumer)
    scheduler.advance(999)
    assert pull_what_is_there(consumer) == 0
    recorded.always("pull_async", None)
    scheduler.advance(1)
    pull_what_is_there(consumer)
    heard.wait_for(5)


def test_a_broker_that_asks_for_less_is_asked_again_in_20_ms(
    broker, recorded, make_consumer, scheduler
):
    send_many(broker, 5)
    recorded.plan("pull_async", BrokerError("slow down", ResponseCode.FLOW_CONTROL))
    recorded.plan("pull_async", BrokerError("slow down", ResponseCode.FLOW_CONTROL))
    heard = Heard()
    consumer = make_consumer(listener=heard, brokers=[recorded])
    consumer.start()
    turn(consumer)
    assert heard.bodies == []
    scheduler.advance(20)
    pull_what_is_there(consumer)
    heard.wait_for(5)


@pytest.mark.conformance("D1")
@pytest.mark.parametrize("error", [RuntimeError, SystemExit])
def test_the_loop_survives_an_offset_store_that_raises_anything(
    broker, make_consumer, scheduler, monkeypatch, error
):
    send_many(broker, 5)
    heard = Heard()
    consumer = make_consumer(listener=heard)
    consumer.start()
    rebalance(consumer)

    def fail(queue: MessageQueue) -> None:
        raise error(f"nothing is known of {queue}")

    with monkeypatch.context() as patch:
        patch.setattr(consumer.offset_store, "pull_commit", fail)
        pull_what_is_there(consumer)
    assert heard.bodies == []
    scheduler.advance(1_000)
    pull_what_is_there(consumer)
    heard.wait_for(5)


@pytest.mark.conformance("D1")
def test_messages_that_can_not_be_used_are_pulled_again_and_not_passed_over(
    broker, make_consumer, scheduler
):
    class Broken:
        """A hook that leaves no list, once."""

        def __init__(self) -> None:
            self.calls = 0

        def filter_message(self, context) -> None:
            self.calls += 1
            if self.calls == 1:
                context.messages = None

    send_many(broker, 5)
    heard = Heard()
    consumer = make_consumer(listener=heard)
    consumer.filter_message_hooks.append(Broken())
    consumer.start()
    turn(consumer)
    assert heard.bodies == []
    scheduler.advance(1_000)
    pull_what_is_there(consumer)
    heard.wait_for(5)
    assert sorted(m.queue_offset for m in heard.messages) == [0, 1, 2, 3, 4]


@pytest.mark.conformance("D1", "C9")
def test_a_dropped_queue_is_pulled_no_more(broker, recorded, make_consumer):
    send_many(broker, 5)
    consumer = make_consumer(brokers=[recorded])
    consumer.start()
    rebalance(consumer)
    only_queue(consumer).dropped = True
    pull_what_is_there(consumer)
    assert pulls_of(recorded) == []


def test_an_empty_pull_moves_progress_only_while_nothing_is_in_work(
    broker, recorded, make_consumer
):
    fill(broker, 0, queues=1)
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 0)])
    stuck = threading.Event()
    heard = Heard(lambda messages, context: stuck.wait(20) and SUCCESS)
    config = ConsumerConfig(broker_suspend_max_time_ms=50)
    consumer = make_consumer(listener=heard, brokers=[recorded], config=config)
    consumer.subscribe("T", "A")
    consumer.start()
    for _ in range(3):
        broker.send(Message("T", b"x"), 0)
    turn(consumer)

    def in_memory() -> int | None:
        consumer.consume_service.settle(only_queue(consumer), QUEUE)
        offset: int | None = consumer.offset_store.read_offset(
            QUEUE, ReadOffsetType.READ_FROM_MEMORY
        )
        return offset

    def pulled_from(offset: int) -> bool:
        pull_what_is_there(consumer)
        return pulls_of(recorded)[-1].queue_offset == offset

    assert in_memory() == 3, "looked at, and none of ours"
    broker.send(Message("T", b"x", tags="A"), 0)
    eventually(lambda: pulled_from(4))
    broker.send(Message("T", b"x"), 0)
    eventually(lambda: pulled_from(5))
    assert in_memory() == 3, "the first one is not finished"
    stuck.set()
    eventually(lambda: pulled_from(5) and in_memory() == 5)
