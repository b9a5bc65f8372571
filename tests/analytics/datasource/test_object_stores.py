"""Tables of stores in an object store are those of their folders, and little is read for them."""

from __future__ import annotations

import logging
import os
import re
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import EqualTo, GreaterThanOrEqual

from analytics.datasource.objects import windows as object_windows
from analytics.datasource.objects.reader import READ
from analytics.datasource.query.errors import DamagedError, DataLossError, OptionError
from analytics.errors import ObjectStoreError
from analytics.sink.options import local_path
from storage.files.read_files import MAP_MAKERS
from storage.format.cq_unit import CQ_STORE_UNIT
from storage.format.sys_flag import MessageSysFlag
from tests.analytics.report.test_lag_report import write_offsets
from tests.support import golden
from tests.support.copies import copy_store
from tests.support.hand_made import TINY, HandMade
from tests.support.linux_forms import needs_linux_forms
from tests.support.s3_server import S3Server, refused, serving
from tests.support.spark_source import Row, columns_of, read_table, rows_of, source

pytestmark = [pytest.mark.slow, needs_linux_forms]
CONFIG = TINY.with_(mapped_file_size_commit_log=4096, mapped_file_size_consume_queue=140)
QUICK = {
    *(("lmq-4.9", table) for table in ("messages", "lag")),
    *(("torn-cq-file-missing-5.3", table) for table in ("consumequeue", "offsets", "lag_partials")),
}
"""Each table once: of a store with records in two queues, or with units that are rebuilt."""


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with serving({}) as server:
        yield server


