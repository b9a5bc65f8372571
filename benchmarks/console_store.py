"""A store for the console: topics, queues, and groups that read all of them."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from broker.embedded.broker import EmbeddedBroker
from storage.clock import now_ms
from storage.config import SMALL_STORE
from storage.configs.progress import ProgressFile
from storage.configs.progress_table import QueueProgress
from storage.configs.topics import TopicConfig
from storage.store import MessageStore


class Size(NamedTuple):
    """How much there is; each group reads each queue."""

    groups: int
    topics: int
    queues: int
    """Of each topic."""
    messages: int = 40
    """In each queue."""

    @property
    def rows(self) -> int:
        """Groups in topics."""
        return self.groups * self.topics

    @property
    def positions(self) -> int:
        """Groups in queues."""
        return self.rows * self.queues


def topic_of(number: int) -> str:
    """The name of a topic."""
    return f"topic-{number:03}"


def make(root: Path, size: Size, age_ms: int = 0) -> None:
    """Fill each queue with messages that are so old; one position in two is at its end."""
    config = SMALL_STORE.with_(mapped_file_size_consume_queue=20 * 1_000)
    MessageStore.create(root, config)
    with EmbeddedBroker.open(root, clock=lambda: now_ms() - age_ms) as broker:
        for number in range(size.topics):
            topic = topic_of(number)
            broker.update_topic(TopicConfig(topic, size.queues, size.queues))
            ids = [at % size.queues for at in range(size.queues * size.messages)]
            broker.send_column(topic, [bytes(100)] * len(ids), ids)
    progress = Progress(root, size)
    progress.move(1.0)


class LargeStore(NamedTuple):
    """A store with many topics and groups, of which each reads a few topics."""

    topics: int
    groups: int
    messages: int = 10
    """In each queue."""

    def queues_of(self, number: int) -> int:
        """The queues of a topic."""
        return 8 if number % 3 == 2 else 4

    def topics_of(self, group: int) -> list[int]:
        """The topics that a group reads: one to five of them."""
        count = (1, 1, 1, 2, 2, 3, 5)[group % 7]
        return [(group * 7_919 + more * 1_237) % self.topics for more in range(count)]


def make_large(root: Path, size: LargeStore) -> None:
    """Fill all queues; of five groups four have read all."""
    config = SMALL_STORE.with_(
        mapped_file_size_consume_queue=20 * 200,
        # the sync of all queues each minute takes seconds here, in which nothing is sent
        flush_consume_queue_thorough_interval_ms=3_600_000,
    )
    MessageStore.create(root, config)
    topics = {  # one by one, the file would be written again with each of them
        topic_of(number): {
            "topicName": topic_of(number),
            "readQueueNums": size.queues_of(number),
            "writeQueueNums": size.queues_of(number),
            "perm": 6,
        }
        for number in range(size.topics)
    }
    (root / "config").mkdir(exist_ok=True)
    text = json.dumps({"topicConfigTable": topics})
    (root / "config" / "topics.json").write_text(text, "utf-8")
    with EmbeddedBroker.open(root, store_config=config) as broker:
        for number in range(size.topics):
            queues = size.queues_of(number)
            ids = [at % queues for at in range(queues * size.messages)]
            broker.send_column(topic_of(number), [bytes(20)] * len(ids), ids)
    file = ProgressFile(root)
    file.commit(
        {
            (f"{topic_of(number)}@group-{group:05}", queue): QueueProgress(
                0, size.messages if group % 5 else (group + queue) % size.messages
            )
            for group in range(size.groups)
            for number in size.topics_of(group)
            for queue in range(size.queues_of(number))
        }
    )
    file.export()


class Progress:
    """Moves the positions of groups."""

    def __init__(self, root: Path, size: Size) -> None:
        self._file = ProgressFile(root)
        self._random = random.Random(time.time_ns())  # another one moves others
        self._places = [
            (f"{topic_of(topic)}@group-{group:03}", queue)
            for group in range(size.groups)
            for topic in range(size.topics)
            for queue in range(size.queues)
        ]
        self._end = size.messages

    def move(self, share: float) -> None:
        """Move this share of the positions, forth or back, in one commit."""
        rng = self._random
        count = round(share * len(self._places))
        generation = time.time_ns()  # a later one, so that a smaller offset counts, too
        self._file.commit(
            {
                place: QueueProgress(
                    generation, self._end if rng.random() < 0.5 else rng.randrange(self._end)
                )
                for place in rng.sample(self._places, count)
            }
        )
        self._file.export()


class Mover:
    """Moves positions in a process of its own, so that its time and memory are not measured."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def move(self, share: float) -> None:
        """Move this share of the positions; returns when it is done."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(b"%f\n" % share)
        stdin.flush()
        assert stdout.readline() == b"moved\n"


@contextmanager
def mover(root: Path, size: Size) -> Iterator[Mover]:
    """A process that moves positions when it is asked to."""
    command = [sys.executable, "-m", "benchmarks.programs.console_moves", str(root)]
    process = subprocess.Popen(
        [*command, *map(str, size[:3])],
        cwd=Path(__file__).parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        yield Mover(process)
    finally:
        process.communicate(timeout=60)


@contextmanager
def moves(root: Path, size: Size, share: float, pause_s: float) -> Iterator[None]:
    """Positions move again and again meanwhile."""
    ended = threading.Event()

    def go(others: Mover) -> None:
        while not ended.wait(pause_s):
            others.move(share)

    with mover(root, size) as others:
        thread = threading.Thread(target=go, args=(others,))
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
