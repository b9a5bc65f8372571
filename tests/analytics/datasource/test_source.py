"""The data source in a running Spark: tables, pushdown, streams."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession as Sql

from analytics.datasource.plan.ranges import Range
from analytics.datasource.query.errors import DamagedError, OptionError
from analytics.datasource.query.options import read_options
from analytics.datasource.rows.batches import BatchLimits, message_batches
from analytics.spark.session import SparkSession
from broker.api.send import SendOptions
from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from storage.config import SMALL_STORE
from storage.format.message import Message
from storage.readonly import StoreView
from storage.tools.snapshot.snapshot import take_snapshot
from tests.support import golden
from tests.support.copies import copy_store
from tests.support.hand_made import TINY, HandMade, Stored
from tests.support.linux_forms import needs_linux_forms
from tests.support.s3_server import serving
from tests.support.spark_source import read_table

pytestmark = pytest.mark.slow
CONFIG = TINY.with_(mapped_file_size_commit_log=4096, mapped_file_size_consume_queue=140)


NO_CODE = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Spark makes and compiles no code for a query: that costs more than a query of few rows."""


@pytest.fixture(scope="module")
def sql() -> Iterator[Sql]:
    with SparkSession("local[2]", conf=NO_CODE) as spark:
        yield Sql(spark.context)


def table(sql: Sql, name: str, *paths: Path | str, **options: str) -> DataFrame:
    reader = sql.read.format("rocketmq").option("table", name)
    for key, value in options.items():
        reader = reader.option(key, value)
    return reader.load(",".join(map(str, paths)))


def rows(frame: DataFrame, *order: str) -> list[dict[str, Any]]:
    """In order; sorted here, as a sort of Spark's costs more than the query."""
    found = [row.asDict() for row in frame.collect()]
    return sorted(found, key=lambda row: [(row[name] is not None, row[name]) for name in order])


@pytest.fixture
def store(tmp_path: Path) -> tuple[Path, HandMade]:
    made = HandMade(CONFIG)
    for number in range(90):
        made.put(
            "TU"[number % 2],
            number % 3,
            f"body {number}".encode(),
            tags=("a", None)[number % 4 == 0],
            keys=("k1", f"k{number}"),
            properties={"colour": "red"},
            step_ms=700,
        )
    root = tmp_path / "broker-a" / "store"
    root.mkdir(parents=True)
    made.write(root)
    return root, made


def test_messages_come_with_every_field(sql: Sql, store: tuple[Path, HandMade]) -> None:
    root, made = store
    found = rows(table(sql, "messages", root), "commitlog_offset")
    with StoreView.open(root) as view:
        for row, stored in zip(found, made.messages, strict=True):
            message = view.look_message_by_offset(stored.commitlog_offset)
            assert message is not None
            assert (row["broker"], row["topic"]) == ("broker-a", stored.topic)
            for name in ("queue_id", "queue_offset", "tags", "msg_id", "store_size", "flag"):
                assert row[name] == getattr(message, name), name
            assert bytes(row["body"]) == message.body
            assert row["keys"] == list(message.keys)
            assert row["properties"] == message.properties
            assert int(row["store_timestamp"].timestamp() * 1000) == message.store_timestamp
            assert row["born_host"] == message.born_host


@pytest.mark.parametrize(
    "name", ["basic-4.9", "ipv6-4.9", "retention-5.3", "torn-cq-all-missing-4.9"]
)
def test_sql_counts_what_the_queues_of_golden_stores_hold(sql: Sql, name: str) -> None:
    root = golden.store(name)
    with StoreView.open(root) as view:
        bounds = {queue: view.queue_bounds(*queue) for queue in view.queues()}
    topics = ",".join(sorted({topic for topic, _ in bounds}))
    table(sql, "consumequeue", root, topics=topics).createOrReplaceTempView("units")
    found = sql.sql(
        "select topic, queue_id, min(queue_offset), max(queue_offset), count(store_timestamp) "
        "from units group by topic, queue_id"
    ).collect()
    assert {(row[0], row[1]): tuple(row)[2:] for row in found} == {
        queue: (low, high - 1, high - low) for queue, (low, high) in bounds.items() if low < high
    }