@pytest.fixture(autouse=True)
def _nothing_is_left(
    server: S3Server, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    server.answers.clear()
    server.asked.clear()
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    assert list(folder.glob("rmqctl-*")) == []
    assert MAP_MAKERS == {}


def address(server: S3Server, root: Path) -> str:
    server.stores[root.name] = root
    return server.address(root.name)


def answer(table: str, where: Path | str, **options: Any) -> tuple[list[Row], str]:
    """The rows of a table in any order, or why there are none; without names of folders."""
    try:
        rows = read_table(table, where, **options)
    except (DamagedError, DataLossError) as error:
        return [], re.sub(r"^\S+:", "", str(error))
    return sorted(rows, key=repr), ""


@pytest.mark.parametrize(
    ("name", "table"),
    [
        pytest.param(name, table, marks=() if (name, table) in QUICK else pytest.mark.long)
        for name in golden.names()
        for table in READ
    ],
)
def test_the_rows_of_golden_stores_are_those_of_their_folders(
    server: S3Server, name: str, table: str
) -> None:
    root = golden.store(name)
    assert answer(table, address(server, root)) == answer(table, root)


def small_store(path: Path, count: int = 120) -> tuple[Path, HandMade]:
    made = HandMade(CONFIG)
    for number in range(count):
        tag = ("a", None, "b")[number % 3]
        made.put("TU"[number % 2], number % 3, b"x" * 100, tags=tag, step_ms=700)
    path.mkdir(parents=True)
    return made.write(path), made


def test_filters_bound_what_is_read_as_in_a_folder(tmp_path: Path, server: S3Server) -> None:
    root, made = small_store(tmp_path / "st")
    middle = datetime.fromtimestamp(made.messages[60].store_timestamp / 1000, UTC)
    for table, filters in (
        ("messages", [EqualTo(("tags",), "a")]),
        ("messages", [GreaterThanOrEqual(("store_timestamp",), middle)]),
        ("messages", [EqualTo(("tags",), "b"), GreaterThanOrEqual(("store_timestamp",), middle)]),
        ("consumequeue", [GreaterThanOrEqual(("queue_offset",), 5)]),
    ):
        kept = {"filters": filters, "pushdown": "true"}
        here, there = (answer(table, at, **kept) for at in (root, address(server, root)))
        assert here == there
        assert 0 < len(here[0]) < 120


@pytest.mark.parametrize("table", ["messages", "consumequeue"])
def test_windows_of_any_size_give_the_same(
    tmp_path: Path, server: S3Server, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, _ = small_store(tmp_path / "st")
    monkeypatch.setattr(object_windows, "WINDOW", 20_000)
    assert answer(table, address(server, root)) == answer(table, root)


# -- how much is read --------------------------------------------------------------------------


def test_a_file_of_the_log_is_never_read_whole_for_one_queue(
    tmp_path: Path, server: S3Server
) -> None:
    made = HandMade(TINY.with_(mapped_file_size_commit_log=16 << 20))
    for _ in range(150):
        made.put("small", 0, b"x" * 100)
        made.put("large", 0, b"y" * 100_000)
    (tmp_path / "st").mkdir()
    root = made.write(tmp_path / "st")
    where = address(server, root)
    assert len(read_table("messages", where, topics="small")) == 150
    assert server.bytes_of("commitlog") < 3 << 20
    server.asked.clear()
    read_table("consumequeue", where, columns=("topic", "store_size"))
    assert server.bytes_of("commitlog") < 256 << 10  # the end of the log, and nothing for a unit
    server.asked.clear()
    read_table("messages", where, topics="large")
    assert server.bytes_of("commitlog") < 18 << 20


@pytest.mark.parametrize("table", ["offsets", "lag", "lag_partials"])
def test_delayed_messages_that_wait_are_not_read_for_tables_of_progress(
    tmp_path: Path, server: S3Server, table: str
) -> None:
    made = HandMade(TINY.with_(mapped_file_size_commit_log=16 << 20))
    later = {"REAL_TOPIC": "T", "REAL_QID": "0"}
    for _ in range(100):
        made.put("SCHEDULE_TOPIC_XXXX", 2, b"x" * 100_000, properties=later)
        made.put("T", 0, b"y" * 100)
    (tmp_path / "st").mkdir()
    root = made.write(tmp_path / "st")
    write_offsets(root, {("g", "T", 0): 95})
    (row, *_) = read_table(table, address(server, root))
    assert row["topic"] == "T"
    assert server.bytes_of("commitlog") < 512 << 10


def test_bodies_that_no_column_needs_are_not_read(tmp_path: Path, server: S3Server) -> None:
    made = HandMade(TINY.with_(mapped_file_size_commit_log=16 << 20))
    for number in range(20):
        made.put("T", 0, b"x" * 400_000, tags="a", keys=(f"k{number}",))
    (tmp_path / "st").mkdir()
    root = made.write(tmp_path / "st")
    columns = ("queue_offset", "tags", "keys", "msg_id", "store_timestamp")
    here = read_table("messages", root, columns=columns)
    assert read_table("messages", address(server, root), columns=columns) == here
    assert server.bytes_of("commitlog") < 2 << 20


def test_each_object_is_listed_once_and_no_range_is_fetched_twice(
    tmp_path: Path, server: S3Server
) -> None:
    root, _ = small_store(tmp_path / "st")
    (root / "config").mkdir(exist_ok=True)
    for number in range(200):
        (root / "config" / f"more{number}.json").write_text("{}")
    reader = source(address(server, root), table="messages").reader(columns_of("messages"))
    parts = reader.partitions()
    lists = [one for one in server.asked if one.method == "LIST"]
    keys = [key for key, _ in server.files() if key.startswith("st/")]
    assert len(lists) == -(-len(keys) // 100)
    asked = [one for one in server.asked if one.method == "GET"]
    assert len(set(asked)) == len(asked)
    server.asked.clear()
    for part in parts:
        list(reader.read(part))
    assert "LIST" not in server.counts()


# -- what changes ------------------------------------------------------------------------------


def planned(where: str, table: str, **options: str) -> Any:
    """A reader, and its tasks as they were planned."""
    reader = source(where, table=table, **options).reader(columns_of(table))
    parts = reader.partitions()
    reader.partitions = lambda: parts  # type: ignore[method-assign]
    return reader


@pytest.mark.parametrize("how", ["deleted", "replaced"])
@pytest.mark.parametrize("table", ["messages", "consumequeue"])
def test_files_that_change_after_planning_fail_the_query_or_are_left_out(
    tmp_path: Path, server: S3Server, table: str, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    root, made = small_store(tmp_path / "st")
    where = address(server, root)
    strict, lenient = planned(where, table), planned(where, table, failOnDataLoss="false")
    for number in range(2):
        path = root / "commitlog" / f"{number * 4096:020}"
        if how == "deleted":
            path.unlink()
        else:
            os.utime(path, (1, 1))
    with pytest.raises(DataLossError) as error:
        rows_of(strict)
    assert re.match(
        r"s3://bucket/st: messages? \d+ .*of T, queue 0, w\w+ deleted", str(error.value)
    )
    left = [m.commitlog_offset for m in made.messages if m.commitlog_offset >= 2 * 4096]
    assert sorted(row["commitlog_offset"] for row in rows_of(lenient)) == left
    assert "it was deleted or replaced since it was listed" in caplog.text
    assert "/tmp" not in caplog.text


def test_a_deleted_file_of_the_log_is_a_loss_where_only_units_are_read(
    tmp_path: Path, server: S3Server
) -> None:
    root, _ = small_store(tmp_path / "st")
    names = ("topic", "queue_offset")
    where = address(server, root)
    reader = source(where, table="consumequeue").reader(columns_of("consumequeue", *names))
    parts = reader.partitions()
    (root / "commitlog" / f"{0:020}").unlink()
    with pytest.raises(DataLossError, match="deleted after this query was planned"):
        list(reader.read(parts[0]))


@pytest.mark.parametrize("lenient", [False, True])
def test_a_file_that_changes_while_it_is_read_is_not_read(
    tmp_path: Path, server: S3Server, lenient: bool
) -> None:
    root, made = small_store(tmp_path / "st")
    reader = planned(address(server, root), "messages", failOnDataLoss=str(not lenient))
    first = f"commitlog/{0:020}"

    def replaces(handler: Any) -> bool:
        if handler.command == "GET":
            os.utime(root / first, (1, 1))
        return False

    server.answers[first] = replaces
    if lenient:
        left = [m.commitlog_offset for m in made.messages if m.commitlog_offset >= 4096]
        assert sorted(row["commitlog_offset"] for row in rows_of(reader)) == left
    else:
        with pytest.raises(DataLossError, match="deleted after this query was planned"):
            rows_of(reader)


@pytest.mark.parametrize(
    "unit", [bytes(20), CQ_STORE_UNIT.pack(300, 229, 0)], ids=["hole", "before"]
)
def test_a_damaged_unit_is_no_deletion_in_a_task_without_the_first_file(
    tmp_path: Path, server: S3Server, unit: bytes
) -> None:
    made = HandMade(CONFIG)
    for _ in range(120):
        made.put("T", 0, b"x" * 100)
    made.queues["T", 0][20 * 90 : 20 * 91] = unit
    (tmp_path / "st").mkdir()
    root = made.write(tmp_path / "st")
    where = address(server, root)
    failed = answer("messages", where, minPartitions="6")[1]
    assert "message 90 of T, queue 0, cannot be read" in failed
    rows = read_table("messages", where, onDamage="skip", minPartitions="6")
    assert [row["queue_offset"] for row in rows] == [n for n in range(120) if n != 90]


def test_a_body_that_cannot_be_unpacked_is_named_and_no_file_of_the_log_is_read_whole(
    tmp_path: Path, server: S3Server
) -> None:
    made = HandMade(TINY.with_(mapped_file_size_commit_log=16 << 20))
    for number in range(160):
        made.put("T", 0, b"x" * 300, sys_flag=MessageSysFlag.COMPRESSED_FLAG if number == 5 else 0)
        made.put("large", 0, b"y" * 300_000)
    (tmp_path / "st").mkdir()
    root = made.write(tmp_path / "st")
    options = {"topics": "T", "minPartitions": "8"}
    here = answer("messages", root, **options)
    server.asked.clear()
    assert answer("messages", address(server, root), **options) == here
    assert [row["queue_offset"] for row in here[0] if row["body_error"]] == [5]
    assert server.bytes_of("commitlog") < 5 << 20


def test_a_replaced_file_fails_the_lag(tmp_path: Path, server: S3Server) -> None:
    root = copy_store(golden.store("basic-4.9"), tmp_path / "st")
    where = address(server, root)

    def replaces(_: object) -> bool:
        for path in (root / "commitlog").iterdir():
            os.utime(path, (1, 1))
        return False

    reader = planned(where, "lag")
    server.answers["consumerOffset.json"] = replaces
    with pytest.raises(ObjectStoreError, match="it was deleted or replaced while it was read"):
        rows_of(reader)


# -- what is refused, and what is said ---------------------------------------------------------


def test_streams_and_other_tables_and_sinks_are_refused(tmp_path: Path, server: S3Server) -> None:
    root, _ = small_store(tmp_path / "st")
    where = address(server, root)
    with pytest.raises(OptionError, match="is a snapshot, which gets no messages"):
        source(where).streamReader(columns_of("messages"))
    with pytest.raises(OptionError, match="deadletters is read from folders only"):
        source(where, table="deadletters").reader(columns_of("deadletters"))
    with pytest.raises(Exception, match="s3://bucket/st is no folder of this machine") as error:
        local_path("path", where)
    assert "AKIA" not in str(error.value)


def test_a_store_that_was_open_is_named(
    server: S3Server, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    root = golden.store("torn-cq-file-missing-5.3")
    read_table("offsets", address(server, root))
    assert (
        "s3://bucket/torn-cq-file-missing-5.3: the store was open when it was copied" in caplog.text
    )
    caplog.clear()
    snapshot = copy_store(root, tmp_path / "snap")
    (snapshot / "manifest.json").write_text("{}")
    read_table("offsets", address(server, snapshot))
    assert "was open" not in caplog.text


def test_an_unreadable_store_fails_or_is_left_out(
    tmp_path: Path, server: S3Server, caplog: pytest.LogCaptureFixture
) -> None:
    root, _ = small_store(tmp_path / "st")
    both = [address(server, root), server.address("nothing")]
    with pytest.raises(ObjectStoreError, match=r"^s3://bucket/nothing: there is nothing"):
        read_table("messages", *both)
    assert len(read_table("messages", *both, onUnreadableStore="skip")) == 120
    assert "nothing: left out" in caplog.text
    server.answers["commitlog/00000000000000000000"] = refused
    with pytest.raises(ObjectStoreError, match=r"^s3://bucket/st: .*ACCESS_DENIED"):
        read_table("messages", both[0])


def test_a_folder_that_is_no_store_is_named_by_its_address(
    tmp_path: Path, server: S3Server
) -> None:
    (tmp_path / "st").mkdir()
    (tmp_path / "st" / "a.txt").write_text("x")
    with pytest.raises(ObjectStoreError, match=r"^s3://bucket/st is not a RocketMQ store"):
        read_table("messages", address(server, tmp_path / "st"))


def test_stores_of_folders_and_addresses_are_read_together_and_copies_once(
    tmp_path: Path, server: S3Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    root, _ = small_store(tmp_path / "a")
    other, _ = small_store(tmp_path / "b", 30)
    where = address(server, root)
    assert len(read_table("messages", where, root)) == 120
    assert "left out, it is a copy of" in caplog.text
    rows = read_table("messages", where, other, copies="all")
    assert [row["broker"] for row in rows].count("a") == 120
    assert [row["broker"] for row in rows].count("b") == 30
    listed = tmp_path / "stores.yaml"
    listed.write_text(f"one: {where}\ntwo: {other}\n")
    rows = read_table("consumequeue", listed, copies="all")
    assert {row["broker"] for row in rows} == {"one", "two"}
