"""``lag report -o html`` and ``-o parquet``: a page, and files that gather, run by run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow.dataset as dataset
import pytest

from analytics.history.tables import TABLES
from tests.support.aged_store import fill
from tests.support.cli import run
from tests.support.hostile_report import hostile_store
from tests.support.page import held

pytestmark = pytest.mark.feature(59)

LOCAL = ("lag", "report", "--engine", "local", "-q")
AS_OF = ("--as-of", "1893456000000")
DATE = "2030-01-01"


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two brokers with 40 messages of one topic each, of which two groups have consumed some."""
    folder = tmp_path_factory.mktemp("cluster")
    for name, count in (("a", 40), ("b", 30)):
        orders = [
            {"at": f"-{100 - at}m", "topic": "orders", "queue": at % 2, "body": "x", "tag": name}
            for at in range(count)
        ]
        later = {"topic": "orders", "body": "later", "properties": {"DELAY": "18"}}
        lines = [json.dumps(order) for order in (*orders, {**later, "at": "-1m"})]
        (folder / name).mkdir()
        fill(folder / name / "store", lines)
        for group, number in (("shop", 9), ("late", 1)):
            consume = ("consume", "orders", "-g", group, "-c", number, "--from-where", "first")
            assert run("-S", folder / name / "store", *consume, "-q").code == 0
    return folder


def where(stores: Path) -> tuple[str, str]:
    return ("-S", f"{stores}/*/store")


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    files = dataset.dataset(str(folder / table), partitioning="hive")
    found: list[dict[str, Any]] = files.to_table().to_pylist()
    return found


def comparable(found: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in found)


@pytest.mark.slow
def test_the_page_holds_what_json_prints(stores: Path, tmp_path: Path) -> None:
    whole = run(*LOCAL, *where(stores), *AS_OF, "-o", "json").json()
    file = tmp_path / "lag.html"
    done = run(*LOCAL, *where(stores), *AS_OF, "-o", "html", "--save", file, "--tz", "Asia/Tokyo")
    assert (done.code, done.out) == (0, "")
    found = held(file.read_text("utf-8"))
    assert found.pop("page")["zone"] == "Asia/Tokyo"
    assert (found.pop("elapsed_ms"), whole.pop("elapsed_ms")) >= (0, 0)
    assert found == whole
    printed = run("-o", "html", *LOCAL, *where(stores), *AS_OF)
    assert held(printed.out)["totals"] == whole["totals"]
    run("-o", "html", *LOCAL, *where(stores), *AS_OF, "--save", file)
    assert held(file.read_text("utf-8"))["totals"] == whole["totals"]


@pytest.mark.slow
def test_the_page_compares(stores: Path, tmp_path: Path) -> None:
    before = tmp_path / "before.json"
    run(*LOCAL, "-S", stores / "a" / "store", *AS_OF, "-o", "json", "--save", before)
    done = run(*LOCAL, *where(stores), "--compare", before, "-o", "html")
    found = held(done.out)
    assert found["page"]["compared_as_of"] == 1_893_456_000_000
    change = {row["group"]: (row["lag_before"], row["lag_change"]) for row in found["groups"]}
    assert change["shop"] == (31, 21)


@pytest.mark.slow
def test_the_page_says_what_was_left_out(stores: Path) -> None:
    words = ("--since", "2029-12-31", "--top", "1", "--tz", "UTC", "-o", "html")
    found = held(run(*LOCAL, *where(stores), *AS_OF, *words).out)
    assert (found["page"]["since"], found["page"]["top"]) == (1_893_369_600_000, 1)
    assert [row["group"] for row in found["groups"]] == ["late"]
    assert (found["minutes"], found["hours"]) == ([], [])


