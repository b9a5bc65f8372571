"""``lag show`` over a thousand queues and fifty groups: whole processes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from benchmarks.commands import rmqctl, seconds_of
from benchmarks.report import Goal, Row
from benchmarks.run import Run
from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from storage.config import SMALL_STORE
from storage.configs.offset_samples import OffsetSamples
from storage.configs.topics import TopicConfig
from storage.store import MessageStore

_TOPICS = 10
_QUEUES = 100
_GROUPS = 50
_LIMIT_MS = 300


def measure(run: Run) -> Iterator[Row]:
    messages = run.sized(500, 50)
    with run.folder() as folder:
        root = folder / "store"
        _make(root, messages)
        _have_read(root, messages, topics_each=1)
        own = _times(run, root, "a topic each")
        _have_read(root, messages, topics_each=_TOPICS)
        everything = _times(run, root, "all queues")
    queues = f"{_TOPICS * _QUEUES:,} queues"
    for what, samples in (
        (f"{_GROUPS} groups that read a tenth of {queues} each", own),
        (f"{_GROUPS} groups that read all of {queues}", everything),
    ):
        yield Row(
            f"lag show, {what}, with samples",
            f"{sorted(samples)[len(samples) // 2] * 1e3:.0f} ms",
            "",
            [seconds * 1e3 for seconds in samples],
            Goal(_LIMIT_MS, at_most=True),
            "ms",
            samples={"lag show": samples},
        )


def _times(run: Run, root: Path, title: str) -> list[float]:
    command = [*rmqctl(), "-S", str(root), "lag", "show", "-o", "json"]
    rounds = run.rounds * 3  # they are short
    return run.take_turns(title, {"lag show": lambda: seconds_of(command)}, rounds=rounds).of[
        "lag show"
    ]


def _topics() -> list[str]:
    return [f"topic-{number}" for number in range(_TOPICS)]


def _make(root: Path, messages: int) -> None:
    """Fill each queue with as many messages."""
    MessageStore.create(root, SMALL_STORE)
    with EmbeddedBroker.open(root) as broker:
        for topic in _topics():
            broker.update_topic(TopicConfig(topic, _QUEUES, _QUEUES))
            queue_ids = [number % _QUEUES for number in range(_QUEUES * messages)]
            broker.send_column(topic, [bytes(100)] * len(queue_ids), queue_ids)


def _have_read(root: Path, messages: int, *, topics_each: int) -> None:
    """Let each group have progress in each queue, with samples of earlier progress."""
    rng = random.Random(1)
    samples = OffsetSamples(root)
    with EmbeddedBroker.open(root) as broker:
        now = broker.store.now() if broker.store is not None else 0
        for minutes_ago, share in ((10, 0.1), (5, 0.3), (1, 0.5)):
            for number in range(_GROUPS):
                mine = [_topics()[(number + more) % _TOPICS] for more in range(topics_each)]
                broker.update_consumer_offsets(
                    f"group-{number}",
                    [
                        OffsetCommit(topic, queue_id, int(messages * share) + rng.randrange(9))
                        for topic in mine
                        for queue_id in range(_QUEUES)
                    ],
                )
            committed = broker.view.consumer_offsets()
            ends = {topic: dict.fromkeys(range(_QUEUES), messages) for topic in _topics()}
            samples.append(committed, ends, now - minutes_ago * 60_000)
