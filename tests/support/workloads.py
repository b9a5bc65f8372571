"""Runs of puts that meet everything a writer does: topics, keys, batches, rolls, clean closes."""

from __future__ import annotations

from pathlib import Path

from storage.config import StoreConfig
from storage.files.fs import FileSystem
from storage.store import MessageStore
from tests.support.crash import Acknowledge, Put
from tests.support.samples import (
    SMALL,
    TINY,
    Sample,
    Ticking,
    batch,
    open_store,
    prepared,
    sync_flush,
)

SINGLES = [
    Put([Sample("one", "A")]),
    Put([Sample("two", "A", 1, keys=("k", "k", "other"), tags="T")]),
    Put(batch("three", 5, "A", (0, 1))),
    Put([Sample("four", "B", 3, size=700, tags="x y")]),
    Put(batch("five", 3, "B", (3,), size=300)),
    Put(batch("six", 4, "C", (0, 1, 2, 3), size=350), whole=True),
    Put([Sample("seven", "A", size=1200)]),
    Put(batch("eight", 6, "A", (0,), size=250)),  # ends one log file and begins the next
    Put([Sample("nine", "B", 3, keys=tuple(f"key-{i}" for i in range(13)))]),  # > an index file
    Put(batch("ten", 4, "A", (1, 0), size=600), whole=True),  # does not fit: blank, next file
    *(Put([Sample(f"light-{i}", "S", light=("%LMQ%x", "A", "%LMQ%y"))]) for i in range(2)),
    *(Put([Sample(f"again-{i}", "S", size=90, keys=("k",) * (i % 2))]) for i in range(6)),
    Put([Sample("eleven", "C", 2)]),
]
"""Every kind of roll, and one queue often enough for the short way of single records; after the
fifth put the store is closed and opened again."""
REOPEN_BEFORE = 5

BATCHES = [
    Put(batch("small", 3, "A", (0, 1))),
    Put(batch("big", 60, "A", (0, 1), size=250)),  # > 16 KiB: records through the descriptor
    Put(batch("huge", 120, "B", (0, 1, 2), size=400)),  # two log files, > 48 keys: NumPy
    Put(batch("keys", 70, "A", (0,), size=20)),  # below 16 KiB, but columns
    Put([Sample("last", "A", 1)]),
    Put(batch("rest", 150, "C", (0,), size=100)),  # rolls the index in the middle
    Put(batch("end", 230, "D", (0,), size=100)),  # and units > 4 KiB
]

RUN = [
    *(Put([Sample(f"run-{i}", "AB"[i % 2], i % 3, keys=("k",) * (i % 2))]) for i in range(1150)),
    Put(batch("then", 5, "A", (0,))),
    *(Put([Sample(f"more-{i}", "A", i % 3)]) for i in range(40)),
]
"""So many single messages that keys are put by themselves, and pages made ready ahead."""
ROOMY = SMALL.with_(
    mapped_file_size_commit_log=300 << 10,
    mapped_file_size_consume_queue=150 * 20,
    max_hash_slot_num=400,
    max_index_num=1300,
)


def make_next_file(store: MessageStore, number: int) -> None:
    """Have the next log file made before most puts, so that files are made in both ways.

    A store's own thread does so for larger files than these.
    """
    if number % 3:
        store._appender._ahead.make()


def run_puts(
    root: Path,
    fs: FileSystem,
    config: StoreConfig,
    puts: list[Put],
    acknowledge: Acknowledge,
    *,
    reopen_before: int = -1,
) -> None:
    """Open, put one after the other, close; in the middle close and open once."""
    clock = Ticking()
    store = open_store(root, config, fs=fs, clock=clock)
    for number, put in enumerate(puts):
        if number == reopen_before:
            store.close()
            store = open_store(root, config, fs=fs, clock=clock)
        make_next_file(store, number)
        alone = put.samples[0]
        if number % 2 and len(put.samples) == 1 and not alone.light:
            acknowledge(number, store.put_message(alone.inner()))
        else:
            acknowledge(number, store.put(prepared(put.samples), whole=put.whole))
    store.close()


WORKLOADS: dict[str, tuple[StoreConfig, list[Put], int]] = {
    "singles": (TINY, SINGLES, REOPEN_BEFORE),
    "singles, SYNC_FLUSH": (sync_flush(TINY), SINGLES, REOPEN_BEFORE),
    "batches": (SMALL, BATCHES, -1),
    "run": (ROOMY, RUN, -1),
}
