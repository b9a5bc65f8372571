"""Acknowledged when the device has it: one message a call, from one thread and from sixteen.

Each call's time is compared with a bare ``pwrite`` of the same record and an ``fdatasync``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from statistics import median
from time import perf_counter

from benchmarks.goals import row
from benchmarks.limits import durable_limit
from benchmarks.ours import new_store
from benchmarks.report import Row
from benchmarks.run import NotMeasurableError, Run
from benchmarks.workload import messages
from storage.config import FlushDiskType, StoreConfig
from storage.format.encode import MessageInner
from storage.results import PutMessageStatus
from storage.store import MessageStore

NAME = "durable"
_BODY = 1024
_THREADS = 16
_SYNC = StoreConfig(flush_disk_type=FlushDiskType.SYNC_FLUSH)


def measure(run: Run) -> Iterator[Row]:
    count = run.sized(10_000, 800)
    sent = messages(count, _BODY)
    times = run.take_turns(
        "durable append, p50",
        {
            "ours": lambda: median(_one_by_one(run, sent)),
            "device": lambda: median(durable_limit(run, count, _BODY)),
            "sqlite": lambda: median(_sqlite(run, sent)),
        },
    )
    us = {name: f"{times.median(name) * 1e6:.0f} us" for name in times.of}
    ratios = times.ratios("ours", "device")
    yield row(
        "durable/device", (us["ours"], us["device"]), ratios, detail="1 KiB", samples=times.of
    )
    what = "durable append, p50, vs SQLite with synchronous=FULL, 1 KiB"
    yield Row(what, us["ours"], us["sqlite"], times.ratios("sqlite", "ours"))
    times = run.take_turns(
        "durable appends of threads",
        {
            "one": lambda: sum(_one_by_one(run, sent)),
            "many": lambda: _threads(run, sent),
        },
    )
    many, one = (count / times.median(name) / 1e3 for name in ("many", "one"))
    sides = (f"{many:.1f} k/s", f"{one:.1f} k/s")
    yield row("durable/threads", sides, times.ratios("one", "many"), samples=times.of)


def _put(store: MessageStore, message: MessageInner) -> None:
    if store.put_message(message).status is not PutMessageStatus.PUT_OK:
        raise NotMeasurableError("a durable append was not acknowledged")


def _one_by_one(run: Run, sent: Sequence[MessageInner]) -> list[float]:
    times = []
    with run.folder() as folder, new_store(folder, config=_SYNC) as store:
        for message in sent:
            start = perf_counter()
            _put(store, message)
            times.append(perf_counter() - start)
    return times


def _sqlite(run: Run, sent: Sequence[MessageInner]) -> list[float]:
    from benchmarks.peers.sqlite_log import SqliteLog

    times = []
    with run.folder() as folder:
        log = SqliteLog(folder, synchronous="full")
        for message in sent:
            start = perf_counter()
            log.put(message)
            times.append(perf_counter() - start)
        log.close()
    return times


def _threads(run: Run, sent: Sequence[MessageInner]) -> float:
    with run.folder() as folder, new_store(folder, config=_SYNC) as store:
        go = threading.Barrier(_THREADS + 1)
        failed: list[BaseException] = []

        def work(first: int) -> None:
            go.wait()
            try:
                for message in sent[first::_THREADS]:
                    _put(store, message)
            except NotMeasurableError as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(_THREADS)]
        for thread in threads:
            thread.start()
        go.wait()
        start = perf_counter()
        for thread in threads:
            thread.join()
        seconds = perf_counter() - start
    if failed:
        raise failed[0]
    return seconds
