"""A stream whose workers and drivers are killed stores each row once."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from analytics.sink.marker import has_begun
from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from storage.config import SMALL_STORE
from storage.readonly import StoreView
from tests.support.cli import run
from tests.support.crash import fast_folder
from tests.support.sink_stream import Driver

pytestmark = [pytest.mark.slow, pytest.mark.crash, pytest.mark.long]
ROWS = 10_000
"""New rows before each start of a driver."""
WORKERS, DRIVERS, IN_COMMIT = 20, 5, 3


def test_killed_workers_and_drivers_lose_and_double_nothing():
    chance = random.Random(7)
    with fast_folder() as folder:
        source, target = folder / "source", folder / "target"
        for root in (source, target):
            create_store(root, SMALL_STORE)
        rows = workers = drivers = in_commit = 0
        while workers < WORKERS or drivers < DRIVERS or in_commit < IN_COMMIT:
            with EmbeddedBroker.open(source) as broker:
                broker.send_column("T", [b"row %d" % number for number in range(rows, rows + ROWS)])
            rows += ROWS
            driver = Driver(source, target, folder / "checkpoint", 60_000)
            before = len(stored(target))
            least = before + chance.randrange(ROWS // 2)
            in_middle = in_commit < IN_COMMIT
            while driver.is_running():
                running = driver.workers()
                if workers < WORKERS and running and chance.random() < 0.5:
                    with suppress(ProcessLookupError):
                        os.kill(chance.choice(running), signal.SIGKILL)
                        workers += 1
                begun = any(has_begun(target, path.stem) for path in markers(target))
                if (begun or not in_middle) and len(stored(target)) >= least:
                    driver.kill()
                    drivers += 1
                    in_commit += begun
                    break
            else:
                driver.result()
        last = Driver(source, target, folder / "checkpoint", 60_000)
        last.result()
        found = Counter(run("-S", target, "consume", "T", "-e").lines)
        assert found == {f"row {number}": 1 for number in range(rows)}
        assert run("-S", target, "store", "fsck").code == 0


def stored(root: Path) -> range:
    with StoreView.open(root) as view:
        return range(sum(view.queue_bounds(*queue).max_offset for queue in view.queues()))


def markers(root: Path) -> list[Path]:
    return list((root / "rmqctl" / "sink").glob("*.json"))
