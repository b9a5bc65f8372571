"""Lateness of delayed messages when very many wait, and the cost of waiting."""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median, quantiles
from typing import TYPE_CHECKING

from benchmarks.report import Goal, Row
from benchmarks.run import NotMeasurableError, Run
from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from storage.config import StoreConfig

if TYPE_CHECKING:
    from storage.readonly import StoreView

NAME = "delay"
_TOPIC = "delayed"
_LEVEL_SECONDS = 13
_SPREAD_SECONDS = 10
_IDLE_SECONDS = 1.0
_LIMIT_MS = 100.0


def measure(run: Run) -> Iterator[Row]:
    count = run.sized(100_000, 10_000)
    chunk = count // 100
    config = StoreConfig(message_delay_level=f"{_LEVEL_SECONDS}s")
    with run.folder() as folder:
        create_store(folder / "store", config)
        with EmbeddedBroker.open(folder / "store", store_config=config) as broker:
            broker.start_services()
            start = time.monotonic()
            for number in range(100):
                bodies = [b"%d" % n for n in range(number * chunk, (number + 1) * chunk)]
                broker.send_column(_TOPIC, bodies, 0, properties={"DELAY": "1"})
                due = start + (number + 1) * _SPREAD_SECONDS / 100
                time.sleep(max(0.0, due - time.monotonic()))
            began = time.process_time()
            time.sleep(_IDLE_SECONDS)  # all of them wait
            waiting = time.process_time() - began
            deadline = start + 2 * _LEVEL_SECONDS + 2 * _SPREAD_SECONDS
            known = broker.wait_for_messages(None, 0)
            while broker.max_offset(_TOPIC, 0) < count:
                if time.monotonic() > deadline:
                    raise NotMeasurableError("the messages were not delivered")
                known = broker.wait_for_messages(known, 1_000, _TOPIC)
            late = _lateness(broker.view, count)
    yield Row(
        f"lateness of delayed messages, {count:,} waiting",
        f"p50 {median(late):.0f} ms",
        f"p99 {quantiles(late, n=100)[98]:.0f} ms",
        [quantiles(late, n=100)[98]],
        Goal(_LIMIT_MS, at_most=True),
        "ms",
    )
    yield Row(
        "CPU of a process with that many waiting",
        f"{waiting * 1e3:.1f} ms",
        f"{_IDLE_SECONDS:.0f} s",
        [waiting / _IDLE_SECONDS],
        Goal(0.01, at_most=True, percent=True),
    )


def _lateness(view: StoreView, count: int) -> list[float]:
    """Milliseconds from when a message was due to when it was stored for its real queue."""
    late: list[float] = []
    offset = 0
    while offset < count:
        found = view.get_message(_TOPIC, 0, offset, 32)
        late += [
            message.store_timestamp - message.born_timestamp - _LEVEL_SECONDS * 1_000
            for message in found.messages
        ]
        offset = found.next_begin_offset
    return late
