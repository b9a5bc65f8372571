"""Batches: rows of golden stores against a plain loop, and where a batch ends."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from analytics.datasource.plan.ranges import Range
from analytics.datasource.query.errors import DamagedError, OptionError
from analytics.datasource.query.options import read_options
from analytics.datasource.rows.batches import BatchLimits, message_batches, unit_batches
from analytics.datasource.rows.body_rooms import BodyRooms
from analytics.datasource.rows.readers import arrow_schema
from storage.format.message import TRANS_HALF_TOPIC, MessageExt, dlq_topic
from storage.format.sys_flag import MessageSysFlag
from storage.readonly import StoreView
from tests.support import golden
from tests.support.compiled import compiled, native
from tests.support.golden_samples import SOME_READ_OTHERWISE
from tests.support.hand_made import TINY, HandMade
from tests.support.spark_source import columns_of, source

CONFIG = TINY.with_(mapped_file_size_commit_log=1 << 20, mapped_file_size_consume_queue=2000)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PACKED = MessageSysFlag.COMPRESSED_FLAG
Row = dict[str, Any]


@pytest.fixture(params=["pure", "compiled"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "compiled" and compiled is None:
        pytest.skip("needs cc on PATH")
    monkeypatch.setattr(native, "compiled", compiled if request.param == "compiled" else None)


def ranges_of(root: Path) -> list[Range]:
    with StoreView.open(root) as view:
        return [
            Range("broker-a", str(root), *queue, *view.queue_bounds(*queue))
            for queue in view.queues()
        ]


def schema_of(table: str, *names: str) -> pa.Schema:
    return arrow_schema(columns_of(table, *names))


def rows_of(batches: Sequence[pa.RecordBatch]) -> list[Row]:
    rows = [row for batch in batches for row in batch.to_pylist()]
    maps = {
        field.name for batch in batches for field in batch.schema if pa.types.is_map(field.type)
    }
    return [
        {
            name: dict(value) if name in maps and value is not None else value
            for name, value in row.items()
        }
        for row in rows
    ]


def moment(milliseconds: int) -> datetime:
    return EPOCH + timedelta(milliseconds=milliseconds)


SAME = (
    *("tags", "msg_id", "reconsume_times", "offset_msg_id", "commitlog_offset", "store_size"),
    *("flag", "sys_flag", "born_host", "store_host", "body", "properties"),
)


def plain_row(part: Range, offset: int, message: MessageExt) -> Row:
    return {
        **{name: getattr(message, name) for name in SAME},
        "broker": part.broker,
        "topic": part.topic,
        "queue_id": part.queue_id,
        "queue_offset": offset,
        "keys": list(message.keys),
        "store_timestamp": moment(message.store_timestamp),
        "born_timestamp": moment(message.born_timestamp),
        "record_topic": message.topic,
        "record_queue_id": message.queue_id,
        "record_queue_offset": message.queue_offset,
        "body_size": len(message.body),
        "body_error": None,
        "corrupt_body": None,
    }


def plain_rows(parts: Sequence[Range]) -> list[Row] | int:
    """The rows of ranges, message by message; the offset of one that cannot be read."""
    found = []
    (root,) = {part.path for part in parts}
    with StoreView.open(root) as view:
        for part in parts:
            queue = part.topic, part.queue_id
            for offset in range(part.first, part.end):
                unit = view.unit(*queue, offset)
                message = unit and view.message_of_unit(*queue, offset, unit)
                if not message:
                    return offset
                found.append(plain_row(part, offset, message))
    return found


@pytest.mark.usefixtures("form")
@SOME_READ_OTHERWISE
@pytest.mark.slow
def test_messages_of_golden_stores_are_those_of_a_plain_loop(name: str) -> None:
    ranges, schema = ranges_of(golden.store(name)), schema_of("messages")
    expected = plain_rows(ranges)
    if isinstance(expected, int):
        with pytest.raises(DamagedError, match=f"message {expected} of .* cannot be read"):
            list(message_batches(ranges, schema, BatchLimits(1000)))
        return
    for limits in (BatchLimits(1000), BatchLimits(23), BatchLimits(1000, 3000)):
        batches = list(message_batches(ranges, schema, limits))
        assert all(batch.schema.equals(schema) for batch in batches)
        for batch in batches:
            batch.validate(full=True)
        assert rows_of(batches) == expected


@pytest.mark.slow
@SOME_READ_OTHERWISE
def test_units_of_golden_stores_are_those_of_a_plain_loop(name: str) -> None:
    root = golden.store(name)
    ranges, schema = ranges_of(root), schema_of("consumequeue")
    expected = []
    with StoreView.open(root) as view:
        for part in ranges:
            for offset in range(part.first, part.end):
                place, size, code = view.unit(part.topic, part.queue_id, offset) or (None,) * 3
                if size is None or not 0 < size < (1 << 31) - 1:
                    place = size = code = None
                time = view.store_timestamp(part.topic, part.queue_id, offset)
                expected.append(
                    {
                        "broker": part.broker,
                        "topic": part.topic,
                        "queue_id": part.queue_id,
                        "queue_offset": offset,
                        "commitlog_offset": place,
                        "store_size": size,
                        "tags_code": code,
                        "store_timestamp": None if time is None else moment(time),
                    }
                )
    for limits in (BatchLimits(1000), BatchLimits(23), BatchLimits(1000, 3000)):
        batches = list(unit_batches(ranges, schema, limits))
        for batch in batches:
            batch.validate(full=True)
        assert rows_of(batches) == expected
        assert all(batch.num_rows == 23 for batch in batches[:-1]) or limits.rows > 23


@cache
def whole_rows(table: str) -> list[Row]:
    """All columns of a table of one store."""
    read: Callable[..., Any] = message_batches if table == "messages" else unit_batches
    ranges = ranges_of(golden.store("basic-4.9"))
    return rows_of(list(read(ranges, schema_of(table), BatchLimits(50))))


@pytest.mark.parametrize("table", ["messages", "consumequeue"])
@pytest.mark.parametrize("name", columns_of("messages").names)
def test_a_column_alone_is_the_one_among_all(table: str, name: str) -> None:
    if name not in columns_of(table).names:
        return
    read: Callable[..., Any] = message_batches if table == "messages" else unit_batches
    ranges = ranges_of(golden.store("basic-4.9"))
    whole = whole_rows(table)
    alone = rows_of(list(read(ranges, schema_of(table, name), BatchLimits(50))))
    assert alone == [{name: row[name]} for row in whole]


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Forty queues of ten messages."""
    made = HandMade(CONFIG)
    for number in range(400):
        made.put("TU"[number % 2], number // 2 % 20, body=b"%d" % number, step_ms=5)
    return made.write(tmp_path)


@pytest.mark.parametrize("read", [message_batches, unit_batches])
def test_a_batch_joins_small_queues(many: Path, read: Any) -> None:
    table = "messages" if read is message_batches else "consumequeue"
    batches = list(read(ranges_of(many), schema_of(table), BatchLimits(150)))
    assert [batch.num_rows for batch in batches] == [150, 150, 100]
    rows = rows_of(batches)
    assert [(row["topic"], row["queue_id"], row["queue_offset"]) for row in rows] == [
        (topic, queue_id, offset)
        for topic in "TU"
        for queue_id in range(20)
        for offset in range(10)
    ]
    if read is message_batches:
        assert {(row["topic"], row["record_topic"]) for row in rows} == {("T", "T"), ("U", "U")}


@pytest.mark.slow
def test_a_batch_ends_before_it_has_too_many_bytes(tmp_path: Path) -> None:
    made = HandMade(CONFIG)
    for number in range(40):
        made.put(body=random.Random(number).randbytes(3000 if number % 2 else 30_000))
    large = {"large": "x" * 30_000}
    for _ in range(20):
        made.put("U", properties=large)
    ranges = ranges_of(made.write(tmp_path))
    for names in ((), ("body",), ("properties", "queue_id"), ("tags",)):
        schema = schema_of("messages", *names)
        for size in (1, 50_000, 200_000):
            batches = list(message_batches(ranges, schema, BatchLimits(1000, size)))
            for batch in batches:
                assert batch.nbytes <= 1.1 * size or batch.num_rows == 1
            assert sum(batch.num_rows for batch in batches) == 60
    assert len(list(message_batches(ranges, schema_of("messages", "flag"), BatchLimits(99)))) == 1


def addresses(batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
    """Where the bodies of batches lie, one batch after the other."""
    for batch in batches:
        yield batch.column("body").buffers()[2].address


@pytest.mark.slow
@pytest.mark.usefixtures("form")
def test_memory_of_bodies_is_used_again_only_when_no_batch_has_it(tmp_path: Path) -> None:
    made = HandMade(CONFIG)
    bodies = [b"%d" % number * 40 for number in range(400)]
    for body in bodies:
        made.put(body=body)
    ranges, schema = ranges_of(made.write(tmp_path)), schema_of("messages", "body")
    limits = BatchLimits(20)
    for _ in range(3):
        kept = list(message_batches(ranges, schema, limits))
        assert [row["body"] for row in rows_of(kept)] == bodies
        assert len(set(addresses(kept))) == 20
        each = [rows_of([batch]) for batch in message_batches(ranges, schema, limits)]
        assert [row["body"] for rows in each for row in rows] == bodies
        assert [row["body"] for row in rows_of(kept)] == bodies


def test_memory_of_bodies_is_kept_for_two_batches_of_16_mib() -> None:
    rooms = BodyRooms()
    assert rooms.take() is None
    first, second, third = (bytearray(number) for number in (5, 6, 16 << 20))
    used = pa.py_buffer(first)
    rooms.give_back(first)
    assert rooms.take() is None
    rooms.give_back(second)
    assert rooms.take() is second
    assert len(second) == 6
    del used
    assert rooms.take() is first
    for room in (first, second, third):
        rooms.give_back(room)
    assert [rooms.take(), rooms.take(), rooms.take()] == [second, third, None]
    rooms.give_back(bytearray((16 << 20) + 1))
    assert rooms.take() is None


@pytest.mark.slow
@pytest.mark.usefixtures("form")
def test_packed_bodies_come_unpacked_between_others(tmp_path: Path) -> None:
    rng = random.Random(5)
    made = HandMade(CONFIG)
    bodies: list[bytes | None] = []
    for number in range(60):
        body = rng.randbytes(rng.randrange(50)) * rng.randrange(30)
        topic, kind = "TU"[number > 30], number % 4 if number > 6 else 0
        if kind == 0:
            made.put(topic, body=body)
        else:
            stored = b"not packed" if kind == 3 else zlib.compress(body)
            made.put(topic, body=stored, sys_flag=PACKED)
        bodies.append(None if kind == 3 else body)
    ranges, schema = ranges_of(made.write(tmp_path)), schema_of("messages")
    for size in (1, 700, 5000, 1 << 20):
        batches = list(message_batches(ranges, schema, BatchLimits(1000, size)))
        rows = rows_of(batches)
        assert [row["body"] for row in rows] == bodies
        sizes = [None if body is None else len(body) for body in bodies]
        assert [row["body_size"] for row in rows] == sizes
        for row, sent in zip(rows, bodies, strict=True):
            if sent is None:
                assert row["corrupt_body"] == b"not packed"
                place = f"(topic {row['topic']}, queue 0, offset {row['queue_offset']}): "
                assert row["body_error"].startswith(f"message {row['msg_id']} {place}")
            else:
                assert row["corrupt_body"] is row["body_error"] is None
        for batch in batches:
            batch.validate(full=True)
            column = batch.column("body")
            assert column.nbytes <= size + 4 * batch.num_rows + 64 or batch.num_rows == 1
    with pytest.raises(DamagedError, match="mode=PERMISSIVE"):
        list(message_batches(ranges, schema, BatchLimits(1000), fail_fast=True))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
@pytest.mark.slow
def test_memory_is_that_of_two_or_three_batches(tmp_path: Path) -> None:
    config = CONFIG.with_(mapped_file_size_commit_log=64 << 20)
    made = HandMade(config, index=False)
    body = random.Random(1).randbytes(512 << 10)
    for _ in range(300):
        made.put(body=body)
    root = made.write(tmp_path)
    del made
    schema, size = schema_of("messages"), 16 << 20
    next(message_batches(ranges_of(root), schema, BatchLimits(1, size)))  # modules are loaded
    before = most = anonymous()
    rows = 0
    for batch in message_batches(ranges_of(root), schema, BatchLimits(1000, size)):
        most = max(most, anonymous())
        rows += batch.num_rows
    assert rows == 300
    assert most - before < 4 * size, (most - before) / size


def anonymous() -> int:
    """Bytes of this process that are no pages of files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon"))


def test_times_that_spark_cannot_have_are_null(tmp_path: Path) -> None:
    made = HandMade(CONFIG)
    for _ in range(3):
        made.put()
    at = made.messages[1].commitlog_offset + 40
    made.log[at : at + 8] = ((1 << 63) - 1).to_bytes(8, "big")
    names = ("born_timestamp", "store_timestamp")
    batches = list(
        message_batches(
            ranges_of(made.write(tmp_path)), schema_of("messages", *names), BatchLimits(9)
        )
    )
    found = [row["born_timestamp"] for row in rows_of(batches)]
    assert [time is None for time in found] == [False, True, False]


def test_the_option_for_bytes_has_bounds(tmp_path: Path) -> None:
    root = HandMade(CONFIG).write(tmp_path)
    assert read_options({"path": str(root)}).batch_bytes == 64 << 20
    assert read_options({"path": str(root), "BATCHBYTES": "5"}).batch_bytes == 5
    for wrong in ("0", "-1", "1e6", "1 GB", str((1 << 30) + 1)):
        with pytest.raises(OptionError, match="batchBytes: .*(from 1 on|1 GiB)"):
            read_options({"path": str(root), "batchBytes": wrong})


@pytest.mark.parametrize("table", ["deadletters", "transactions"])
def test_batches_of_tables_of_stores_are_measured_by_unpacked_bodies(
    tmp_path: Path, table: str
) -> None:
    made = HandMade(TINY.with_(mapped_file_size_commit_log=1 << 16))
    topic = {"deadletters": dlq_topic("g"), "transactions": TRANS_HALF_TOPIC}[table]
    real = {"REAL_TOPIC": "T", "REAL_QID": "0"}
    for _ in range(12):
        made.put(topic, 0, zlib.compress(b"x" * 100_000), properties=real, sys_flag=PACKED)
    root = made.write(tmp_path)

    def sizes(*columns: str) -> list[int]:
        reader = source(root, table=table, batchBytes="250000").reader(columns_of(table, *columns))
        batches = (batch for part in reader.partitions() for batch in reader.read(part))
        return [batch.num_rows for batch in batches]  # type: ignore[union-attr]

    assert sizes() == sizes("body", "store_size") == [2] * 6
    assert sizes("queue_offset", "store_size") == [12]
