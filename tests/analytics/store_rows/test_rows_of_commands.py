"""The tables of whole stores have the rows of the commands, on every golden store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import EqualTo, Filter, IsNotNull

from analytics.datasource.rows.store_tables import _array
from analytics.store_rows.row_types import ROWS
from broker.api.members import ConsumerData, ConsumeType, HeartbeatData, MessageModel
from broker.api.offsets import ConsumeFromWhere
from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from storage.config import SMALL_STORE
from storage.format.encode import MessageInner, prepare
from storage.format.message import SCHEDULE_TOPIC, TRANS_HALF_TOPIC, Message
from storage.format.properties import encode_properties
from storage.readonly import StoreView
from storage.store import MessageStore
from tests.support import golden
from tests.support.cli import run
from tests.support.dead_letters import bury, give_back
from tests.support.hand_made import HandMade
from tests.support.spark_source import Row, columns_of, read_table, rows_of, source

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TELLING = ("basic-4.9", "lmq-4.9", "retry-dlq-5.3", "time-4.9", "transaction-4.9")
"""Stores that have rows of all kinds between them."""
STORES = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in TELLING else pytest.mark.long)
        for name in golden.names()
    ],
)


def printed(root: Path, *command: str) -> Any:
    """What a command gives in JSON."""
    done = run("-S", root, *command, "-o", "json")
    assert done.code in {0, golden.code_of_reading(root)}, done.err
    return done.json()


def plain(value: Any) -> Any:
    """A value of Spark as the commands print it."""
    if isinstance(value, datetime):
        return round((value - EPOCH).total_seconds() * 1000)
    return value


def tabled(table: str, root: Path, **options: str) -> list[Row]:
    rows = read_table(table, root, filters=(), **options)
    assert all(row.pop("broker") for row in rows)
    return [{name: plain(value) for name, value in row.items()} for row in rows]


def same(found: Sequence[Row], wanted: Sequence[Row], *left_out: str) -> None:
    """Equal but for their order; ``left_out`` are columns that the commands lack."""
    own = [{name: row[name] for name in row if name not in left_out} for row in found]
    names = sorted(own[0]) if own else []
    theirs = [{name: row.get(name) for name in names} for row in wanted]
    assert sorted(map(json.dumps, ({n: row[n] for n in names} for row in own))) == sorted(
        map(json.dumps, theirs)
    )


@STORES
@pytest.mark.slow
def test_settings_and_changes_are_those_of_the_lists(name: str) -> None:
    root = golden.store(name)
    for table, command in (("topics", "topic"), ("groups", "group")):
        wanted = printed(root, command, "list", "--all")
        assert wanted
        same(tabled(table, root), wanted)
    same(tabled("changes", root), printed(root, "audit", "list"))


@STORES
@pytest.mark.slow
def test_what_waits_is_that_of_the_agenda_and_the_status(name: str) -> None:
    root = golden.store(name)
    same(tabled("delayed", root), printed(root, "retry", "agenda", "--each"))
    halves = printed(root, "broker", "status")["half_messages"]
    found = tabled("transactions", root)
    assert len(found) == halves["pending"]
    assert (
        min((row["store_timestamp"] for row in found), default=None) == (halves["oldest_timestamp"])
    )
    if name == "transaction-4.9":
        assert found


def test_numbers_that_no_int_holds_end_no_table(tmp_path: Path) -> None:
    root, now, host = tmp_path / "s", 1_700_000_000_000, bytes((127, 0, 0, 1, 0, 0, 42, 159))
    real = {"REAL_TOPIC": "t", "REAL_QID": "2147483648", "TRANSACTION_CHECK_TIMES": "9" * 19}
    encoded = encode_properties(real)
    MessageStore.create(root, SMALL_STORE)
    with MessageStore.open(root) as store:
        for topic in (TRANS_HALF_TOPIC, SCHEDULE_TOPIC):
            store.put(prepare((MessageInner(topic, 0, b"x", encoded, now, host, host),)))
    (row,) = tabled("transactions", root)
    assert (row["topic"], row["queue_id"], row["check_times"]) == ("t", None, 0)
    assert tabled("delayed", root) == []


@STORES
@pytest.mark.slow
def test_retries_and_dead_letters_are_those_of_each_group(name: str) -> None:
    root = golden.store(name)
    retries, dead = tabled("retries", root), tabled("deadletters", root)
    listed = printed(root, "group", "list", "--all")
    waiting = {row["group"] for row in printed(root, "retry", "agenda")} - {None}
    for row in listed:
        group = row["group"]
        own = [one for one in retries if one["group"] == group]
        if own or row["retry"] or group in waiting:
            same(own, printed(root, "retry", "browse", group), "group")
        own = [one for one in dead if one["group"] == group]
        assert len(own) == row["dlq"]
        if own:
            more = ("group", "queue_id", "origin_queue_id", "origin_offset", "origin_msg_id")
            wanted = printed(root, "dlq", "browse", group, "--all")
            same(own, wanted, *more[:4], "body")
            one = printed(root, "dlq", "show", group, str(own[0]["queue_offset"]))
            assert one["queue_id"] == own[0]["queue_id"]
            assert one["origin"] == {
                "topic": own[0]["origin_topic"],
                "queue_id": own[0]["origin_queue_id"],
                "queue_offset": own[0]["origin_offset"],
                "msg_id": own[0]["origin_msg_id"],
            }
            assert one["body"].encode() == own[0]["body"]
    if name == "retry-dlq-5.3":
        assert {row["state"] for row in retries} >= {"READY"}
        assert dead


@pytest.fixture
def busy(tmp_path: Path) -> Path:
    """A store with every kind of row, made by rmqctl: reasons, marks, moves, members' traces."""
    store = tmp_path / "store"
    create_store(store, SMALL_STORE)
    bury(store, "g", [Message("t", b"body %d" % n, keys=f"k{n}") for n in range(3)], ("why", None))
    with EmbeddedBroker.open(store) as broker:
        sent = broker.send(Message("t", b"late"))
        (stored,) = broker.query_unique("t", sent.msg_id)
        give_back(broker, "g", stored, level=5, why="not now")
        broker.progress.move("g", {("t", 0): 1, ("t", 1): None}, {"command": "offset reset"})
    assert run("-S", store, "dlq", "ack", "g", "1", "-y").code == 0
    assert run("-S", store, "topic", "create", "other").code == 0
    return store


