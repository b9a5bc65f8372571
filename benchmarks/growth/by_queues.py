"""Stores with the same messages in more and more queues."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.commands import rmqctl, seconds_of
from benchmarks.report import Row
from benchmarks.run import Run, progress
from benchmarks.workload import HOST
from storage.config import StoreConfig
from storage.format.encode import MessageInner, prepare
from storage.readonly import StoreView
from storage.store import MessageStore, now_ms

from .fit import Point, growth_row, seconds_each

_TOPIC = "many"
_PLACES = 256
_SMALL = StoreConfig(mapped_file_size_consume_queue=20_000)  # ten thousand files of 6 MB are slow
_BEST = {
    "append of one": ("O(1)", 0.1),
    "pull of 32": ("O(1)", 0.1),
    "rmqctl message get": ("O(1)", 0.1),
    "open and close for writing": ("O(n): all queues have bounds", 1.0),
}


def measure(run: Run) -> Iterator[Row]:
    """From one queue to 10,000 (1,000 with --quick), tenfold at a time."""
    points: dict[str, list[Point]] = defaultdict(list)
    for queues in (10**power for power in range(run.sized(5, 4))):
        progress("growth")(f"{queues:,} queues")
        with run.folder() as folder:
            root = folder / "store"
            MessageStore.create(root, _SMALL)
            _fill(root, queues)
            for name, seconds in _times(run, root, queues).items():
                points[name].append(Point(queues, seconds))
    for name, found in points.items():
        yield growth_row(name, "queues", found, *_BEST[name])


def _message(queue_id: int) -> MessageInner:
    return MessageInner(_TOPIC, queue_id, b"x" * 100, b"", now_ms(), HOST, HOST)


def _fill(root: Path, queues: int) -> None:
    with MessageStore.open(root, _SMALL) as store:
        every = [_message(queue_id) for queue_id in range(queues)]
        for _ in range(max(40, 40_000 // queues)):
            for first in range(0, queues, 1_000):
                store.put(prepare(every[first : first + 1_000]))


def _times(run: Run, root: Path, queues: int) -> dict[str, list[float]]:
    chance = random.Random(0)
    chosen = [chance.randrange(queues) for _ in range(_PLACES)]
    get = [*rmqctl(), "-S", str(root), "message", "get", "-t", _TOPIC, "-Q", "0", "-O", "3"]
    with MessageStore.open(root, _SMALL) as store:
        appends: list[Callable[[], object]] = [
            partial(store.put_message, _message(queue_id)) for queue_id in chosen
        ]
        pulls = [partial(_pull, store.view, queue_id) for queue_id in chosen]
        times = {
            "append of one": seconds_each(appends * 4, run.rounds),
            "pull of 32": seconds_each(pulls, run.rounds),
            "rmqctl message get": [seconds_of(get) for _ in range(run.rounds)],
        }
    times["open and close for writing"] = seconds_each([partial(_open, root)], run.rounds)
    return times


def _pull(view: StoreView, queue_id: int) -> None:
    assert len(view.get_message(_TOPIC, queue_id, 2, 32, tags=None).messages) == 32


def _open(root: Path) -> None:
    MessageStore.open(root, _SMALL).close()