@pytest.mark.slow
def test_parquet_is_the_report_of_each_broker(stores: Path, tmp_path: Path) -> None:
    odd = hostile_store(tmp_path / "odd" / "store")
    words = (*LOCAL, *where(stores), "-S", odd, *AS_OF)
    done = run(*words, "-o", "parquet", "--save", tmp_path / "history")
    assert (done.code, done.out) == (0, "")
    for broker, store in (("a", stores / "a" / "store"), ("odd", odd)):
        alone = run(*LOCAL, "-S", store, *AS_OF, "-o", "json").json()
        for row in alone["groups"]:  # null without --compare, which Parquet does not take
            assert (row.pop("lag_before"), row.pop("lag_change")) == (None, None)
        alone["warnings"] = [{"warning": sentence} for sentence in alone["warnings"]]
        for table in TABLES:
            wanted = [{**row, "broker": broker} for row in alone[table]]
            found = [row for row in rows(tmp_path / "history", table) if row["broker"] == broker]
            assert {(row.pop("as_of"), str(row.pop("date"))) for row in found} == (
                {(1_893_456_000_000, DATE)} if wanted else set()
            )
            assert {(row.pop("month"), row.pop("store_number")) for row in found} == (
                {(DATE[:7], 0)} if wanted else set()
            )
            for row in found:
                for name in [name for name in row if name.endswith("_time")]:
                    del row[name]  # tests/analytics/history/test_compaction.py has these
            assert [bool(row.pop("marks", True)) for row in found] == [True] * len(found)
            if table == "stores":
                assert [row.pop("is_damaged") for row in found] == [False]
            if table == "warnings":  # about a group in a topic, or about the whole store
                for row in found:
                    group, topic = row.pop("group"), row.pop("topic")
                    assert all(name is None or name in row["warning"] for name in (group, topic))
            assert comparable(found) == comparable(wanted), table
    assert {path.name for path in (tmp_path / "history").iterdir()} == set(TABLES)


@pytest.mark.slow
def test_brokers_add_up_to_the_whole(stores: Path, tmp_path: Path) -> None:
    run(*LOCAL, *where(stores), *AS_OF, "-o", "parquet", "--save", tmp_path / "history")
    whole = run(*LOCAL, *where(stores), *AS_OF, "-o", "json").json()
    for table in ("minutes", "hours", "tags", "ages"):
        for amount in ("messages", "bytes"):
            parts = sum(row[amount] for row in rows(tmp_path / "history", table))
            assert parts == sum(row[amount] for row in whole[table]) > 0
    groups = rows(tmp_path / "history", "groups")
    assert sum(row["lag"] for row in groups if row["group"] == "shop") == 52


@pytest.mark.slow
def test_runs_gather_and_one_of_the_same_moment_takes_its_place(
    stores: Path, tmp_path: Path
) -> None:
    history = tmp_path / "a new" / "history"
    first = (*LOCAL, *where(stores), "-o", "parquet", "--save", history)
    assert run(*first, *AS_OF).code == 0
    count = len(rows(history, "queues"))
    files = sorted(history.rglob("*"))
    assert run(*first, *AS_OF).code == 0
    assert (len(rows(history, "queues")), sorted(history.rglob("*"))) == (count, files)
    assert run(*first, "--as-of", "1893542400000").code == 0
    assert len(rows(history, "queues")) == 2 * count
    assert {str(row["date"]) for row in rows(history, "queues")} == {DATE, "2030-01-02"}
    # Of one group alone: what the run before had of the other one is gone.
    assert run(*first, *AS_OF, "-g", "shop").code == 0
    assert len(rows(history, "queues")) == count + count // 2


@pytest.mark.parametrize("form", ["html", "json", "csv", "parquet"])
def test_a_dry_run_writes_no_report(stores: Path, tmp_path: Path, form: str) -> None:
    target = tmp_path / "report"
    local = [word for word in LOCAL if word != "-q"]
    done = run(*local, *where(stores), *AS_OF, "-o", form, "--save", target, "-n")
    assert (done.code, done.out) == (0, ""), done.err
    assert done.err.endswith(f"\ndry run: would write to {target}\n")
    assert not target.exists()


def test_since_and_top_hold_for_parquet_too(stores: Path, tmp_path: Path) -> None:
    words = (*LOCAL, *where(stores), *AS_OF, "-o", "parquet", "--save", tmp_path)
    assert run(*words, "--window", "1h", "--top", "1").code == 0
    assert {row["group"] for row in rows(tmp_path, "queues")} == {"late"}
    assert not (tmp_path / "minutes").exists()