@pytest.mark.slow
def test_a_store_of_rmqctl_has_reasons_marks_and_a_journal(busy: Path) -> None:
    dead, (late,) = tabled("deadletters", busy), tabled("retries", busy)
    same(dead, printed(busy, "dlq", "browse", "g", "--all"), *EXTRA)
    assert [(row["reason"], row["handled"]) for row in dead] == [
        ("RuntimeError: why", False),
        (None, True),
        ("RuntimeError: why", False),
    ]
    same([late], printed(busy, "retry", "browse", "g"), "group")
    assert (late["reason"], late["state"]) == ("RuntimeError: not now", "WAITING")
    changes = tabled("changes", busy)
    wanted = printed(busy, "audit", "list")
    for row in wanted:
        row.update((key, row.get(key) and json.dumps(row[key])) for key in ("old", "new"))
    same(changes, wanted)
    assert {row["command"] for row in changes} >= {"offset reset", "dlq ack"}
    moves = {row["queue_id"]: row["new_offset"] for row in changes if row["group"] == "g"}
    assert moves[0] == 1
    assert moves[1] is None


@pytest.mark.slow
def test_live_members_are_counted(busy: Path) -> None:
    consumer = ConsumerData(
        "g",
        ConsumeType.CONSUME_PASSIVELY,
        MessageModel.BROADCASTING,
        ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
    )
    with EmbeddedBroker.open(busy) as broker:
        broker.connect("one", object())  # type: ignore[arg-type]  # no call comes
        broker.heartbeat(HeartbeatData("one", consumers=(consumer,)))
        (row,) = tabled("groups", busy, groups="g")
        assert (row["members"], row["message_model"], row["dlq"]) == (1, "BROADCASTING", 3)
    (row,) = tabled("groups", busy, groups="g")
    assert (row["members"], row["message_model"]) == (0, None)


