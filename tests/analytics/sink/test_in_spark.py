"""The sink in a running Spark: batches and streams."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession as Sql

from analytics.spark.session import SparkSession
from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from storage.config import SMALL_STORE
from storage.configs.topics import TopicConfig
from tests.support.spark_source import Row, read_table

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sql() -> Iterator[Sql]:
    with SparkSession("local[2]") as spark:
        yield Sql(spark.context)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    create_store(tmp_path / "store", SMALL_STORE)
    with EmbeddedBroker.open(tmp_path / "store") as broker:
        broker.update_topic(TopicConfig("T", 3, 3))
    return tmp_path / "store"


def write(frame: DataFrame, root: Path, mode: str = "append", **options: str) -> None:
    writer = frame.write.format("rocketmq").mode(mode)
    for name, value in options.items():
        writer = writer.option(name, value)
    writer.save(str(root))


def read(root: Path) -> list[Row]:
    """The messages of T, read without Spark."""
    return read_table("messages", root, topics="T")


def files(root: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}


def test_a_batch_is_stored_with_every_column_and_leaves_nothing_else(sql, root):
    frame = sql.range(300).selectExpr(
        "concat('body ', id) as body",
        "if(id % 2 = 0, 'tag', null) as tags",
        "array('all', concat('k', id)) as keys",
        "map('colour', 'red', 'n', string(id)) as properties",
        "string(id % 7) as ordering_key",
    )
    write(frame, root, topic="T")
    rows = read(root)
    assert len(rows) == 300
    places: dict[int, int] = {}
    for row in rows:
        number = int(row["body"].split()[1])
        assert row["tags"] == (None if number % 2 else "tag")
        assert row["keys"] == ["all", f"k{number}"]
        properties = dict(row["properties"])
        assert (properties["colour"], properties["n"]) == ("red", str(number))
        assert places.setdefault(number % 7, row["queue_id"]) == row["queue_id"]
    assert len({row["msg_id"] for row in rows}) == 300
    assert {row["queue_id"] for row in rows} == {0, 1, 2}
    assert list((root / "rmqctl" / "sink").iterdir()) == []


def test_a_bad_row_fails_the_batch_with_its_reason_and_nothing_is_stored(sql, root):
    before = files(root)
    frame = sql.range(50).selectExpr("if(id = 41, null, string(id)) as body", "'T' as topic")
    with pytest.raises(Exception, match=r"row \d+ of partition 1: its body is null") as raised:
        write(frame, root)
    assert "nothing was written" in str(raised.value)
    with pytest.raises(Exception, match="no column 'x'"):
        write(sql.range(5).selectExpr("string(id) as body", "id as x"), root, topic="T")
    with pytest.raises(Exception, match="only ever appended to"):
        write(frame, root, "overwrite")
    assert files(root) == before


def test_a_named_write_is_not_repeated(sql, root):
    frame = sql.range(40).selectExpr("string(id) as body")
    write(frame, root, topic="T", writeId="night-1")
    write(frame, root, topic="T", writeId="night-1")
    assert len(read(root)) == 40
    write(frame, root, topic="T", writeId="night-2")
    assert len(read(root)) == 80


def test_rows_of_a_batch_that_was_killed_are_removed_a_day_later(sql, root):
    left = root / "rmqctl" / "sink" / "1b9d-0123abcd"
    new = root / "rmqctl" / "sink" / "1b9e-0123abcd"
    for folder in (left, new):
        folder.mkdir(parents=True)
    os.utime(left, (0, 0))
    write(sql.range(1).selectExpr("string(id) as body"), root, topic="T")
    assert not left.exists()
    assert new.exists()


def test_at_least_once_stores_at_once(sql, root):
    write(sql.range(40).selectExpr("string(id) as body"), root, topic="T", delivery="atLeastOnce")
    assert Counter(row["body"] for row in read(root)) == {str(n).encode(): 1 for n in range(40)}
    assert not (root / "rmqctl" / "sink").exists()


def test_a_stream_from_store_to_store_stores_each_message_once(sql, root, tmp_path):
    source = tmp_path / "source"
    create_store(source, SMALL_STORE)

    def run() -> None:
        query = (
            sql.readStream.format("rocketmq")
            .option("maxBytesPerTrigger", "20000")
            .load(str(source))
            .selectExpr("body", "keys", "topic")
            .writeStream.format("rocketmq")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .option("path", str(root))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    for first in (0, 200):
        with EmbeddedBroker.open(source) as broker:
            broker.send_column("T", [b"%d" % number for number in range(first, first + 200)])
        run()
        if first:
            run()  # nothing is new
        found = Counter(row["body"] for row in read(root))
        assert found == {str(number).encode(): 1 for number in range(first + 200)}
    assert list((tmp_path / "checkpoint").rglob("*.arrow")) == []
