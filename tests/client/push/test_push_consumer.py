"""The push consumer: start, parts, states, and the client instance that it shares."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable

import pytest

from broker.api.members import ConsumeType, MessageModel
from broker.embedded.broker import EmbeddedBroker
from broker.errors import BrokerSystemError, InvalidNameError, SubscriptionParseError
from client.consumer.consumer_config import ConsumerConfig
from client.consumer.subscription import MessageSelector
from client.errors import ClientConfigError, ClientStateError, GroupRegisteredError
from client.listener.listener import ConsumeConcurrentlyStatus
from client.offset_store.offset_store import ReadOffsetType
from client.producer.producer import Producer
from client.push.push_consumer import PushConsumer
from client.rebalance.allocate import AllocateAveragely
from client.runtime.client_config import ClientConfig
from client.runtime.client_manager import ClientManager
from storage.configs.topics import TopicConfig, topics_file
from storage.errors import CorruptFileError
from storage.format.message import Message, MessageQueue
from tests.support.consumers import Heard, eventually, fill, pull_what_is_there, rebalance, turn
from tests.support.manual_time import ManualScheduler

SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS


# -- start, parts, states


@pytest.mark.conformance("B2", "A4", "I1")
def test_group_subscription_and_listener_are_all_it_takes(broker, make_consumer):
    fill(broker)
    heard = Heard()
    consumer = make_consumer(listener=heard)
    consumer.start()
    turn(consumer)
    heard.wait_for(10)
    assert sorted(heard.bodies) == [b"%d" % n for n in range(10)]


@pytest.mark.conformance("B2")
def test_what_is_missing_is_told(broker, manager):
    with pytest.raises(InvalidNameError):
        PushConsumer("no group")
    bare = PushConsumer("g", brokers=[broker], manager=manager)
    with pytest.raises(ClientConfigError, match=r"subscribes to no topic; call subscribe\(topic\)"):
        bare.start()
    assert bare.state == "START_FAILED"
    deaf = PushConsumer("g", brokers=[broker], manager=manager)
    deaf.subscribe("T")
    with pytest.raises(
        ClientConfigError, match=r"has no listener; call register_message_listener\("
    ):
        deaf.start()


@pytest.mark.conformance("B1", "B3", "I3")
def test_a_start_makes_the_parts_in_their_order(make_consumer):
    consumer = make_consumer()
    assert consumer.state == "CREATE_JUST"
    consumer.start()
    parts = [
        "instance",
        "rules",
        "rebalance",
        "locks",
        "pull_loop",
        "send_back",
        "offset_store",
        "consume_service",
    ]
    assert [name for name in vars(consumer) if name in parts] == parts
    assert consumer.state == "RUNNING"
    assert set(consumer.rebalance.subscriptions) == {"T", "%RETRY%g"}
    assert consumer.instance.rebalance_service.wanted, "queues are taken at once"


@pytest.mark.conformance("B4")
def test_a_consumer_is_started_once_and_shut_down_once(broker, make_consumer):
    fill(broker)
    heard = Heard()
    consumer = make_consumer(listener=heard)
    consumer.shutdown()
    assert consumer.state == "CREATE_JUST", "nothing was there to shut down"
    consumer.start()
    with pytest.raises(ClientStateError, match="RUNNING"):
        consumer.start()
    turn(consumer)
    heard.wait_for(10)
    instance = consumer.instance
    consumer.shutdown()
    assert consumer.state == "SHUTDOWN_ALREADY"
    assert instance.state == "SHUTDOWN_ALREADY"
    assert consumer.process_queues == {}
    assert broker.consumer_ids("g") == []
    consumer.shutdown()
    with pytest.raises(ClientStateError, match="SHUTDOWN_ALREADY"):
        consumer.start()


@pytest.mark.conformance("G5", "B4")
def test_a_clean_stop_leaves_the_progress_at_the_broker_and_nothing_comes_again(
    broker, make_consumer
):
    fill(broker)
    heard = Heard()
    consumer = make_consumer(listener=heard)
    consumer.start()
    turn(consumer)
    heard.wait_for(10)
    eventually(lambda: not consumer.consume_service.pool.waiting, "the listener has not ended")
    consumer.shutdown()
    in_memory = consumer.consumer_status("T")
    assert broker.consumer_offsets("g")["g", "T"] == {q.queue_id: o for q, o in in_memory.items()}
    assert broker.consumer_offsets("g")["g", "T"] == {0: 5, 1: 5}
    fill(broker, 2)
    again = Heard()
    second = make_consumer(listener=again)
    second.start()
    turn(second)
    again.wait_for(2)
    second.shutdown()
    assert sorted(again.bodies) == [b"0", b"1"], "only what came after the stop"


@pytest.mark.conformance("B3", "B19")
def test_a_client_has_one_consumer_of_a_group(make_consumer):
    config = ClientConfig(instance_name="one")
    first, second = make_consumer(client_config=config), make_consumer(client_config=config)
    first.start()
    with pytest.raises(GroupRegisteredError, match="has been created before"):
        second.start()
    assert second.state == "CREATE_JUST"
    first.shutdown()
    second.start()
    assert second.state == "RUNNING"


@pytest.mark.conformance("B6")
def test_the_same_client_id_in_two_clients_of_a_group_is_refused(broker, open_broker, clock):
    """Equal names would take the same queues: 4.9 allows it, here the second one is refused."""
    fill(broker)
    config = ClientConfig(instance_name="one")
    consumers = []
    for member_broker in (broker, open_broker()):
        manager = ClientManager(clock=clock, schedulers=ManualScheduler(clock).part, threads=False)
        consumer = PushConsumer("g", brokers=[member_broker], manager=manager, client_config=config)
        consumer.subscribe("T")
        consumer.register_message_listener(Heard())
        consumers.append(consumer)
    consumers[0].start()
    with pytest.raises(BrokerSystemError, match="127.0.0.1@one"):
        consumers[1].start()
    assert consumers[1].state == "START_FAILED"
    assert broker.consumer_ids("g") == ["127.0.0.1@one"]
    consumers[0].shutdown()


@pytest.mark.conformance("B6")
def test_clustering_consumers_get_names_of_their_own_and_broadcasting_ones_share_one(
    make_consumer, tmp_path
):
    one, other = make_consumer("g1"), make_consumer("g2")
    one.start()
    other.start()
    assert one.client_id != other.client_id
    all_of_it = make_consumer(
        "g3",
        config=ConsumerConfig(message_model=MessageModel.BROADCASTING),
        client_config=ClientConfig(local_offset_store_dir=str(tmp_path)),
    )
    all_of_it.start()
    assert all_of_it.client_id == "127.0.0.1@DEFAULT"
    assert set(all_of_it.rebalance.subscriptions) == {"T"}, "nothing is retried in a broadcast"


def test_an_expression_that_no_broker_takes_is_told_although_the_consumer_runs(
    broker, make_consumer
):
    fill(broker)
    consumer = make_consumer()
    consumer.subscribe("T", MessageSelector.by_sql("a ! b"))
    with pytest.raises((SubscriptionParseError, BrokerSystemError)):
        consumer.start()
    assert consumer.state == "RUNNING"


# -- the shared instance


@pytest.mark.conformance("B5")
def test_producers_and_consumers_of_one_client_id_share_one_runtime(broker, manager, make_consumer):
    config = ClientConfig(instance_name="shared")
    one = make_consumer("g1", client_config=config)
    other = make_consumer("g2", client_config=config)
    producer = Producer("p", brokers=[broker], client_config=config, manager=manager)
    one.start()
    instance = one.instance
    other.start()
    producer.start()
    assert instance is other.instance is producer.instance
    assert instance.heartbeat_data().producers == ("p",)
    assert [data.group_name for data in instance.heartbeat_data().consumers] == ["g1", "g2"]
    one.shutdown()
    assert instance.state == "RUNNING", "the others still need it"
    producer.shutdown()
    assert instance.state == "RUNNING"
    other.shutdown()
    assert instance.state == "SHUTDOWN_ALREADY"
    fresh = make_consumer("g1", client_config=config)
    fresh.start()
    assert fresh.instance is not instance


@pytest.mark.conformance("B8", "B10", "B11", "B12", "B13")
def test_the_timers_of_an_instance_run_when_they_should(make_consumer, scheduler, monkeypatch):
    consumer = make_consumer()
    ran: list[tuple[str, int]] = []
    begin = scheduler.clock.now_ms()

    def note(name: str) -> Callable[[], None]:
        return lambda: ran.append((name, scheduler.clock.now_ms() - begin))

    consumer.instance = consumer._manager.get_or_create(consumer._client_config, ())
    for name in ("update_topic_routes", "_clean_and_heartbeat", "persist_all_consumer_offset"):
        monkeypatch.setattr(consumer.instance, name, note(name))
    monkeypatch.setattr(consumer.instance, "adjust_thread_pool", note("adjust_thread_pool"))
    consumer.instance.start()
    assert [task.name for task in consumer.instance.scheduled_tasks] == [
        "updateTopicRouteInfoFromNameServer",
        "sendHeartbeatToAllBrokerWithLock",
        "persistAllConsumerOffset",
        "adjustThreadPool",
    ], "and fetchNameServerAddr with the network"
    scheduler.advance(61_000)
    times = {name: [at for n, at in ran if n == name] for name in {name for name, _ in ran}}
    assert times["update_topic_routes"] == [10, 30_010, 60_010]
    assert times["_clean_and_heartbeat"] == [1_000, 31_000, 61_000]
    assert times["persist_all_consumer_offset"] == list(range(10_000, 61_000, 5_000))
    assert times["adjust_thread_pool"] == [60_000]


@pytest.mark.conformance("C6", "B15", "B8")
def test_periods_are_those_of_rocketmq_unless_set(make_consumer):
    consumer = make_consumer()
    consumer.start()
    periods = {task.name: task.period_ms for task in consumer.instance.scheduled_tasks}
    assert periods["updateTopicRouteInfoFromNameServer"] == 30_000
    assert periods["sendHeartbeatToAllBrokerWithLock"] == 30_000
    assert periods["persistAllConsumerOffset"] == 5_000
    assert consumer.instance.rebalance_service.interval_ms == 20_000
    assert ClientConfig().pull_time_delay_mills_when_exception == 1_000
    other = make_consumer("other", client_config=ClientConfig(rebalance_interval_ms=700))
    other.start()
    assert other.instance.rebalance_service.interval_ms == 700


@pytest.mark.conformance("B8")
def test_periods_can_be_set(make_consumer, scheduler):
    config = ClientConfig(persist_consumer_offset_interval_ms=500, heartbeat_broker_interval_ms=700)
    consumer = make_consumer(client_config=config)
    consumer.start()
    periods = {task.name: task.period_ms for task in consumer.instance.scheduled_tasks}
    assert periods["persistAllConsumerOffset"] == 500
    assert periods["sendHeartbeatToAllBrokerWithLock"] == 700


def change_without_a_notice(broker: EmbeddedBroker, config: TopicConfig) -> None:
    """Do what a process does that is killed before it notifies the consumers of a topic."""
    store = broker.store
    assert store is not None
    file = topics_file(store.root)
    with store.write_lock():
        table = file.read_for_change(store.now())
        table.put(config.topic_name, config, store.now())
        file.save(table)


@pytest.mark.conformance("B10", "C15")
def test_new_queues_and_new_brokers_are_picked_up(broker, open_broker, make_consumer, scheduler):
    fill(broker)
    consumer = make_consumer()
    consumer.start()
    scheduler.advance(1_000)
    turn(consumer)
    assert {q for q in consumer.process_queues if q.topic == "T"} == {
        MessageQueue("T", "broker-a", 0),
        MessageQueue("T", "broker-a", 1),
    }
    version = consumer.rebalance.subscriptions["T"].sub_version
    change_without_a_notice(broker, TopicConfig("T", 3, 3))
    scheduler.advance(28_000)
    rebalance(consumer)
    assert len([q for q in consumer.process_queues if q.topic == "T"]) == 2
    scheduler.advance(2_000)
    assert consumer.instance.rebalance_service.wanted
    rebalance(consumer)
    assert MessageQueue("T", "broker-a", 2) in consumer.process_queues
    assert consumer.rebalance.subscriptions["T"].sub_version > version, "brokers hear of it"
    broker.update_topic(TopicConfig("T", 4, 4))

    def noticed() -> bool:
        scheduler.advance(1)
        return bool(consumer.instance.rebalance_service.wanted)

    eventually(noticed)
    rebalance(consumer)
    assert MessageQueue("T", "broker-a", 3) in consumer.process_queues
    second = open_broker("broker-b")
    fill(second)
    consumer.instance.add_broker(second)
    rebalance(consumer)
    assert MessageQueue("T", "broker-b", 1) in consumer.process_queues
    assert second.consumer_ids("g") == [consumer.client_id]


@pytest.mark.conformance("B11", "B14")
def test_brokers_hear_of_members_and_a_closed_broker_is_forgotten(
    broker, open_broker, make_consumer, scheduler
):
    second = open_broker("broker-b")
    consumer = make_consumer(brokers=[broker, second])
    consumer.start()
    (client,) = broker.consumer_connection("g")
    assert client.client_id == consumer.client_id
    assert client.consumer is not None
    assert client.consumer.consume_type is ConsumeType.CONSUME_PASSIVELY
    assert client.consumer.message_model is MessageModel.CLUSTERING
    assert [s.topic for s in client.consumer.subscriptions] == ["%RETRY%g", "T"]
    before = client.last_heartbeat
    scheduler.advance(31_000)
    assert broker.consumer_connection("g")[0].last_heartbeat > before
    second.close()
    scheduler.advance(30_000)
    assert [b.name for b in consumer.instance.routes.brokers()] == ["broker-a"]


@pytest.mark.conformance("B12", "G13")
def test_progress_is_at_the_broker_within_one_period(broker, make_consumer, scheduler):
    fill(broker)
    pulled = threading.Event()
    heard = Heard(lambda messages, context: pulled.wait(20) and SUCCESS)
    consumer = make_consumer(listener=heard)
    consumer.start()
    scheduler.advance(10_000)  # the first run has passed, nothing was consumed
    turn(consumer)  # the second pull of each queue is held, and carries no progress
    pulled.set()
    heard.wait_for(10)
    queue = MessageQueue("T", "broker-a", 0)

    def in_memory() -> int | None:
        consumer.consume_service.settle(consumer.process_queues[queue], queue)
        offset: int | None = consumer.offset_store.read_offset(
            queue, ReadOffsetType.READ_FROM_MEMORY
        )
        return offset

    eventually(lambda: in_memory() == 5)
    assert broker.consumer_offsets("g").get(("g", "T"), {}).get(0, 0) == 0, (
        "memory first, the broker later: a kill now would repeat them"
    )
    scheduler.advance(5_000)
    assert broker.consumer_offsets("g")["g", "T"] == {0: 5, 1: 5}


@pytest.mark.conformance("B13")
def test_adjusting_the_threads_changes_nothing_as_in_4_9_8(make_consumer, scheduler):
    consumer = make_consumer(config=ConsumerConfig(adjust_thread_pool_nums_threshold=1))
    consumer.start()
    for process_queue in consumer.process_queues.values():
        process_queue.msg_acc_cnt = 1_000_000
    size = consumer.consume_service.pool.core_pool_size
    scheduler.advance(120_000)
    assert consumer.consume_service.pool.core_pool_size == size == 20


@pytest.mark.conformance("B13")
def test_threads_follow_the_backlog_where_that_is_wanted(broker, make_consumer, scheduler):
    fill(broker)
    consumer = make_consumer(
        config=ConsumerConfig(
            consume_thread_min=2,
            consume_thread_max=4,
            adjust_thread_pool_nums_threshold=100,
            adjust_thread_pool_nums_enable=True,
        )
    )
    consumer.start()
    turn(consumer)
    sizes = []
    for backlog in (50, 50, 50, 45, 40, 39, 39, 39):  # of each of the two queues
        for process_queue in consumer.process_queues.values():
            process_queue.msg_acc_cnt = 0
        for queue_id in (0, 1):
            queue = MessageQueue("T", "broker-a", queue_id)
            consumer.process_queues[queue].msg_acc_cnt = backlog
        scheduler.advance(60_000)
        sizes.append(consumer.consume_service.pool.core_pool_size)
    assert sizes == [3, 4, 4, 4, 4, 3, 2, 2]


# -- what a running consumer can be asked


@pytest.mark.conformance("B1", "B20")
def test_running_info_tells_settings_queues_and_statistics(broker, make_consumer, scheduler):
    fill(broker)
    heard = Heard()
    consumer = make_consumer(listener=heard)
    consumer.start()
    turn(consumer)
    heard.wait_for(10)
    scheduler.advance(20_000)
    info = json.loads(json.dumps(broker.consumer_running_info("g", consumer.client_id)))
    assert info["properties"]["consumeTimeout"] == 15
    assert info["properties"]["allocateMessageQueueStrategy"] == "AVG"
    assert info["properties"]["consumeOrderly"] is False
    assert {s["topic"] for s in info["subscriptions"]} == {"T", "%RETRY%g"}
    rows = {(row["topic"], row["queue_id"]): row for row in info["queues"]}
    assert rows["T", 0]["commit_offset"] == 5
    assert rows["T", 0]["cached_msg_count"] == 0
    assert rows["T", 0]["cached_msg_min_offset"] is None
    assert rows["T", 0]["maybe_blocked"] is False
    assert info["status"]["T"]["consume_ok_tps"] > 0
    assert dict(broker.consumer_status("g", "T", consumer.client_id)) == {
        MessageQueue("T", "broker-a", 0): 5,
        MessageQueue("T", "broker-a", 1): 5,
    }


class Mine:
    """A strategy of the user's that has only the method that it needs."""

    def allocate(self, group, client_id, queues, client_ids):
        return AllocateAveragely().allocate(group, client_id, queues, client_ids)


