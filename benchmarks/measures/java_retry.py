"""Messages that fail once: sent back, delayed by a second, and consumed again, beside Java."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from itertools import count as counted
from time import perf_counter

from benchmarks.java_peer import NAMESRV, running_cluster
from benchmarks.measures.java_broker import our_broker
from benchmarks.report import Row
from benchmarks.run import NotMeasurableError, Run
from broker.embedded import EmbeddedBroker
from broker.port.progress import ConsumeFromWhere
from client.consuming.listener import ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus
from client.pushing.push_consumer import PushConsumer
from client.runtime.client_config import ClientConfig
from client.subscribing.consumer_config import ConsumerConfig
from storage.configs.topics import TopicConfig
from storage.model import MessageExt

NAME = "java_retry"
_TOPIC = "failing"
_BODY = 100
_BATCH = 100
_QUEUES = 4
_PATIENCE_S = 300.0


def measure(run: Run) -> Iterator[Row]:
    count = run.sized(20_000, 2_000)
    with (
        run.folder() as scratch,
        running_cluster(scratch / "java", scratch) as cluster,
        cluster.client() as java,
        our_broker(scratch / "ours") as broker,
    ):
        broker.start_services()
        broker.update_topic(TopicConfig(_TOPIC, _QUEUES, _QUEUES))
        for first in range(0, count, 1_000):
            ids = [(first + number) % _QUEUES for number in range(1_000)]
            broker.send_column(_TOPIC, [bytes(_BODY)] * 1_000, ids)
        java.ask("sendBatches", topic=_TOPIC, batches=count // _BATCH, batch=_BATCH, size=_BODY)
        groups = (f"retrying-{number}" for number in counted())

        def its() -> float:
            asked = {"namesrv": NAMESRV, "topic": _TOPIC, "group": next(groups), "count": count}
            seconds: float = java.ask("retry", **asked)
            return seconds

        times = run.take_turns(
            "retry", {"ours": lambda: _our_retry(broker, next(groups), count), "java": its}
        )
    our_rate, its_rate = (count / times.median(name) / 1e3 for name in ("ours", "java"))
    yield Row(
        f"{count:,} messages that fail once and come again after a second, vs Java's",
        f"{our_rate:.1f} k/s",
        f"{its_rate:.1f} k/s",
        times.ratios("java", "ours"),
        samples=times.of,
    )


def _our_retry(broker: EmbeddedBroker, group: str, count: int) -> float:
    """From the first message until all have come again."""
    done = threading.Event()
    counting = threading.Lock()
    began: list[float] = []
    heard = 0

    def listen(
        messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext
    ) -> ConsumeConcurrentlyStatus:
        nonlocal heard
        if not began:
            began.append(perf_counter())
        if not messages[0].reconsume_times:
            context.delay_level_when_next_consume = 1
            return ConsumeConcurrentlyStatus.RECONSUME_LATER
        with counting:
            heard += len(messages)
            if heard >= count:
                done.set()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    config = ConsumerConfig(consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    client = ClientConfig(instance_name=group)
    consumer = PushConsumer(group, brokers=[broker], client_config=client, config=config)
    consumer.subscribe(_TOPIC)
    consumer.register_message_listener(listen)
    with consumer:
        if not done.wait(_PATIENCE_S):
            raise NotMeasurableError(f"only {heard} of {count} messages came again")
        return perf_counter() - began[0]
