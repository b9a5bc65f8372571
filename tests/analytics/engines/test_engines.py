"""Both engines count the same, over several stores at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from analytics.engines.local import LocalEngine
from analytics.engines.spark import SparkEngine
from analytics.engines.task import CountTask, do, forget, together
from analytics.errors import SparkFailedError
from analytics.kernels.partials import MINUTE_MS, Partials, QueueTask
from analytics.spark.session import SparkSession
from tests.support.hand_made import START_MS, TINY, HandMade

CONFIG = TINY.with_(mapped_file_size_commit_log=1 << 16, mapped_file_size_consume_queue=140)
FIRST = START_MS // MINUTE_MS


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    with SparkSession("local[2]") as running:
        yield running


def stores(folder: Path, count: int) -> list[CountTask]:
    works = []
    for number in range(count):
        store = HandMade(CONFIG)
        for message in range(200):
            store.put("T", message % 4, tags="ab"[message % 2], step_ms=(number + 1) * 700)
        root = folder / f"store {number}"
        root.mkdir()
        store.write(root)
        last = store.messages[-1].store_timestamp // MINUTE_MS
        for queue_id in range(4):
            task = QueueTask(number * 4 + queue_id, "T", queue_id, (0, 7, 31), 0, 50)
            works.append(CountTask("job", str(root), (task,), (FIRST, last)))
    return works


def same(one: Partials, other: Partials) -> bool:
    def values(found: Partials) -> list[list[int]]:
        return [column.tolist() for cells in found[:3] for column in cells]

    return one[3:] == other[3:] and values(one) == values(other)


@pytest.mark.slow
def test_spark_counts_what_this_process_counts(tmp_path: Path, session: SparkSession) -> None:
    works = stores(tmp_path, 3)
    told: list[int] = []
    here = together(LocalEngine().map(do, works, told.append))
    forget()
    assert told == list(range(1, 13))
    assert here.minutes.messages.sum() == here.tags.messages.sum() == 600
    told.clear()
    engine = SparkEngine(session.context)
    assert engine.cores == 2
    there = together(engine.map(do, works, told.append))
    assert same(here, there)
    assert told[-1] == 12
    assert sorted(told) == told


@pytest.mark.slow
def test_a_store_that_is_gone_is_named(tmp_path: Path, session: SparkSession) -> None:
    work = CountTask("gone", str(tmp_path / "nowhere"), (), (0, 0))
    with pytest.raises(SparkFailedError, match=r"StoreNotFoundError: .*nowhere"):
        SparkEngine(session.context).map(do, [work])
    assert SparkEngine(session.context).map(do, []) == []
