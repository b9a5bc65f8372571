"""What consumers promise when something goes wrong; docs/guarantees.md has the whole matrix."""

from __future__ import annotations

import pytest

from broker.api.members import MessageModel
from client.consumer.consumer_config import ConsumerConfig
from client.listener.listener import ConsumeOrderlyStatus
from client.pull.lite_pull_consumer import LitePullConfig, LitePullConsumer
from client.pull.pull_consumer import PullConsumer
from client.push.push_consumer import PushConsumer
from client.runtime.client_config import ClientConfig
from client.runtime.client_manager import ClientManager
from storage.format.message import SCHEDULE_TOPIC, retry_topic
from tests.support.consumers import (
    Heard,
    eventually,
    fill,
    pull_until,
    pull_what_is_there,
    rebalance,
    turn,
)
from tests.support.consuming import QUEUE, Door, queue_of, sent_back

HOUR_MS = 3_600_000


@pytest.fixture
def broadcasting(broker, clock, scheduler, tmp_path, request):
    """Members of a broadcast, each as in a process of its own, all with the same client id."""

    def start(heard: Heard, **settings) -> PushConsumer:
        consumer = PushConsumer(
            "g",
            brokers=[broker],
            manager=ClientManager(clock=clock, schedulers=scheduler.part, threads=False),
            config=ConsumerConfig(message_model=MessageModel.BROADCASTING, **settings),
            client_config=ClientConfig(local_offset_store_dir=str(tmp_path / "offsets")),
        )
        consumer.subscribe("T")
        consumer.register_message_listener(heard)
        request.addfinalizer(consumer.shutdown)
        consumer.start()
        turn(consumer)
        return consumer

    return start


@pytest.fixture
def make_lite(broker, manager, request):
    def make(name: str = "DEFAULT", **settings) -> LitePullConsumer:
        consumer = LitePullConsumer(
            "g",
            brokers=[broker],
            manager=manager,
            client_config=ClientConfig(instance_name=name),
            config=LitePullConfig(**settings),
        )
        request.addfinalizer(consumer.shutdown)
        consumer.subscribe("T")
        consumer.start()
        turn(consumer)
        return consumer

    return make


@pytest.fixture
def pull_consumer(broker, manager):
    with PullConsumer("g", brokers=[broker], manager=manager) as consumer:
        yield consumer


def killed(consumer, broker) -> None:
    """Take a consumer out of everything without a word of its own, as a SIGKILL does."""
    consumer.instance.pull_service.shutdown()
    broker.disconnect(consumer.instance.client_id)


# -- concurrent and orderly


@pytest.mark.conformance("E19")
@pytest.mark.slow
def test_an_orderly_listener_that_is_stuck_is_waited_for(broker, make_consumer, scheduler):
    queue_of(broker, 3)
    door = Door(0, answer=ConsumeOrderlyStatus.SUCCESS)
    heard = Heard(door)
    consumer = make_consumer(config=ConsumerConfig(consume_timeout_minutes=1))
    consumer.register_message_listener_orderly(heard)
    consumer.start()
    scheduler.advance(7)
    turn(consumer)
    heard.wait_for(1)
    scheduler.advance(HOUR_MS)
    assert sent_back(broker) == []
    assert heard.bodies == [b"0"], "what follows in the queue waits"
    door.opened.set()

    def all_came() -> bool:
        scheduler.advance(7)
        return len(heard.messages) == 3

    eventually(all_came)


# -- broadcasting


@pytest.mark.conformance("A9", "G4")
def test_a_killed_member_of_a_broadcast_goes_on_from_its_file_and_repeats_the_rest(
    broker, broadcasting, scheduler
):
    fill(broker, 0, queues=1)
    first = Heard()
    member = broadcasting(first)
    fill(broker, 10, queues=1)
    pull_until(member, lambda: len(first.messages) == 10)
    eventually(lambda: member.process_queues[QUEUE].msg_count == 0)
    scheduler.advance(10_000)  # the file is written
    fill(broker, 5, queues=1)
    pull_until(member, lambda: len(first.messages) == 15)
    killed(member, broker)
    again = Heard()
    successor = broadcasting(again)
    pull_until(successor, lambda: len(again.messages) == 5)
    assert sorted(again.bodies) == [b"%d" % n for n in range(5)]


