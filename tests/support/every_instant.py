"""Killing a writer at every instant of a workload, and checking each store that it leaves.

Runs in a slim interpreter (tests.support.slim): it forks once for each instant.
"""

from __future__ import annotations

import random
import shutil
import struct
from itertools import count
from pathlib import Path
from traceback import format_exc

from storage.config import StoreConfig
from tests.support.copies import copy_store
from tests.support.crash import (
    Acknowledge,
    Acknowledged,
    Child,
    acknowledged_of,
    begun,
    die,
    inspect,
    missing,
)
from tests.support.oracle import page_will_be_trusted
from tests.support.samples import (
    START_MS,
    TINY,
    Sample,
    Ticking,
    new_store,
    open_store,
    prepared,
)
from tests.support.watched_fs import Instant, WatchedFileSystem
from tests.support.workloads import WORKLOADS, run_puts

LATER = START_MS + 3_600_000
PROBES = [Sample("probe-a", "A"), Sample("probe-b", "new", 7, keys=("k",))]


def killed_at_every_instant(
    folder: str, workload: str, shard: int, shards: int, again: int = 8
) -> dict[str, object]:
    """Kill at the instants shard + 1, shard + 1 + shards, ... until the workload survives.

    Each ``again``-th time the next openers are killed as well, at instants of their own.
    """
    config, puts, reopen = WORKLOADS[workload]
    chance = random.Random(f"{workload} {shard}")  # the same each time
    failures: list[str] = []
    deaths = 0
    if config is not TINY:
        import numpy  # noqa: F401 - once, before the forks
    for number in count(1 + shard, shards):
        root = new_store(Path(folder) / f"{workload}-{number}", config)

        def run(acknowledge: Acknowledge, root: Path = root, number: int = number) -> None:
            fs = WatchedFileSystem(lambda instant: die_at(number, instant))
            run_puts(root, fs, config, puts, acknowledge, reopen_before=reopen)

        was_killed, answers = Child(run).wait()
        if number // shards % again == 0:
            deaths += _kill_openers(root, config, chance, reboot=number // shards % 2 == 0)
        try:
            problems = judge(
                root,
                config,
                acknowledged_of(puts, answers),
                begun(puts, answers),
                with_fsck=number // shards % 12 == 0,
            )
        except Exception:  # noqa: BLE001 - a store that cannot be opened is a finding as well
            problems = [format_exc(limit=-4)]
        failures += [f"killed at instant {number}: {problem}" for problem in problems]
        shutil.rmtree(root)
        if not was_killed or len(failures) > 20:
            break
    return {"instants": number, "deaths_of_openers": deaths, "failures": failures}


def killed_while_rebuilding(folder: str, shard: int, shards: int) -> dict[str, object]:
    """Queues and index of a cleanly closed store were removed, as a user does to have them rebuilt.
    The rebuilding process dies at an instant, and the next one begins again."""
    config, puts, _ = WORKLOADS["singles"]
    original = new_store(Path(folder) / f"original-{shard}", config)
    acknowledged: list[Acknowledged] = []
    store = open_store(original, config, clock=Ticking())
    for put in puts:
        result = store.put(prepared(put.samples), whole=put.whole)
        places = zip(put.samples, result.commitlog_offsets, result.queue_offsets, strict=True)
        acknowledged += [Acknowledged(sample, int(p), int(o)) for sample, p, o in places]
    store.close()
    for part in ("consumequeue", "index"):
        shutil.rmtree(original / part)
        (original / part).mkdir()
    lose_page(original)
    failures: list[str] = []
    for number in count(1 + shard, shards):
        root = copy_store(original, Path(folder) / f"rebuilt-{number}")

        def run(_: Acknowledge, root: Path = root, number: int = number) -> None:
            fs = WatchedFileSystem(lambda instant: die_at(number, instant))
            open_store(root, config, fs=fs, clock=Ticking(LATER))

        was_killed, _ = Child(run).wait()
        ids = {one.sample.id for one in acknowledged}
        problems = judge(root, config, acknowledged, ids, with_fsck=number % 5 == 0)
        failures += [f"killed at instant {number}: {problem}" for problem in problems]
        shutil.rmtree(root)
        if not was_killed or len(failures) > 20:
            break
    return {"instants": number, "failures": failures}


def die_at(number: int, instant: Instant) -> None:
    if instant.number == number:
        die()


def judge(
    root: Path,
    config: StoreConfig,
    acknowledged: list[Acknowledged],
    may_be_there: set[str],
    *,
    with_fsck: bool = True,
) -> list[str]:
    """Open what is left, write on, close; everything wrong with it then."""
    trusted = page_will_be_trusted(root)
    store = open_store(root, config, clock=Ticking(LATER))
    problems = []
    if trusted and store.recovery is not None:
        problems.append(f"a page that can be trusted was not: {store.recovery}")
    more = []
    for probe in PROBES:
        result = store.put(prepared([probe]))
        more.append(Acknowledged(probe, result.commitlog_offsets[0], result.queue_offsets[0]))
    store.close()
    found = inspect(root, config, with_fsck=with_fsck)
    there = {record.id for record in found.records} - {probe.id for probe in PROBES}
    problems += [f"{name} was never sent" for name in there - may_be_there]
    return problems + found.problems + missing(found, acknowledged + more)


def lose_page(root: Path) -> None:
    """The shared state after a reboot: it names another boot."""
    path = root / "rmqctl" / "shared"
    if path.exists():
        with path.open("r+b") as file:
            file.seek(8)
            file.write(struct.pack("<2q", 1, 2))


def _kill_openers(root: Path, config: StoreConfig, chance: random.Random, *, reboot: bool) -> int:
    """Open again and again, killed at a random instant each time, until one survives."""
    deaths = 0
    if reboot:
        lose_page(root)
    for _ in range(4):
        number = chance.choice([1, 2, 3, 5, 8, chance.randrange(1, 60), chance.randrange(1, 300)])

        def run(_: Acknowledge, number: int = number) -> None:
            fs = WatchedFileSystem(lambda instant: die_at(number, instant))
            open_store(root, config, fs=fs, clock=Ticking(LATER)).close()

        was_killed, _ = Child(run).wait()
        deaths += was_killed
        if not was_killed:
            break
    return deaths
