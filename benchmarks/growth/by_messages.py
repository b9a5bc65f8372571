"""One store that grows, tenfold at a time: the measurements at each size."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from benchmarks.commands import rmqctl, seconds_of
from benchmarks.ours import new_store
from benchmarks.report import Row
from benchmarks.run import Run, progress
from benchmarks.workload import HOST, IDS, QUEUES, TOPIC, messages
from storage.format.encode import MessageInner, prepare
from storage.format.encode_column import prepare_column
from storage.readonly import StoreView
from storage.store import MessageStore, now_ms

from .fit import Point, growth_row, seconds_each

_BATCH = 10_000
_PLACES = 64
_O1 = 0.1
_LOG = 0.15  # from 10^4 to 10^8 a bisection has twice the steps
_Operations = dict[str, Sequence[Callable[[], object]]]
_BEST = {
    "append of one": ("O(1)", _O1),
    "batch of 100": ("O(1)", _O1),
    "pull of 32": ("O(1)", _O1),
    "message by unique id": ("O(1)", _O1),
    "offset by time": ("O(log n)", _LOG),
    "rmqctl topic queues": ("O(1)", _O1),
    "rmqctl produce, one message": ("O(1)", _O1),
}


def measure(run: Run) -> Iterator[Row]:
    """Grow to 10^8 messages (10^6 with --quick) and measure at each power of ten from 10^4."""
    last = run.sized(8, 6)
    points: dict[str, list[Point]] = defaultdict(list)
    with run.folder() as folder:
        with new_store(folder) as store:
            known: list[tuple[str, int]] = []
        root = folder / "store"
        for power in range(4, last + 1):
            progress("growth")(f"{10**power:,} messages")
            with MessageStore.open(root) as store:
                _grow(store, 10**power, known)
                for name, operations in _operations(store, known).items():
                    points[name].append(Point(10**power, seconds_each(operations, run.rounds)))
            for name, command in _commands(str(root)).items():
                seconds = [seconds_of(command) for _ in range(run.rounds + 1)]
                points[name].append(Point(10**power, seconds[1:]))
    for name, found in points.items():
        yield growth_row(name, "messages", found, *_BEST[name])


def _grow(store: MessageStore, count: int, known: list[tuple[str, int]]) -> None:
    """Fill the store with ``count`` messages; keeps some unique ids."""
    bodies = [b"x"] * _BATCH
    queue_ids = [number % QUEUES for number in range(_BATCH)]
    while (stored := sum(_ends(store.view))) < count:
        size = min(_BATCH, count - stored)
        now = now_ms()
        ids = IDS.take(size, now)
        store.put(
            prepare_column(
                TOPIC,
                queue_ids[:size],
                bodies[:size],
                born_timestamp=now,
                born_host=HOST,
                store_host=HOST,
                unique_ids=ids,
            )
        )
        if not known or random.random() < 0.1:
            known.append((ids[size // 2].decode(), now))
    store.flush()


def _ends(view: StoreView) -> list[int]:
    return [view.max_offset_in_queue(TOPIC, queue_id) for queue_id in range(QUEUES)]


def _operations(store: MessageStore, known: list[tuple[str, int]]) -> _Operations:
    view, chance = store.view, random.Random(0)
    ends = _ends(view)
    singles, batch = messages(1_000, 100), messages(100, 100)
    places = [
        (q := chance.randrange(QUEUES), chance.randrange(ends[q] - 32)) for _ in range(_PLACES)
    ]
    ids = [chance.choice(known)[0] for _ in range(_PLACES)]
    times = [_time_at(view, queue_id, offset) for queue_id, offset in places]
    return {
        "append of one": [partial(store.put_message, message) for message in singles],
        "batch of 100": [partial(_put, store, batch)] * 20,
        "pull of 32": [partial(_pull, view, *place) for place in places],
        "message by unique id": [partial(_find, view, unique_id) for unique_id in ids],
        "offset by time": [
            partial(view.offset_in_queue_by_time, TOPIC, queue_id, when)
            for (queue_id, _), when in zip(places, times, strict=True)
        ],
    }


def _commands(store: str) -> dict[str, list[str]]:
    return {
        "rmqctl topic queues": [*rmqctl(), "-S", store, "topic", "queues", TOPIC],
        "rmqctl produce, one message": [
            *rmqctl(),
            "-S",
            store,
            "produce",
            TOPIC,
            "--template",
            "x",
            "-c",
            "1",
            "-q",
        ],
    }


def _put(store: MessageStore, batch: list[MessageInner]) -> None:
    store.put(prepare(batch))


def _pull(view: StoreView, queue_id: int, offset: int) -> None:
    assert len(view.get_message(TOPIC, queue_id, offset, 32, tags=None).messages) == 32


def _find(view: StoreView, unique_id: str) -> None:
    assert view.find_unique(TOPIC, unique_id)


def _time_at(view: StoreView, queue_id: int, offset: int) -> int:
    when = view.store_timestamp(TOPIC, queue_id, offset)
    assert when is not None
    return when