def test_messages_join_with_units(sql: Sql, store: tuple[Path, HandMade]) -> None:
    root, made = store
    messages = table(sql, "messages", root).select("broker", "commitlog_offset", "tags")
    units = table(sql, "consumequeue", root).select("broker", "commitlog_offset", "tags_code")
    joined = messages.join(units, ["broker", "commitlog_offset"]).where("tags is not null")
    tagged = [message for message in made.messages if message.tags]
    found = [row["tags_code"] for row in joined.collect()]
    assert found == [ord("a")] * len(tagged)


def test_a_narrow_schema_reads_no_more(sql: Sql, store: tuple[Path, HandMade]) -> None:
    root, made = store
    for path in (root / "commitlog").iterdir():
        path.unlink()
    narrow = (
        sql.read.format("rocketmq")
        .schema("store_size int, topic string")
        .option("table", "consumequeue")
        .load(str(root))
    )
    # Without a log nothing is there any more; with it, units alone are read.
    assert narrow.columns == ["store_size", "topic"]
    made.write(root)
    assert sorted(row["store_size"] for row in narrow.collect()) == sorted(
        message.size for message in made.messages
    )


def test_pushed_filters_bound_the_bytes_that_are_read(
    sql: Sql, store: tuple[Path, HandMade]
) -> None:
    root, made = store
    chosen = [m for m in made.messages if m.topic == "T" and m.queue_id == 0][:2]
    last = max(message.commitlog_offset + message.size for message in chosen)
    # The rest is damaged, but for the log's last message: a reader of it fails.
    for message in made.messages[:-1]:
        if message.commitlog_offset >= last:
            _damage(root, message.commitlog_offset)
    where = "topic = 'T' and queue_id in (0) and queue_offset < 2"
    pushed = table(sql, "messages", root).where(where)  # as it is by default
    assert [row["queue_offset"] for row in rows(pushed, "queue_offset")] == [0, 1]
    with pytest.raises(Exception, match=DamagedError.__name__):
        table(sql, "messages", root, pushdown="false").where(where).collect()


def _damage(root: Path, place: int) -> None:
    path = root / "commitlog" / f"{place // 4096 * 4096:020}"
    with path.open("r+b") as file:
        file.seek(place % 4096 + 4)
        file.write(b"\0\0\0\0")


def test_filters_on_time_give_the_same_with_and_without_pushdown(
    sql: Sql, store: tuple[Path, HandMade]
) -> None:
    root, made = store
    middle = made.messages[40].store_timestamp
    where = (
        f"store_timestamp >= timestamp_millis({middle}) "
        f"and store_timestamp < timestamp_millis({middle + 5000})"
    )
    wanted = [m for m in made.messages if middle <= m.store_timestamp < middle + 5000]
    for flag in ("true", "false"):
        frame = table(sql, "messages", root, pushdown=flag).where(where)
        places = [row["commitlog_offset"] for row in rows(frame, "commitlog_offset")]
        assert places == [message.commitlog_offset for message in wanted]