class Misnamed(Mine):
    name = 5


@pytest.mark.parametrize("strategy", [Mine, Misnamed])
def test_running_info_names_a_strategy_without_a_name_by_its_class(broker, make_consumer, strategy):
    fill(broker, 0)
    config = ConsumerConfig(allocate_message_queue_strategy=strategy())
    consumer = make_consumer(config=config)
    consumer.start()
    turn(consumer)
    info = broker.consumer_running_info("g", consumer.client_id)
    assert info["properties"]["allocateMessageQueueStrategy"] == strategy.__name__
    assert {row["queue_id"] for row in info["queues"] if row["topic"] == "T"} == {0, 1}


def test_a_message_can_be_consumed_directly_without_touching_progress(broker, make_consumer):
    fill(broker, 0)
    result = broker.send(Message("T", b"again"), 0)
    heard = Heard()
    consumer = make_consumer(listener=heard)
    consumer.start()
    message = broker.query_unique("T", result.msg_id)[0]
    done = broker.consume_message_directly("g", consumer.client_id, message.commitlog_offset)
    assert done.consume_result == "CR_SUCCESS"
    assert heard.bodies == [b"again"]
    assert broker.consumer_offsets("g") == {}


# -- suspending, and subscribing while it runs


def test_a_suspended_consumer_pulls_nothing_until_it_is_resumed(broker, make_consumer, scheduler):
    fill(broker, 0)
    heard = Heard()
    consumer = make_consumer(listener=heard)
    consumer.start()
    turn(consumer)
    consumer.suspend()
    before = set(consumer.process_queues)
    broker.update_topic(TopicConfig("T", 8, 8))
    consumer.instance.update_topic_routes()
    rebalance(consumer)
    assert set(consumer.process_queues) == before, "no rebalance either"
    fill(broker, 2)
    eventually(lambda: consumer.instance.pull_service.waiting == 2)
    pull_what_is_there(consumer)  # what was held is answered; the next pulls have to wait
    for _ in range(3):
        scheduler.advance(1_000)
        pull_what_is_there(consumer)
    heard.wait_for(2)
    fill(broker, 2)
    scheduler.advance(3_000)
    pull_what_is_there(consumer)
    assert len(heard.bodies) == 2
    consumer.resume()
    scheduler.advance(1_000)
    turn(consumer)
    heard.wait_for(4)


