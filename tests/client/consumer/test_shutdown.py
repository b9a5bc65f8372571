"""A consumer that is shut down leaves its group, whatever its parts raise, with its progress."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from client.consumer.consumer import Consumer
from client.consumer.subscription import newer
from client.listener.listener import ConsumeOrderlyStatus
from client.offset_store.local_offset_store import LocalFileOffsetStore
from client.pull.lite_pull_consumer import LitePullConsumer
from client.pull.pull_consumer import PullConsumer
from client.push import rebalance_push
from client.push.push_consumer import PushConsumer
from client.rebalance.allocate import AllocateAveragely
from client.runtime.client_manager import ClientManager
from client.runtime.service_state import ServiceState
from storage.errors import StoreClosedError
from storage.format.message import Message, MessageQueue
from tests.support.consumers import Heard, eventually, fill, rebalance, turn
from tests.support.consuming import Door, progress, queue_of
from tests.support.failing_broker import FailingBroker


class Away(LocalFileOffsetStore):
    """An offset store of a user whose data base is away."""

    def persist_all(self, queues: Collection[MessageQueue]) -> None:
        raise ConnectionError("the data base is away")


@pytest.mark.parametrize("kind", [PushConsumer, LitePullConsumer, PullConsumer])
def test_a_consumer_whose_offset_store_fails_leaves_its_group_and_closes_its_store(
    tmp_path: Path, manager: ClientManager, kind: type[Consumer]
) -> None:
    store = Away("client", "g", tmp_path / "offsets")
    consumer: Any = kind.open(
        tmp_path / "store", "g", create=True, offset_store=store, manager=manager
    )
    broker = consumer._owned
    fill(broker)
    if isinstance(consumer, PullConsumer):
        consumer.register_topic("T")
    else:
        consumer.subscribe("T")
    if isinstance(consumer, PushConsumer):
        consumer.register_message_listener(Heard())
    consumer.start()
    rebalance(consumer)
    instance = consumer.instance
    assert broker.consumer_ids("g") == [instance.client_id]
    with pytest.raises(ConnectionError, match="the data base is away"):
        consumer.shutdown()
    assert (consumer.state, instance.state) == (ServiceState.SHUTDOWN_ALREADY,) * 2
    assert not instance.consumer("g")
    assert consumer.rebalance.queues() == []
    with pytest.raises(StoreClosedError):
        broker.send(Message("T", b"late"), 0)
    consumer.shutdown()


class Watched(FailingBroker):
    """Notes the progress of group g at each release of queues."""

    def __init__(self, broker: Any) -> None:
        super().__init__(broker)
        self.at_release: list[int | None] = []

    def unlock_queues(self, group: str, client_id: str, queues: Sequence[MessageQueue]) -> None:
        self.at_release.append(self.broker.query_consumer_offset("g", "T", 0).offset)
        self.broker.unlock_queues(group, client_id, queues)


def test_an_orderly_consumer_commits_its_progress_before_it_releases_its_queues(
    broker, make_consumer, scheduler
):
    """Another member that waits for a queue takes it at once, and begins at what is committed."""
    queue_of(broker, 5, begin=0)
    watched = Watched(broker)
    consumer = make_consumer(brokers=[watched])
    door = Door(0, answer=ConsumeOrderlyStatus.SUCCESS)  # until no pull carries the progress
    consumer.register_message_listener_orderly(door)
    consumer.start()
    scheduler.advance(7)
    turn(consumer)
    door.opened.set()
    eventually(lambda: progress(consumer) == 5)
    assert watched.at_release == []
    consumer.shutdown()
    assert watched.at_release == [5]


def test_a_topic_that_is_unsubscribed_during_a_rebalance_stays_so(
    broker, make_consumer, monkeypatch
):
    fill(broker)
    consumer = make_consumer()
    consumer.start()
    unsubscribing = threading.Thread(target=consumer.unsubscribe, args=("T",))

    def slowly(*arguments: Any) -> Any:
        if not unsubscribing.ident:
            unsubscribing.start()
            unsubscribing.join(0.2)  # it may wait until the round has ended
        return newer(*arguments)

    monkeypatch.setattr(rebalance_push, "newer", slowly)
    rebalance(consumer)
    unsubscribing.join()
    assert "T" not in consumer.rebalance.subscriptions


class Hangs(AllocateAveragely):
    """A strategy of a user that blocks when it is to."""

    def __init__(self) -> None:
        self.entered, self.goes_on = threading.Event(), threading.Event()
        self.hangs = False

    def allocate(self, group: str, client_id: str, queues: Any, client_ids: Any) -> Any:
        if self.hangs:
            self.entered.set()
            self.goes_on.wait(60)
        return super().allocate(group, client_id, queues, client_ids)


@pytest.mark.parametrize("kind", [PushConsumer, LitePullConsumer])
def test_unsubscribe_does_not_wait_for_a_rebalance_that_does_not_end(
    broker: Any, manager: ClientManager, kind: type[Consumer]
) -> None:
    fill(broker)
    strategy = Hangs()
    config: Any = kind.default_config(allocate_message_queue_strategy=strategy)
    consumer: Any = kind("g", brokers=[broker], config=config, manager=manager)
    consumer.subscribe("T")
    if isinstance(consumer, PushConsumer):
        consumer.register_message_listener(Heard())
    with consumer:
        consumer.rebalance.do_rebalance()
        strategy.hangs = True
        round_of_rebalance = threading.Thread(target=consumer.rebalance.do_rebalance)
        round_of_rebalance.start()
        assert strategy.entered.wait(20)
        unsubscribing = threading.Thread(target=consumer.unsubscribe, args=("T",), daemon=True)
        unsubscribing.start()
        unsubscribing.join(20)
        ended = not unsubscribing.is_alive()
        strategy.goes_on.set()
        round_of_rebalance.join()
        assert ended
        assert "T" not in consumer.rebalance.subscriptions
        assert "T" not in {queue.topic for queue in consumer.rebalance.queues()}
