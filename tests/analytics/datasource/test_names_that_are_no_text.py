"""A folder may have a name that is no UTF-8, and a file of settings half of a surrogate pair: each
table and file has the same text for it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from pyspark.sql.datasource import EqualTo, In, StringStartsWith

from analytics.datasource.query.tables import TABLES
from analytics.engines.local import LocalEngine
from analytics.history.compaction import compacting, join, plan
from analytics.history.gathering import find_kept, gathered_report
from analytics.history.keeping import keep
from analytics.lag.selection import Choice
from analytics.report.lag_report import lag_report
from analytics.report.stores import StoreRef, find_stores
from tests.support.hand_made import START_MS, TINY, HandMade
from tests.support.kept_reports import DAY_MS
from tests.support.spark_source import Stream, read_table

NAME = "caf\ufffd"
GROUP = "half\ud800"
NOW = START_MS + 10_000_000


@pytest.fixture
def pattern(tmp_path: Path) -> str:
    root = tmp_path / "disks" / os.fsdecode(b"caf\xe9") / "store"
    root.mkdir(parents=True)
    made = HandMade(TINY)
    for number in range(6):
        made.put("T", 0, b"%d" % number, tags="a")
    made.write(root)
    (root / "config").mkdir()
    offsets = {"T@g": {"0": 2}, f"T@{GROUP}": {"0": 4}}
    (root / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": offsets}))
    return str(tmp_path / "disks" / "*" / "store")


@pytest.mark.parametrize("table", TABLES)
def test_each_table_has_the_same_name_of_a_broker(pattern: str, table: str) -> None:
    rows = read_table(table, pattern)
    assert {row["broker"] for row in rows} <= {NAME}
    assert rows or table not in {"messages", "consumequeue", "offsets", "lag", "lag_partials"}
    named = read_table(table, pattern, filters=[EqualTo(("broker",), NAME)], pushdown="true")
    assert len(named) == len(rows)


def test_a_stream_knows_the_store_by_that_name(pattern: str) -> None:
    stream = Stream(pattern)
    assert {row["broker"] for row in stream.trigger()} == {NAME}
    assert list(json.loads(stream.at)) == [NAME]
    assert Stream(pattern, at=stream.at).trigger() == []


def test_half_of_a_surrogate_pair_is_no_error(pattern: str) -> None:
    assert {row["group"] for row in read_table("lag", pattern)} == {"g", "half\ufffd"}


@pytest.mark.parametrize("kind", [EqualTo, In, StringStartsWith])
@pytest.mark.parametrize(
    ("table", "column"),
    [("offsets", "group"), ("lag", "group"), ("consumequeue", "topic"), ("topics", "topic")],
)
def test_a_filter_on_a_name_that_is_shown_selects_its_rows(
    pattern: str, table: str, column: str, kind: type[EqualTo | In | StringStartsWith]
) -> None:
    (ref,) = find_stores([pattern])
    queues = Path(ref.path, "consumequeue")
    shutil.copytree(queues / "T", queues / os.fsdecode(b"caf\xe9"))
    shown = {"group": "half\ufffd", "topic": NAME}[column]
    rows = [row for row in read_table(table, pattern) if row[column] == shown]
    assert rows
    one = kind((column,), (shown,) if kind is In else shown)  # type: ignore[arg-type]
    found = read_table(table, pattern, filters=[one], pushdown="true")
    assert [row for row in found if row[column] == shown] == rows


def test_kept_reports_have_that_name_joined_or_not(pattern: str, tmp_path: Path) -> None:
    (ref,) = find_stores([pattern])
    folder = tmp_path / "kept"
    made = lag_report(LocalEngine(), [ref], NOW, Choice())
    places = [(row["group"], row["topic"]) for row in made.report.groups]
    for as_of in (NOW, NOW + 1):
        keep(made.shares, as_of, folder, places, None)
    for _ in ("small files", "joined ones"):
        found = find_kept([str(folder)], None)
        assert [(kept.broker, kept.as_of) for kept in found] == [(NAME, NOW + 1)]
        report = gathered_report(LocalEngine(), found, Choice()).report
        assert report.totals["lag"] == made.report.totals["lag"] == 6
        assert [row["group"] for row in report.groups] == ["g", "half\ufffd"]
        with compacting(str(folder)) as old:
            for one in plan(str(folder), NOW + 40 * DAY_MS):
                join(one, print, old)


def test_the_name_of_a_broker_is_text_in_kept_reports_whatever_named_it(
    pattern: str, tmp_path: Path
) -> None:
    (found,) = find_stores([pattern])
    ref = StoreRef(os.fsdecode(b"caf\xe9"), found.path)
    keep(lag_report(LocalEngine(), [ref], NOW, Choice()).shares, NOW, tmp_path / "kept", [], None)
    (kept,) = find_kept([str(tmp_path / "kept")], None)
    assert kept.broker == NAME
