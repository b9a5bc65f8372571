"""One store that more and more groups read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import partial

from benchmarks.commands import rmqctl, seconds_of
from benchmarks.report import Row
from benchmarks.run import Run, progress
from broker.api.offsets import OffsetCommit
from broker.api.pull import PullRequest
from broker.embedded.broker import EmbeddedBroker
from storage.config import SMALL_STORE
from storage.configs.topics import TopicConfig
from storage.store import MessageStore

from .fit import Point, growth_row, seconds_each

_TOPIC = "read"
_QUEUES = 8
_BEST = {
    "pull of 32 that tells progress": ("O(1)", 0.1),
    "asking for progress": ("O(1)", 0.1),
    "rmqctl lag show of one group": ("O(1) but for reading that file", 0.15),
    "rmqctl lag show of all": ("O(n): a row each", 1.0),
}


def measure(run: Run) -> Iterator[Row]:
    """From one group to 1,000 (100 with --quick), tenfold at a time."""
    points: dict[str, list[Point]] = defaultdict(list)
    with run.folder() as folder:
        root = folder / "store"
        MessageStore.create(root, SMALL_STORE)
        with EmbeddedBroker.open(root) as broker:
            broker.update_topic(TopicConfig(_TOPIC, _QUEUES, _QUEUES))
            for queue_id in range(_QUEUES):
                broker.send_column(_TOPIC, [b"x"] * 1_000, queue_ids=queue_id)
        for groups in (10**power for power in range(run.sized(4, 3))):
            progress("growth")(f"{groups:,} groups")
            with EmbeddedBroker.open(root) as broker:
                for number in range(groups):
                    _commit(broker, f"group-{number}", 100)
                for name, seconds in _times(run, broker).items():
                    points[name].append(Point(groups, seconds))
            show = [*rmqctl(), "-S", str(root), "lag", "show"]
            for name, command in (
                ("rmqctl lag show of one group", [*show, "group-0"]),
                ("rmqctl lag show of all", show),
            ):
                seconds = [seconds_of(command) for _ in range(run.rounds)]
                points[name].append(Point(groups, seconds))
    for name, found in points.items():
        yield growth_row(name, "groups", found, *_BEST[name])


def _commit(broker: EmbeddedBroker, group: str, offset: int) -> None:
    commits = [OffsetCommit(_TOPIC, queue_id, offset) for queue_id in range(_QUEUES)]
    broker.update_consumer_offsets(group, commits)


def _times(run: Run, broker: EmbeddedBroker) -> dict[str, list[float]]:
    pull = PullRequest("group-0", _TOPIC, 0, 200, 32, commit=OffsetCommit(_TOPIC, 0, 200))
    return {
        "pull of 32 that tells progress": seconds_each(
            [partial(_pull, broker, pull)] * 200, run.rounds
        ),
        "asking for progress": seconds_each(
            [partial(broker.query_consumer_offset, "group-0", _TOPIC, 0)] * 200, run.rounds
        ),
    }


def _pull(broker: EmbeddedBroker, pull: PullRequest) -> None:
    assert len(broker.pull(pull).messages) == 32
