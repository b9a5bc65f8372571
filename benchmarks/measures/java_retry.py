"""Messages that fail once and come again, and delayed messages that are due at once, beside Java.

The first are sent back, delayed by a second and consumed again. The others wait at one level in a
store whose delivery is not started before all of them are due: so does RocketMQ's store alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count as counted

from benchmarks.contest import Times
from benchmarks.java_peer import CLIENT_HEAP, NAMESRV, Bench, running_cluster, running_store
from benchmarks.our_broker import QUEUES, drain, our_broker
from benchmarks.report import Row
from benchmarks.run import Run

NAME = "java_retry"
_TOPIC = "failing"
_BODY = 100
_BATCH = 100
_COLUMN = 1_000
_DELAY_S = 1.0
_LEVEL = "1"


def measure(run: Run) -> Iterator[Row]:
    yield _retries(run)
    yield _deliveries(run)


def _retries(run: Run) -> Row:
    count = run.sized(20_000, 2_000)
    with (
        run.folder() as scratch,
        running_cluster(scratch / "java", scratch) as cluster,
        cluster.client() as java,
        our_broker(scratch / "ours", _TOPIC) as broker,
    ):
        broker.start_services()
        for first in range(0, count, _COLUMN):
            ids = [(first + number) % QUEUES for number in range(_COLUMN)]
            broker.send_column(_TOPIC, [bytes(_BODY)] * _COLUMN, ids)
        java.ask("sendBatches", topic=_TOPIC, batches=count // _BATCH, batch=_BATCH, size=_BODY)
        groups = (f"retrying-{number}" for number in counted())

        def its() -> float:
            asked = {"namesrv": NAMESRV, "topic": _TOPIC, "group": next(groups), "count": count}
            seconds: float = java.ask("drain", failOnce=True, **asked)
            return seconds

        def ours() -> float:
            return drain(broker, _TOPIC, next(groups), count, fail_once=True)

        times = run.take_turns("retry", {"ours": ours, "java": its})
    return _row(f"{count:,} messages that fail once and come again after a second", times, count)


def _deliveries(run: Run) -> Row:
    count = run.sized(100_000, 10_000)
    with run.folder() as scratch, running_store(scratch, heap=CLIENT_HEAP) as java:
        times = run.take_turns(
            "delivery",
            {"ours": lambda: _our_delivery(run, count), "java": lambda: _its(run, java, count)},
        )
    return _row(f"{count:,} delayed messages that are due at once", times, count)


def _our_delivery(run: Run, count: int) -> float:
    """Seconds from the first delivery to the last, by the times at which they were stored."""
    with run.folder() as folder, our_broker(folder / "ours", _TOPIC) as broker:
        for number in range(count // _COLUMN):
            bodies = [bytes(_BODY)] * _COLUMN
            broker.send_column(_TOPIC, bodies, number % QUEUES, properties={"DELAY": _LEVEL})
        time.sleep(_DELAY_S)
        known = broker.wait_for_messages(None, 0)
        broker.start_services()
        ends: list[int] = []
        while sum(ends) < count:
            known = broker.wait_for_messages(known, 1_000, _TOPIC)
            ends = [broker.max_offset(_TOPIC, queue_id) for queue_id in range(QUEUES)]
        stored = [
            broker.view.store_timestamp(_TOPIC, queue_id, offset) or 0
            for queue_id, end in enumerate(ends)
            for offset in (0, end - 1)
        ]
    return max(1, max(stored) - min(stored)) / 1e3


def _its(run: Run, java: Bench, count: int) -> float:
    with run.folder() as folder:
        asked = {"root": str(folder / "java"), "count": count, "size": _BODY}
        ms: int = java.ask("deliver", level=int(_LEVEL), delayMs=int(_DELAY_S * 1e3), **asked)
    return max(1, ms) / 1e3


def _row(what: str, times: Times, count: int) -> Row:
    ours, its = (f"{count / times.median(name) / 1e3:.1f} k/s" for name in ("ours", "java"))
    return Row(f"{what}, vs Java's", ours, its, times.ratios("java", "ours"), samples=times.of)
