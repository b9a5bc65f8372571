"""A writer that dies between any two stores of the compiled forms. Runs in a slim interpreter.

WatchedFileSystem sees no store of theirs; they count themselves (``die_after`` of instants.c).
"""

from __future__ import annotations

import random
import shutil
from itertools import count
from pathlib import Path
from typing import Any

from storage.store import MessageStore
from tests.support.compiled import compiled, native
from tests.support.consumers import eventually
from tests.support.crash import Acknowledge, Child, Put, acknowledged_of, begun
from tests.support.every_instant import judge
from tests.support.samples import (
    SMALL,
    Sample,
    Ticking,
    batch,
    new_store,
    open_store,
    prepared,
    sync_flush,
)

BEFORE = [Put([Sample(f"before-{i}", "A", i % 2, keys=("k",))]) for i in range(6)]
"""So many that queues, the log file and the index are known to the compiled form."""
AFTER = [
    Put([Sample("one", "A", 0, keys=("k", "other"), tags="T")]),
    Put([Sample("two", "A", 1, size=2000)]),
    Put([Sample("three", "A", 0, size=0)]),
    Put(batch("four", 3, "A", (0, 1))),  # puts the keys that are pending, and its own
    Put([Sample("five", "A", 1)]),
    Put([Sample("six", "A", 0)]),
    Put([*batch("seven", 3, "A", (1,)), Sample("eight", "A", 0, keys=("k", "k"), tags="T")]),
    Put([Sample("nine", "A", 0), Sample("ten", "A", 1)]),
    Put(batch("eleven", 12, "A", (0, 1), size=2000)),  # amid no run it is written, not copied
    Put([Sample("twelve", "A", 0)]),
]
PUTS = BEFORE + AFTER


def make_pages(store: MessageStore) -> None:
    file = store._appender.log.find(store.log_end)
    assert file is not None
    file.reserve(0, file.size, file.size)
    file.make_pages(0, file.size)
    made: Any = file.pages
    eventually(lambda: made.made_to(0) == file.size)


def killed_between_stores(
    folder: str, shard: int, shards: int, exclusive: bool, synced: bool, pages: bool
) -> dict[str, object]:
    """Die before store number shard + 1, shard + 1 + shards, ... until the writer survives.

    An exclusive one is amid a run: pages are got ready for it. One that syncs each put writes
    records through the descriptor. Where ``pages`` were made ahead large batches are stored to the
    map.
    """
    config = sync_flush(SMALL) if synced else SMALL
    native.compiled = compiled  # also where RMQCTL_PURE hides it
    failures: list[str] = []
    chance = random.Random(shard)
    for number in count(1 + shard, shards):
        root = new_store(Path(folder) / f"killed-{number}", config)

        def run(acknowledge: Acknowledge, root: Path = root, number: int = number) -> None:
            store = open_store(root, config, clock=Ticking(step=0), exclusive=exclusive)
            for place, put in enumerate(PUTS):
                if place == len(BEFORE):
                    if exclusive:
                        store._appender.one.begin_run()
                    if pages:
                        make_pages(store)
                    compiled.die_after(number)
                if len(put.samples) == 1:
                    acknowledge(place, store.put_message(put.samples[0].inner()))
                else:
                    acknowledge(place, store.put(prepared(put.samples)))
            compiled.die_after(0)
            store.close()

        was_killed, answers = Child(run).wait()
        problems = judge(
            root,
            config,
            acknowledged_of(PUTS, answers),
            begun(PUTS, answers),
            with_fsck=chance.random() < 0.3,
        )
        failures += [f"killed before store {number}: {problem}" for problem in problems]
        shutil.rmtree(root)
        if not was_killed or len(failures) > 20:
            break
    return {"stores": number, "failures": failures}
