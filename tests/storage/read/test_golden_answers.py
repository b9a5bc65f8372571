"""Every answer that RocketMQ gave about its own stores, asked of the read-only view.

What differs stands in one table, with its reason; each entry must be met, so it cannot rot.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from storage.format.message import MessageExt
from storage.read.tag_filter import TagFilter
from storage.readonly import Boundary, StoreView
from storage.results import GetMessageStatus
from tests.support import golden
from tests.support.golden_differences import DIFFERENCES, KEEPS_MORE, Row

RECOVERED = tuple(name for name in golden.names() if name.startswith(("torn-", "unclean-")))


class Used:
    """Which differences were met; a row that differs without one fails at once."""

    def __init__(self) -> None:
        self.met: set[tuple[str, str, int]] = set()

    def allows(self, store: str, kind: str, row: Row) -> bool:
        for number, difference in enumerate(DIFFERENCES):
            if store in difference.stores and kind in difference.kinds and difference.applies(row):
                self.met.add((store, kind, number))
                return True
        return False


_used = Used()


_open = ExitStack()


@cache
def view(name: str) -> StoreView:
    return _open.enter_context(StoreView.open(golden.store(name)))


@pytest.fixture(autouse=True)
def views_are_closed() -> Iterator[None]:
    yield
    view.cache_clear()
    _open.close()


@pytest.fixture(params=golden.names())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def check(name: str, kind: str, rows: list[Row], answer: Callable[[Row], tuple[Any, Any]]) -> None:
    """Compare ``answer(row)`` = (ours, RocketMQ's) for all rows."""
    for row in rows:
        ours, theirs = answer(row)
        if ours != theirs:
            assert _used.allows(name, kind, row), f"{kind} {row}: ours {ours}, RocketMQ's {theirs}"


def test_the_log_begins_and_ends_where_rocketmq_says(name: str) -> None:
    rows = [golden.manifest(name)]
    check(
        name,
        "log",
        rows,
        lambda row: (
            (view(name).log_min_offset(), view(name).log_max_offset()),
            (row["minPhyOffset"], row["maxPhyOffset"]),
        ),
    )


@pytest.mark.conformance("A13")
def test_queues_have_the_bounds_that_rocketmq_says(name: str) -> None:
    def answer(row: Row) -> tuple[Any, Any]:
        bounds = view(name).queue_bounds(row["topic"], row["queueId"])
        earliest = view(name).earliest_message_time(row["topic"], row["queueId"])
        ours = (*bounds, -1 if earliest is None else earliest)
        return ours, (row["minOffset"], row["maxOffset"], row["earliestMessageTime"])

    manifest = golden.manifest(name)
    check(name, "bounds", manifest["queues"], answer)
    known = {(row["topic"], row["queueId"]) for row in manifest["queues"]}
    assert known.issuperset(view(name).queues())


@pytest.mark.conformance("A11")
def test_every_message_comes_as_rocketmq_reads_it(name: str) -> None:
    for row in golden.manifest(name)["messages"]:
        result = view(name).get_message(row["topic"], row["queueId"], row["queueOffset"], 1)
        assert result.status is GetMessageStatus.FOUND, row
        same_message(result.messages[0], row, name)
        unit = view(name).unit(row["topic"], row["queueId"], row["queueOffset"])
        assert unit == (row["commitLogOffset"], row["storeSize"], row["tagsCode"])


def fields_of(message: MessageExt, name: str) -> Row:
    size = golden.manifest(name)["settings"].get("mappedFileSizeCommitLog", 1 << 30)
    position = message.commitlog_offset % size
    path = golden.store(name) / "commitlog" / f"{message.commitlog_offset - position:020d}"
    with path.open("rb") as file:
        file.seek(position)
        record = file.read(message.store_size)
    return {
        "topic": message.topic,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "commitLogOffset": message.commitlog_offset,
        "storeSize": message.store_size,
        "bodyCRC": message.body_crc,
        "sysFlag": message.sys_flag,
        "flag": message.flag,
        "bornTimestamp": message.born_timestamp,
        "storeTimestamp": message.store_timestamp,
        "reconsumeTimes": message.reconsume_times,
        "preparedTransactionOffset": message.prepared_transaction_offset,
        "properties": message.properties,
        "bodySha256": hashlib.sha256(message.body).hexdigest(),
        "storedBodyLength": len(message.stored_body),
        "offsetMsgId": message.offset_msg_id,
        "recordSha256": hashlib.sha256(record).hexdigest(),
    }


def same_message(message: MessageExt, row: Row, name: str) -> None:
    """Compare all fields that the manifest's row has (at least the hash of the whole record)."""
    ours = fields_of(message, name)
    theirs = {key: row[key] for key in ours if key in row}
    if "properties" in theirs:
        theirs["properties"] = theirs["properties"] or {}
    assert {"recordSha256", "commitLogOffset", "queueOffset"} <= set(theirs)
    assert {key: ours[key] for key in theirs} == theirs


def test_units_without_a_message_give_the_same_status(name: str) -> None:
    def answer(row: Row) -> tuple[Any, Any]:
        result = view(name).get_message(row["topic"], row["queueId"], row["queueOffset"], 1)
        ours = (result.status, result.next_begin_offset)
        return ours, (row["status"], row["nextBeginOffset"])

    check(name, "pull", golden.manifest(name).get("unreadable", []), answer)


def test_messages_of_other_queues_come_only_where_they_are_dispatched_to(name: str) -> None:
    for row in golden.manifest(name).get("foreign", []):
        queue = (row["inTopic"], row["inQueueId"], row["inQueueOffset"])
        result = view(name).get_message(*queue, 1)
        if row["inTopic"].startswith("%LMQ%") or name.startswith("lmq"):
            same_message(result.messages[0], row, name)
        else:
            assert result.messages == [], f"{queue} handed out {row['topic']}"


@pytest.mark.conformance("D3")
def test_pulls_answer_as_rocketmq(name: str) -> None:
    def answer(row: Row) -> tuple[Any, Any]:
        tags = TagFilter.parse(row["expression"])
        result = view(name).get_message(
            row["topic"], row["queueId"], row["offset"], row["maxNums"], tags=tags
        )
        ours = (
            str(result.status),
            result.next_begin_offset,
            result.min_offset,
            result.max_offset,
            result.buffer_total_size,
            [message.queue_offset for message in result.messages],
        )
        fields = "status nextBeginOffset minOffset maxOffset bufferTotalSize queueOffsets"
        return ours, tuple(row[field] for field in fields.split())

    check(name, "pull", golden.manifest(name)["pulls"], answer)


def test_offsets_by_time_are_those_of_rocketmq(name: str) -> None:
    def find(row: Row, boundary: Boundary) -> int:
        return view(name).offset_in_queue_by_time(
            row["topic"], row["queueId"], row["timestamp"], boundary
        )

    def answer(row: Row) -> tuple[Any, Any]:
        if name.endswith("-4.9"):
            return find(row, Boundary.NEAREST49), row["offset"]
        ours = [find(row, Boundary.LOWER), find(row, Boundary.UPPER)]
        return ours, [row["offset"], row.get("offsetUpper", ours[1])]

    check(name, "time", golden.manifest(name)["offsetByTime"], answer)


@pytest.mark.conformance("A14")
def test_queries_by_key_find_what_rocketmq_finds(name: str) -> None:
    def answer(row: Row) -> tuple[Any, Any]:
        found = view(name).query_message(
            row["topic"], row["key"], row["maxNum"], row["begin"], row["end"]
        )
        ours = [message.commitlog_offset for message in found.messages]
        theirs = row["commitLogOffsets"]
        if name in RECOVERED:
            # After its recovery RocketMQ has some keys twice, and new index files.
            return sorted(set(ours)), sorted(set(theirs))
        last_update = row["indexLastUpdateTimestamp"], row["indexLastUpdatePhyoffset"]
        return (
            (ours, found.index_offsets, *found[2:]),
            (theirs, row["indexPhyOffsets"], *last_update),
        )

    check(name, "query", golden.manifest(name)["queryByKey"], answer)


@pytest.mark.parametrize("name", KEEPS_MORE)
def test_what_is_kept_beyond_rocketmq_is_what_was_stored_before_the_damage(name: str) -> None:
    before = "unclean" + name[-4:]
    damage = golden.manifest(name)["facts"]["damage"]
    damaged = int(damage["file"]) + damage.get("position", -1)
    for row in golden.manifest(before)["messages"]:
        result = view(name).get_message(row["topic"], row["queueId"], row["queueOffset"], 1)
        if row["commitLogOffset"] == damaged:
            # left out, and the next message comes instead
            assert result.messages[0].queue_offset == row["queueOffset"] + 1
        else:
            same_message(result.messages[0], row, name)


@pytest.mark.slow
def test_every_listed_difference_is_met() -> None:
    for name in sorted({store for difference in DIFFERENCES for store in difference.stores}):
        test_queues_have_the_bounds_that_rocketmq_says(name)
        test_pulls_answer_as_rocketmq(name)
        test_offsets_by_time_are_those_of_rocketmq(name)
        test_queries_by_key_find_what_rocketmq_finds(name)
    assert {number for _, _, number in _used.met} == set(range(len(DIFFERENCES)))


def test_columns_hold_the_same_messages_as_single_reads(name: str) -> None:
    for topic, queue_id in view(name).queues():
        single = list(_messages(view(name), topic, queue_id))
        found = []
        offset = view(name).min_offset_in_queue(topic, queue_id)
        while offset < view(name).max_offset_in_queue(topic, queue_id):
            batch = view(name).read_column(topic, queue_id, offset, 50, 20_000)
            bodies = batch.bodies(1 << 20)
            found += list(
                zip(
                    batch.queue_offsets,
                    batch.store_timestamps,
                    batch.commitlog_offsets,
                    batch.store_sizes,
                    bodies,
                    strict=True,
                )
            )
            assert batch.next_begin_offset > offset
            offset = batch.next_begin_offset
        assert found == single


def _messages(view: StoreView, topic: str, queue_id: int) -> Iterator[tuple[Any, ...]]:
    bounds = view.queue_bounds(topic, queue_id)
    for offset in range(*bounds):
        for message in view.get_message(topic, queue_id, offset, 1).messages:
            if message.topic != topic or message.queue_offset == offset:
                yield (
                    offset,
                    message.store_timestamp,
                    message.commitlog_offset,
                    message.store_size,
                    message.body,
                )


def test_the_files_are_as_before(name: str) -> None:
    """Reading changed nothing: neither names nor lengths nor times, and created no file."""
    root = golden.store(name)
    manifest = {
        row["path"]: (row["size"], row["mtimeMs"]) for row in golden.manifest(name)["files"]
    }
    assert dict(_facts(root)) == manifest


def _facts(root: Path) -> Iterator[tuple[str, tuple[int, int]]]:
    for path in root.rglob("*"):
        if path.is_file():
            info = path.stat()
            yield str(path.relative_to(root)), (info.st_size, info.st_mtime_ns // 1_000_000)
