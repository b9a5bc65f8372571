"""A consumer pulls by subscriptions that it has announced, whenever a rebalance comes."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from broker.api.members import MessageModel
from broker.api.offsets import ConsumeFromWhere
from client.consumer.consumer_config import ConsumerConfig
from client.runtime.client_config import ClientConfig
from tests.support.consumers import Heard, eventually, fill, pull_what_is_there, turn
from tests.support.failing_broker import FailingBroker


class PromptBroker(FailingBroker):
    """Its notices are there at once: a round of rebalance begins, and what it has taken is pulled,
    while the client's heartbeat is still under way.

    Unless the round has to wait for another thread, which would be done then.
    """

    consumer: Any = None

    def heartbeat(self, data: Any) -> None:
        self.broker.heartbeat(data)
        consumer, may_begin = self.consumer, threading.Event()
        if consumer is None:
            return

        def rebalance_unless_it_runs() -> None:
            if consumer.rebalance.lock.acquire(blocking=False):
                try:
                    may_begin.set()
                    consumer.do_rebalance()
                finally:
                    consumer.rebalance.lock.release()

        thread = threading.Thread(target=rebalance_unless_it_runs)
        thread.start()
        service = consumer.instance.pull_service
        eventually(lambda: service.waiting or not thread.is_alive())
        if may_begin.is_set():  # it announces what it has taken when this heartbeat has ended
            pull_what_is_there(consumer)


@pytest.fixture
def prompt(broker):
    fill(broker)
    return PromptBroker(broker)


def models(tmp_path):
    """The settings of consumers that divide messages, and of those that all get all of them."""
    local = ClientConfig(local_offset_store_dir=str(tmp_path))
    broadcast = ConsumerConfig(
        message_model=MessageModel.BROADCASTING,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    )
    return {"clustering": {}, "broadcasting": {"config": broadcast, "client_config": local}}


@pytest.mark.parametrize("model", ["clustering", "broadcasting"])
def test_a_start_brings_the_first_messages_though_a_round_comes_early(
    prompt, make_consumer, tmp_path, model
):
    heard = Heard()
    consumer = make_consumer(listener=heard, brokers=[prompt], **models(tmp_path)[model])
    prompt.consumer = consumer
    consumer.start()
    turn(consumer)
    heard.wait_for(10)  # no time passes here: nothing was put off


def test_a_topic_more_while_it_runs_is_consumed_at_once(broker, prompt, make_consumer):
    fill(broker, topic="More")
    heard = Heard()
    consumer = make_consumer(listener=heard, brokers=[prompt])
    consumer.start()
    turn(consumer)
    heard.wait_for(10)
    prompt.consumer = consumer
    consumer.subscribe("More")
    turn(consumer)
    heard.wait_for(20)
