"""A stream whose workers and drivers are killed stores each row once."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from analytics.sink.marker import has_begun
from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from storage.config import SMALL_STORE
from tests.support.cli import run
from tests.support.crash import fast_folder
from tests.support.sink_stream import Driver

pytestmark = [pytest.mark.slow, pytest.mark.crash, pytest.mark.long]
ROWS = 40_000
WORKERS, DRIVERS = 20, 5


def test_killed_workers_and_drivers_lose_and_double_nothing():
    chance = random.Random(7)
    with fast_folder() as folder:
        source, target = folder / "source", folder / "target"
        for root in (source, target):
            create_store(root, SMALL_STORE)
        with EmbeddedBroker.open(source) as broker:
            broker.send_column("T", [b"row %d" % number for number in range(ROWS)])
        workers = drivers = in_commit = 0
        while True:
            driver = Driver(source, target, folder / "checkpoint", 400_000)
            until = time.monotonic() + 25 + 15 * chance.random()
            wants_commit = drivers % 2 == 0
            while driver.is_running():
                running = driver.workers()
                if workers < WORKERS and running and chance.random() < 0.3:
                    victim = chance.choice(running)
                    try:
                        os.kill(victim, signal.SIGKILL)
                        workers += 1
                    except ProcessLookupError:
                        continue
                begun = any(has_begun(target, path.stem) for path in markers(target))
                if drivers < DRIVERS and (begun if wants_commit else time.monotonic() > until):
                    driver.kill()
                    drivers += 1
                    in_commit += begun
                    break
                time.sleep(0.01)  # the instants of the kills are random
            else:
                driver.result()
                if drivers >= DRIVERS:
                    break
        found = Counter(run("-S", target, "consume", "T", "-e").lines)
        assert found == {f"row {number}": 1 for number in range(ROWS)}
        assert in_commit > 0
        assert workers == WORKERS
        assert run("-S", target, "store", "fsck").code == 0


def markers(root: Path) -> list[Path]:
    return list((root / "rmqctl" / "sink").glob("*.json"))
