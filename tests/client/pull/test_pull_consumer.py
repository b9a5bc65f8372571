"""Consumers without a listener: pulling by hand, and polling."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from broker.api.pull import PullStatus
from broker.embedded.broker import EmbeddedBroker
from client.errors import ClientConfigError, ClientStateError, GroupRegisteredError
from client.pull.lite_pull_consumer import LitePullConfig, LitePullConsumer
from client.pull.pull_consumer import PullConsumer
from client.runtime.client_config import ClientConfig
from client.runtime.client_manager import ClientManager
from storage.configs.progress import ProgressFile
from storage.configs.topics import TopicConfig
from storage.format.message import Message, MessageQueue
from tests.support.consumers import eventually, fill, pull_what_is_there, rebalance, turn

QUEUE = MessageQueue("T", "broker-a", 0)


@pytest.fixture
def pull_consumer(broker, manager):
    with PullConsumer("g", brokers=[broker], manager=manager) as consumer:
        yield consumer


@pytest.fixture
def make_lite(broker, manager, request):
    def make(group: str = "g", name: str = "DEFAULT", **settings) -> LitePullConsumer:
        consumer = LitePullConsumer(
            group,
            brokers=[broker],
            manager=manager,
            client_config=ClientConfig(instance_name=name),
            config=LitePullConfig(**settings),
        )
        request.addfinalizer(consumer.shutdown)
        return consumer

    return make


# -- by hand


@pytest.mark.conformance("A4")
def test_a_queue_is_pulled_from_an_offset_without_any_ack(broker, pull_consumer):
    fill(broker, 40, queues=1)
    assert pull_consumer.fetch_subscribe_message_queues("T") == [QUEUE]
    result = pull_consumer.pull(QUEUE, 5, 3)
    assert [m.body for m in result.messages] == [b"5", b"6", b"7"]
    assert (result.pull_status, result.next_begin_offset) == (PullStatus.FOUND, 8)
    assert result.messages[0].get_property("MAX_OFFSET") == "40"
    assert len(pull_consumer.pull(QUEUE, 0, 100).messages) == 32, "the broker's limit"
    assert pull_consumer.pull(QUEUE, 40).pull_status is PullStatus.NO_NEW_MSG
    assert pull_consumer.pull(QUEUE, 41).pull_status is PullStatus.OFFSET_ILLEGAL
    assert pull_consumer.pull(QUEUE, 0).messages[0].body == b"0", "as often as one likes"
    assert broker.consumer_offsets("g") == {}


@pytest.mark.conformance("D4")
def test_a_pull_by_tag_gives_the_tag_and_nothing_of_the_same_hash(broker, pull_consumer):
    broker.update_topic(TopicConfig("T", 1, 1))
    for tags in ("Aa", "BB", "C"):
        broker.send(Message("T", tags.encode(), tags=tags), 0)
    assert [m.body for m in pull_consumer.pull(QUEUE, 0, selector="Aa || C").messages] == [
        b"Aa",
        b"C",
    ]


def test_a_blocking_pull_waits_for_a_message(broker, pull_consumer):
    fill(broker, 0, queues=1)
    threading.Timer(0.05, lambda: broker.send(Message("T", b"late"), 0)).start()
    result = pull_consumer.pull_block_if_not_found(QUEUE, 0)
    assert [m.body for m in result.messages] == [b"late"]


def test_progress_is_noted_by_hand_and_committed_in_time(broker, pull_consumer, scheduler):
    fill(broker, 5, queues=1)
    assert pull_consumer.fetch_consume_offset(QUEUE) == 0, "a young queue"
    pull_consumer.update_consume_offset(QUEUE, 3)
    assert pull_consumer.fetch_consume_offset(QUEUE) == 3
    assert pull_consumer.fetch_consume_offset(QUEUE._replace(queue_id=0), from_store=False) == 3
    scheduler.advance(10_000)
    assert broker.consumer_offsets("g") == {("g", "T"): {0: 3}}
    pull_consumer.update_consume_offset(QUEUE, 4)
    pull_consumer.shutdown()
    assert broker.consumer_offsets("g") == {("g", "T"): {0: 4}}
    with pytest.raises(ClientStateError, match="SHUTDOWN_ALREADY"):
        pull_consumer.pull(QUEUE, 0)


@pytest.mark.parametrize(
    ("queue", "offset", "message"),
    [
        (QUEUE, 2**63 - 1, f"the offset is {2**63 - 1}; it must be {2**63 - 2} or less"),
        (QUEUE._replace(queue_id=2**31), 1, f"the queue id is {2**31}; it must be {2**31 - 1} or"),
        (QUEUE._replace(queue_id=-1), 1, "the queue id is -1; it must be 0 or more"),
    ],
)
def test_progress_that_no_broker_can_store_is_refused_at_once(
    broker, pull_consumer, queue, offset, message
):
    fill(broker, 1, queues=1)
    with pytest.raises(ClientConfigError, match=message):
        pull_consumer.update_consume_offset(queue, offset)
    pull_consumer.update_consume_offset(QUEUE, 1)
    pull_consumer.persist_consumer_offset()
    assert broker.consumer_offsets() == {("g", "T"): {0: 1}}, "the refused one holds up no other"


def test_members_of_a_registered_topic_divide_its_queues(broker, manager):
    fill(broker, 0, queues=4)
    with (
        PullConsumer("g", brokers=[broker], manager=manager) as one,
        PullConsumer("g", brokers=[broker], manager=manager) as two,
    ):
        for consumer in (one, two):
            consumer.register_topic("T")
        rebalance(one, two)
        shares = [c.fetch_message_queues_in_balance("T") for c in (one, two)]
        assert [len(share) for share in shares] == [2, 2]
        assert not {*shares[0]} & {*shares[1]}


def test_times_and_bounds_can_be_asked_for(broker, pull_consumer, clock):
    fill(broker, 2, queues=1)
    clock.advance(10_000)
    fill(broker, 1, queues=1)
    assert (pull_consumer.min_offset(QUEUE), pull_consumer.max_offset(QUEUE)) == (0, 3)
    assert pull_consumer.search_offset(QUEUE, clock.now_ms()) == 2


# -- polling


def poll_all(consumer: LitePullConsumer, count: int) -> list[bytes]:
    """Poll until so many messages came; the test pulls meanwhile."""
    bodies: list[bytes] = []

    def polled() -> bool:
        pull_what_is_there(consumer)
        bodies.extend(message.body for message in consumer.poll(0))
        return len(bodies) >= count

    eventually(polled)
    return bodies


def test_polls_give_what_is_subscribed_and_commit_what_earlier_polls_gave(broker, make_lite):
    fill(broker, 30, queues=1)
    consumer = make_lite(auto_commit=False)
    consumer.subscribe("T")
    consumer.start()
    turn(consumer)
    first = consumer.poll(0)
    assert [m.body for m in first] == [b"%d" % n for n in range(10)]
    consumer.commit()
    assert consumer.committed(QUEUE) == 0, "the last poll's are still being looked at"
    assert len(consumer.poll(0)) == 10
    consumer.commit()
    assert broker.query_consumer_offset("g", "T", 0).offset == 10
    assert consumer.committed(QUEUE) == 10
    consumer.shutdown()
    again = make_lite()
    again.subscribe("T")
    again.start()
    turn(again)
    assert again.poll(0)[0].body == b"10", "the 10 that were not committed come again"


def test_a_poll_waits_for_messages_and_no_longer_than_it_is_to(broker):
    fill(broker, 0, queues=1)
    with LitePullConsumer("g", brokers=[broker], manager=ClientManager()) as consumer:
        consumer.subscribe("T")
        assert consumer.poll(1) == []
        threading.Timer(0.05, lambda: broker.send(Message("T", b"late"), 0)).start()
        assert [m.body for m in consumer.poll(20_000)] == [b"late"]


def test_members_that_subscribe_divide_the_queues(broker, make_lite):
    fill(broker, 40, queues=4)
    one, two = make_lite(name="a"), make_lite(name="b")
    for consumer in (one, two):
        consumer.subscribe("T")
        consumer.start()
    turn(one, two)
    assert [len(c.assignment()) for c in (one, two)] == [2, 2]
    bodies = poll_all(one, 20) + poll_all(two, 20)
    assert sorted(bodies) == sorted(b"%d" % n for n in range(40))


def test_assigned_queues_are_consumed_beside_other_members(broker, make_lite):
    fill(broker, 8, queues=4)
    one, two = make_lite(name="a"), make_lite(name="b")
    queues = [QUEUE, QUEUE._replace(queue_id=1)]
    for consumer in (one, two):
        consumer.assign(queues)
        consumer.start()
        assert consumer.assignment() == queues
        assert sorted(poll_all(consumer, 4)) == [b"0", b"1", b"4", b"5"]
    one.assign(queues[1:])
    assert one.assignment() == queues[1:]
    with pytest.raises(ClientStateError, match="mutually exclusive"):
        one.subscribe("T")


def leave_by_assign(consumer: LitePullConsumer, other: Callable[[], LitePullConsumer]) -> None:
    consumer.assign([QUEUE._replace(queue_id=1)])


def leave_by_unsubscribe(consumer: LitePullConsumer, other: Callable[[], LitePullConsumer]) -> None:
    consumer.unsubscribe("T")


def leave_by_rebalance(consumer: LitePullConsumer, other: Callable[[], LitePullConsumer]) -> None:
    newcomer = other()  # its name sorts first
    newcomer.subscribe("T")
    newcomer.start()
    rebalance(consumer)


@pytest.mark.parametrize("auto_commit", [True, False])
@pytest.mark.parametrize("leave", [leave_by_assign, leave_by_unsubscribe, leave_by_rebalance])
def test_a_queue_that_is_given_up_is_committed_up_to_the_finished_polls(
    broker, make_lite, leave, auto_commit
):
    fill(broker, 40, queues=2)
    consumer = make_lite(name="b", auto_commit=auto_commit)
    if leave is leave_by_assign:
        consumer.assign([QUEUE])
    else:
        consumer.subscribe("T")
    consumer.start()
    turn(consumer)
    consumer.pause([QUEUE._replace(queue_id=1)])
    polled = [[message.queue_offset for message in consumer.poll(0)]]
    pull_what_is_there(consumer)
    polled.append([message.queue_offset for message in consumer.poll(0)])
    assert polled == [[*range(10)], [*range(10, 20)]], "the second one is not finished"
    leave(consumer, lambda: make_lite(name="a"))
    assert QUEUE not in consumer.assignment()
    committed = broker.query_consumer_offset("g", "T", 0).offset or 0
    assert committed == (10 if auto_commit else 0)


def test_a_seek_forgets_what_waits_and_goes_on_from_there(broker, make_lite):
    fill(broker, 30, queues=1)
    consumer = make_lite()
    consumer.assign([QUEUE])
    consumer.start()
    pull_what_is_there(consumer)
    assert consumer.poll(0)[0].body == b"0"
    consumer.seek(QUEUE, 25)
    assert poll_all(consumer, 5) == [b"25", b"26", b"27", b"28", b"29"]
    consumer.seek_to_begin(QUEUE)
    assert poll_all(consumer, 1)[0] == b"0"
    consumer.seek_to_end(QUEUE)
    pull_what_is_there(consumer)
    assert consumer.poll(0) == []
    for wrong in (-1, 31):
        with pytest.raises(
            ClientStateError,
            match=rf"^offset {wrong} is outside of queue 0 of T .*; seek to one from 0 .* to 30 ",
        ):
            consumer.seek(QUEUE, wrong)
    with pytest.raises(ClientStateError, match="not consumed here"):
        consumer.seek(QUEUE._replace(topic="TBW102"), 0)


def test_a_paused_queue_gives_nothing_until_it_is_resumed(broker, make_lite, scheduler):
    fill(broker, 20, queues=2)
    consumer = make_lite()
    other = QUEUE._replace(queue_id=1)
    consumer.assign([QUEUE, other])
    consumer.start()
    consumer.pause([QUEUE])
    assert {b"%d" % n for n in range(1, 20, 2)} == set(poll_all(consumer, 10))
    consumer.resume([QUEUE])
    scheduler.advance(1_000)
    assert {b"%d" % n for n in range(0, 20, 2)} == set(poll_all(consumer, 10))


def test_a_queue_that_was_paused_gives_its_batches_in_order(broker, make_lite):
    fill(broker, 40, queues=2)
    consumer = make_lite()
    other = QUEUE._replace(queue_id=1)
    consumer.assign([QUEUE, other])
    consumer.start()
    pull_what_is_there(consumer)
    consumer.pause([QUEUE])
    assert consumer.poll(0)[0].body == b"1"
    consumer.resume([QUEUE])
    bodies = [message.body for _ in range(3) for message in consumer.poll(0)]
    assert [body for body in bodies if int(body) % 2 == 0] == [b"%d" % n for n in range(0, 40, 2)]
    assert [body for body in bodies if int(body) % 2] == [b"%d" % n for n in range(21, 40, 2)]


def test_pulling_pauses_while_too_much_waits_to_be_polled(broker, make_lite, scheduler):
    fill(broker, 100, queues=1)
    consumer = make_lite(pull_threshold_for_all=25)
    consumer.assign([QUEUE])
    consumer.start()
    pull_what_is_there(consumer)
    assert consumer.rebalance.process_queues[QUEUE].msg_count == 30
    for _ in range(3):
        consumer.poll(0)
    scheduler.advance(50)
    pull_what_is_there(consumer)
    assert consumer.rebalance.process_queues[QUEUE].queue_offset_max > 29


def test_a_polling_consumer_follows_progress_that_is_moved(broker, make_lite, scheduler):
    """RocketMQ's takes no notice of a reset."""
    fill(broker, 10, queues=1)
    consumer = make_lite()
    consumer.subscribe("T")
    consumer.start()
    turn(consumer)
    assert len(consumer.poll(0)) == 10
    consumer.poll(0)
    consumer.commit()
    assert broker.query_consumer_offset("g", "T", 0).offset == 10
    old = consumer.rebalance.process_queues[QUEUE]
    broker.progress.move("g", {("T", 0): 7})
    eventually(lambda: scheduler.advance(0) or old.dropped)
    assert poll_all(consumer, 3) == [b"7", b"8", b"9"]
    consumer.poll(0)
    consumer.commit()
    assert broker.query_consumer_offset("g", "T", 0).offset == 10


