"""Commits of staged rows that are killed at random, until each batch has succeeded."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa  # once, before the forks

from analytics.sink.commit import commit
from analytics.sink.marker import has_begun
from analytics.sink.options import SinkOptions
from analytics.sink.rows import RowReader
from analytics.sink.staging import StagedPart, stage
from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from storage.config import SMALL_STORE
from storage.format.message import SCHEDULE_TOPIC
from storage.readonly import StoreView

WRITE = "w"
ROWS = 120
TOPICS = ("A", "B", "C")
MOST_KILLS = 4
"""Of one batch."""


class Kill(NamedTuple):
    """When an attempt is killed."""

    after: float
    """Seconds."""
    once_begun: bool
    """They count from the mark that the batch has begun; else from the start of the attempt."""


def kill_commits(folder: str, seed: int, kills: int) -> dict[str, object]:
    """Commit batches, killing most attempts; ``failures`` names what is missing or doubled."""
    chance = random.Random(seed)
    root = Path(folder) / f"sink-{seed}"
    create_store(root, SMALL_STORE)
    staging = Path(folder) / f"staging-{seed}"
    sent: list[str] = []
    usual = 0.05
    killed = begun = batch = 0
    while killed < kills or not begun:  # a test of kills needs one in the middle of a commit
        bodies = [f"{batch}-{number}" for number in range(ROWS)]
        for attempt in count():
            at_once = not batch or attempt == MOST_KILLS  # the first one shows how long it takes
            kill = None if at_once else Kill(chance.random() * usual, chance.random() < 0.5)
            done, took, was_begun = _attempt(root, staging, batch, bodies, chance, kill)
            begun += was_begun
            if done:
                usual = max(usual, took) if not batch else usual
                break
            killed += 1
        sent += bodies
        batch += 1
    found = Counter(stored_bodies(root))
    failures = [f"{body}: {found[body]} times" for body in sent if found[body] != 1]
    failures += [f"{body}: never sent" for body in found.keys() - set(sent)]
    return {"failures": failures, "killed": killed, "begun": begun, "batches": batch}


def _attempt(
    root: Path,
    staging: Path,
    batch: int,
    bodies: list[str],
    chance: random.Random,
    kill: Kill | None,
) -> tuple[bool, float, bool]:
    """One attempt, in a process of its own: whether it ended, its time, whether it had begun."""
    cuts = chance.randint(1, 4)  # Spark may cut the rows in another way each time
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        staged = [
            stage_rows(root, staging / str(batch), partition, bodies[partition::cuts])
            for partition in range(cuts)
        ]
        parts = [part for part in staged if part is not None]
        os.write(writing, b"s")
        commit(root, WRITE, batch, parts)
        os._exit(0)
    os.close(writing)
    os.read(reading, 1)
    start = time.monotonic()
    if kill is not None:
        while kill.once_begun and _is_running(child) and not has_begun(root, WRITE):
            pass  # what remains of a commit after its mark is too short for a sleep
        time.sleep(kill.after)  # not to wait for anything: the instant of the kill is random
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(reading)
    took = time.monotonic() - start
    return status == 0, took, has_begun(root, WRITE)


def _is_running(child: int) -> bool:
    """Whether a child of this process has not ended; it stays to be waited for."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def stage_rows(root: Path, folder: Path, partition: int, bodies: list[str]) -> StagedPart | None:
    """Stage rows with these bodies, in topics by their numbers, some of them delayed."""
    numbers = [int(body.rpartition("-")[2]) for body in bodies]
    batch = pa.record_batch(
        {
            "body": bodies,
            "topic": [TOPICS[number % 3] for number in numbers],
            "delay_level": [1 if number % 20 == 0 else None for number in numbers],
        }
    )
    options = SinkOptions(root, None, True, None, None)
    return stage(folder, partition, RowReader(options, partition).messages(batch))


def stored_bodies(root: Path) -> list[str]:
    """The bodies of all messages, those that wait for their delay too."""
    EmbeddedBroker.open(root).close()  # recovers what a kill has left
    found = []
    with StoreView.open(root) as view:
        for topic, queue_id in view.queues():
            if topic not in TOPICS and topic != SCHEDULE_TOPIC:
                continue
            for offset in range(*view.queue_bounds(topic, queue_id)):
                unit = view.unit(topic, queue_id, offset)
                assert unit is not None
                message = view.message_of_unit(topic, queue_id, offset, unit)
                assert message is not None, (topic, queue_id, offset)
                found.append(message.body.decode())
    return found
