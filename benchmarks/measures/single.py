"""One message a call: our put (exclusive and shared) against one transaction a message."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter

from benchmarks.contest import Contestant
from benchmarks.ours import new_store
from benchmarks.peers.lmdb_log import LmdbLog
from benchmarks.peers.sqlite_log import SqliteLog
from benchmarks.report import Goal, Row
from benchmarks.run import Run
from benchmarks.workload import messages
from storage.format.encode import MessageInner

NAME = "single"
_BODY = 1024


def measure(run: Run) -> Iterator[Row]:
    count = run.sized(100_000, 10_000)
    few = count // 10  # SQLite is slow enough to be timed with fewer
    sent = messages(count, _BODY)
    contestants: dict[str, Contestant] = {
        "exclusive": lambda: _ours(run, sent, exclusive=True),
        "shared": lambda: _ours(run, sent, exclusive=False),
        "lmdb": lambda: _lmdb(run, sent, shared=False),
        "shared lmdb": lambda: _lmdb(run, sent, shared=True),
        "sqlite": lambda: _sqlite(run, sent[:few]) * (count / few),
    }
    times = run.take_turns("single append", contestants)
    per_message = {name: f"{times.median(name) / count * 1e6:.2f} us" for name in contestants}
    for mode, peer, goal in (
        ("exclusive", "lmdb", 1.2),
        ("exclusive", "sqlite", 6),
        ("shared", "shared lmdb", 0.8),
        ("shared", "sqlite", 4),
    ):
        yield Row(
            f"single append of 1 KiB, {mode}, vs {peer.removeprefix('shared ')}",
            per_message[mode],
            per_message[peer],
            times.ratios(peer, mode),
            Goal(goal),
            samples=times.of,
        )


def _timed(put: Callable[[MessageInner], object], sent: list[MessageInner]) -> float:
    start = perf_counter()
    for message in sent:
        put(message)
    return perf_counter() - start


def _ours(run: Run, sent: list[MessageInner], *, exclusive: bool) -> float:
    with run.folder() as folder, new_store(folder, exclusive=exclusive) as store:
        return _timed(store.put_message, sent)


def _lmdb(run: Run, sent: list[MessageInner], *, shared: bool) -> float:
    with run.folder() as folder:
        log = LmdbLog(folder, shared=shared)
        log.put(sent[0])
        seconds = _timed(log.put, sent)
        log.close()
    return seconds


def _sqlite(run: Run, sent: list[MessageInner]) -> float:
    with run.folder() as folder:
        log = SqliteLog(folder)
        log.put(sent[0])
        seconds = _timed(log.put, sent)
        log.close()
    return seconds
