"""A writer that dies at a chosen instant of its last put, or while it finishes a dead one's batch.

Runs in a slim interpreter (tests.support.slim).
"""

from __future__ import annotations

import struct
from pathlib import Path

from tests.support.crash import Acknowledge, Child, Put, die
from tests.support.oracle import STAGE
from tests.support.samples import Sample, Ticking, batch, new_store, open_store, prepared
from tests.support.watched_fs import Instant, WatchedFileSystem

BEFORE = [Put([Sample("one", "A", keys=("k",))]), Put(batch("two", 3, "A", (0, 1)))]
LAST = Put(batch("last", 3, "A", (0, 1), size=300))
SINGLES = [Put([Sample(f"single-{i}", "A", keys=("k",))]) for i in range(6)]
FILLING = Put(batch("filling", 3, "A", (0, 1), size=900))
FROM, TO, LOG_END, KEYS_FROM, KEYS_TO = 7, 8, 10, 14, 17


def die_in_last_put(
    folder: str,
    kind: str,
    what: str,
    value: int | None = None,
    times: int = 1,
    full: bool = False,
    flush: bool = False,
) -> dict[str, object]:
    """Die right before the ``times``-th such instant of the last put; the shared state then.

    ``full``: the log file has no room for the last put any more. ``flush``: in place of that put
    the index keys of single records are put, which were pending.
    """
    root = new_store(Path(folder) / "store")
    puts = [*BEFORE, FILLING] if full else [*BEFORE, *SINGLES] if flush else BEFORE
    armed = False
    seen = 0

    def watch(instant: Instant) -> None:
        nonlocal seen
        fits = instant.what == what if kind == "word" else what in instant.what
        if armed and instant.kind == kind and fits and value in (None, instant.value):
            seen += 1
            if seen == times:
                die()

    def run(acknowledge: Acknowledge) -> None:
        nonlocal armed
        store = open_store(root, fs=WatchedFileSystem(watch), clock=Ticking())
        for number, put in enumerate(puts):
            acknowledge(number, store.put(prepared(put.samples)))
        armed = True
        if flush:
            store.flush()
        acknowledge(len(puts), store.put(prepared(LAST.samples), whole=True))
        store.close()

    was_killed, answers = Child(run).wait()
    return {
        "root": str(root),
        "was_killed": was_killed,
        "acknowledged": sorted(answers),
        "log_end_before": int(max(answers[len(puts) - 1][0])),
        **shared(root),
    }


def die_while_resolving(root: str) -> dict[str, object]:
    """Die at each instant of resolving, one death after the other, until one gets through."""
    deaths = 0
    stages = set()

    def run(_: Acknowledge) -> None:
        open_store(Path(root), fs=WatchedFileSystem(die_next), clock=Ticking())

    def die_next(instant: Instant) -> None:
        if instant.number == deaths + 1:
            die()

    while Child(run).wait()[0]:
        deaths += 1
        stages.add(shared(Path(root))["stage"])
    return {"deaths": deaths, "stages": sorted(stages)}


def shared(root: Path) -> dict[str, int]:
    words = struct.unpack_from("<64q", (root / "rmqctl" / "shared").read_bytes())
    return {
        "stage": words[STAGE],
        "start": words[FROM],
        "end": words[TO],
        "log_end": words[LOG_END],
        "keys_from": words[KEYS_FROM],
        "keys_to": words[KEYS_TO],
    }
