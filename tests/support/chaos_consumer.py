"""A member of a group for chaos runs: writes down its messages before their results.

``python -m tests.support.chaos_consumer ROOT JOURNAL GROUP CLIENT HOW THREADS FAILS SEED``; HOW is
concurrently or orderly, FAILS the share of messages whose listener fails. Ends in an orderly way
when its standard input does.
"""

from __future__ import annotations

import logging
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from broker.api.offsets import ConsumeFromWhere
from broker.config import BrokerConfig
from broker.embedded.broker import EmbeddedBroker
from client.consumer.consumer_config import ConsumerConfig
from client.listener.listener import (
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
)
from client.push.push_consumer import PushConsumer
from client.runtime.client_config import ClientConfig
from storage.format.message import MessageExt
from tests.support.chaos_journal import DONE, LATER, JournalWriter

TOPIC = "T"
SUSPEND_MS = 10


class _Takings(logging.Handler):
    """Notes from the consumer's log which queues it takes and gives up."""

    def __init__(self, journal: JournalWriter, *, orderly: bool) -> None:
        super().__init__()
        self._journal = journal
        # Under the lock an orderly consumer asks again where to begin.
        self._took = "first pull under the lock" if orderly else "took a queue"

    def emit(self, record: logging.LogRecord) -> None:
        args: Any = record.args
        if record.levelno >= logging.WARNING:
            text = logging.Formatter("%(message)s").format(record)
            self._journal.note("warned", text.replace("\n", " | "))
        elif record.msg.startswith(self._took):
            queue = args[1] if self._took == "took a queue" else args[0].message_queue
            self._journal.note("took", queue.topic, queue.queue_id, args[-1])
        elif record.msg.startswith("gave up a queue"):
            queue = args[1]
            self._journal.note("gave", queue.topic, queue.queue_id)


class _Listener:
    def __init__(self, journal: JournalWriter, fails: float, seed: str) -> None:
        self._journal = journal
        self._fails = fails
        self._chance = random.Random(seed)

    def _note(self, message: MessageExt, context: Any) -> bool:
        fails = self._chance.random() < self._fails
        self._journal.note(
            "got",
            context.message_queue.topic,
            message.queue_id,
            message.queue_offset,
            message.reconsume_times,
            LATER if fails else DONE,
            message.body.decode(),
        )
        return fails

    def consume(
        self, messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext
    ) -> ConsumeConcurrentlyStatus:
        (message,) = messages
        if self._note(message, context):
            context.delay_level_when_next_consume = self._chance.choice((1, 1, 1, 2))
            return ConsumeConcurrentlyStatus.RECONSUME_LATER
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    def consume_orderly(
        self, messages: Sequence[MessageExt], context: ConsumeOrderlyContext
    ) -> ConsumeOrderlyStatus:
        (message,) = messages
        if self._note(message, context):
            context.suspend_current_queue_time_millis = SUSPEND_MS
            return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
        return ConsumeOrderlyStatus.SUCCESS


def main(
    root: str, path: str, group: str, client: str, how: str, threads: str, fails: str, seed: str
) -> None:
    journal = JournalWriter(Path(path))
    orderly = how == "orderly"
    log = logging.getLogger("rmqctl")
    log.setLevel(logging.INFO)
    log.propagate = False
    log.addHandler(_Takings(journal, orderly=orderly))
    listener = _Listener(journal, float(fails), seed)
    with EmbeddedBroker.open(root, BrokerConfig()) as broker:
        consumer = PushConsumer(
            group,
            brokers=[broker],
            client_config=ClientConfig(instance_name=client),
            config=ConsumerConfig(
                consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
                consume_thread_min=int(threads),
                consume_thread_max=int(threads),
            ),
        )
        consumer.subscribe(TOPIC)
        if orderly:
            consumer.register_message_listener_orderly(listener.consume_orderly)
        else:
            consumer.register_message_listener(listener.consume)
        with consumer:
            broker.start_services()
            journal.note("in")
            sys.stdin.buffer.read()
        journal.note("out")


if __name__ == "__main__":
    main(*sys.argv[1:])