def test_parquet_has_the_minutes_and_hours_that_end_after_since(tmp_path: Path) -> None:
    lines = [
        {"at": f"{DATE}T{at}Z", "topic": "orders", "queue": 0, "body": "x"}
        for at in ("09:00:00", "10:50:10", "12:15:20", "12:40:00")
    ]
    store = tmp_path / "a" / "store"
    store.parent.mkdir()
    fill(store, map(json.dumps, lines))
    consume = ("consume", "orders", "-g", "shop", "-c", 1, "--from-where", "first")
    assert run("-S", store, *consume, "-q").code == 0
    as_of = ("--as-of", f"{DATE}T12:45:00", "--tz", "UTC", "--window", "1765s")
    words = (*LOCAL, "-S", store, *as_of, "-o", "parquet", "--save", tmp_path / "history")
    assert run(*words).code == 0
    found = [rows(tmp_path / "history", name) for name in ("minutes", "hours")]
    noon = 1_893_456_000_000 + 12 * 3_600_000
    assert [
        [row[f"{name}_timestamp"] for row in table]
        for name, table in zip(("minute", "hour"), found, strict=True)
    ] == [[noon + 15 * 60_000, noon + 40 * 60_000], [noon]]


def test_a_name_of_a_broker_can_hold_anything(stores: Path, tmp_path: Path) -> None:
    name = "a/b=c %2F #\u8ba2"
    brokers = tmp_path / "brokers.yaml"
    brokers.write_text(json.dumps({name: str(stores / "a" / "store")}), "utf-8")
    words = ("-o", "parquet", "--save", tmp_path / "history")
    assert run(*LOCAL, "-S", brokers, *words).code == 0
    assert {row["broker"] for row in rows(tmp_path / "history", "groups")} == {name}
    assert not list(tmp_path.rglob("b=c*"))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-o", "parquet"], "-o parquet writes files: name a folder with --save"),
        (["-o", "parquet", "--save", "{file}"], "--save: {file} is a file; Parquet needs a folder"),
        (["-o", "parquet", "--save", "x", "--compare", "{file}"], "--compare: not with Parquet"),
        (["-o", "html", "--where", "lag > 1"], "--where is for rows; -o html has the whole"),
        (["-o", "parquet", "--save", "x", "--limit", "1"], "--limit is for rows; -o parquet"),
        (["-o", "html", "--save", "nowhere/x"], "--save: there is no folder"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(
    stores: Path, tmp_path: Path, words: list[str], sentence: str
) -> None:
    file = tmp_path / "file"
    file.touch()
    done = run(*LOCAL, *where(stores), *(word.format(file=file) for word in words), cwd=tmp_path)
    (line,) = done.err.splitlines()
    assert done.code == 2
    assert line.startswith("rmqctl: " + sentence.format(file=file))
    assert not (tmp_path / "x").exists()


def test_without_pyarrow_one_sentence(
    stores: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    done = run(*LOCAL, *where(stores), "-o", "parquet", "--save", tmp_path / "history")
    assert done.code == 1
    assert done.err.startswith("rmqctl: Parquet needs the Python package pyarrow; install ")


@pytest.mark.long
@pytest.mark.spark
def test_spark_reads_the_folder(stores: Path, tmp_path: Path) -> None:
    from pyspark.sql import SparkSession as Sql

    from analytics.spark.session import SparkSession

    words = (*LOCAL, *where(stores), "-o", "parquet", "--save", tmp_path / "history")
    for moment in ("1893456000000", "1893542400000"):
        assert run(*words, "--as-of", moment).code == 0
    with SparkSession("local[1]") as session:
        table = Sql(session.context).read.parquet(str(tmp_path / "history" / "groups"))
        by_date = table.where("group = 'shop'").groupBy("date").sum("lag").collect()
        assert {(str(row[0]), row[1]) for row in by_date} == {(DATE, 52), ("2030-01-02", 52)}
        assert {row[0] for row in table.select("broker").distinct().collect()} == {"a", "b"}
