"""A running consumer follows a move of its progress, and never restores the old offset."""

from __future__ import annotations

import threading

import pytest

from broker.api.members import MessageModel
from broker.api.offsets import ConsumeFromWhere
from client.consumer.consumer_config import ConsumerConfig
from client.errors import ProgressMovedError
from client.listener.listener import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus
from client.offset_store.local_offset_store import LocalFileOffsetStore
from client.offset_store.offset_store import ReadOffsetType
from client.pull.lite_pull_consumer import LitePullConfig, LitePullConsumer
from client.pull.pull_consumer import PullConsumer
from client.runtime.client_config import ClientConfig
from storage.configs.progress import ProgressFile
from storage.format.message import MessageQueue
from tests.support.consumers import (
    Heard,
    eventually,
    fill,
    pull_until,
    pull_what_is_there,
    rebalance,
    turn,
)

QUEUE = MessageQueue("T", "broker-a", 0)
OTHER = MessageQueue("T", "broker-a", 1)
SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS


def move(broker, offset: int) -> None:
    broker.progress.move("g", {("T", 0): offset})


def move_in_silence(broker, offset: int | None) -> None:
    """Move progress as if the notice of it was lost."""
    ProgressFile(broker.view.root).move({("T@g", 0): offset})


def follow(consumer, process_queue) -> None:
    """Wait for the notice, which comes from another thread; then do what the timer thread does."""

    def dropped() -> bool:
        consumer.instance.schedulers.__self__.advance(0)
        return bool(process_queue.dropped)

    eventually(dropped)
    turn(consumer)


@pytest.mark.conformance("G12")
@pytest.mark.parametrize("orderly", [False, True])
def test_a_rewind_has_the_messages_come_again(broker, make_consumer, orderly):
    fill(broker, 10, queues=1)
    heard = Heard(lambda messages, context: ConsumeOrderlyStatus.SUCCESS if orderly else SUCCESS)
    consumer = make_consumer()
    if orderly:
        consumer.register_message_listener_orderly(heard)
    else:
        consumer.register_message_listener(heard)
    consumer.start()
    turn(consumer)
    heard.wait_for(10)
    old = consumer.process_queues[QUEUE]
    consumer.persist_consumer_offset()
    move(broker, 4)
    follow(consumer, old)
    heard.wait_for(16)
    assert sorted(m.queue_offset for m in heard.messages[10:]) == [4, 5, 6, 7, 8, 9]
    assert not consumer.paused
    eventually(lambda: consumer.process_queues[QUEUE].msg_count == 0)
    consumer.persist_consumer_offset()
    assert broker.query_consumer_offset("g", "T", 0).offset == 10


@pytest.mark.conformance("G12")
def test_what_is_in_work_when_the_progress_is_moved_counts_no_more(broker, make_consumer):
    fill(broker, 10, queues=1)
    stuck = threading.Event()
    heard = Heard(lambda messages, context: stuck.wait(20) and SUCCESS)
    consumer = make_consumer(listener=heard)
    consumer.start()
    turn(consumer)
    heard.wait_for(10)
    old = consumer.process_queues[QUEUE]
    move(broker, 2)
    follow(consumer, old)
    stuck.set()
    heard.wait_for(18)
    eventually(lambda: consumer.process_queues[QUEUE].msg_count == 0)
    consumer.persist_consumer_offset()
    assert broker.query_consumer_offset("g", "T", 0).offset == 10
    assert consumer.process_queues[QUEUE] is not old


