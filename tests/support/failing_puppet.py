"""Another process whose push consumer fails at messages, and takes its time over some.

A body says what becomes of its message: ``fail`` fails always, ``flaky`` at every first attempt of
a process, ``slow`` takes 0.4 s, anything else is consumed.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from broker.embedded.broker import EmbeddedBroker
from client.consumer.consumer_config import ConsumerConfig
from client.listener.listener import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus
from client.push.push_consumer import PushConsumer
from client.runtime.client_config import ClientConfig
from client.runtime.client_manager import CLIENT_MANAGER
from storage.detect import detect_config
from storage.format.message import MessageExt
from tests.support.puppet import Puppet, obey


def failing_puppet(
    root: Path, group: str, name: str, *, orderly: bool = False, trace: bool = False, most: int = 3
) -> Puppet:
    """Start the process, and a consumer of T in it that has its own threads."""
    puppet = Puppet("tests.support.failing_puppet")
    return puppet.begin(
        "start",
        root=str(root),
        group=group,
        name=name,
        orderly=orderly,
        trace=trace,
        most=most,
    )


def open_quick(root: Path) -> EmbeddedBroker:
    """Open a store whose retries come back after a second each."""
    config = detect_config(root).with_(message_delay_level=" ".join(["1s"] * 8))
    return EmbeddedBroker.open(root, store_config=config)


class _Commands:
    """The puppet's end. Each method is a command."""

    def start(
        self, root: str, group: str, name: str, orderly: bool, trace: bool, most: int
    ) -> None:
        self._tried: set[str] = set()
        self._orderly = orderly
        self._broker = open_quick(Path(root))
        self._broker.start_services()
        consumer = PushConsumer(
            group,
            brokers=[self._broker],
            client_config=ClientConfig(instance_name=name),
            config=ConsumerConfig(
                consume_thread_min=4,
                consume_thread_max=4,
                max_reconsume_times=most,
                suspend_current_queue_time_millis=50,
                enable_msg_trace=trace,
            ),
            manager=CLIENT_MANAGER,
        )
        consumer.subscribe("T")
        if orderly:
            consumer.register_message_listener_orderly(self)
        else:
            consumer.register_message_listener(self)
        consumer.start()
        self._consumer = consumer

    def consume_message(self, messages: Sequence[MessageExt], context: Any) -> Any:
        del context
        good = sum(self._consumed(message) for message in messages) == len(messages)
        if self._orderly:
            status = ConsumeOrderlyStatus
            return status.SUCCESS if good else status.SUSPEND_CURRENT_QUEUE_A_MOMENT
        done = ConsumeConcurrentlyStatus
        return done.CONSUME_SUCCESS if good else done.RECONSUME_LATER

    def _consumed(self, message: MessageExt) -> bool:
        body = message.body.decode()
        first = message.msg_id not in self._tried
        self._tried.add(message.msg_id)
        if "slow" in body:
            threading.Event().wait(0.4)
        return "fail" not in body and not ("flaky" in body and first)


if __name__ == "__main__":
    obey(_Commands())
