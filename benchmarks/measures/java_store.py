"""Our store beside RocketMQ's own DefaultMessageStore, without brokers and clients.

Both write the same messages into new folders and take turns. The JVM stays, so that its code is
compiled, and one more warming round before the first makes sure of it. RocketMQ fills queues and
index in another thread: its time ends with the last acknowledgement, ours includes them. A batch
begins with its messages, for both: they are packed, RocketMQ's in the form of its putMessages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.goals import row
from benchmarks.java_peer import Bench, running_store
from benchmarks.ours import new_store, put_columns
from benchmarks.report import Row
from benchmarks.run import NotMeasurableError, Run
from benchmarks.workload import BESIDES, QUEUES, columns, messages
from storage.config import FlushDiskType, StoreConfig
from storage.format.encode import MessageInner

NAME = "java_store"
_BODY = 1024


def measure(run: Run) -> Iterator[Row]:
    with run.folder() as scratch, running_store(scratch) as java:
        _warm_up(run, java)
        yield from _singles(run, java)
        for batch in (100, 1_000):
            yield from _batches(run, java, batch)
        yield from _durable(run, java)


def _warm_up(run: Run, java: Bench) -> None:
    """Warm up the JVM's compiler: 100,000 puts and 300 batches."""
    with run.folder() as folder:
        java.ask("put", root=str(folder / "a"), count=100_000, size=_BODY)
        java.ask("putBatches", root=str(folder / "b"), batches=200, batch=100, size=_BODY)
        java.ask("putBatches", root=str(folder / "c"), batches=100, batch=1_000, size=_BODY)


def _singles(run: Run, java: Bench) -> Iterator[Row]:
    count = run.sized(1_000_000, 40_000)
    sent = messages(count, _BODY)
    times = run.take_turns(
        "single append beside Java",
        {
            "exclusive": lambda: _put(run, sent, exclusive=True),
            "shared": lambda: _put(run, sent, exclusive=False),
            "java": lambda: _java(run, java, "put", count=count, size=_BODY),
        },
        memory=count * (_BODY + BESIDES),
    )
    us = {name: f"{times.median(name) / count * 1e6:.2f} us" for name in times.of}
    for mode in ("exclusive", "shared"):
        ratios = times.ratios("java", mode)
        detail = f"{count:,} x 1 KiB"
        yield row(f"java/{mode}", (us[mode], us["java"]), ratios, detail=detail, samples=times.of)


def _batches(run: Run, java: Bench, batch: int) -> Iterator[Row]:
    number = run.sized(1_000_000, 50_000) // batch
    batches = columns(number, batch, _BODY)
    packing: list[float] = []

    def its() -> float:
        done = _done(run, java, "putBatches", batches=number, batch=batch, size=_BODY)
        packing.append(done["packing"])
        return float(done["putting"])

    times = run.take_turns(
        f"batches of {batch} beside Java",
        {"ours": lambda: put_columns(run, batches), "java": its},
        short=True,
        memory=number * batch * (_BODY + BESIDES),
    )
    each = 1e6 / number / batch
    ours, put, packed = times.of["ours"], times.of["java"], packing[-run.more_rounds :]
    both = [a + b for a, b in zip(put, packed, strict=True)]
    us = [f"{median(seconds) * each:.2f} us" for seconds in (ours, both, put)]
    samples = {"ours": ours, "java": both, "java, put alone": put}
    ratios = [a / b for a, b in zip(both, ours, strict=True)]
    detail = f"{number * batch:,} x 1 KiB"
    yield row(f"java/batch-{batch}", (us[0], us[1]), ratios, detail=detail, samples=samples)
    what = f"... its putMessages alone, beside our packing and putting, batches of {batch:,}"
    yield Row(what, us[0], us[2], [a / b for a, b in zip(put, ours, strict=True)])


def _durable(run: Run, java: Bench) -> Iterator[Row]:
    count = run.sized(20_000, 1_000)
    sent = messages(count, _BODY)
    sync = StoreConfig(flush_disk_type=FlushDiskType.SYNC_FLUSH)
    times = run.take_turns(
        "durable append beside Java",
        {
            "ours": lambda: _put(run, sent, exclusive=False, config=sync),
            "java": lambda: _java(run, java, "put", count=count, size=_BODY, sync=True),
        },
    )
    us = {name: f"{times.median(name) / count * 1e6:.0f} us" for name in times.of}
    ratios = times.ratios("java", "ours")
    yield row("java/durable", (us["ours"], us["java"]), ratios, detail="1 KiB", samples=times.of)


def _put(
    run: Run, sent: list[MessageInner], *, exclusive: bool, config: StoreConfig | None = None
) -> float:
    with run.folder() as folder, new_store(folder, exclusive=exclusive, config=config) as store:
        return timed(store.put_message, sent)


def timed(put: Callable[[MessageInner], object], sent: list[MessageInner]) -> float:
    """Seconds for one call a message."""
    start = perf_counter()
    for message in sent:
        put(message)
    return perf_counter() - start


def _java(run: Run, java: Bench, what: str, **request: int) -> float:
    return float(_done(run, java, what, **request)["seconds"])


def _done(run: Run, java: Bench, what: str, **request: int) -> dict[str, Any]:
    """RocketMQ's work in a new folder, in seconds; all of it must be in its queues at the end."""
    with run.folder() as folder:
        done = java.ask(what, root=str(folder), **request)
    wanted = request.get("count", 0) or request["batches"] * request["batch"]
    if sum(done["ends"]) < wanted or len(done["ends"]) != QUEUES:
        raise NotMeasurableError(f"RocketMQ has {done['ends']} of {wanted} messages")
    return dict(done)