@pytest.mark.parametrize(
    ("seed", "rounds"),
    [(0, 2), *(pytest.param(n, 6, marks=pytest.mark.long) for n in (0, 1, 2))],
)
def test_filters_give_the_same_with_and_without_pushdown_where_clocks_went_back(
    sql: Sql, tmp_path: Path, seed: int, rounds: int
) -> None:
    rng = random.Random(seed)
    made = HandMade(CONFIG)
    for number in range(150):
        step = rng.choice([0, 700, 700, 700, 60_000, -90_000])
        made.put("TU"[number % 2], rng.randrange(2), tags="ab"[number % 2], step_ms=step)
    root = made.write(_folder(tmp_path / "broker-a"))
    times = [message.store_timestamp for message in made.messages]
    for name in ("messages", "consumequeue"):
        frames = [table(sql, name, root, pushdown=flag) for flag in ("false", "true")]
        for _ in range(rounds):
            low, high = sorted(rng.choices(times, k=2))
            first, last = rng.choice([(">", "<"), (">=", "<="), (">=", "<"), (">", "<=")])
            where = (
                f"store_timestamp {first} timestamp_millis({low})"
                f" and store_timestamp {last} timestamp_millis({high})"
                + rng.choice(
                    ["", " and topic = 'T'", " and queue_id in (1)", " and queue_offset > 9"]
                )
            )
            plain, pushed = (
                rows(frame.where(where).select("commitlog_offset"), "commitlog_offset")
                for frame in frames
            )
            assert pushed == plain, where
        exact = f"store_timestamp = timestamp_millis({times[70]})"
        assert [frame.where(exact).count() for frame in frames] == [times.count(times[70])] * 2


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


@pytest.mark.parametrize(
    "number", [20, *(pytest.param(n, marks=pytest.mark.long) for n in (0, 40))]
)
def test_places_bound_the_same_where_units_are_missing(
    sql: Sql, tmp_path: Path, number: int
) -> None:
    made = HandMade(CONFIG)
    for number in range(60):
        made.put("T", number % 2, step_ms=700)
    made.queues["T", 0][4 * 20 : 14 * 20] = bytes(10 * 20)  # and a file of the other one is gone
    root = made.write(_folder(tmp_path / "broker-a"))
    (root / "consumequeue" / "T" / "1" / f"{2 * 140:020}").unlink()
    place = made.messages[number].commitlog_offset
    frames = [table(sql, "consumequeue", root, pushdown=flag) for flag in ("false", "true")]
    for condition in (f"> {place}", f"<= {place}", f"= {place}", "is not null"):
        where = f"commitlog_offset {condition}"
        plain, pushed = (
            rows(frame.where(where).select("queue_id", "queue_offset"), "queue_id", "queue_offset")
            for frame in frames
        )
        assert pushed == plain, where


def test_what_was_stored_at_other_times_is_not_read(sql: Sql, store: tuple[Path, HandMade]) -> None:
    root, made = store
    middle = made.messages[40]
    for message in made.messages[:40]:  # as if the bodies could not be read
        _damage_body(root, message)
    where = f"store_timestamp >= timestamp_millis({middle.store_timestamp})"
    assert table(sql, "messages", root, pushdown="true").where(where).count() == 50
    with pytest.raises(Exception, match=DamagedError.__name__):
        table(sql, "messages", root, pushdown="false").where(where).collect()
    _damage(root, made.messages[3].commitlog_offset)  # whose time is not known is not left out
    with pytest.raises(Exception, match=DamagedError.__name__):
        table(sql, "messages", root, pushdown="true").where(where).collect()


def _damage_body(root: Path, message: Stored) -> None:
    path = root / "commitlog" / f"{message.commitlog_offset // 4096 * 4096:020}"
    data = bytearray(path.read_bytes())
    at = data.index(message.body, message.commitlog_offset % 4096)
    data[at : at + 4] = b"xxxx"
    path.write_bytes(data)


@cache
def unreadable() -> dict[str, tuple[bytes, int]]:
    """Bodies that cannot be unpacked, and their flags."""
    return {
        "plain": (b"no zlib at all", 0x001),
        "gzip": (gzip.compress(b"a body"), 0x301),
        "cut": (zlib.compress(b"a longer body" * 50)[:-9], 0x301),
        "unknown type": (zlib.compress(b"a body"), 0x701),
        "bomb": (zlib.compress(bytes((64 << 20) + 1)), 0x301),
    }


