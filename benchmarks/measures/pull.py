"""Reading: pulls of 32 with bodies, in queues that a writer with four of them made.

For information: pulls with a tag that half of the messages have, whole columns, put and get one by
one, and what the page cache itself gives for as many bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.contest import Contestant
from benchmarks.goals import row
from benchmarks.limits import read_limit
from benchmarks.ours import new_store, put_column
from benchmarks.peers.envelope import body_of
from benchmarks.peers.known import missing, open_peer
from benchmarks.report import Missing, Row
from benchmarks.run import Run
from benchmarks.workload import QUEUES, TOPIC, Column, columns
from storage.readonly import StoreView
from storage.results import GetMessageStatus

NAME = "pull"
_PULL = 32
_PEERS = ("SQLite", "Redis")
_COLUMN = 1_000


def measure(run: Run) -> Iterator[Row | Missing]:
    batches = columns(run.sized(256, 16), 1_000, 1024)
    count = len(batches) * 1_000
    with ExitStack() as stack:
        folder = stack.enter_context(run.folder())
        store = stack.enter_context(new_store(folder))
        for column in batches:
            put_column(store, column)
        contestants: dict[str, Contestant] = {
            "ours": lambda: _ours(store.view),
            "column": lambda: _columns(store.view),
            "page cache": lambda: read_limit(run, count * 1200, _PULL * 1200),
        }
        for name in _PEERS:
            if reason := missing(name, stack.enter_context(run.folder())):
                yield Missing(f"pulls vs {name}", reason)
            else:
                contestants[name] = _reader(stack, run, name, batches)
        times = run.take_turns("pulls of 32", contestants)
    us = {name: f"{times.median(name) / count * 1e6:.2f} us" for name in times.of}
    for name in _PEERS:
        if name in contestants:
            ratios = times.ratios(name, "ours")
            key = f"pull/{name}"
            yield row(key, (us["ours"], us[name]), ratios, detail="1 KiB", samples=times.of)
    if "SQLite" in contestants:
        ratios = times.ratios("SQLite", "column")
        yield Row("columns of 1,000 with bodies vs SQLite", us["column"], us["SQLite"], ratios)
    ratios = times.ratios("page cache", "ours")
    what = "pulls of 32, share of the page cache's limit"
    yield Row(what, us["ours"], us["page cache"], ratios, unit="of it")


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


def _columns(view: StoreView) -> float:
    start = perf_counter()
    total = 0
    for queue_id in range(QUEUES):
        offset, end = 0, view.max_offset_in_queue(TOPIC, queue_id)
        while offset < end:
            batch = view.read_column(TOPIC, queue_id, offset, _COLUMN)
            for body in batch.bodies(4 << 20):
                total += len(body)
            offset = batch.next_begin_offset
    seconds = perf_counter() - start
    assert total
    return seconds


def _reader(stack: ExitStack, run: Run, name: str, batches: Sequence[Column]) -> Contestant:
    """Fill a peer; give what reads it."""
    folder: Path = stack.enter_context(run.folder())
    log: Any = open_peer(name, folder)
    stack.callback(log.close)
    for column in batches:
        log.put_column(column)
    body: Callable[[Any], bytes] = body_of if name == "Redis" else lambda row: row[-1]

    def read() -> float:
        start = perf_counter()
        total = 0
        for queue_id in range(QUEUES):
            offset = 0
            while rows := log.pull(queue_id, offset, _PULL):
                for one in rows:
                    total += len(body(one))
                offset += len(rows)
        seconds = perf_counter() - start
        assert total
        return seconds

    return read