EXTRA = ("group", "queue_id", "origin_queue_id", "origin_offset", "body")


@pytest.mark.slow
def test_names_choose_rows(busy: Path) -> None:
    run("-S", busy, "produce", "u", stdin=b"x\n")
    for table in ("retries", "deadletters", "groups"):
        rows = tabled(table, busy)
        assert tabled(table, busy, groups="g") == [row for row in rows if row["group"] == "g"] != []
    assert [row["topic"] for row in tabled("topics", busy, topics="u,t")] == ["t", "u"]
    assert tabled("delayed", busy, topics="%RETRY%g") == tabled("delayed", busy) != []
    assert tabled("changes", busy, groups="g", topics="t")
    assert tabled("changes", busy, groups="no such group") == []


def test_filters_on_names_are_hints_and_spark_applies_them_too(busy: Path) -> None:
    def asked(*filters: Filter) -> list[Row]:
        reader = source(busy, table="deadletters", pushdown="true").reader(
            columns_of("deadletters")
        )
        assert list(reader.pushFilters(list(filters))) == list(filters)
        return rows_of(reader)

    whole = asked()
    assert len(whole) == 3
    assert asked(EqualTo(("group",), "g"), IsNotNull(("group",))) == whole
    assert asked(EqualTo(("group",), "none")) == []
    assert asked(EqualTo(("broker",), "none")) == []
    assert asked(EqualTo(("handled",), True)) == whole


@pytest.mark.parametrize("table", ROWS)
def test_batches_are_cut_by_rows_and_by_bytes(busy: Path, table: str) -> None:
    whole = tabled(table, busy)
    for limit in ({"batchRows": "1"}, {"batchBytes": "1"}):
        reader = source(busy, table=table, **limit).reader(columns_of(table))
        (part,) = reader.partitions()
        sizes = [batch.num_rows for batch in reader.read(part)]  # type: ignore[union-attr]
        assert sizes == [1] * len(whole)
        assert tabled(table, busy, **limit) == whole


def test_numbers_that_no_column_holds_are_unknown(tmp_path: Path) -> None:
    """A real queue that no int holds is none: such a message is never delivered, and no row."""
    made = HandMade()
    for real_queue in (2**31 - 1, 99999999999):
        target = {"REAL_TOPIC": "t", "REAL_QID": f"{real_queue}"}
        stored = made.put("SCHEDULE_TOPIC_XXXX", 0, properties=target, unit=False)
        made.add_unit("SCHEDULE_TOPIC_XXXX", 0, stored.commitlog_offset, stored.size, 1 << 62)
    (row,) = tabled("delayed", made.write(tmp_path))
    assert (row["topic"], row["queue_id"], row["due_timestamp"]) == ("t", 2**31 - 1, None)
    assert row["store_timestamp"] == made.messages[0].store_timestamp


def test_names_that_are_no_utf_8_are_shown_as_in_messages() -> None:
    odd = b"g\xff".decode("utf-8", "surrogateescape")
    assert _array([odd, None, "g"], pa.string()).to_pylist() == ["g\ufffd", None, "g"]
    lists = _array([[odd], []], pa.list_(pa.string()))
    assert lists.to_pylist() == [["g\ufffd"], []]


@pytest.mark.slow
def test_retries_beside_progress_beyond_their_end_are_null(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = golden.extract("retry-dlq-4.9", tmp_path)
    path = root / "config" / "consumerOffset.json"
    with StoreView.open(root) as view:
        topic = next(name for name, _ in view.queues() if name.startswith("%RETRY%"))
    group = topic.removeprefix("%RETRY%")
    path.write_text(json.dumps({"offsetTable": {f"{topic}@{group}": {"0": 1_000}}}))
    (row,) = tabled("groups", root, groups=group)
    assert row["retry"] is None
    (described,) = [row for row in printed(root, "group", "list") if row["group"] == group]
    assert described["retry"] is None
    assert "unknown" not in caplog.text
    assert [row for row in tabled("retries", root, groups=group) if row["state"] == "READY"] == []
    said = f"{root}: how many retries wait is unknown: progress 1000 in {topic}, queue 0, lies"
    assert said in caplog.text
