"""The push consumer, 20 threads and a listener that does nothing, beside loops that only pull.

The plain loop is what a user writes with the pull consumer: pull, note the progress. The broker's
own pull, without any client, is there for information.

The CPU time of the process counts: its threads share one interpreter lock, so that is its time on a
machine without other work, and other work slows a process with one thread less evenly.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import count
from time import perf_counter, process_time

from benchmarks.ours import new_store, put_column
from benchmarks.report import Goal, Row
from benchmarks.run import NotMeasurableError, Run
from benchmarks.workload import QUEUES, TOPIC, columns
from broker.api.offsets import ConsumeFromWhere
from broker.api.pull import PullRequest, PullStatus
from broker.embedded.broker import EmbeddedBroker
from client.consumer.consumer_config import ConsumerConfig
from client.listener.listener import ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus
from client.offset_store.offset_store import ReadOffsetType
from client.pull.pull_consumer import PullConsumer
from client.push.push_consumer import PushConsumer
from client.runtime.client_config import ClientConfig
from storage.configs.topics import TopicConfig
from storage.format.message import MessageExt, MessageQueue

NAME = "push"
_THREADS = 20
_PULL = 32
_PATIENCE_S = 120.0
_LOOK_S = 0.02  # each check takes the interpreter lock from the workers


def measure(run: Run) -> Iterator[Row]:
    batches = columns(run.sized(200, 30), 1_000, 1024)
    messages = len(batches) * 1_000
    groups = (f"push-{number}" for number in count())
    with run.folder() as folder:
        with new_store(folder) as store:
            for column in batches:
                put_column(store, column)
        root = folder / "store"
        with EmbeddedBroker.open(root) as broker:
            broker.update_topic(TopicConfig(TOPIC, QUEUES, QUEUES))
            ends = [broker.max_offset(TOPIC, queue_id) for queue_id in range(QUEUES)]
            times = run.take_turns(
                "push consumer",
                {
                    "push": lambda: _push(broker, next(groups), ends),
                    "pull": lambda: _pull(broker, next(groups), ends),
                    "broker": lambda: _pull_from_broker(broker, ends),
                },
            )
    yield Row(
        f"push consumer, {_THREADS} threads, empty listener, 1 KiB, vs a loop of pulls",
        f"{times.median('push') / messages * 1e6:.2f} us",
        f"{times.median('pull') / messages * 1e6:.2f} us",
        times.ratios("pull", "push"),
        Goal(0.6),
        samples=times.of,
    )
    yield Row(
        "... vs the broker's pulls without a client",
        f"{times.median('push') / messages * 1e6:.2f} us",
        f"{times.median('broker') / messages * 1e6:.2f} us",
        times.ratios("broker", "push"),
    )


def _pull(broker: EmbeddedBroker, group: str, ends: Sequence[int]) -> float:
    """Pull all queues to their ends in one thread, ignore the messages, note the progress."""
    queues = [MessageQueue(TOPIC, broker.name, number) for number in range(len(ends))]
    client_config = ClientConfig(instance_name=group)
    with PullConsumer(group, brokers=[broker], client_config=client_config) as consumer:
        start = process_time()
        for queue, end in zip(queues, ends, strict=True):
            offset = 0
            while offset < end:
                result = consumer.pull(queue, offset, _PULL)
                if result.pull_status is not PullStatus.FOUND:
                    raise NotMeasurableError(f"a pull gave {result.pull_status}")
                offset = result.next_begin_offset
                consumer.update_consume_offset(queue, offset)
        return process_time() - start


def _pull_from_broker(broker: EmbeddedBroker, ends: Sequence[int]) -> float:
    start = process_time()
    for queue_id, end in enumerate(ends):
        offset = 0
        while offset < end:
            request = PullRequest("pull", TOPIC, queue_id, offset, _PULL, expression="*")
            result = broker.pull(request)
            if result.pull_status is not PullStatus.FOUND:
                raise NotMeasurableError(f"a pull gave {result.pull_status}")
            offset = result.next_begin_offset
    return process_time() - start


def _push(broker: EmbeddedBroker, group: str, ends: Sequence[int]) -> float:
    """From the moment a new group's only consumer, started and idle, may go on until its progress
    is at the ends."""
    consumer = PushConsumer(
        group,
        brokers=[broker],
        client_config=ClientConfig(instance_name=group),
        config=ConsumerConfig(
            consume_thread_min=_THREADS,
            consume_thread_max=_THREADS,
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        ),
    )
    consumer.subscribe(TOPIC)
    consumer.register_message_listener(_listen)
    wanted = {MessageQueue(TOPIC, broker.name, n): end for n, end in enumerate(ends)}
    consumer.suspend()
    with consumer:
        began = perf_counter()
        start = process_time()
        consumer.resume()
        while not _is_at(consumer, wanted):
            if perf_counter() - began > _PATIENCE_S:
                raise NotMeasurableError("the push consumer did not come to the end")
            time.sleep(_LOOK_S)
        return process_time() - start


def _listen(
    messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext
) -> ConsumeConcurrentlyStatus:
    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS


def _is_at(consumer: PushConsumer, ends: dict[MessageQueue, int]) -> bool:
    known = consumer.offset_store
    return all(
        known.read_offset(queue, ReadOffsetType.READ_FROM_MEMORY) == end
        for queue, end in ends.items()
    )
