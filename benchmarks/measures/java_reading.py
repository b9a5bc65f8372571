"""Reading beside RocketMQ's store: pulls, messages by key, offsets by time, and recovery.

Both read equal folders: our store is made, and made again for RocketMQ, which opens what a 4.9
broker could have written.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter, perf_counter_ns

from benchmarks.goals import row
from benchmarks.java_peer import Bench, running_store
from benchmarks.ours import new_store, put_column
from benchmarks.report import Row
from benchmarks.run import NotMeasurableError, Run
from benchmarks.workload import QUEUES, TOPIC, columns
from storage.coordination.shared_state import SHARED_STATE_NAME
from storage.format.names import ABORT, OURS
from storage.readonly import StoreView
from storage.results import GetMessageStatus

NAME = "java_reading"
_PULL = 32
_QUESTIONS = 5_000


def measure(run: Run) -> Iterator[Row]:
    count = run.sized(1_000_000, 64_000)
    with run.folder() as folder:
        mine, its = folder / "mine", folder / "its"
        for one in (mine, its):
            one.mkdir()
            _make(one, count)
        shutil.rmtree(its / "store" / OURS)
        with running_store(folder) as java, StoreView.open(mine / "store") as view:
            java.ask("open", root=str(its / "store"), start=True)
            for _ in range(2):  # its compiler
                _java_pull(java, count)
            yield from _pulls(run, view, java, count)
            yield from _questions(run, view, java, count)
    yield from _recovery(run)


def _make(folder: Path, count: int) -> None:
    with new_store(folder) as store:
        for column in columns(count // 1_000, 1_000, 1024):
            put_column(store, column)


def _pulls(run: Run, view: StoreView, java: Bench, count: int) -> Iterator[Row]:
    times = run.take_turns(
        "pulls beside Java",
        {"ours": lambda: _our_pull(view, count), "java": lambda: _java_pull(java, count)},
    )
    us = {name: f"{times.median(name) / count * 1e6:.2f} us" for name in times.of}
    ratios = times.ratios("java", "ours")
    yield row(
        "java/pull", (us["ours"], us["java"]), ratios, detail=f"{count:,} x 1 KiB", samples=times.of
    )


def _our_pull(view: StoreView, count: int) -> float:
    """All messages, each with its body and its properties as a dictionary, as Java decodes them."""
    start = perf_counter()
    total = size = 0
    for queue_id in range(QUEUES):
        offset = 0
        while True:
            found = view.get_message(TOPIC, queue_id, offset, _PULL)
            if found.status is not GetMessageStatus.FOUND:
                break
            for message in found.messages:
                size += len(message.body) + len(message.properties)
            total += len(found.messages)
            offset = found.next_begin_offset
    seconds = perf_counter() - start
    if total < count:
        raise NotMeasurableError(f"{total} of {count} messages were found")
    return seconds


def _java_pull(java: Bench, count: int) -> float:
    done = java.ask("pull", count=_PULL)
    if done["messages"] < count:
        raise NotMeasurableError(f"RocketMQ found {done['messages']} of {count} messages")
    seconds: float = done["seconds"]
    return seconds


def _questions(run: Run, view: StoreView, java: Bench, count: int) -> Iterator[Row]:
    rng = random.Random(4711)
    keys = [f"order-{rng.randrange(count)}" for _ in range(_QUESTIONS)]
    first = view.store_timestamp(TOPIC, 0, 1) or 0
    last = view.store_timestamp(TOPIC, 0, count // QUEUES - 1) or 0
    times_ = [rng.randint(first, last) for _ in range(_QUESTIONS)]

    def query(number: int) -> object:
        return view.query_message(TOPIC, keys[number], 32)

    def by_time(number: int) -> object:
        return view.offset_in_queue_by_time(TOPIC, number % QUEUES, times_[number])

    asked: tuple[tuple[str, Callable[[int], object], str, dict[str, object]], ...] = (
        ("java/query", query, "query", {"keys": keys}),
        ("java/by-time", by_time, "offsetByTime", {"times": times_}),
    )
    for key, ask, what, questions in asked:
        java.ask(what, **questions)

        def ours(ask: Callable[[int], object] = ask) -> float:
            return _p50(ask, range(_QUESTIONS))

        def its(what: str = what, questions: Mapping[str, object] = questions) -> float:
            return float(java.ask(what, **questions)["p50"]) / 1e9

        times = run.take_turns(f"{what} beside Java", {"ours": ours, "java": its})
        us = {name: f"{times.median(name) * 1e6:.2f} us" for name in times.of}
        ratios = times.ratios("ours", "java")
        detail = f"{count:,} messages"
        yield row(key, (us["ours"], us["java"]), ratios, detail=detail, samples=times.of)


def _p50(ask: Callable[[int], object], numbers: Sequence[int]) -> float:
    """Median of single calls, in seconds."""
    took = []
    for number in numbers:
        before = perf_counter_ns()
        ask(number)
        took.append(perf_counter_ns() - before)
    return median(took) / 1e9


def _recovery(run: Run) -> Iterator[Row]:
    size = run.sized(1 << 30, 1 << 27)
    with run.folder() as folder:
        mine, its = folder / "mine", folder / "its"
        end = 0
        for one in (mine, its):
            one.mkdir()
            with new_store(one) as store:
                batches = columns(20, 1_000, 1024 - 180)  # the records have 1 KiB
                while store.log_end < size - (22 << 20):
                    for column in batches:
                        put_column(store, column)
                end = store.log_end
        shutil.rmtree(its / "store" / OURS)
        times = run.take_turns(
            "recovery beside Java",
            {
                "ours": lambda: _our_recovery(mine / "store"),
                "java": lambda: _java_recovery(folder, its / "store", end),
            },
        )
    ratios = times.ratios("ours", "java")
    sides = (f"{times.median('ours'):.2f} s", f"{times.median('java'):.2f} s")
    detail = f"{end / (1 << 30):.2f} GiB"
    yield row("java/recovery", sides, ratios, detail=detail, samples=times.of)


def _our_recovery(root: Path) -> float:
    """A process opens the folder of a killed one whose shared state is lost, too."""
    (root / OURS / SHARED_STATE_NAME).unlink()
    (root / ABORT).touch()
    command = [sys.executable, "-m", "benchmarks.programs.open_store", str(root)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout)


def _java_recovery(scratch: Path, root: Path, end: int) -> float:
    """A JVM loads the folder of a killed one; it is killed itself."""
    (root / ABORT).touch()
    with running_store(scratch, ("-Xms1g", "-Xmx1g")) as java:
        done = java.ask("open", root=str(root), start=False)
        if done["end"] != end:
            raise NotMeasurableError(f"RocketMQ recovers up to {done['end']}, not {end}")
        seconds: float = done["seconds"]
        return seconds