@pytest.mark.conformance("G12")
def test_a_skip_leaves_out_what_was_not_pulled_and_only_the_named_queue_is_touched(
    broker, make_consumer
):
    fill(broker, 80, queues=2)
    heard = Heard()
    consumer = make_consumer(listener=heard)
    consumer.start()
    rebalance(consumer)
    for _ in range(3):  # one pull a queue
        consumer.instance.pull_service.run_once()
    heard.wait_for(64)
    other = QUEUE._replace(queue_id=1)
    old = dict(consumer.process_queues)
    move(broker, 38)
    follow(consumer, old[QUEUE])
    heard.wait_for(74)
    assert old[QUEUE].msg_count == 0
    assert consumer.process_queues[other] is old[other]
    offsets = {q: sorted(m.queue_offset for m in heard.messages if m.queue_id == q) for q in (0, 1)}
    assert offsets == {0: [*range(32), 38, 39], 1: [*range(40)]}


@pytest.mark.conformance("G12")
def test_a_reset_holds_even_if_the_consumer_is_not_notified(broker, make_consumer, scheduler):
    """The old progress is not taken any more, and that is how the consumer hears of it."""
    fill(broker, 10, queues=1)
    heard = Heard()
    consumer = make_consumer(listener=heard)
    consumer.start()
    turn(consumer)
    heard.wait_for(10)
    eventually(lambda: consumer.process_queues[QUEUE].msg_count == 0)
    old = consumer.process_queues[QUEUE]
    consumer.persist_consumer_offset()
    move_in_silence(broker, 7)
    scheduler.advance(10_000)
    assert broker.query_consumer_offset("g", "T", 0).offset == 7
    scheduler.advance(0)
    assert old.dropped
    turn(consumer)
    heard.wait_for(13)
    assert sorted(m.queue_offset for m in heard.messages[10:]) == [7, 8, 9]


def test_progress_that_is_forgotten_has_the_group_begin_like_a_new_one(
    broker, make_consumer, scheduler
):
    fill(broker, 5, queues=1)
    heard = Heard()
    consumer = make_consumer(listener=heard)
    consumer.start()
    turn(consumer)
    heard.wait_for(5)
    eventually(lambda: consumer.process_queues[QUEUE].msg_count == 0)
    consumer.persist_consumer_offset()
    move_in_silence(broker, None)
    scheduler.advance(10_000)
    scheduler.advance(0)
    turn(consumer)
    heard.wait_for(10)


@pytest.mark.conformance("G12", "C9")
def test_a_pull_that_was_held_over_a_rewind_does_not_take_the_progress_forward(
    broker, make_consumer
):
    """Its answer says where the old way was, and it comes when the new one has begun."""
    fill(broker, 10, queues=1)
    door = threading.Event()
    heard = Heard(
        lambda messages, context: (len(heard.messages) <= 10 or door.wait(20)) and SUCCESS
    )
    consumer = make_consumer(listener=heard)
    consumer.start()
    turn(consumer)
    heard.wait_for(10)
    held = broker._puller.held
    pull_until(consumer, lambda: held.count == 2)  # of T and of the retry topic
    old = consumer.process_queues[QUEUE]
    move(broker, 4)
    follow(consumer, old)
    heard.wait_for(16)
    held.expire(1 << 60)
    assert consumer.consumer_status("T") == {QUEUE: 4}
    consumer.persist_consumer_offset()
    assert broker.query_consumer_offset("g", "T", 0).offset == 4
    door.set()


@pytest.mark.conformance("G12", "A9")
def test_a_member_of_a_broadcast_follows_a_move_in_its_own_file(broker, make_consumer, tmp_path):
    fill(broker, 10, queues=1)
    heard = Heard()
    folder = tmp_path / "offsets"

    def member(listener: Heard):
        return make_consumer(
            listener=listener,
            config=ConsumerConfig(
                message_model=MessageModel.BROADCASTING,
                consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            ),
            client_config=ClientConfig(local_offset_store_dir=str(folder)),
        )

    consumer = member(heard)
    consumer.start()
    turn(consumer)
    heard.wait_for(10)
    eventually(lambda: consumer.process_queues[QUEUE].msg_count == 0)
    consumer.persist_consumer_offset()
    old = consumer.process_queues[QUEUE]
    move(broker, 7)
    follow(consumer, old)
    heard.wait_for(13)
    assert sorted(m.queue_offset for m in heard.messages[10:]) == [7, 8, 9]
    eventually(lambda: not consumer.consume_service.pool.waiting, "the listener has not ended")
    consumer.shutdown()
    again = Heard()
    second = member(again)
    second.start()
    turn(second)
    assert again.messages == [], "its file says 10 again"


