"""A commit of one group's progress beside the progress of more and more groups."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.report import Goal, Row
from benchmarks.run import Run, progress
from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from storage.config import SMALL_STORE
from storage.configs.consumer_offsets import topic_at_group
from storage.configs.progress import ProgressFile
from storage.configs.progress_table import QueueProgress
from storage.configs.topics import TopicConfig
from storage.store import MessageStore

from .fit import Point, growth_row

_TOPIC = "read"
_QUEUES = 8
_GROUP = "group-0"
_LINE = b"x" * 160
"""As many bytes as such a commit adds."""


def measure(run: Run) -> Iterator[Row]:
    """From one group to 10,000 (100 with --quick), tenfold at a time.

    Each commit moves all queues of a group on. It is followed by a bare ``pwrite`` of as many bytes
    at the end of a file with an ``fdatasync``.
    """
    commits: list[Point] = []
    bare: list[Point] = []
    for groups in (10**power for power in range(run.sized(5, 3))):
        progress("growth")(f"progress of {groups:,} groups")
        with run.folder() as folder:
            times = [*_times(run, folder / "store", groups)]
        commits.append(Point(groups, [own for own, _ in times]))
        bare.append(Point(groups, [alone for _, alone in times]))
    best = "O(1): a line is added; once in hundreds O(n)"
    yield growth_row("commit to the device", "groups", commits, best, 0.1)
    last, alone = commits[-1], bare[-1]
    yield Row(
        f"commit to the device beside a bare append and fdatasync, {last.size:,} groups",
        f"{median(last.seconds) * 1e6:.0f} us",
        f"{median(alone.seconds) * 1e6:.0f} us",
        [own / other for own, other in zip(last.seconds, alone.seconds, strict=True)],
        Goal(1.6, at_most=True),
        samples={"commit": list(last.seconds), "bare": list(alone.seconds)},
    )


def _times(run: Run, root: Path, groups: int) -> Iterator[tuple[float, float]]:
    """Medians of a commit and of a bare append, round by round; a round before them warms up."""
    MessageStore.create(root, SMALL_STORE)
    keys = [topic_at_group(_TOPIC, f"group-{number}") for number in range(groups)]
    ProgressFile(root).commit(
        {(key, queue_id): QueueProgress(0, 0) for key in keys for queue_id in range(_QUEUES)}
    )
    offset, each = 0, run.sized(300, 40)
    fd = os.open(root / "bare", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
    try:
        with EmbeddedBroker.open(root) as broker:
            broker.update_topic(TopicConfig(_TOPIC, _QUEUES, _QUEUES))
            for number in range(run.rounds + 1):
                own, alone = [], []
                for _ in range(each):
                    offset += 1
                    commits = [OffsetCommit(_TOPIC, queue, offset) for queue in range(_QUEUES)]
                    start = perf_counter()
                    broker.update_consumer_offsets(_GROUP, commits)
                    own.append(perf_counter() - start)
                    end = os.fstat(fd).st_size
                    start = perf_counter()
                    os.pwrite(fd, _LINE, end)
                    os.fdatasync(fd)
                    alone.append(perf_counter() - start)
                if number:
                    yield median(own), median(alone)
    finally:
        os.close(fd)