@pytest.mark.conformance("C13")
def test_topics_can_be_subscribed_and_given_up_while_it_runs(broker, make_consumer, caplog):
    caplog.set_level(logging.INFO)
    fill(broker, 4)
    fill(broker, 4, topic="U")
    heard = Heard()
    consumer = make_consumer(listener=heard)
    consumer.start()
    turn(consumer)
    consumer.subscribe("U", "TagX")
    assert broker.consumer_connection("g")[0].consumer.subscriptions[-1].topic == "U"
    turn(consumer)
    assert {q.topic for q in consumer.process_queues} == {"T", "U", "%RETRY%g"}
    given_up = [pq for q, pq in consumer.process_queues.items() if q.topic == "T"]
    consumer.unsubscribe("T")
    assert not any(process_queue.dropped for process_queue in given_up)
    rebalance(consumer)
    assert {q.topic for q in consumer.process_queues} == {"U", "%RETRY%g"}
    assert all(process_queue.dropped for process_queue in given_up)


@pytest.mark.conformance("B3", "B5")
def test_a_start_that_fails_leaves_no_client_that_others_would_find(open_broker, manager, tmp_path):
    """In BROADCASTING all consumers of a process have one client id, unless they say otherwise."""
    folder = tmp_path / "offsets"
    client_config = ClientConfig(local_offset_store_dir=str(folder))

    def broadcast(broker) -> PushConsumer:
        consumer = PushConsumer(
            "g",
            brokers=[broker],
            config=ConsumerConfig(message_model=MessageModel.BROADCASTING),
            client_config=client_config,
            manager=manager,
        )
        consumer.subscribe("T")
        consumer.register_message_listener(Heard())
        return consumer

    damaged = folder / client_config.client_id / "g" / "offsets.json"
    damaged.parent.mkdir(parents=True)
    damaged.write_text("{")
    damaged.with_name("offsets.json.bak").write_text("{")
    broker = open_broker()
    with pytest.raises(CorruptFileError):
        broadcast(broker).start()
    broker.close()
    damaged.unlink()
    damaged.with_name("offsets.json.bak").unlink()
    with broadcast(open_broker()) as consumer:
        assert consumer.state == "RUNNING"