@pytest.mark.parametrize("target", [7, 2])
@pytest.mark.parametrize("stored", [3, 10])
def test_a_polling_member_of_a_broadcast_follows_a_move_in_its_own_file(
    broker, manager, scheduler, tmp_path, stored, target
):
    fill(broker, 10, queues=1)

    def member() -> LitePullConsumer:
        consumer = LitePullConsumer(
            "g",
            brokers=[broker],
            manager=manager,
            config=LitePullConfig(
                auto_commit=False,
                message_model=MessageModel.BROADCASTING,
                consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
                pull_batch_size=1,
            ),
            client_config=ClientConfig(local_offset_store_dir=str(tmp_path / "offsets")),
        )
        consumer.subscribe("T")
        return consumer

    def polled(consumer: LitePullConsumer, count: int) -> list[int]:
        offsets: list[int] = []

        def is_enough() -> bool:
            scheduler.advance(0)
            pull_what_is_there(consumer)
            offsets.extend(message.queue_offset for message in consumer.poll(0))
            return len(offsets) == count

        eventually(is_enough)
        return offsets

    with member() as consumer:
        turn(consumer)
        assert polled(consumer, stored) == [*range(stored)]
        consumer.poll(0)
        consumer.commit()
        assert consumer.committed(QUEUE) == stored
        old = consumer.rebalance.process_queues[QUEUE]
        move(broker, target)
        follow(consumer, old)
        assert consumer.committed(QUEUE) == target
        assert polled(consumer, 10 - target) == [*range(target, 10)]
    with member() as consumer:
        turn(consumer)
        assert polled(consumer, 10 - target) == [*range(target, 10)], "its file says so"


@pytest.mark.parametrize("is_stored", [False, True])
def test_a_pulling_member_of_a_broadcast_follows_a_move_in_its_own_file(
    broker, manager, scheduler, tmp_path, is_stored
):
    fill(broker, 10, queues=1)
    settings = {
        "brokers": [broker],
        "manager": manager,
        "config": PullConsumer.default_config(message_model=MessageModel.BROADCASTING),
        "client_config": ClientConfig(local_offset_store_dir=str(tmp_path / "offsets")),
    }
    with PullConsumer("g", **settings) as consumer:
        consumer.update_consume_offset(QUEUE, 9)
        if is_stored:
            consumer.persist_consumer_offset()
        move(broker, 7)

        def is_moved() -> bool:
            scheduler.advance(0)
            return consumer.consumer_status("T") == {QUEUE: 7}

        eventually(is_moved)
        with pytest.raises(ProgressMovedError, match="was moved to 7"):
            consumer.update_consume_offset(QUEUE, 10)
        assert consumer.fetch_consume_offset(QUEUE, from_store=True) == 7
        assert consumer.fetch_consume_offset(QUEUE) == 7
        consumer.update_consume_offset(QUEUE, 8)
    with PullConsumer("g", **settings) as consumer:
        assert consumer.fetch_consume_offset(QUEUE) == 8


