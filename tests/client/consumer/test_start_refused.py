"""A consumer that a broker does not let in does not run, of both kinds."""

from __future__ import annotations

import pytest

from broker.members.manager import JOINS_LOCK
from client.pull.lite_pull_consumer import LitePullConsumer
from client.push.push_consumer import PushConsumer
from storage.coordination.locks import ProcessLock
from storage.errors import WriteLockTimeoutError
from tests.support.consumers import Heard, fill


def push_consumer(broker, manager):
    consumer = PushConsumer("g", brokers=[broker], manager=manager)
    consumer.subscribe("T")
    consumer.register_message_listener(Heard())
    return consumer


def lite_pull_consumer(broker, manager):
    consumer = LitePullConsumer("g", brokers=[broker], manager=manager)
    consumer.subscribe("T")
    return consumer


@pytest.mark.parametrize("make", [push_consumer, lite_pull_consumer])
def test_a_consumer_that_cannot_join_beside_another_does_not_start(broker, manager, make):
    fill(broker)
    path = broker.view.root / "rmqctl" / JOINS_LOCK
    broker.members._joins = ProcessLock(path, limit_s=0.0)
    consumer = make(broker, manager)
    with (
        ProcessLock(path).held(),
        pytest.raises(WriteLockTimeoutError, match=rf"{JOINS_LOCK}.*then try again"),
    ):
        consumer.start()
    assert broker.consumer_ids("g") == []
    with make(broker, manager) as again:
        assert broker.consumer_ids("g") == [again.instance.client_id]
