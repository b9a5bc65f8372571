"""Our side of the comparisons: a new store in a folder, and how a batch is put into it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from storage.config import StoreConfig
from storage.format.encode import prepare
from storage.format.encode_column import prepare_column
from storage.store import MessageStore, now_ms

from .run import Run
from .workload import HOST, IDS, SHARED_PROPERTIES, TAG, TOPIC, Column, messages


@contextmanager
def new_store(
    folder: Path, *, exclusive: bool = False, config: StoreConfig | None = None
) -> Iterator[MessageStore]:
    """A store of the usual file sizes that has taken one message, so that its files are there."""
    root = folder / "store"
    MessageStore.create(root, config)
    with MessageStore.open(root, config, exclusive=exclusive) as store:
        for message in messages(4, 100, first=-4):
            store.put(prepare((message,)))
        yield store


def put_column(store: MessageStore, column: Column) -> None:
    """Put one batch: as `rmqctl produce` does with lines."""
    now = now_ms()
    store.put(
        prepare_column(
            TOPIC,
            column.queue_ids,
            column.bodies,
            born_timestamp=now,
            born_host=HOST,
            store_host=HOST,
            properties=SHARED_PROPERTIES,
            tags=TAG,
            unique_ids=IDS.take(len(column.bodies), now),
            keys=column.keys,
        )
    )


def put_columns(run: Run, batches: list[Column], *, exclusive: bool = False) -> float:
    """Seconds for all batches, in a new store that has taken one of them."""
    with run.folder() as folder, new_store(folder, exclusive=exclusive) as store:
        put_column(store, batches[0])
        start = perf_counter()
        for column in batches:
            put_column(store, column)
        return perf_counter() - start
