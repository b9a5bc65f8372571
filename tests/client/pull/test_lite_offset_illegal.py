"""A polling consumer whose progress lies outside of its queue."""

from __future__ import annotations

import pytest

from broker.api.members import MessageModel
from broker.api.offsets import OffsetCommit, OffsetQuery
from client.pull.lite_pull_consumer import LitePullConfig, LitePullConsumer
from client.runtime.client_config import ClientConfig
from storage.configs.journal import Journal
from storage.configs.progress import ProgressFile
from storage.configs.topics import TopicConfig
from storage.format.message import MessageQueue
from tests.support.consumers import aged_broker, eventually, fill, pull_what_is_there, turn
from tests.support.failing_broker import THEN, FailingBroker

QUEUE = MessageQueue("T", "broker-a", 0)


@pytest.fixture
def make_lite(broker, manager, request):
    def make(brokers=None, client_config=None, offset_store=None, **settings) -> LitePullConsumer:
        consumer = LitePullConsumer(
            "g",
            brokers=[broker] if brokers is None else brokers,
            manager=manager,
            client_config=client_config,
            config=LitePullConfig(auto_commit=False, **settings),
            offset_store=offset_store,
        )
        consumer.subscribe("T")
        request.addfinalizer(consumer.shutdown)
        return consumer

    return make


def started(consumer: LitePullConsumer) -> LitePullConsumer:
    """Start it; its first pull is answered then."""
    consumer.start()
    turn(consumer)
    return consumer


def poll_until(consumer: LitePullConsumer, scheduler, count: int) -> list[int]:
    """Poll until so many messages came, and commit them; gives their offsets."""
    offsets: list[int] = []

    def polled() -> bool:
        scheduler.advance(0)
        pull_what_is_there(consumer)
        offsets.extend(message.queue_offset for message in consumer.poll(0))
        return len(offsets) >= count

    eventually(polled)
    consumer.poll(0)
    consumer.commit()
    return offsets


@pytest.mark.conformance("D11")
@pytest.mark.parametrize("progress", [1_000, 7])
def test_progress_past_the_end_goes_on_at_the_end_that_the_pull_found(
    broker, make_lite, scheduler, progress
):
    fill(broker, 5, queues=1)
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, progress)])
    consumer = started(make_lite())
    fill(broker, 3, queues=1)  # the progress is put right only now
    assert poll_until(consumer, scheduler, 3) == [5, 6, 7]
    assert broker.query_consumer_offset("g", "T", 0) == OffsetQuery(8, 1)
    [move] = [*Journal(broker.view.root).entries()][-1]["moves"]
    assert (move["old"], move["new"]) == (progress, 5)
    consumer.shutdown()
    fill(broker, 4, queues=1)
    assert poll_until(started(make_lite()), scheduler, 4) == [8, 9, 10, 11]


def test_an_empty_queue_is_consumed_from_its_start(broker, make_lite, scheduler):
    broker.update_topic(TopicConfig("T", 1, 1))
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 1_000)])
    consumer = started(make_lite())
    fill(broker, 3, queues=1)
    assert poll_until(consumer, scheduler, 3) == [0, 1, 2]
    assert broker.query_consumer_offset("g", "T", 0) == OffsetQuery(3, 1)


@pytest.mark.conformance("G12")
def test_a_reset_before_the_progress_is_put_right_holds(broker, make_lite, scheduler):
    fill(broker, 5, queues=1)
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 1_000)])
    consumer = started(make_lite())
    ProgressFile(broker.view.root).move({("T@g", 0): 2})  # without a notice
    assert poll_until(consumer, scheduler, 3) == [2, 3, 4]
    assert broker.query_consumer_offset("g", "T", 0) == OffsetQuery(5, 1)


def test_a_broker_that_can_not_correct_is_asked_again(broker, clock, make_lite, scheduler, caplog):
    failing = FailingBroker(broker, clock)
    fill(broker, 5, queues=1)
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 1_000)])
    failing.plan("correct_consumer_offset", OSError("no answer"))
    consumer = started(make_lite(brokers=[failing]))
    scheduler.advance(0)
    assert "could not be put right" in caplog.text
    assert broker.query_consumer_offset("g", "T", 0) == OffsetQuery(1_000, 0)
    fill(broker, 1, queues=1)
    scheduler.advance(consumer.instance.config.pull_time_delay_mills_when_exception)
    assert poll_until(consumer, scheduler, 1) == [5]


@pytest.mark.conformance("D11")
def test_a_commit_during_the_repair_is_not_taken_for_a_reset(
    broker, clock, make_lite, scheduler, caplog
):
    failing = FailingBroker(broker, clock)
    fill(broker, 5, queues=1)
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 1_000)])
    consumer = make_lite(brokers=[failing])
    commit = THEN(lambda: consumer.offset_store.persist_all([QUEUE]))
    failing.plan("correct_consumer_offset", commit)
    started(consumer)
    fill(broker, 3, queues=1)
    assert poll_until(consumer, scheduler, 3) == [5, 6, 7]
    assert "progress was moved" not in caplog.text
    assert broker.query_consumer_offset("g", "T", 0) == OffsetQuery(8, 1)


def test_a_queue_that_was_given_up_is_left_as_it_is(broker, make_lite, scheduler):
    fill(broker, 5, queues=1)
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 1_000)])
    consumer = started(make_lite())
    consumer.unsubscribe("T")
    scheduler.advance(0)
    assert broker.query_consumer_offset("g", "T", 0) == OffsetQuery(1_000, 0)


@pytest.mark.conformance("A18", "D11")
def test_progress_before_the_first_offset_goes_on_there(tmp_path, clock, make_lite, scheduler):
    with aged_broker(tmp_path / "aged", clock) as aged:
        first = aged.min_offset("T", 0)
        aged.update_consumer_offsets("g", [OffsetCommit("T", 0, 1)])
        consumer = started(make_lite(brokers=[aged]))
        assert poll_until(consumer, scheduler, 60 - first) == [*range(first, 60)]
        assert aged.query_consumer_offset("g", "T", 0) == OffsetQuery(60, 0)
        consumer.shutdown()


def test_a_member_of_a_broadcast_puts_its_own_file_right(broker, make_lite, scheduler, tmp_path):
    settings = {
        "client_config": ClientConfig(local_offset_store_dir=str(tmp_path / "offsets")),
        "message_model": MessageModel.BROADCASTING,
    }
    fill(broker, 5, queues=1)
    consumer = started(make_lite(**settings))
    consumer.offset_store.update_offset(QUEUE, 1_000, increase_only=False)
    consumer.offset_store.persist(QUEUE)
    consumer.shutdown()
    consumer = started(make_lite(**settings))
    fill(broker, 3, queues=1)
    assert poll_until(consumer, scheduler, 3) == [5, 6, 7]
    assert consumer.committed(QUEUE) == 8
    assert broker.consumer_offsets() == {}


@pytest.mark.conformance("G12")
def test_asking_what_is_committed_asks_the_broker_and_changes_nothing(broker, make_lite, scheduler):
    fill(broker, 10, queues=1)
    consumer = started(make_lite())
    assert poll_until(consumer, scheduler, 10) == [*range(10)]
    assert consumer.committed(QUEUE) == 10
    ProgressFile(broker.view.root).move({("T@g", 0): 7})  # without a notice
    assert consumer.committed(QUEUE) == 7
    consumer.commit()
    assert broker.query_consumer_offset("g", "T", 0) == OffsetQuery(7, 1), "the reset holds"
    assert poll_until(consumer, scheduler, 3) == [7, 8, 9]
    assert consumer.committed(QUEUE) == 10
