"""The queues of each member of a group, and how they move."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from broker.api.members import MessageModel
from broker.errors import BrokerSystemError
from client.consumer.consumer_config import ConsumerConfig
from client.listener.listener import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus
from client.listener.process_queue import PULL_MAX_IDLE_TIME_MS
from client.pull.lite_pull_consumer import LitePullConsumer
from client.push.push_consumer import PushConsumer
from client.rebalance.allocate import AllocateAveragely
from client.runtime.client_config import ClientConfig
from storage.configs.topics import TopicConfig
from storage.format.message import Message, MessageQueue
from tests.support.consumers import Heard, eventually, fill, pull_what_is_there, rebalance, turn
from tests.support.consuming import locked_elsewhere
from tests.support.failing_broker import FailingBroker

SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS


def ids(consumer, topic: str = "T") -> list[int]:
    return sorted(q.queue_id for q in consumer.process_queues if q.topic == topic)


def named(name: str) -> ClientConfig:
    return ClientConfig(instance_name=name)


def told(members) -> None:
    """Wait until all have got the notice that a member came or went."""
    eventually(lambda: all(member.instance.rebalance_service.wanted for member in members))


class Choosy:
    """Averagely, except for the topics that it fails at."""

    name = "CHOOSY"

    def __init__(self, *bad: str, error: type[BaseException] = RuntimeError) -> None:
        self._bad = bad
        self._error = error

    def allocate(self, group, client_id, queues, client_ids):
        if queues[0].topic in self._bad:
            raise self._error(f"not {queues[0].topic}")
        return AllocateAveragely().allocate(group, client_id, queues, client_ids)


@pytest.mark.conformance("A8", "A19", "C2", "C3", "C6", "C7", "G6")
def test_members_that_come_and_go_share_the_queues_without_overlap(broker, make_consumer):
    fill(broker, 0, queues=8)
    members = []
    shares = []
    for name in ("a", "b", "c"):
        members.append(make_consumer(client_config=named(name)))
        members[-1].start()
        told(members[:-1])
        rebalance(*members)
        shares.append([ids(member) for member in members])
    assert shares == [
        [[0, 1, 2, 3, 4, 5, 6, 7]],
        [[0, 1, 2, 3], [4, 5, 6, 7]],
        [[0, 1, 2], [3, 4, 5], [6, 7]],
    ]
    members[0].shutdown()
    told(members[1:])
    rebalance(*members[1:])
    assert [ids(member) for member in members[1:]] == [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.mark.conformance("C10", "G6", "A19")
def test_a_queue_changes_hands_with_its_progress(broker, make_consumer):
    fill(broker, 40, queues=2)
    pulled = threading.Event()
    heard = Heard(lambda messages, context: pulled.wait(20) and SUCCESS)
    first = make_consumer(listener=heard, client_config=named("a"))
    first.start()
    turn(first)
    pulled.set()
    heard.wait_for(40)
    eventually(lambda: all(pq.msg_count == 0 for pq in first.process_queues.values()))
    again = Heard()
    second = make_consumer(listener=again, client_config=named("b"))
    second.start()
    rebalance(first)
    assert broker.query_consumer_offset("g", "T", 1).offset == 20, "persisted at the hand-over"
    assert MessageQueue("T", "broker-a", 1) not in first.consumer_status("T"), "and forgotten"
    fill(broker, 2, queues=2)
    turn(second)
    again.wait_for(1)
    assert [(m.queue_id, m.queue_offset) for m in again.messages] == [(1, 20)]


@pytest.mark.conformance("I4", "C10")
def test_the_backlog_that_builds_up_while_a_queue_has_no_owner_is_worked_off_by_the_next(
    broker, make_consumer
):
    fill(broker, 20, queues=2)
    members: list[PushConsumer] = []
    heard: list[Heard] = []

    def backlog() -> list[int]:
        """What is stored and not consumed, by queue."""
        for member in members:
            member.persist_consumer_offset()
        progress = [broker.query_consumer_offset("g", "T", n).offset or 0 for n in (0, 1)]
        return [broker.max_offset("T", n) - progress[n] for n in (0, 1)]

    def join(name: str) -> None:
        heard.append(Heard())
        members.append(make_consumer(listener=heard[-1], client_config=named(name)))
        members[-1].start()

    def produce_until_it_is(*expected: int) -> None:
        fill(broker, 10, queues=2)

        def is_as_expected() -> bool:
            for member in members:
                pull_what_is_there(member)
            return backlog() == list(expected)

        eventually(is_as_expected)

    assert backlog() == [10, 10]
    join("a")
    turn(members[0])
    produce_until_it_is(0, 0)
    join("b")  # and has nothing yet
    produce_until_it_is(0, 0)
    rebalance(members[0])  # gives queue 1 up
    produce_until_it_is(0, 5)
    produce_until_it_is(0, 10)
    rebalance(members[1])  # takes it
    produce_until_it_is(0, 0)
    assert [message.queue_offset for message in heard[1].messages] == list(range(20, 35))


@pytest.mark.conformance("C9", "E8")
def test_what_ends_after_the_queue_was_dropped_counts_no_more(broker, make_consumer):
    fill(broker, 2, queues=2)
    stuck = threading.Event()
    heard = Heard(lambda messages, context: stuck.wait(20) and SUCCESS)
    first = make_consumer(listener=heard, client_config=named("a"))
    first.start()
    turn(first)
    heard.wait_for(2)
    queue = MessageQueue("T", "broker-a", 1)
    process_queue = first.process_queues[queue]
    second = make_consumer(client_config=named("b"))
    second.start()
    rebalance(first)
    assert process_queue.dropped
    stuck.set()
    eventually(lambda: first.process_queues[queue._replace(queue_id=0)].msg_count == 0)
    first.persist_consumer_offset()
    assert queue not in first.consumer_status("T")
    assert broker.query_consumer_offset("g", "T", 1).offset == 0
    again = second
    turn(again)
    again._listener.wait_for(1)


@pytest.mark.conformance("C8", "C15")
def test_queues_are_given_up_kept_and_taken_in_one_round(broker, make_consumer):
    fill(broker, 0, queues=4)
    config = ConsumerConfig(allocate_message_queue_strategy="AVG_BY_CIRCLE")
    first = make_consumer(client_config=named("b"), config=config)
    first.start()
    second = make_consumer(client_config=named("c"), config=config)
    second.start()
    rebalance(first, second)
    assert ids(first) == [0, 2]
    before = dict(first.process_queues)
    pull_what_is_there(first)
    third = make_consumer(client_config=named("a"), config=config)
    third.start()
    rebalance(first)
    assert ids(first) == [1], "a, b, c are dealt 0, 1, 2, and a gets 3"
    broker.update_topic(TopicConfig("T", 8, 8))
    first.instance.update_topic_routes()
    rebalance(first)
    assert ids(first) == [1, 4, 7]
    red = before[MessageQueue("T", "broker-a", 0)]
    assert red.dropped
    assert first.instance.pull_service.waiting == 3, "one new one, then two"


@pytest.mark.conformance("C8")
def test_a_queue_that_stays_keeps_its_process_queue(broker, make_consumer):
    fill(broker, 0, queues=4)
    first = make_consumer(client_config=named("a"))
    first.start()
    rebalance(first)
    before = dict(first.process_queues)
    second = make_consumer(client_config=named("b"))
    second.start()
    rebalance(first, first)
    for queue_id in (0, 1):
        queue = MessageQueue("T", "broker-a", queue_id)
        assert first.process_queues[queue] is before[queue]
        assert not before[queue].dropped


@pytest.mark.conformance("C11", "D1")
def test_a_queue_that_is_not_pulled_for_120_s_is_taken_anew(
    broker, make_consumer, scheduler, caplog
):
    fill(broker, 1, queues=1)
    heard = Heard()
    consumer = make_consumer(listener=heard)
    consumer.start()
    rebalance(consumer)
    lost = consumer.process_queues[MessageQueue("T", "broker-a", 0)]
    consumer.instance.pull_service._requests.get_nowait()  # its pull request is lost
    consumer.instance.pull_service._requests.get_nowait()
    scheduler.clock.advance(PULL_MAX_IDLE_TIME_MS)
    rebalance(consumer)
    assert consumer.process_queues[MessageQueue("T", "broker-a", 0)] is lost
    scheduler.clock.advance(1)
    turn(consumer)
    assert lost.dropped
    heard.wait_for(1)
    assert "it is made anew" in caplog.text


@pytest.mark.conformance("C5")
@pytest.mark.parametrize("answer", [BrokerSystemError("no"), []])
def test_without_the_members_everything_stays_as_it_is(broker, clock, make_consumer, answer):
    fill(broker, 0, queues=4)
    failing = FailingBroker(broker, clock)
    consumer = make_consumer(brokers=[failing])
    consumer.start()
    rebalance(consumer)
    before = dict(consumer.process_queues)
    if isinstance(answer, list):
        broker.disconnect(consumer.client_id)  # then the group has no member
    else:
        failing.always("consumer_ids", answer)
    broker.update_topic(TopicConfig("T", 8, 8))
    consumer.instance.update_topic_routes()
    rebalance(consumer)
    assert consumer.process_queues == before
    assert not any(process_queue.dropped for process_queue in before.values())


def test_the_queues_of_a_removed_broker_go_unless_their_topic_has_no_others(a, b, make_consumer):
    for one in (a, b):
        fill(one, 0, queues=1)
    consumer = make_consumer(brokers=[a, b])
    consumer.start()
    rebalance(consumer)

    def of_brokers() -> set[str]:
        return {queue.broker_name for queue in consumer.process_queues if queue.topic == "T"}

    assert of_brokers() == {"broker-a", "broker-b"}
    consumer.instance.remove_broker("broker-b")
    rebalance(consumer)
    assert of_brokers() == {"broker-a"}
    consumer.instance.remove_broker("broker-a")
    rebalance(consumer)
    assert of_brokers() == {"broker-a"}, "as a topic without queues leaves all as it is"
    consumer.instance.add_broker(a)  # the shutdown commits there


@pytest.mark.conformance("C5")
def test_who_is_not_among_the_members_gives_everything_up(broker, make_consumer):
    """As 4.9 does it: the strategy gives nothing to an id that is not in the list."""
    fill(broker, 0, queues=4)
    first = make_consumer(client_config=named("a"))
    first.start()
    rebalance(first)
    second = make_consumer(client_config=named("b"))
    second.start()
    broker.unregister_client(first.client_id, consumer_group="g")
    rebalance(first)
    assert ids(first) == []
    rebalance(first)
    assert ids(first) == [0, 1], "it told its brokers of the change, and so is in again"


@pytest.mark.conformance("C4")
def test_mixed_strategies_consume_queues_twice_and_others_not_at_all(broker, make_consumer):
    fill(broker, 0, queues=4)
    members = []
    for name, strategy in (("a", "AVG"), ("b", "AVG_BY_CIRCLE")):
        config = ConsumerConfig(allocate_message_queue_strategy=strategy)
        members.append(make_consumer(client_config=named(name), config=config))
        members[-1].start()
    rebalance(*members)
    owners = Counter(queue_id for member in members for queue_id in ids(member))
    assert owners == {0: 1, 1: 2, 3: 1}, "1 twice, 2 by nobody"


@pytest.mark.conformance("C16")
@pytest.mark.parametrize("error", [RuntimeError, SystemExit])
def test_a_topic_and_a_consumer_that_fail_do_not_stop_the_others(
    broker, make_consumer, caplog, error
):
    for topic in ("T", "U"):
        fill(broker, 0, topic=topic)
    config = ConsumerConfig(allocate_message_queue_strategy=Choosy("T", "%RETRY%g", error=error))
    bad = make_consumer(client_config=named("shared"), config=config)
    bad.subscribe("U")
    bad.start()
    good = make_consumer("other", client_config=named("shared"))
    good.start()
    rebalance(bad)
    assert (ids(bad, "T"), ids(bad, "U")) == ([], [0, 1])
    assert ids(good, "T") == [0, 1]
    assert "not T" in caplog.text
    assert "not %RETRY%g" not in caplog.text, "retry topics fail without a word"


@pytest.mark.conformance("C14", "A9")
def test_in_a_broadcast_each_member_has_all_queues_and_gets_everything(
    broker, make_consumer, tmp_path
):
    fill(broker, 10, queues=4)
    members, heard = [], []
    for name in ("a", "b"):
        heard.append(Heard())
        members.append(
            make_consumer(
                listener=heard[-1],
                config=ConsumerConfig(message_model=MessageModel.BROADCASTING),
                client_config=ClientConfig(
                    instance_name=name, local_offset_store_dir=str(tmp_path / "offsets")
                ),
            )
        )
        members[-1].start()
    turn(*members)
    assert [ids(member) for member in members] == [[0, 1, 2, 3]] * 2
    assert [listener.bodies for listener in heard] == [[], []], "a broadcast begins at the end"
    fill(broker, 10, queues=4)

    def all_got_it() -> bool:
        for member in members:
            pull_what_is_there(member)
        return all(len(listener.bodies) == 10 for listener in heard)

    eventually(all_got_it)
    for member in members:
        member.shutdown()
    assert broker.consumer_offsets("g") == {}, "brokers do not know how far they are"
    assert len(list((tmp_path / "offsets").rglob("offsets.json"))) == 2


class Silent(AllocateAveragely):
    """Averagely, or without an answer."""

    answers = True

    def allocate(self, group, client_id, queues, client_ids):
        return super().allocate(group, client_id, queues, client_ids) if self.answers else None


def test_a_strategy_that_gives_none_gives_no_queue(broker, make_consumer):
    """As 4.9 does it. To keep them would be to consume them beside their new owners."""
    fill(broker, 0, queues=4)
    strategy = Silent()
    config = ConsumerConfig(allocate_message_queue_strategy=strategy)
    consumer = make_consumer(config=config)
    consumer.start()
    rebalance(consumer)
    assert ids(consumer) == [0, 1, 2, 3]
    strategy.answers = False
    rebalance(consumer)
    assert ids(consumer) == []
    strategy.answers = True
    rebalance(consumer)
    assert ids(consumer) == [0, 1, 2, 3]


# -- orderly


def orderly(make_consumer, name: str, heard: Heard, unlock_delay_ms: int = 0):
    config = ConsumerConfig(unlock_delay_time_mills=unlock_delay_ms)
    consumer = make_consumer(client_config=named(name), config=config)
    consumer.register_message_listener_orderly(heard)
    return consumer


@pytest.mark.slow
@pytest.mark.conformance("F3", "F7", "C6")
@pytest.mark.parametrize("delay_ms", [0, 20_000])
def test_an_orderly_queue_is_taken_only_with_its_lock_and_given_away_when_it_rests(
    broker, make_consumer, scheduler, delay_ms
):
    fill(broker, 4, queues=2)
    stuck = threading.Event()

    def listen(messages, context):
        if context.message_queue.queue_id == 1 and not stuck.is_set():
            stuck.wait(20)
        return ConsumeOrderlyStatus.SUCCESS

    heard, other = Heard(listen), Heard(lambda messages, context: ConsumeOrderlyStatus.SUCCESS)
    first = orderly(make_consumer, "a", heard, delay_ms)
    first.start()
    turn(first)
    assert all(process_queue.locked for process_queue in first.process_queues.values())
    eventually(lambda: {c.message_queue.queue_id for c in heard.contexts} == {0, 1})
    second = orderly(make_consumer, "b", other)
    second.start()
    first_queue = first.process_queues[MessageQueue("T", "broker-a", 1)]
    rebalance(first)
    assert first_queue.dropped
    assert first_queue.try_unlock_times == 1, "its listener runs: it can not be given away"
    assert ids(first) == [0, 1]
    rebalance(second)
    assert ids(second) == [], "nor taken"
    stuck.set()
    eventually(lambda: not first_queue.consume_lock.locked())
    rebalance(first)
    assert ids(first) == [0]
    if delay_ms:
        scheduler.advance(delay_ms - 1)
        rebalance(second)
        assert ids(second) == [], "a message was left in it: it stays locked for that time"
        scheduler.advance(1)
    eventually(lambda: second.instance.rebalance_service.wanted)
    turn(second)
    assert ids(second) == [1]
    other.wait_for(1)
    assert [m.queue_offset for m in other.messages] == [1], (
        "what was in the listener when the queue was dropped is not left out, and not repeated"
    )


@pytest.mark.conformance("F3")
def test_a_lost_lock_is_noticed_with_the_next_refresh(broker, make_consumer, scheduler):
    fill(broker, 0, queues=2)
    consumer = orderly(make_consumer, "a", Heard())
    consumer.start()
    turn(consumer)
    queue = MessageQueue("T", "broker-a", 0)
    broker.unlock_queues("g", consumer.client_id, [queue])
    with locked_elsewhere(broker, queue) as gotten:
        assert gotten == {queue}
        scheduler.advance(21_000)
        assert not consumer.process_queues[queue].locked
    scheduler.advance(20_000)
    assert consumer.process_queues[queue].locked


@pytest.mark.slow
def test_one_group_with_64_queues_and_16_members_divides_them_evenly(broker, make_consumer):
    fill(broker, 0, queues=64)
    members = [make_consumer(client_config=named(f"{n:02d}")) for n in range(16)]
    for member in members:
        member.start()
    rebalance(*members)
    rebalance(*members)
    taken = [queue_id for member in members for queue_id in ids(member)]
    assert sorted(taken) == list(range(64))
    assert {len(ids(member)) for member in members} == {4}
    broker.send(Message("T", b"x"), 63)


@pytest.mark.parametrize("kind", [PushConsumer, LitePullConsumer])
def test_queues_of_topics_that_are_given_up_are_announced_no_more(broker, manager, kind):
    config = ConsumerConfig(pull_threshold_for_topic=800)
    settings = {"config": config} if kind is PushConsumer else {}
    for topic in ("T", "U", "V"):
        fill(broker, 0, topic=topic)
    consumer = kind("g", brokers=[broker], manager=manager, **settings)
    for topic in ("T", "U", "V"):
        consumer.subscribe(topic)
    if kind is PushConsumer:
        consumer.register_message_listener(Heard())

    def announced() -> set[str]:
        (client,) = broker.consumer_connection("g")
        assert [*client.consumer.queues] == consumer.rebalance.queues()
        return {queue.topic for queue in client.consumer.queues}

    with consumer:
        rebalance(consumer)
        assert announced() >= {"T", "U", "V"}
        consumer.unsubscribe("T")
        consumer.unsubscribe("V")
        if kind is PushConsumer:
            rebalance(consumer)
            flow_control = consumer.pull_loop.flow_control
            assert flow_control.pull_threshold_for_queue == 800 // len(consumer.process_queues)
        assert announced() - {"%RETRY%g"} == {"U"}


def test_queues_that_are_in_use_while_their_topic_is_unsubscribed_go_with_the_next_round(
    broker, manager
):
    fill(broker)
    consumer = LitePullConsumer("g", brokers=[broker], manager=manager)
    consumer.subscribe("T")
    with consumer:
        rebalance(consumer)
        held, goes_on = threading.Event(), threading.Event()

        def hold() -> None:
            with consumer.rebalance.lock:
                held.set()
                goes_on.wait(60)

        holder = threading.Thread(target=hold)
        holder.start()
        assert held.wait(20)
        consumer.unsubscribe("T")
        goes_on.set()
        holder.join()
        rebalance(consumer)
        assert consumer.assignment() == []
        chosen = [MessageQueue("T", "broker-a", 1)]
        consumer.assign(chosen)
        rebalance(consumer)
        assert consumer.assignment() == chosen
