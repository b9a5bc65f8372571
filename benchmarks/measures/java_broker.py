"""Our broker, embedded, beside RocketMQ's client, broker and name server on the loopback device.

That is how a user of either sends and consumes on one machine. RocketMQ has three processes: name
server, broker, and the client that is measured, all with the defaults of 4.9.7.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count as counted
from time import perf_counter

from benchmarks.goals import row
from benchmarks.java_peer import NAMESRV, Bench, running_cluster
from benchmarks.limits import pwrite_limit
from benchmarks.our_broker import QUEUES, drain, our_broker
from benchmarks.report import Goal, Row
from benchmarks.run import NotMeasurableError, Run
from benchmarks.workload import BESIDES, TOPIC as _TOPIC, bodies_of, to_be_sent
from broker.api.send import SendStatus
from broker.embedded.broker import EmbeddedBroker
from client.producer.producer import Producer
from storage.configs.topics import TopicConfig
from storage.format.message import Message

NAME = "java_broker"
_BODY = 1024
_BATCH = 100
_BODIES = bodies_of(_BODY)


def measure(run: Run) -> Iterator[Row]:
    with (
        run.folder() as scratch,
        running_cluster(scratch / "java", scratch) as cluster,
        cluster.client() as java,
        our_broker(scratch / "ours", _TOPIC) as broker,
    ):
        java.ask("send", topic=_TOPIC, count=run.sized(20_000, 5_000), size=_BODY)  # its compiler
        java.ask("sendBatches", topic=_TOPIC, batches=run.sized(500, 200), batch=_BATCH, size=_BODY)
        yield from _sends(run, broker, java)
        yield from _batches(run, broker, java)
        yield from _drain(run, broker, java)


def _sends(run: Run, broker: EmbeddedBroker, java: Bench) -> Iterator[Row]:
    few = run.sized(20_000, 2_000)
    many = few * 10

    def ours() -> float:
        with Producer("senders", brokers=[broker]) as producer:
            start = perf_counter()
            for number in range(many):
                body = _BODIES[number % 100]
                message = Message(_TOPIC, body, tags="TagA", keys=f"order-{number}")
                if producer.send(message).send_status is not SendStatus.SEND_OK:
                    raise NotMeasurableError("a message was not acknowledged")
            return (perf_counter() - start) / many

    times = run.take_turns(
        "sync send",
        {
            "ours": ours,
            "java": lambda: float(java.ask("send", topic=_TOPIC, count=few, size=_BODY)) / few,
        },
        memory=many * (_BODY + BESIDES),
    )
    sides = (f"{times.median('ours') * 1e6:.1f} us", f"{times.median('java') * 1e6:.1f} us")
    yield row("broker/send", sides, times.ratios("java", "ours"), detail="1 KiB", samples=times.of)


def _batches(run: Run, broker: EmbeddedBroker, java: Bench) -> Iterator[Row]:
    batches = run.sized(2_000, 200)

    def made(number: int) -> list[Message]:
        return to_be_sent(_BODIES, number * _BATCH, _BATCH)

    def ours() -> float:
        with Producer("senders", brokers=[broker]) as producer:
            start = perf_counter()
            for number in range(batches):
                if producer.send(made(number)).send_status is not SendStatus.SEND_OK:
                    raise NotMeasurableError("a batch was not acknowledged")
            return perf_counter() - start

    def least() -> float:
        """Work that any program must do that sends this way: making its messages, and a write of
        each."""
        start = perf_counter()
        for number in range(batches):
            made(number)
        making = perf_counter() - start
        return making + pwrite_limit(run, batches, _BATCH, _BODY)

    def its() -> float:
        seconds: float = java.ask(
            "sendBatches", topic=_TOPIC, batches=batches, batch=_BATCH, size=_BODY
        )
        return seconds

    memory = batches * _BATCH * (_BODY + BESIDES)
    times = run.take_turns(
        "send of batches",
        {"ours": ours, "least": least, "java": its},
        short=True,
        memory=memory,
    )
    us = {name: f"{times.median(name) / batches / _BATCH * 1e6:.2f} us" for name in times.of}
    sides = (us["ours"], us["java"])
    yield row("broker/batch", sides, times.ratios("java", "ours"), detail="1 KiB", samples=times.of)
    yield Row(
        "... share of making the messages and one pwrite a batch",
        us["ours"],
        us["least"],
        times.ratios("least", "ours"),
        Goal(0.85),
        unit="of it",
    )
    yield Row(
        "... that alone, without any store, vs Java",
        us["least"],
        us["java"],
        times.ratios("java", "least"),
    )


def _drain(run: Run, broker: EmbeddedBroker, java: Bench) -> Iterator[Row]:
    count = run.sized(500_000, 50_000)
    topic = "backlog"
    broker.update_topic(TopicConfig(topic, QUEUES, QUEUES))
    for first in range(0, count, 1_000):
        bodies = [_BODIES[i % 100] for i in range(1_000)]
        broker.send_column(topic, bodies, [(first + i) % QUEUES for i in range(1_000)])
    java.ask("sendBatches", topic=topic, batches=count // _BATCH, batch=_BATCH, size=_BODY)
    groups = (f"drain-{number}" for number in counted())

    def its() -> float:
        group = next(groups)
        seconds: float = java.ask("drain", namesrv=NAMESRV, topic=topic, group=group, count=count)
        return seconds

    times = run.take_turns(
        "push consumer",
        {"ours": lambda: drain(broker, topic, next(groups), count), "java": its},
    )
    our_rate, its_rate = (count / times.median(name) / 1e3 for name in ("ours", "java"))
    sides = (f"{our_rate:.0f} k/s", f"{its_rate:.0f} k/s")
    detail = f"{count:,} x 1 KiB"
    ratios = times.ratios("java", "ours")
    yield row("broker/drain", sides, ratios, detail=detail, samples=times.of)
