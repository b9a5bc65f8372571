"""Messages as applications send them: three topics' worth of keys and tags, bodies of many sizes.

Batches of 1,000 message objects, put and read back by a tag that every eighth has. For information.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from time import perf_counter

from benchmarks.contest import Contestant
from benchmarks.ours import new_store
from benchmarks.peers.known import missing
from benchmarks.report import Missing, Row
from benchmarks.run import NotMeasurableError, Run
from benchmarks.workload import HOST, IDS, QUEUES, TOPIC
from storage.format.encode import MessageInner, prepare
from storage.format.java_hash import java_hash
from storage.format.properties import encode_properties
from storage.read.tag_filter import TagFilter
from storage.readonly import StoreView
from storage.store import MessageStore, now_ms

NAME = "mixed"
_BATCH = 1_000
_PULL = 32
_TAGS = tuple(f"Tag{letter}" for letter in "ABCDEFGH")
_SIZES = (100, 300, 1_000, 3_000)


def measure(run: Run) -> Iterator[Row | Missing]:
    count = run.sized(100_000, 10_000)
    batches = [mixed(_BATCH, first) for first in range(0, count, _BATCH)]
    with run.folder() as folder:
        if reason := missing("SQLite", folder):
            yield Missing("mixed messages vs SQLite", reason)
            return
    contestants: dict[str, Contestant] = {
        "ours": lambda: _put(run, batches),
        "sqlite": lambda: _put_sqlite(run, batches),
    }
    times = run.take_turns("mixed messages", contestants)
    us = {name: f"{times.median(name) / count * 1e6:.2f} us" for name in times.of}
    what = "batch of 1,000 mixed message objects vs SQLite"
    yield Row(what, us["ours"], us["sqlite"], times.ratios("sqlite", "ours"), samples=times.of)
    yield from _filtered(run, batches)


def mixed(count: int, first: int) -> list[MessageInner]:
    """Messages with one to three keys, one of eight tags, and bodies of 100 to 3,000 bytes."""
    rng = random.Random(first)
    now = now_ms()
    made = []
    for number in range(first, first + count):
        unique_id, tag = IDS.next(now), rng.choice(_TAGS)
        keys = tuple(f"order-{number}-{part}" for part in range(rng.randint(1, 3)))
        properties = {"UNIQ_KEY": unique_id, "WAIT": "true", "TAGS": tag, "KEYS": " ".join(keys)}
        made.append(
            MessageInner(
                TOPIC,
                number % QUEUES,
                rng.randbytes(rng.choice(_SIZES)),
                encode_properties(properties),
                now,
                HOST,
                HOST,
                tags=tag,
                keys=(unique_id, *keys),
            )
        )
    return made


def _put(run: Run, batches: Sequence[Sequence[MessageInner]]) -> float:
    with run.folder() as folder, new_store(folder) as store:
        return _put_all(store, batches)


def _put_all(store: MessageStore, batches: Sequence[Sequence[MessageInner]]) -> float:
    start = perf_counter()
    for batch in batches:
        store.put(prepare(batch))
    return perf_counter() - start


def _put_sqlite(run: Run, batches: Sequence[Sequence[MessageInner]]) -> float:
    from benchmarks.peers.sqlite_log import SqliteLog

    with run.folder() as folder:
        log = SqliteLog(folder)
        start = perf_counter()
        for batch in batches:
            log.put_many(batch)
        seconds = perf_counter() - start
        log.close()
    return seconds


def _filtered(run: Run, batches: Sequence[Sequence[MessageInner]]) -> Iterator[Row]:
    from benchmarks.peers.sqlite_log import SqliteLog

    wanted = sum(message.tags == _TAGS[0] for batch in batches for message in batch)
    with run.folder() as folder:
        log = SqliteLog(folder)
        for batch in batches:
            log.put_many(batch)
        with new_store(folder) as store:
            _put_all(store, batches)
            times = run.take_turns(
                "pulls by tag",
                {
                    "ours": lambda: _pull(store.view, wanted),
                    "sqlite": lambda: _pull_sqlite(log, wanted),
                },
            )
        log.close()
    us = {name: f"{times.median(name) / wanted * 1e6:.2f} us" for name in times.of}
    what = "pulls of 32 by a tag that every eighth message has, vs SQLite"
    yield Row(what, us["ours"], us["sqlite"], times.ratios("sqlite", "ours"), samples=times.of)


def _pull(view: StoreView, wanted: int) -> float:
    tags = TagFilter.parse(_TAGS[0])
    start = perf_counter()
    found = 0
    for queue_id in range(QUEUES):
        offset, end = 0, view.max_offset_in_queue(TOPIC, queue_id)
        while offset < end:
            result = view.get_message(TOPIC, queue_id, offset, _PULL, tags=tags)
            found += sum(message.body != b"" for message in result.messages)
            offset = result.next_begin_offset
    seconds = perf_counter() - start
    if found < wanted:
        raise NotMeasurableError(f"{found} of {wanted} messages were found by their tag")
    return seconds


def _pull_sqlite(log: object, wanted: int) -> float:
    from benchmarks.peers.sqlite_log import SqliteLog

    assert isinstance(log, SqliteLog)
    code = java_hash(_TAGS[0])
    start = perf_counter()
    found = 0
    for queue_id in range(QUEUES):
        offset = 0
        while rows := log.pull_tagged(queue_id, offset, _PULL, code):
            found += sum(row[-1] != b"" for row in rows)
            offset = rows[-1][3] + 1
    seconds = perf_counter() - start
    if found != wanted:
        raise NotMeasurableError(f"SQLite found {found} of {wanted} messages by their tag")
    return seconds
