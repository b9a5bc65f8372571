"""``python -m benchmarks.profile``: where the time of one message goes, room by room.

Each operation runs under cProfile. Time of built-in functions counts for their callers. A profile
makes calls slower than they are, so these are shares, not times; the time beside them is taken
without one.
"""

from __future__ import annotations

import cProfile
import gc
import pstats
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Final, NamedTuple

from benchmarks.memory_stock import memory_stock
from benchmarks.ours import new_store, put_column
from benchmarks.workload import TOPIC, columns, messages
from broker.embedded.broker import EmbeddedBroker
from rmqctl import (
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    ConsumerConfig,
    Message,
    Producer,
    PushConsumer,
)
from storage.format.encode import prepare
from storage.store import MessageStore

ROOT: Final = Path(__file__).resolve().parents[1]
_LEAST_SHARE: Final = 0.03
_WAITS: Final = ("acquire", "select", "poll", "SimpleQueue")
_MEMORY: Final = 512 << 20
"""More than any operation fills."""


class Operation(NamedTuple):
    """An operation that is done ``times`` times with ``each`` messages."""

    name: str
    run: Callable[[], object]
    times: int
    each: int


def main() -> None:
    """Print a table in Markdown."""
    lines = ["| what | us a message | where |", "|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder, memory_stock(_MEMORY) as refill:
        for number, made in enumerate(_OPERATIONS):
            refill()  # for a store that is read, too
            with made(Path(folder) / str(number)) as operation:
                lines.append(_line(operation, refill))
    sys.stdout.write("\n".join(lines) + "\n")


def _line(operation: Operation, refill: Callable[[], None]) -> str:
    for _ in range(max(1, operation.times // 10)):
        operation.run()
    gc.collect()
    gc.freeze()
    refill()
    start = perf_counter()
    for _ in range(operation.times):
        operation.run()
    seconds = (perf_counter() - start) / operation.times / operation.each
    refill()
    rooms: Counter[str] = Counter()
    for profile in _profiles(operation):
        rooms += _by_room(pstats.Stats(profile))
    total = sum(rooms.values())
    parts = [f"{room} {part / total:.0%}" for room, part in rooms.most_common()]
    shown = [
        part
        for part, (_, seconds_in) in zip(parts, rooms.most_common(), strict=True)
        if seconds_in / total >= _LEAST_SHARE
    ]
    return f"| {operation.name} | {seconds * 1e6:.2f} | {', '.join(shown)} |"


def _profiles(operation: Operation) -> list[cProfile.Profile]:
    """Of this thread and of each one that the operation starts."""
    profiles: list[cProfile.Profile] = []

    def begin(*_: object) -> None:
        profile = cProfile.Profile()
        profiles.append(profile)
        profile.enable()  # in place of this function, for the thread that calls it

    threading.setprofile(begin)
    begin()
    try:
        for _ in range(operation.times):
            operation.run()
    finally:
        profiles[0].disable()
        threading.setprofile(None)
    return profiles


def _by_room(stats: pstats.Stats) -> Counter[str]:
    rooms: Counter[str] = Counter()
    table = stats.stats  # type: ignore[attr-defined] # of pstats, but not in its stub
    for (file, _, name), (_, _, own, _, callers) in table.items():
        if any(wait in name for wait in _WAITS):
            continue  # for other threads
        if file != "~":
            rooms[_room(file)] += own
            continue
        for (caller, _, _), (_, _, spent, _) in callers.items():
            rooms[_room(caller)] += spent
    return rooms


def _room(file: str) -> str:
    path = Path(file)
    if not path.is_relative_to(ROOT) or ".venv" in path.parts:
        return "libraries"
    parts = path.relative_to(ROOT).with_suffix("").parts
    return "the caller" if parts[0] == "benchmarks" else "/".join(parts[:2])


@contextmanager
def _single(folder: Path) -> Iterator[Operation]:
    folder.mkdir()
    sent = iter(messages(30_000, 1024))
    with new_store(folder) as store:
        yield Operation("append of one", lambda: store.put_message(next(sent)), 10_000, 1)


@contextmanager
def _batch(folder: Path) -> Iterator[Operation]:
    folder.mkdir()
    sent = messages(100, 1024)
    with new_store(folder) as store:
        yield Operation("batch of 100 messages", lambda: store.put(prepare(sent)), 200, 100)


@contextmanager
def _column(folder: Path) -> Iterator[Operation]:
    folder.mkdir()
    (column,) = columns(1, 1_000, 1024)
    with new_store(folder) as store:
        yield Operation("column of 1,000", lambda: put_column(store, column), 100, 1_000)


@contextmanager
def _pull(folder: Path) -> Iterator[Operation]:
    folder.mkdir()
    with new_store(folder) as store:
        for column in columns(10, 1_000, 1024):
            put_column(store, column)
        places = iter(range(100, 1 << 40))

        def pull() -> None:
            offset = next(places) * 32 % 2_000
            found = store.view.get_message(TOPIC, 1, offset, 32, tags=None)
            assert sum(len(message.body) for message in found.messages)

        yield Operation("pull of 32, bodies read", pull, 2_000, 32)


@contextmanager
def _send(folder: Path) -> Iterator[Operation]:
    MessageStore.create(folder)
    body = bytes(1024)
    with Producer.open(folder, "profile") as producer:
        yield Operation("Producer.send", lambda: producer.send(Message(TOPIC, body)), 5_000, 1)


@contextmanager
def _deliver(folder: Path) -> Iterator[Operation]:
    """The thread that pulls and one that calls the listener."""
    MessageStore.create(folder)
    count = 200_000
    with EmbeddedBroker.open(folder) as broker:
        groups = iter(range(1 << 20))
        for _ in range(count // 1_000):
            broker.send_column(TOPIC, [bytes(1024)] * 1_000)

        def drain() -> None:
            seen = Counter[str]()
            done = threading.Event()

            def listen(found: object, _: object) -> ConsumeConcurrentlyStatus:
                seen["messages"] += len(found)  # type: ignore[arg-type]
                if seen["messages"] >= count:
                    done.set()
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

            config = ConsumerConfig(
                consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
                consume_thread_min=1,
                consume_thread_max=1,
            )
            consumer = PushConsumer(f"group-{next(groups)}", brokers=[broker], config=config)
            consumer.subscribe(TOPIC)
            consumer.register_message_listener(listen)
            with consumer:
                done.wait()

        yield Operation("delivered by a push consumer", drain, 1, count)


_OPERATIONS: Final = (_single, _batch, _column, _pull, _send, _deliver)

if __name__ == "__main__":
    main()
