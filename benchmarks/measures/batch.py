"""Batches of 1,000 x 1 KiB: against memory and the page cache themselves, lmdb, SQLite and Redis;
then smaller batches and other bodies, for information."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

from benchmarks.contest import Contestant
from benchmarks.goals import row
from benchmarks.limits import pwrite_limit
from benchmarks.memcpy_limit import MemcpyLimit
from benchmarks.ours import put_columns
from benchmarks.peers.known import missing, open_peer
from benchmarks.report import Missing, Row
from benchmarks.run import Run
from benchmarks.workload import BESIDES, Column, columns

NAME = "batch"
_BATCH = 1_000
_SHARES = {"lmdb": 1, "SQLite": 4, "Redis": 10}
_BODIES = (100, 1024, 4096)
_SIZES = (10, 100, 1_000)


def measure(run: Run) -> Iterator[Row | Missing]:
    peers = []
    for name in _SHARES:
        with run.folder() as folder:
            if reason := missing(name, folder):
                yield Missing(f"batches vs {name}", reason)
            else:
                peers.append(name)
    yield from _thousands(run, peers)
    for body in (1024,) if run.quick else _BODIES:
        for size in (100,) if run.quick else _SIZES:
            if (body, size) != (1024, _BATCH):
                yield from _others(run, peers, body, size)


def _contestants(run: Run, batches: list[Column], peers: list[str]) -> dict[str, Contestant]:
    made: dict[str, Contestant] = {"ours": lambda: put_columns(run, batches)}
    for name in peers:
        few = batches[: max(1, len(batches) // _SHARES[name])]
        made[name] = _scaled(run, name, few, len(batches) / len(few))
    return made


def _thousands(run: Run, peers: list[str]) -> Iterator[Row]:
    count = run.sized(1_000, 40)
    batches = columns(count, _BATCH, 1024)
    contestants = _contestants(run, batches, peers)
    contestants["memcpy"] = lambda: _memcpy(run, count)
    contestants["pwrite"] = lambda: pwrite_limit(run, count, _BATCH, 1024)
    times = run.take_turns(
        "batches of 1,000", contestants, memory=count * _BATCH * (1024 + BESIDES)
    )
    ns = {name: f"{times.median(name) / count / _BATCH * 1e9:.0f} ns" for name in contestants}
    for peer in ("memcpy", *peers):
        unit = "of it" if peer == "memcpy" else "x"
        ratios = times.ratios(peer, "ours")
        sides = (ns["ours"], ns[peer])
        yield row(f"batch/{peer}", sides, ratios, unit=unit, samples=times.of)
    yield Row(
        "... share of the limit of pwrite, records only",
        ns["ours"],
        ns["pwrite"],
        times.ratios("pwrite", "ours"),
        unit="of it",
    )


def _others(run: Run, peers: list[str], body: int, size: int) -> Iterator[Row]:
    count = max(4, run.sized(100_000_000, 1_000_000) // (body + 400) // size)
    times = run.take_turns(
        f"batches of {size} x {body} B",
        _contestants(run, columns(count, size, body), peers),
        memory=count * size * (body + BESIDES),
    )
    us = {name: f"{times.median(name) / count / size * 1e6:.2f} us" for name in times.of}
    for name in peers:
        what = f"batch of {size:,} x {body:,} B vs {name}"
        yield Row(what, us["ours"], us[name], times.ratios(name, "ours"))


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


def _scaled(run: Run, name: str, batches: list[Column], factor: float) -> Contestant:
    return lambda: _peer(run, name, batches) * factor


def _peer(run: Run, name: str, batches: list[Column]) -> float:
    with run.folder() as folder:
        log = open_peer(name, folder)
        try:
            log.put_column(batches[0])
            start = perf_counter()
            for column in batches:
                log.put_column(column)
            return perf_counter() - start
        finally:
            log.close()
