"""Stores to report on: six hours of messages, and groups that have read some of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from analytics.engines import Engine
from analytics.kernels.units import read_units
from analytics.lag.selection import Choice
from analytics.report.lag_report import MadeReport, lag_report
from analytics.report.stores import StoreRef
from benchmarks.workload import HOST, IDS
from storage.configs.consumer_offsets import topic_at_group
from storage.format.encode_column import prepare_column
from storage.format.properties import encode_properties
from storage.readonly import StoreView
from storage.store import MessageStore

SHARES = (0.0, 0.1, 0.5, 0.9, 0.99, 0.9999)
"""The parts of each queue that six groups have read, as a rule."""
START_MS = 1_790_000_000_000
AS_OF = START_MS + 86_400_000
HOURS = 6
_TOPICS = 4
_QUEUES = 8
_TAGS = 8
_BATCH = 500
_BODY = 220


def make_store(root: Path, messages: int, hours: float = HOURS) -> None:
    """Some hours of messages in four topics of eight queues, with eight tags: 407 bytes each."""
    MessageStore.create(root)
    now = [START_MS]
    queue_ids = [number % _QUEUES for number in range(_BATCH)]
    with MessageStore.open(root, exclusive=True, clock=lambda: now[0]) as store:
        for number in range(messages // _BATCH):
            now[0] = START_MS + int(number * _BATCH * hours * 3_600_000) // messages
            tag = f"tag-{number % _TAGS}"
            store.put(
                prepare_column(
                    f"topic-{number % _TOPICS}",
                    queue_ids,
                    [bytes(_BODY)] * _BATCH,
                    born_timestamp=now[0],
                    born_host=HOST,
                    store_host=HOST,
                    properties=encode_properties({"WAIT": "true", "TAGS": tag}),
                    tags=tag,
                    unique_ids=IDS.take(_BATCH, now[0]),
                    keys=[f"order-{number}"] * _BATCH,
                )
            )


def have_read(root: Path, shares: Sequence[float]) -> None:
    """Groups that have read these shares of each queue."""
    table: dict[str, dict[str, int]] = {}
    with StoreView.open(root) as view:
        for topic, queue_id in view.queues():
            end = view.max_offset_in_queue(topic, queue_id)
            for number, share in enumerate(shares):
                key = topic_at_group(topic, f"group-{number}")
                table.setdefault(key, {})[str(queue_id)] = int(end * share)
    folder = root / "config"
    folder.mkdir(exist_ok=True)
    (folder / "consumerOffset.json").write_text(json.dumps({"offsetTable": table}))


def read_all(root: Path) -> float:
    """Seconds for the work of any report: all units as arrays."""
    with StoreView.open(root) as view:
        start = perf_counter()
        for topic, queue_id in view.queues():
            low, high = view.queue_bounds(topic, queue_id)
            read_units(view, topic, queue_id, low, high)
        return perf_counter() - start


def seconds_of_report(engine: Engine, *roots: Path) -> float:
    """Seconds for a report of the stores."""
    start = perf_counter()
    made = reported(engine, *roots)
    seconds = perf_counter() - start
    assert made.report.totals["lag"]
    return seconds


def reported(engine: Engine, *roots: Path) -> MadeReport:
    """A report of the stores, a day after they began."""
    refs = [StoreRef(f"broker-{number:02}", str(root)) for number, root in enumerate(roots)]
    return lag_report(engine, refs, AS_OF, Choice())
