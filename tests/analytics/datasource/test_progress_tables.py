"""The tables of progress say what the lag report says: queues without progress, and copies."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from analytics.datasource.plan import store_shares
from analytics.engines.local import LocalEngine
from analytics.kernels.partials import MINUTE_MS
from analytics.lag.selection import Choice
from analytics.report.lag_report import lag_report
from analytics.report.stores import find_stores
from storage.format.java_hash import tags_code
from storage.format.layout import SYS_FLAG_POSITION
from storage.format.names import file_name
from storage.store import MessageStore
from tests.support import golden
from tests.support.copies import copy_store
from tests.support.golden_samples import SOME, SOME_READ_OTHERWISE
from tests.support.hand_made import TINY as SHORT_FILES, HandMade
from tests.support.samples import TINY, Sample
from tests.support.spark_source import Row, columns_of, read_table, rows_of, source

STORE_TIMESTAMP_POSITION = SYS_FLAG_POSITION + 20
FIELDS = ("broker", "group", "topic", "queue_id", "committed_offset", "min_offset", "max_offset")
ALL = Choice()
LAG = (*FIELDS, "lag", "lag_bytes", "oldest_unread_timestamp")


def reported(*roots: Path, choice: Choice = ALL) -> list[Row]:
    """The rows of ``lag report --by queue``."""
    refs = find_stores(map(str, roots))
    made = lag_report(LocalEngine(), refs, time.time_ns() // 1_000_000, choice)
    assert not made.unreadable
    return [{name: row[name] for name in LAG} for row in made.report.queues]


def tabled(rows: Sequence[Row]) -> list[Row]:
    found = []
    for row in rows:
        oldest = row["oldest_unread_timestamp"]
        ms = None if oldest is None else round(oldest.timestamp() * 1000)
        found.append({**row, "oldest_unread_timestamp": ms})
    return found


def in_order(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: [row[name] for name in FIELDS[:4]])


@SOME
def test_the_lag_of_each_queue_is_that_of_the_report(name: str) -> None:
    root = golden.store(name)
    wanted = reported(root)
    assert in_order(tabled(read_table("lag", root))) == in_order(wanted)
    offsets = read_table("offsets", root)
    assert in_order(offsets) == in_order([{k: row[k] for k in FIELDS} for row in wanted])


def test_queues_without_progress_are_unknown(tmp_path: Path) -> None:
    root = golden.extract("basic-4.9", tmp_path)
    path = root / "config" / "consumerOffset.json"
    text = path.read_text()
    rows = [row for row in read_table("lag", root) if row["committed_offset"] is not None]
    one = rows[-1]
    assert text.count(f"{one['topic']}@{one['group']}") == 1
    key = re.escape(f'"{one["topic"]}@{one["group"]}"')
    path.write_text(re.sub(rf"({key}:\s*\{{)[^}}]*\}}", r"\g<1>0:1}", text))
    path.with_name("consumerOffset.json.bak").unlink(missing_ok=True)
    mine = [
        row
        for row in read_table("lag", root)
        if (row["group"], row["topic"]) == (one["group"], one["topic"])
    ]
    assert len(mine) > 1
    assert [row["committed_offset"] for row in mine] == [1] + [None] * (len(mine) - 1)
    assert all(row["lag"] is row["lag_bytes"] is None for row in mine[1:])
    assert in_order(tabled(read_table("lag", root))) == in_order(reported(root))


@pytest.mark.slow
def test_a_group_or_topic_that_is_named_gives_the_rows_of_the_report() -> None:
    root = golden.store("retry-dlq-5.3")
    groups = {row["group"] for row in read_table("lag", root)}
    for group in groups:
        topics = {f"%RETRY%{group}"}
        wanted = reported(root, choice=Choice(groups={group}, topics=topics))
        found = read_table("lag", root, groups=group, topics=",".join(topics))
        assert in_order(tabled(found)) == in_order(wanted)


@pytest.mark.parametrize(
    "table",
    ["lag", "offsets", "lag_partials", "messages", "consumequeue", "groups", "topics"],
)
def test_copies_count_once(tmp_path: Path, table: str, caplog: pytest.LogCaptureFixture) -> None:
    master = golden.store("basic-4.9")
    slave = copy_store(master, tmp_path / "slave")
    alone = read_table(table, master)
    assert alone
    both = read_table(table, master, slave)
    assert both == [{**row, "broker": both[0]["broker"]} for row in alone]
    assert "left out, it is a copy of basic-4.9" in caplog.text
    assert len(read_table(table, master, slave, copies="all")) == 2 * len(alone)


def test_the_sum_of_lag_is_that_of_the_report_with_copies(tmp_path: Path) -> None:
    master = golden.store("basic-4.9")
    slave = copy_store(master, tmp_path / "slave")
    other = golden.store("small-files-4.9")
    wanted = reported(master, slave, other)
    assert in_order(tabled(read_table("lag", master, slave, other))) == in_order(wanted)


# -- shares of a large store -----------------------------------------------------------------


def summed(rows: Sequence[Row]) -> dict[tuple[object, ...], tuple[int, int]]:
    """The counts of ``lag_partials`` by all that they are counted by: those with bytes, and those
    without."""
    found: dict[tuple[object, ...], tuple[int, int]] = {}
    for row in rows:
        names = [name for name in row if name not in {"messages", "bytes"}]
        key = (*(row[name] for name in names), row["bytes"] is None)
        messages, size = found.get(key, (0, 0))
        found[key] = (messages + row["messages"], size + (row["bytes"] or 0))
    return found


@pytest.mark.parametrize("table", ["lag", "offsets", "lag_partials"])
@SOME_READ_OTHERWISE
def test_a_large_store_has_the_same_rows_in_several_tasks(
    name: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = golden.store(name)
    whole = read_table(table, root)
    monkeypatch.setattr(store_shares, "PROGRESS_BYTES", 100)
    monkeypatch.setattr(store_shares, "_BLOCK", 3)
    reader = source(root, table=table).reader(columns_of(table))
    parts = reader.partitions()
    assert 1 <= len(parts) <= 64
    found = rows_of(reader)
    if table == "lag_partials":
        assert summed(found) == summed(whole)
    else:
        assert in_order(found) == in_order(whole)


def test_all_tasks_of_a_store_end_its_queues_at_one_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_shares, "PROGRESS_BYTES", 10)
    root = tmp_path / "st"
    MessageStore.create(root, TINY)
    with MessageStore.open(root) as store:
        for number in range(30):
            store.put_message(Sample(f"m{number}", "T", number % 6, 50).inner())
        table = {"T@G": dict.fromkeys(range(6), 1)}
        text = json.dumps({"offsetTable": table})
        (root / "config" / "consumerOffset.json").write_text(text)
        reader = source(root, table="lag").reader(columns_of("lag"))
        parts = reader.partitions()
        assert len(parts) > 1
        for number in range(30):
            store.put_message(Sample(f"n{number}", "T", number % 6, 50).inner())
        reader.partitions = lambda: parts  # type: ignore[method-assign]
        rows = rows_of(reader)
    assert [(row["max_offset"], row["lag"]) for row in rows] == [(5, 4)] * 6


def test_of_messages_without_a_unit_only_their_number_is_known(tmp_path: Path) -> None:
    store = HandMade(SHORT_FILES)
    for number in range(15):
        store.put("T", 0, tags=None if number % 2 else "a", step_ms=1)
    store.write(tmp_path)
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "consumerOffset.json").write_text('{"offsetTable":{"T@g":{"0":2}}}')
    (tmp_path / "consumequeue/T/0" / file_name(5 * 20)).unlink()
    kept = [one for one in store.messages[2:] if not 5 <= one.queue_offset < 10]
    minute = kept[0].store_timestamp // MINUTE_MS * MINUTE_MS
    assert {one.store_timestamp // MINUTE_MS * MINUTE_MS for one in kept} == {minute}
    rows = read_table("lag_partials", tmp_path)
    assert {row["from_offset"] for row in rows} == {2}
    times = [row["minute"] and round(row["minute"].timestamp() * 1000) for row in rows]
    found = [
        (time, row["tags_code"], row["messages"], row["bytes"])
        for time, row in zip(times, rows, strict=True)
    ]
    by_tag: dict[int, list[int]] = {}
    for one in kept:
        by_tag.setdefault(tags_code(one.tags), []).append(one.size)
    assert sorted(found, key=str) == sorted(
        [
            (minute, None, 8, sum(one.size for one in kept)),
            (None, None, 5, None),
            *((None, tag, len(sizes), sum(sizes)) for tag, sizes in by_tag.items()),
        ],
        key=str,
    )
    (lag,) = read_table("lag", tmp_path)
    assert (lag["lag"], lag["lag_bytes"]) == (13, None)


@pytest.mark.parametrize("stored", [1 << 60, (1 << 63) - 1, -(1 << 60), -(1 << 63)])
@pytest.mark.parametrize("first", [True, False])
def test_a_damaged_store_time_that_spark_cannot_hold_is_unknown(
    tmp_path: Path, stored: int, first: bool
) -> None:
    store = HandMade(SHORT_FILES)
    for number in range(3):
        put = store.put("T", 0, step_ms=0)
        if (number == 0) is first:
            place = put.commitlog_offset + STORE_TIMESTAMP_POSITION
            store.log[place : place + 8] = stored.to_bytes(8, "big", signed=True)
    store.write(tmp_path)
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "consumerOffset.json").write_text('{"offsetTable":{"T@g":{"0":0}}}')
    (lag,) = read_table("lag", tmp_path)
    assert (lag["lag"], lag["oldest_unread_timestamp"] is None) == (3, first)
    rows = [row for row in read_table("lag_partials", tmp_path) if row["tags_code"] is None]
    of_minutes = [(row["minute"] is None, row["messages"]) for row in rows]
    assert sorted(of_minutes) == [(False, 1 + first), (True, 2 - first)]
    assert sum(row["bytes"] for row in rows) == sum(one.size for one in store.messages)


@pytest.mark.parametrize("table", ["offsets", "lag", "lag_partials"])
def test_progress_that_may_not_be_the_last_is_named_once_for_a_store(
    tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(store_shares, "PROGRESS_BYTES", 50)
    root = golden.extract("basic-4.9", tmp_path)
    path = root / "config" / "consumerOffset.json"
    whole = read_table(table, root)
    assert caplog.text == ""
    path.rename(path.with_name("consumerOffset.json.bak"))
    path.write_bytes(b"")
    assert sorted(read_table(table, root), key=repr) == sorted(whole, key=repr)
    assert caplog.text.count("these offsets are from its .bak") == 1