@pytest.mark.conformance("G12")
def test_a_commit_beside_a_rewind_does_not_take_the_progress_forward(
    broker, make_lite, scheduler, monkeypatch
):
    fill(broker, 3, queues=1)
    consumer = make_lite(auto_commit=False)
    consumer.subscribe("T")
    consumer.start()
    turn(consumer)
    assert len(consumer.poll(0)) == 3
    assert consumer.poll(0) == []
    compute = consumer.compute_pull_from_where
    committing = threading.Thread(target=consumer.commit)

    def slowly(queue: MessageQueue) -> int:
        offset = compute(queue)
        committing.start()
        committing.join(0.2)  # it gets no further than the lock
        return int(offset)

    monkeypatch.setattr(consumer, "compute_pull_from_where", slowly)
    ProgressFile(broker.view.root).move({("T@g", 0): 1})
    consumer.progress_moved({QUEUE: 1})
    scheduler.advance(0)
    committing.join()
    assert broker.query_consumer_offset("g", "T", 0).offset == 1


@pytest.mark.conformance("D1")
def test_messages_that_can_not_be_used_are_pulled_again_and_not_passed_over(
    broker, make_lite, scheduler
):
    class Broken:
        """A hook that leaves no list, once."""

        def __init__(self) -> None:
            self.calls = 0

        def filter_message(self, context) -> None:
            self.calls += 1
            if self.calls == 1:
                context.messages = None

    fill(broker, 3, queues=1)
    consumer = make_lite()
    consumer.filter_message_hooks.append(Broken())
    consumer.subscribe("T")
    consumer.start()
    turn(consumer)
    assert consumer.poll(0) == []
    scheduler.advance(1_000)
    pull_what_is_there(consumer)
    assert [m.body for m in consumer.poll(0)] == [b"0", b"1", b"2"]


def test_two_consumers_of_a_group_in_one_client_are_refused(make_lite, pull_consumer):
    one, two = make_lite("h", "same"), make_lite("h", "same")
    one.start()
    with pytest.raises(GroupRegisteredError):
        two.start()
    assert two.state == "CREATE_JUST"


def test_a_consumer_can_bring_its_store_along(broker: EmbeddedBroker) -> None:
    fill(broker, 3, queues=1)
    root = broker.view.root
    with PullConsumer.open(root, "g") as consumer:
        assert len(consumer.pull(QUEUE, 0).messages) == 3
    assert consumer._owned is None


def test_a_poll_for_ever_ends_with_a_message(broker, make_lite):
    fill(broker, 0, queues=1)
    consumer = make_lite()
    consumer.assign([QUEUE])
    consumer.start()
    with ThreadPoolExecutor(1) as pool:
        polled = pool.submit(consumer.poll, sys.maxsize)
        eventually(lambda: polled.done() or consumer._arrived._waiters, "it does not wait")
        fill(broker, 1, queues=1)
        pull_what_is_there(consumer)
        assert [message.body for message in polled.result(20)] == [b"0"]