@pytest.mark.conformance("A9", "E18")
@pytest.mark.parametrize("timer_ms", [0, 10], ids=["scan", "timer of clustering"])
def test_a_message_stuck_in_a_broadcast_leaves_the_queue_and_does_not_return(
    broker, broadcasting, scheduler, timer_ms
):
    fill(broker, 0, queues=1)
    door = Door(0)
    heard = Heard(door)
    member = broadcasting(
        heard, consume_timeout_minutes=1, resend_after_if_still_un_ack_ms=timer_ms
    )
    fill(broker, 3, queues=1)
    pull_until(member, lambda: len(heard.messages) == 3)
    scheduler.advance(2 * 60_000)
    (back,) = sent_back(broker)
    assert back.body == b"0"
    assert retry_topic("g") not in member.rebalance.subscriptions, "nobody reads it there"
    eventually(lambda: member.process_queues[QUEUE].msg_count == 0)
    door.opened.set()


# -- pulled by hand


def test_a_pull_consumer_that_is_killed_repeats_what_it_had_not_noted(
    broker, manager, pull_consumer, scheduler
):
    fill(broker, 10, queues=1)
    assert len(pull_consumer.pull(QUEUE, 0).messages) == 10
    pull_consumer.update_consume_offset(QUEUE, 6)
    scheduler.advance(10_000)
    pull_consumer.update_consume_offset(QUEUE, 10)
    killed(pull_consumer, broker)
    with PullConsumer(
        "g",
        brokers=[broker],
        manager=manager,
        client_config=ClientConfig(instance_name="another"),
    ) as successor:
        assert successor.fetch_consume_offset(QUEUE) == 6


def test_nothing_happens_to_pulled_messages_by_itself(broker, pull_consumer, scheduler):
    fill(broker, 10, queues=1)
    pulled = pull_consumer.pull(QUEUE, 0).messages
    assert [message.queue_offset for message in pulled] == list(range(10)), "in order"
    scheduler.advance(HOUR_MS)  # no time is too long
    assert broker.consumer_offsets("g").get(("g", "T")) is None
    assert broker.max_offset(SCHEDULE_TOPIC, 2) == 0
    again = pull_consumer.pull(QUEUE, 0).messages
    assert [m.msg_id for m in again] == [m.msg_id for m in pulled], "as often as it is asked for"


def test_a_pulled_message_can_be_given_back_by_hand(broker, pull_consumer):
    fill(broker, 1, queues=1)
    (message,) = pull_consumer.pull(QUEUE, 0).messages
    pull_consumer.send_message_back(message, QUEUE)
    (back,) = sent_back(broker)
    assert (back.body, back.reconsume_times) == (b"0", 1)


# -- polled


def test_a_polling_consumer_that_is_killed_repeats_what_was_not_committed(broker, make_lite):
    fill(broker, 30, queues=1)
    consumer = make_lite(auto_commit=False)
    assert len(consumer.poll(0)) == 10
    assert len(consumer.poll(0)) == 10, "the first ten count as consumed"
    consumer.commit()
    assert consumer.poll(0)[0].body == b"20"
    killed(consumer, broker)
    successor = make_lite("another")
    assert successor.poll(0)[0].body == b"10"


def test_a_poll_whose_messages_failed_is_not_repeated_unless_one_seeks(broker, make_lite):
    fill(broker, 20, queues=1)
    consumer = make_lite()
    first = consumer.poll(0)
    second = consumer.poll(0)  # whatever went wrong with the first ten
    assert [m.queue_offset for m in first + second] == list(range(20)), "in order"
    assert broker.max_offset(SCHEDULE_TOPIC, 2) == 0, "nothing is sent back"
    consumer.seek(QUEUE, 0)
    pull_what_is_there(consumer)
    assert [m.queue_offset for m in consumer.poll(0)] == [m.queue_offset for m in first]


@pytest.mark.slow
def test_a_poll_that_takes_for_ever_holds_its_progress_and_nothing_else(
    broker, make_lite, scheduler
):
    fill(broker, 20, queues=1)
    consumer = make_lite(auto_commit=False)
    consumer.poll(0)
    scheduler.advance(HOUR_MS)
    consumer.commit()
    assert consumer.committed(QUEUE) == 0
    assert broker.max_offset(SCHEDULE_TOPIC, 2) == 0, "nothing is sent back"


def test_a_queue_that_another_polling_member_gets_goes_on_from_what_was_committed(
    broker, make_lite
):
    fill(broker, 20, queues=2)
    first = make_lite("a")
    polled = {first.poll(0)[0].queue_offset for _ in range(2)}
    assert polled == {0}
    first.commit()
    second = make_lite("b")
    rebalance(first, second)
    turn(first, second)
    assert first.assignment() != second.assignment()
    (moved,) = (queue for queue in second.assignment() if queue.topic == "T")
    committed = broker.query_consumer_offset("g", "T", moved.queue_id).offset
    assert second.poll(0)[0].queue_offset == committed