def test_a_pulling_member_of_a_broadcast_follows_a_move_that_its_store_does_not_take(
    broker, manager, scheduler, tmp_path
):
    """The first queue's progress cannot be stored, once: it is in memory, the other's in both."""

    class Away(LocalFileOffsetStore):
        failures = 0

        def persist(self, queue: MessageQueue) -> None:
            if not self.failures:
                self.failures += 1
                raise OSError("the database is away")
            super().persist(queue)

    fill(broker, 20, queues=2)
    store = Away("c", "g", tmp_path)
    other = MessageQueue("T", "broker-a", 1)
    with PullConsumer(
        "g",
        brokers=[broker],
        manager=manager,
        config=PullConsumer.default_config(message_model=MessageModel.BROADCASTING),
        offset_store=store,
    ) as consumer:
        for queue in (QUEUE, other):
            consumer.update_consume_offset(queue, 9)
        broker.progress.move("g", {("T", 0): 7, ("T", 1): 6})

        def is_moved() -> bool:
            scheduler.advance(0)
            return consumer.consumer_status("T") == {QUEUE: 7, other: 6}

        eventually(is_moved)
        for queue in (QUEUE, other):
            with pytest.raises(ProgressMovedError, match="was moved to"):
                consumer.update_consume_offset(queue, 10)
    assert store.failures == 1
    again = LocalFileOffsetStore("c", "g", tmp_path)
    again.load()
    assert again.clone_offset_table() == {QUEUE: 7, other: 6}


class OwnStore(LocalFileOffsetStore):
    """A user's own store; of the progress of QUEUE it cannot do what ``away`` names."""

    away: frozenset[str] = frozenset()

    def _ask(self, queue: MessageQueue, what: str) -> None:
        if queue == QUEUE and what in self.away:
            raise OSError("the database is away")

    def read_offset(self, queue: MessageQueue, read_type: ReadOffsetType) -> int | None:
        if read_type is ReadOffsetType.READ_FROM_STORE:
            self._ask(queue, "read")
        return super().read_offset(queue, read_type)

    def persist(self, queue: MessageQueue) -> None:
        self._ask(queue, "persist")
        super().persist(queue)

    def remove_offset(self, queue: MessageQueue) -> None:
        self._ask(queue, "remove")
        super().remove_offset(queue)


@pytest.fixture
def own(tmp_path) -> OwnStore:
    return OwnStore("c", "g", tmp_path)


def kept_in(store: OwnStore) -> dict[MessageQueue, int]:
    again = LocalFileOffsetStore("c", "g", store.path.parents[2])
    again.load()
    return again.clone_offset_table()


def move_both(broker, store: OwnStore) -> None:
    """Move the progress in the user's store; the broker notifies the members."""
    elsewhere = LocalFileOffsetStore("c", "g", store.path.parents[2])
    for queue, offset in ((QUEUE, 7), (OTHER, 6)):
        elsewhere.update_offset(queue, offset, increase_only=False)
    elsewhere.persist_all([QUEUE, OTHER])
    broker.progress.move("g", {("T", 0): 7, ("T", 1): 6})


def poll_until(consumer, count: int) -> dict[int, list[int]]:
    """Poll until so many messages came; gives their offsets by queue id."""
    found: dict[int, list[int]] = {0: [], 1: []}

    def polled() -> bool:
        consumer.instance.schedulers.__self__.advance(0)
        pull_what_is_there(consumer)
        for message in consumer.poll(0):
            found[message.queue_id].append(message.queue_offset)
        return sum(map(len, found.values())) >= count

    eventually(polled)
    return found


def test_a_queue_with_which_the_own_store_fails_keeps_no_other_of_a_pull_consumer_from_a_move(
    broker, manager, own
):
    fill(broker, 20, queues=2)
    with PullConsumer("g", brokers=[broker], manager=manager, offset_store=own) as consumer:
        for queue in (QUEUE, OTHER):
            consumer.update_consume_offset(queue, 9)
        own.away = frozenset({"remove"})
        move_both(broker, own)
        eventually(lambda: consumer.consumer_status("T") == {QUEUE: 9})
        own.away = frozenset()


