"""Both engines count and report the same, over several stores at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from analytics.engines.local import LocalEngine
from analytics.engines.spark import SparkEngine
from analytics.engines.task import CountTask, do, forget, together
from analytics.errors import SparkFailedError
from analytics.history.gathering import find_kept, gathered_report
from analytics.kernels.partials import MINUTE_MS, Partials, QueueTask
from analytics.lag.selection import Choice
from analytics.report.lag_report import lag_report
from analytics.report.stores import StoreRef
from analytics.spark.session import SparkSession
from tests.support import golden
from tests.support.hand_made import START_MS, TINY, HandMade
from tests.support.kept_reports import DAY_MS, OLD, run

CONFIG = TINY.with_(mapped_file_size_commit_log=1 << 16, mapped_file_size_consume_queue=140)
FIRST = START_MS // MINUTE_MS
NOW = START_MS + 10_000_000
ALL = Choice()


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


@pytest.mark.slow
@pytest.mark.parametrize("each", [False, pytest.param(True, marks=pytest.mark.long)])
def test_spark_says_the_same_byte_for_byte(session: SparkSession, each: bool) -> None:
    refs = [StoreRef(name, str(golden.store(name))) for name in golden.names()]
    spark = SparkEngine(session.context)
    for some in [[ref] for ref in refs] if each else [refs]:
        here = lag_report(LocalEngine(), some, NOW, ALL)
        there = lag_report(spark, some, NOW, ALL)
        assert json.dumps(here.report.document()) == json.dumps(there.report.document()), some
        assert here.unreadable == there.unreadable


@pytest.mark.slow
def test_spark_puts_kept_reports_together(tmp_path: Path, session: SparkSession) -> None:
    for day in range(2):
        run(tmp_path, OLD + day * DAY_MS, {"a": day + 1, "b/1": 9, "c": None})
    found = find_kept([str(tmp_path)], OLD + DAY_MS)
    here = gathered_report(LocalEngine(), found, ALL, OLD + DAY_MS)
    there = gathered_report(SparkEngine(session.context), found, ALL, OLD + DAY_MS)
    assert here.report.document()["totals"]["stores"] == 3
    assert json.dumps(here.report.document()) == json.dumps(there.report.document())
