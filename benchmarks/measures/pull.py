"""Reading: pulls of 32 with bodies, in a queue that a writer with four queues made."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

from benchmarks.ours import new_store, put_column
from benchmarks.peers.sqlite_log import SqliteLog
from benchmarks.report import Goal, Row
from benchmarks.run import Run
from benchmarks.workload import QUEUES, TOPIC, columns
from storage.readonly import StoreView
from storage.results import GetMessageStatus

NAME = "pull"
_PULL = 32


def measure(run: Run) -> Iterator[Row]:
    batches = columns(run.sized(64, 16), 1_000, 1024)
    count = len(batches) * 1_000
    with run.folder() as folder:
        log = SqliteLog(folder)
        with new_store(folder) as store:
            for column in batches:
                put_column(store, column)
                log.put_column(column)
            times = run.take_turns(
                "pulls of 32", {"ours": lambda: _ours(store.view), "sqlite": lambda: _sqlite(log)}
            )
        log.close()
    yield Row(
        "pull of 32 x 1 KiB, bodies read, vs sqlite",
        f"{times.median('ours') / count * 1e6:.2f} us",
        f"{times.median('sqlite') / count * 1e6:.2f} us",
        times.ratios("sqlite", "ours"),
        Goal(1.5),
        samples=times.of,
    )


def _ours(view: StoreView) -> float:
    start = perf_counter()
    total = 0
    for queue_id in range(QUEUES):
        offset = 0
        while True:
            found = view.get_message(TOPIC, queue_id, offset, _PULL, tags=None)
            if found.status is not GetMessageStatus.FOUND:
                break
            for message in found.messages:
                total += len(message.body)
            offset = found.next_begin_offset
    seconds = perf_counter() - start
    assert total
    return seconds


def _sqlite(log: SqliteLog) -> float:
    start = perf_counter()
    total = 0
    for queue_id in range(QUEUES):
        offset = 0
        while rows := log.pull(queue_id, offset, _PULL):
            for row in rows:
                total += len(row[-1])
            offset += len(rows)
    seconds = perf_counter() - start
    assert total
    return seconds
