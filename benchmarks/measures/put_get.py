"""Put one by one, then read and acknowledge all: the use of a queue within a process.

Ours uses ``put_message`` and pulls 32 at a time; a queue of bytes takes each message out. For
information.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

from benchmarks.contest import Contestant
from benchmarks.ours import new_store
from benchmarks.peers.known import PEERS, missing, open_peer
from benchmarks.report import Missing, Row
from benchmarks.run import NotMeasurableError, Run
from benchmarks.workload import QUEUES, TOPIC, messages
from storage.format.encode import MessageInner

NAME = "put_get"
_SHARES = {
    "SQLite": 4,
    "Redis": 4,
    "persist-queue": 50,
    "litequeue": 50,
    "diskcache": 10,
}
"""Part of our number of messages that a peer gets, if not all."""


def measure(run: Run) -> Iterator[Row | Missing]:
    count = run.sized(100_000, 5_000)
    sent = messages(count, 1024)
    contestants: dict[str, Contestant] = {"ours": lambda: _ours(run, sent)}
    for name in PEERS:
        with run.folder() as folder:
            if reason := missing(name, folder):
                yield Missing(f"put and get vs {name}", reason)
            else:
                few = sent[: max(1, count // _SHARES.get(name, 1))]
                contestants[name] = _scaled(run, name, few, count / len(few))
    times = run.take_turns("put and get", contestants)
    us = {name: f"{times.median(name) / count * 1e6:.2f} us" for name in times.of}
    for name in PEERS:
        if name in contestants:
            what = f"put one by one and get all, 1 KiB, vs {name}"
            yield Row(what, us["ours"], us[name], times.ratios(name, "ours"), samples=times.of)


def _ours(run: Run, sent: list[MessageInner]) -> float:
    with run.folder() as folder, new_store(folder, exclusive=True) as store:
        start = perf_counter()
        for message in sent:
            store.put_message(message)
        found = 0
        for queue_id in range(QUEUES):
            offset, end = 0, store.view.max_offset_in_queue(TOPIC, queue_id)
            while offset < end:
                result = store.view.get_message(TOPIC, queue_id, offset, 32)
                found += sum(message.body != b"" for message in result.messages)
                offset = result.next_begin_offset
        seconds = perf_counter() - start
    if found < len(sent):
        raise NotMeasurableError(f"{found} of {len(sent)} messages came back")
    return seconds


def _scaled(run: Run, name: str, sent: list[MessageInner], factor: float) -> Contestant:
    return lambda: _peer(run, name, sent) * factor


def _peer(run: Run, name: str, sent: list[MessageInner]) -> float:
    with run.folder() as folder:
        log = open_peer(name, folder)
        try:
            start = perf_counter()
            for message in sent:
                log.put(message)
            found = sum(body != b"" for body in log.bodies())
            seconds = perf_counter() - start
        finally:
            log.close()
    if found != len(sent):
        raise NotMeasurableError(f"{found} of {len(sent)} messages came back from {name}")
    return seconds
