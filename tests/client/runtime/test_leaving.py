"""A consumer that leaves its group is out of it, whatever its client does meanwhile."""

from __future__ import annotations

import threading
from typing import Any

from client.runtime.client_config import ClientConfig
from tests.support.consumers import PATIENCE_S, fill
from tests.support.failing_broker import FailingBroker


class LeavesMeanwhile(FailingBroker):
    """Has a consumer leave while a heartbeat that names its group is under way."""

    def __init__(self, broker: Any) -> None:
        super().__init__(broker)
        self.leave: Any = None
        self.thread: threading.Thread | None = None

    def heartbeat(self, data: Any) -> None:
        if self.leave is not None and self.thread is None:
            self.thread = threading.Thread(target=self.leave)
            self.thread.start()
            self.thread.join(0.2)  # it ends here unless it waits for this heartbeat
        self.broker.heartbeat(data)


def test_a_consumer_that_leaves_during_a_heartbeat_is_no_member(broker, make_consumer):
    fill(broker)
    slow = LeavesMeanwhile(broker)
    config = ClientConfig(instance_name="shared")
    first = make_consumer("g", brokers=[slow], client_config=config)
    second = make_consumer("h", brokers=[slow], client_config=config)
    first.start()
    second.start()
    assert first.instance is second.instance
    slow.leave = lambda: first.instance.unregister_consumer("g")
    second.announce()
    assert slow.thread is not None
    slow.thread.join(PATIENCE_S)
    assert broker.consumer_ids("g") == []
    assert broker.consumer_ids("h") == [second.client_id]