@pytest.fixture(scope="module")
def odd_bodies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bodies that cannot be unpacked, one that can be, and an empty one."""
    root = tmp_path_factory.mktemp("odd") / "store"
    create_store(root, SMALL_STORE)
    with EmbeddedBroker.open(root) as broker:
        broker.send(Message("T", b"first"), 0)
        for body, flag in unreadable().values():
            broker.send(Message("T", body), 0, SendOptions(sys_flag=flag))
        broker.send(Message("T", zlib.compress(b"packed")), 0, SendOptions(sys_flag=0x301))
        broker.send(Message("T", b""), 0)
    return root


def test_bodies_that_cannot_be_unpacked_are_null_and_named(sql: Sql, odd_bodies: Path) -> None:
    bad = len(unreadable())
    frame = table(sql, "messages", odd_bodies)
    found = rows(frame, "queue_offset")
    bodies = [row["body"] and bytes(row["body"]) for row in found]
    assert bodies == [b"first", *[None] * bad, b"packed", b""]
    assert [row["body_size"] for row in found] == [5, *[None] * bad, 6, 0]
    stored = [row["corrupt_body"] and bytes(row["corrupt_body"]) for row in found]
    assert stored == [None, *(body for body, _ in unreadable().values()), None, None]
    for offset, row in enumerate(found):
        error = row["body_error"]
        assert (error is not None) == (1 <= offset <= bad)
        if error is not None:
            place = f"message {row['msg_id']} (topic T, queue 0, offset {offset}): "
            assert error.startswith(place)
    assert frame.where("body_error is not null").count() == bad
    narrow = sql.read.format("rocketmq").schema("body_error string").load(str(odd_bodies))
    assert narrow.where("body_error is not null").count() == bad


def test_a_query_fails_at_such_a_body_where_that_is_asked_for(sql: Sql, odd_bodies: Path) -> None:
    with pytest.raises(Exception, match=r"\(topic T, queue 0, offset 1\).*mode=PERMISSIVE"):
        table(sql, "messages", odd_bodies, mode="failfast").collect()
    narrow = sql.read.format("rocketmq").schema("queue_offset bigint").option("mode", "FAILFAST")
    assert narrow.load(str(odd_bodies)).count() == len(unreadable()) + 3, "no body is asked for"


def test_a_stream_goes_on_behind_such_a_body(sql: Sql, odd_bodies: Path, tmp_path: Path) -> None:
    found = stream(sql, odd_bodies, tmp_path)
    assert found.count() == len(unreadable()) + 3


def test_batches_are_bounded_by_what_bodies_unpack_to(tmp_path: Path, caplog: Any) -> None:
    root = tmp_path / "store"
    create_store(root, SMALL_STORE)
    body = zlib.compress(bytes(40 << 20))
    with EmbeddedBroker.open(root) as broker:
        for _ in range(4):
            broker.send(Message("T", body), 0, SendOptions(sys_flag=0x301))
        broker.send(Message("T", b"none"), 0, SendOptions(sys_flag=1))
    schema = pa.schema([("queue_offset", pa.int64()), ("body", pa.binary())])
    part = Range("b", str(root), "T", 0, 0, 5)
    batches = list(message_batches([part], schema, BatchLimits(1000)))
    assert [batch.num_rows for batch in batches] == [1, 1, 1, 2]
    assert "1 bodies cannot be unpacked" in caplog.text
    assert "(topic T, queue 0, offset 4)" in caplog.text


@pytest.mark.parametrize(
    ("name", "few", "all_of_them"),
    [
        ("messages", 2, 4),
        ("lag", 1, 2),
        pytest.param("consumequeue", 2, 4, marks=pytest.mark.long),
    ],
)
def test_filters_do_not_open_topics_of_rocketmq_itself(
    sql: Sql, tmp_path: Path, name: str, few: int, all_of_them: int
) -> None:
    made = HandMade(CONFIG)
    for topic in ("T", "%RETRY%g", "T", "%DLQ%g"):
        made.put(topic, 0)
    root = made.write(_folder(tmp_path / "broker-a"))
    progress = {"T@g": {"0": 1}, "%RETRY%g@g": {"0": 0}}
    (root / "config").mkdir()
    (root / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": progress}))
    named = {"topics": "T,%RETRY%g,%DLQ%g"}
    where = "topic in ('T', '%RETRY%g', '%DLQ%g')"
    for flag in ("false", "true"):
        assert table(sql, name, root, pushdown=flag).where(where).count() == few
        more = table(sql, name, root, pushdown=flag, **named).where(where)
        assert more.count() == all_of_them


def test_lag_and_its_parts_agree(sql: Sql) -> None:
    root = golden.store("basic-4.9")
    lag = rows(table(sql, "lag", root), "group", "topic", "queue_id")
    offsets = rows(table(sql, "offsets", root), "group", "topic", "queue_id")
    assert lag
    assert [
        {k: row[k] for k in offset} for row, offset in zip(lag, offsets, strict=True)
    ] == offsets
    partials = rows(table(sql, "lag_partials", root), "from_offset")
    for row in lag:
        if row["lag"] is None:
            continue
        mine = [
            part
            for part in partials
            if (part["topic"], part["queue_id"]) == (row["topic"], row["queue_id"])
            and part["from_offset"] >= row["committed_offset"]
        ]
        for parts in (
            [part for part in mine if part["tags_code"] is not None],
            [part for part in mine if part["tags_code"] is None],
        ):
            assert sum(part["messages"] for part in parts) == row["lag"]
            assert sum(part["bytes"] for part in parts) == row["lag_bytes"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"table": "message"}, "is none of messages"),
        ({"tabel": "lag"}, "did you mean table"),
        ({"minPartitions": "0"}, "not a number from 1 on"),
        ({"pushdown": "yes"}, "'yes' is none of auto, true, false"),
        ({"startingOffset": "-5"}, "not a number from 0 on"),
        ({"startingOffset": "foo"}, "'foo' is neither earliest nor latest, and not a number"),
    ],
)
def test_bad_options_are_named(
    sql: Sql, store: tuple[Path, HandMade], options: dict[str, str], said: str
) -> None:
    reader = sql.read.format("rocketmq").options(**options)
    with pytest.raises(Exception, match=said):
        reader.load(str(store[0])).collect()


def test_load_takes_a_list_of_paths(sql: Sql, store: tuple[Path, HandMade]) -> None:
    root, made = store
    other = copy_store(root, root.parent.parent / "broker-b" / "store")
    paths = [str(root), str(other)]
    reader = sql.read.format("rocketmq").option("copies", "all")
    found = reader.load(paths).groupBy("broker").count()
    assert rows(found, "broker") == [
        {"broker": name, "count": len(made.messages)} for name in ("broker-a", "broker-b")
    ]


def test_a_table_of_the_catalog_has_its_options(sql: Sql, store: tuple[Path, HandMade]) -> None:
    root, made = store
    options = f"options (path '{root}', `table` 'consumequeue', topics 'T')"
    sql.sql(f"create table of_catalog using rocketmq {options}")
    try:
        count = sql.sql("select count(*) from of_catalog where queue_id >= 0").collect()[0][0]
        assert count == sum(message.topic == "T" for message in made.messages)
        sql.sql(f"create table narrow (topic string) using rocketmq {options}")
        with pytest.raises(Exception, match="TEMPORARY VIEW"):
            sql.sql("select * from narrow").collect()
    finally:
        sql.sql("drop table if exists of_catalog")
        sql.sql("drop table if exists narrow")
    assert (root / "commitlog").is_dir()


@pytest.mark.parametrize("text", ["[1]", '"x"', "["])
def test_paths_are_a_list_of_texts(text: str) -> None:
    with pytest.raises(OptionError, match="is no list of texts in JSON"):
        read_options({"paths": text})


PROGRESS: list[Any] = []
"""Of the streams that ran."""


def stream(sql: Sql, root: Path | str, folder: Path, **options: str) -> DataFrame:
    frame = sql.readStream.format("rocketmq").options(**options).load(str(root))
    query = (
        frame.writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "check"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    PROGRESS.extend(query.recentProgress)
    return sql.read.schema("commitlog_offset bigint").parquet(str(folder / "out"))


def test_a_stream_reads_each_record_once_over_a_restart(
    sql: Sql, store: tuple[Path, HandMade], tmp_path: Path
) -> None:
    root, _made = store
    half = HandMade(CONFIG)
    for number in range(45):
        half.put("T", number % 3, step_ms=700)
    shutil.rmtree(root)
    root.mkdir()
    half.write(root)
    first = stream(sql, root, tmp_path, maxBytesPerTrigger="2000")
    places = [message.commitlog_offset for message in half.messages]
    assert sorted(row[0] for row in first.collect()) == places
    for number in range(30):
        half.put("U", number % 2, step_ms=700)
    shutil.rmtree(root)
    root.mkdir()
    half.write(root)
    both = stream(sql, root, tmp_path, maxBytesPerTrigger="2000")
    places = [message.commitlog_offset for message in half.messages]
    assert sorted(row[0] for row in both.collect()) == places
    assert len(list((tmp_path / "check" / "commits").glob("[0-9]*"))) > 3
    (reported,) = json.loads(PROGRESS[-1].sources[0].latestOffset).values()
    assert reported == {"offset": half.log_end, "unreadMessages": 0, "unreadBytes": 0}
    (before,) = json.loads(PROGRESS[-2].sources[0].latestOffset).values()
    assert before["unreadAgeMs"] > before["unreadMessages"] > 0


def test_a_stream_whose_begin_was_deleted_fails_unless_told_otherwise(
    sql: Sql, store: tuple[Path, HandMade], tmp_path: Path
) -> None:
    root, made = store
    (root / "commitlog" / f"{0:020}").unlink()
    with pytest.raises(Exception, match="4096 bytes of the log from 0 on were deleted"):
        stream(sql, root, tmp_path, startingOffset="0")
    shutil.rmtree(tmp_path / "check")
    shutil.rmtree(tmp_path / "out", ignore_errors=True)
    found = stream(sql, root, tmp_path, startingOffset="0", failOnDataLoss="false")
    left = [m.commitlog_offset for m in made.messages if m.commitlog_offset >= 4096]
    assert sorted(row[0] for row in found.collect()) == left


def test_a_stream_that_several_deleted_files_overtook(
    sql: Sql, store: tuple[Path, HandMade], tmp_path: Path
) -> None:
    root, _made = store
    growing = HandMade(CONFIG)
    for number in range(30):
        growing.put("T", number % 3, tags="a", step_ms=700)
    shutil.rmtree(root)
    root.mkdir()
    growing.write(root)
    stream(sql, root, tmp_path)
    seen = {message.commitlog_offset for message in growing.messages}
    shutil.rmtree(root)
    root.mkdir()
    for number in range(300):
        growing.put("TU"[number % 2], number % 3, tags="a", step_ms=700)
    growing.write(root)
    files = sorted((root / "commitlog").iterdir())
    for path in files[:3]:
        path.unlink()
    begin = 3 * 4096
    place = growing.messages[29].commitlog_offset + growing.messages[29].size
    assert len(files) > 5
    assert place < 2 * 4096  # so that the last two of them were not read as a whole
    with pytest.raises(Exception, match=f"{begin - place} bytes of the log from {place} on were"):
        stream(sql, root, tmp_path)
    found = stream(sql, root, tmp_path, failOnDataLoss="false")
    left = {m.commitlog_offset for m in growing.messages if m.commitlog_offset >= begin}
    assert sorted(row[0] for row in found.collect()) == sorted(seen | left)


@pytest.mark.parametrize(
    "limit", [{}, pytest.param({"maxBytesPerTrigger": "2000"}, marks=pytest.mark.long)]
)
def test_a_stream_takes_on_a_store_that_has_lost_its_first_files(
    sql: Sql, store: tuple[Path, HandMade], tmp_path: Path, limit: dict[str, str]
) -> None:
    root, made = store
    stream(sql, root, tmp_path, **limit)
    old = HandMade(CONFIG)
    for number in range(70):
        old.put("Old", number % 2, step_ms=700)
    late = old.write(_folder(tmp_path / "broker-b"))
    (late / "commitlog" / f"{0:020}").unlink()
    mine = [message.commitlog_offset for message in made.messages]
    left = [m.commitlog_offset for m in old.messages if m.commitlog_offset >= 4096]
    assert left
    both = f"{root},{late}"
    for paths in (both, str(root), both):  # a store that is left out for a while keeps its place
        found = stream(sql, paths, tmp_path, **limit)
        assert sorted(row[0] for row in found.collect()) == sorted(mine + left)


def test_tables_of_whole_stores_are_asked_in_sql(sql: Sql) -> None:
    root = golden.store("retry-dlq-5.3")
    for name in ("deadletters", "groups", "changes"):
        table(sql, name, root).createOrReplaceTempView(name)
    found = sql.sql(
        "select g.group, g.dlq, count(*) letters, count(d.dead_timestamp) times, "
        "bool_or(d.handled) handled from groups g join deadletters d on g.group = d.group "
        "where g.kind = 'normal' and d.group <> 'none' group by all order by 1"
    ).collect()
    dead = read_table("deadletters", root)
    counts = {row["group"]: row["dlq"] for row in read_table("groups", root) if row["dlq"]}
    assert [tuple(row) for row in found] == [
        (group, count, count, count, False) for group, count in sorted(counts.items())
    ]
    assert sum(counts.values()) == len(dead) > 0
    assert sql.table("changes").where("topic is not null and applied").count() == 0


def test_damage_is_shown_by_its_place(sql: Sql, store: tuple[Path, HandMade]) -> None:
    root, made = store
    _damage(root, made.messages[7].commitlog_offset)
    frame = table(sql, "messages", root, onDamage="null")
    (row,) = frame.where("_damage is not null").collect()
    bad = made.messages[7]
    place = row["topic"], row["queue_id"], row["queue_offset"]
    assert place == (bad.topic, bad.queue_id, bad.queue_offset)
    assert "unknown magic code" in row["_damage"]
    assert row["body"] is None
    assert table(sql, "messages", root, onDamage="skip").count() == len(made.messages) - 1


def test_the_progress_of_a_stream_is_that_of_a_group_when_a_query_ends(
    sql: Sql, tmp_path: Path
) -> None:
    root = tmp_path / "store"
    create_store(root, SMALL_STORE)
    with EmbeddedBroker.open(root) as broker:
        for number in range(20):
            broker.send(Message("T", b"x"), number % 2)
    for count in (20, 23):
        query = (
            sql.readStream.format("rocketmq")
            .options(commitGroup="spark", topics="T", maxOffsetsPerTrigger="8")
            .load(str(root))
            .writeStream.format("noop")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        (row,) = table(sql, "lag", root).groupBy("group").sum("committed_offset", "lag").collect()
        assert tuple(row) == ("spark", count, 0)
        with EmbeddedBroker.open(root) as broker:
            for _ in range(3):
                broker.send(Message("T", b"x"), 0)


@needs_linux_forms
def test_a_snapshot_in_an_object_store_is_read_by_its_workers(sql: Sql, tmp_path: Path) -> None:
    root = tmp_path / "store"
    create_store(root, SMALL_STORE)
    with EmbeddedBroker.open(root) as broker:
        sent = [f"body {number}".encode() for number in range(500)]
        for body in sent:
            broker.send(Message("T", body), 0)
        take_snapshot(root, tmp_path / "snapshot", now_ms=1)
        broker.send(Message("T", b"later"), 0)
    with serving({"broker-a": tmp_path / "snapshot"}) as server:
        where = server.address("broker-a", "s3a")
        found = rows(table(sql, "messages", where, minPartitions="3"), "queue_offset")
        assert table(sql, "consumequeue", where).count() == 500
    assert [row["body"] for row in found] == sent
    assert {row["broker"] for row in found} == {"broker-a"}