def test_a_queue_with_which_the_own_store_fails_keeps_no_other_of_a_push_consumer_from_a_move(
    broker, make_consumer, own
):
    fill(broker, 20, queues=2)
    heard = Heard()
    first = ConsumerConfig(consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    consumer = make_consumer(listener=heard, offset_store=own, config=first)
    consumer.start()
    turn(consumer)
    heard.wait_for(20)
    eventually(lambda: not any(queue.msg_count for queue in consumer.process_queues.values()))
    old = dict(consumer.process_queues)
    own.away = frozenset({"remove"})
    move_both(broker, own)
    follow(consumer, old[OTHER])
    heard.wait_for(24)
    assert sorted(m.queue_offset for m in heard.messages[20:]) == [6, 7, 8, 9]
    assert old[QUEUE].dropped
    own.away = frozenset()


@pytest.fixture
def polling(broker, manager, own, request):
    """Make a consumer with the store ``own`` that was given all 20 messages of both queues, and
    has committed none."""

    def make(model: MessageModel) -> LitePullConsumer:
        fill(broker, 20, queues=2)
        consumer = LitePullConsumer(
            "g",
            brokers=[broker],
            manager=manager,
            config=LitePullConfig(
                auto_commit=False,
                message_model=model,
                consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            ),
            offset_store=own,
        )
        request.addfinalizer(consumer.shutdown)
        consumer.assign([QUEUE, OTHER])
        consumer.start()
        assert poll_until(consumer, 20) == {0: [*range(10)], 1: [*range(10)]}
        return consumer

    return make


def test_a_polling_member_goes_on_from_moved_progress_once_its_own_store_gives_it(
    broker, own, polling
):
    consumer = polling(MessageModel.CLUSTERING)
    old = consumer.rebalance.process_queues[OTHER]
    own.away = frozenset({"read"})
    move_both(broker, own)
    follow(consumer, old)
    assert poll_until(consumer, 4) == {0: [], 1: [6, 7, 8, 9]}
    consumer.poll(0)
    consumer.commit()
    assert kept_in(own) == {QUEUE: 7, OTHER: 10}
    own.away = frozenset()
    delay_ms = consumer.instance.config.pull_time_delay_mills_when_exception
    consumer.instance.schedulers.__self__.advance(delay_ms)
    assert poll_until(consumer, 3) == {0: [7, 8, 9], 1: []}
    consumer.poll(0)
    consumer.commit()
    assert kept_in(own) == {QUEUE: 10, OTHER: 10}


def test_a_polling_member_that_seeks_while_its_own_store_is_away_stays_there(broker, own, polling):
    consumer = polling(MessageModel.CLUSTERING)
    old = consumer.rebalance.process_queues[QUEUE]
    own.away = frozenset({"read"})
    move_both(broker, own)
    follow(consumer, old)
    consumer.seek(QUEUE, 9)
    own.away = frozenset()
    delay_ms = consumer.instance.config.pull_time_delay_mills_when_exception
    consumer.instance.schedulers.__self__.advance(delay_ms)
    assert poll_until(consumer, 5) == {0: [9], 1: [6, 7, 8, 9]}


def test_a_polling_member_whose_own_store_forgets_no_progress_follows_a_move(broker, own, polling):
    consumer = polling(MessageModel.CLUSTERING)
    old = consumer.rebalance.process_queues[OTHER]
    own.away = frozenset({"remove"})
    move_both(broker, own)
    follow(consumer, old)
    assert poll_until(consumer, 7) == {0: [7, 8, 9], 1: [6, 7, 8, 9]}
    own.away = frozenset()


def test_a_polling_member_of_a_broadcast_follows_a_move_while_its_own_store_is_away(
    broker, own, polling
):
    consumer = polling(MessageModel.BROADCASTING)
    old = consumer.rebalance.process_queues[OTHER]
    own.away = frozenset({"read", "persist"})
    broker.progress.move("g", {("T", 0): 7, ("T", 1): 6})
    follow(consumer, old)
    assert poll_until(consumer, 7) == {0: [7, 8, 9], 1: [6, 7, 8, 9]}
    own.away = frozenset()
    consumer.poll(0)
    consumer.commit()
    assert kept_in(own) == {QUEUE: 10, OTHER: 10}
