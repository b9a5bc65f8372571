"""Batches of 1,000 x 1 KiB: against memory itself, lmdb and SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

from benchmarks.contest import Contestant
from benchmarks.memcpy_limit import MemcpyLimit
from benchmarks.ours import put_columns
from benchmarks.peers.lmdb_log import LmdbLog
from benchmarks.peers.sqlite_log import SqliteLog
from benchmarks.report import Goal, Row
from benchmarks.run import Run
from benchmarks.workload import Column, columns

NAME = "batch"
_BATCH = 1_000


def measure(run: Run) -> Iterator[Row]:
    count = run.sized(100, 20)
    few = count // 4
    batches = columns(count, _BATCH, 1024)
    contestants: dict[str, Contestant] = {
        "ours": lambda: put_columns(run, batches),
        "memcpy": lambda: _memcpy(run, count),
        "lmdb": lambda: _peer(run, LmdbLog, batches),
        "sqlite": lambda: _peer(run, SqliteLog, batches[:few]) * (count / few),
    }
    times = run.take_turns("batches of 1,000", contestants)
    per_message = {
        name: f"{times.median(name) / count / _BATCH * 1e9:.0f} ns" for name in contestants
    }
    for peer, goal, unit in (
        ("memcpy", 0.40, "of it"),
        ("lmdb", 2.5, "x"),
        ("sqlite", 6, "x"),
    ):
        yield Row(
            f"batch of 1,000 x 1 KiB vs {peer}",
            per_message["ours"],
            per_message[peer],
            times.ratios(peer, "ours"),
            Goal(goal),
            unit,
            samples=times.of,
        )


def _memcpy(run: Run, batches: int) -> float:
    with run.folder() as folder:
        limit = MemcpyLimit(folder, batches + 1, _BATCH, 1024)
        limit.copy_batch()
        start = perf_counter()
        for _ in range(batches):
            limit.copy_batch()
        seconds = perf_counter() - start
        limit.close()
    return seconds


def _peer(run: Run, peer: type[LmdbLog | SqliteLog], batches: list[Column]) -> float:
    with run.folder() as folder:
        log = peer(folder)
        log.put_column(batches[0])
        start = perf_counter()
        for column in batches:
            log.put_column(column)
        seconds = perf_counter() - start
        log.close()
    return seconds
