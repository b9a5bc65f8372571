"""However a query is planned, each message comes once: by the queues, by the records of the log, or
by parts of the log in which tasks look for the queues."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, In, LessThanOrEqual

from analytics.datasource.plan import log_part, stretches
from analytics.datasource.plan.log_now import look_at_log
from analytics.datasource.plan.log_part import next_record, read_part
from analytics.datasource.query.errors import DamagedError, DataLossError
from analytics.datasource.query.topics import TopicChoice
from analytics.report.stores import StoreRef
from benchmarks.planned_stores import make_stores
from storage.format.layout import PHYSICAL_OFFSET_POSITION, SYS_FLAG_POSITION
from storage.format.sys_flag import REPLACED_FLAG
from storage.store import MessageStore
from tests.analytics.datasource.test_log_now import World, records_of, ref_of
from tests.support import golden
from tests.support.golden_samples import SOME_READ_OTHERWISE
from tests.support.hand_made import TINY, HandMade
from tests.support.java_lock import java_lock
from tests.support.opened_files import no_queue_is_opened, opened_below
from tests.support.samples import TINY as TINY_STORE, Sample
from tests.support.spark_source import Row, Stream, columns_of, read_table, rows_of, source

CONFIG = TINY.with_(mapped_file_size_commit_log=4096, mapped_file_size_consume_queue=140)
PLACE = ("broker", "topic", "queue_id", "queue_offset")
WAYS = ["queues", "records", "tasks"]
LOOKS = stretches.MOST_LOOKS
RECORDS = log_part.MOST_BYTES


def plan_by(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_part, "MOST_BYTES", RECORDS if way == "records" else 0)
    monkeypatch.setattr(stretches, "MOST_LOOKS", -1 if way == "tasks" else LOOKS)


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: [row[name] for name in PLACE])


def rows_or_damage(table: str, root: Path, **options: Any) -> list[Row] | type[DamagedError]:
    try:
        return in_order(read_table(table, root, **options))
    except DamagedError:
        return DamagedError


def written(made: HandMade, root: Path) -> Path:
    root.mkdir(exist_ok=True)
    return made.write(root)


# -- batches ---------------------------------------------------------------------------------


@pytest.mark.parametrize("table", ["messages", "consumequeue"])
@pytest.mark.slow
@SOME_READ_OTHERWISE
def test_a_batch_has_the_same_rows_planned_in_tasks(
    name: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = golden.store(name)
    plan_by("queues", monkeypatch)
    wanted = rows_or_damage(table, root)
    plan_by("tasks", monkeypatch)
    log = look_at_log(ref_of(root))
    size = str(max(1, (log.end - log.begin) // 4))
    assert rows_or_damage(table, root, maxBytesPerPartition=size) == wanted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("filters", "options"),
    [
        ([EqualTo(("topic",), "T1")], {}),
        ([In(("queue_id",), (0, 2))], {"topics": "T0,T2"}),
        ([GreaterThan(("queue_offset",), 4), LessThanOrEqual(("queue_offset",), 9)], {}),
        ([In(("queue_offset",), (1, 2, 7))], {}),
        ([GreaterThan(("commitlog_offset",), 5000)], {}),
        ([EqualTo(("broker",), "other")], {}),
        ([], {"startingOffset": "6000", "endingOffset": "11000"}),
        ([], {"startingOffset": '{"st": {"T1": {"0": 3, "1": "latest"}}}'}),
        ([], {"endingOffset": '{"*": {"T1": {"0": 3}, "T0": "earliest"}}'}),
        ([], {"queues": '{"T1": [1], "T3": [0]}'}),
        ([], {"topicsPattern": "T[01]", "minPartitions": "5"}),
    ],
)
@pytest.mark.parametrize("table", ["messages", "consumequeue"])
def test_filters_and_bounds_hold_in_tasks(
    tmp_path: Path,
    filters: list[Filter],
    options: dict[str, str],
    table: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(tmp_path / "st", Random(5))
    for _ in range(8):
        world.append()
    options = {"pushdown": "true", **options}
    plan_by("queues", monkeypatch)
    wanted = read_table(table, world.root, filters=filters, **options)
    plan_by("tasks", monkeypatch)
    options = {"maxBytesPerPartition": "1500", **options}
    assert in_order(read_table(table, world.root, filters=filters, **options)) == in_order(wanted)


@pytest.mark.slow
def test_a_plan_in_tasks_names_no_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = HandMade(CONFIG)
    for number in range(400):
        made.put(f"T{number % 50}", number % 4)
    root = written(made, tmp_path / "st")
    monkeypatch.setattr(stretches, "MOST_LOOKS", 99)
    reader = source(root, maxBytesPerPartition="10000").reader(columns_of("messages"))
    with no_queue_is_opened(root):
        parts = reader.partitions()
    assert 2 < len(parts) < 12
    reader.partitions = lambda: parts  # type: ignore[method-assign]
    assert len(rows_of(reader)) == 400


def test_tasks_are_sent_to_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path / "st", Random(2))
    world.append()
    rows = read_table("messages", world.root)
    for way in WAYS:
        plan_by(way, monkeypatch)
        batch, stream = source(world.root), Stream(world.root)
        reader = batch.reader(columns_of("messages"))
        start = json.loads(stream.at)
        end = stream.reader.latestOffset(start, stream.reader.getDefaultReadLimit())
        for parts in (reader.partitions(), stream.reader.partitions(start, end)):
            sent = [pickle.loads(pickle.dumps(part)) for part in parts]
            assert [part.value for part in sent] == [part.value for part in parts]
            reader.partitions = lambda sent=sent: sent  # type: ignore[method-assign,misc]
            assert in_order(rows_of(reader)) == in_order(rows)


def test_small_stores_share_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan_by("tasks", monkeypatch)
    roots = []
    for number in range(20):
        made = HandMade(CONFIG, timestamp=number)
        made.put("T", 0, b"%d" % number)
        roots.append(written(made, tmp_path / f"s{number}"))
    reader = source(*roots).reader(columns_of("messages"))
    tasks = [part.value for part in reader.partitions()]
    assert [len(task) for task in tasks] == [8, 8, 4]  # looks at stores count, too
    assert len(rows_of(reader)) == 20


def test_later_messages_are_in_no_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan_by("tasks", monkeypatch)
    made = HandMade(CONFIG)
    for number in range(50):
        made.put("T", number % 3)
    root = written(made, tmp_path / "st")
    reader = source(root).reader(columns_of("messages"))
    parts = reader.partitions()
    for number in range(50):
        made.put("TU"[number % 2], number % 3)
    written(made, root)
    reader.partitions = lambda: parts  # type: ignore[method-assign]
    assert len(rows_of(reader)) == 50


@pytest.mark.parametrize("table", ["messages", "consumequeue"])
def test_what_is_deleted_after_planning_in_tasks_fails_or_is_left_out(
    tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plan_by("tasks", monkeypatch)
    made = HandMade(CONFIG)
    for number in range(120):
        made.put("TU"[number % 2], number % 3, b"x" * 100)
    root = written(made, tmp_path / "st")
    readers = []
    for fail in ("true", "false"):
        reader = source(root, table=table, failOnDataLoss=fail).reader(columns_of(table))
        parts = reader.partitions()
        reader.partitions = lambda parts=parts: parts  # type: ignore[method-assign,misc]
        readers.append(reader)
    (root / "commitlog" / f"{0:020}").unlink()
    with pytest.raises(DataLossError, match="4096 bytes of the log from 0 on were deleted after"):
        rows_of(readers[0])
    left = [m.commitlog_offset for m in made.messages if m.commitlog_offset >= 4096]
    assert sorted(row["commitlog_offset"] for row in rows_of(readers[1])) == left
    assert "left out" in caplog.text


# -- streams ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limit", [{}, {"maxOffsetsPerTrigger": "9"}, {"maxBytesPerTrigger": "2000"}]
)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(1, 30))]
)
@pytest.mark.slow
def test_a_stream_gives_each_message_once_whatever_changes(
    tmp_path: Path, seed: int, way: str, limit: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader that goes on, with what it remembers, and one that begins at its checkpoint."""
    plan_by(way, monkeypatch)
    random = Random(seed)
    world = World(tmp_path / "st", random)
    world.append()
    options = {"failOnDataLoss": "false", **limit}
    stream = Stream(world.root, **options)
    seen: list[int] = []
    for _ in range(12):
        change = random.choice(["append"] * 4 + ["make_ahead", "tear_the_end", "nothing", "rename"])
        if change == "rename":
            world.root = world.root.rename(world.root.with_name(f"st{random.random()}"))
            stream = Stream(world.root, at=stream.at, **options)
        elif change != "nothing":
            getattr(world, change)()
        other = Stream(world.root, at=stream.at, **options)
        rows = stream.trigger()
        assert in_order(other.trigger()) == in_order(rows)
        assert other.at == stream.at
        seen += [row["commitlog_offset"] for row in rows]
        assert seen == sorted(set(seen), key=seen.index)
    seen += [row["commitlog_offset"] for batch in stream.drain() for row in batch]
    assert sorted(seen) == [m.commitlog_offset for m in world.readable()]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_stream_follows_a_writer(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_by(way, monkeypatch)
    root = tmp_path / "st"
    MessageStore.create(root, TINY_STORE)
    stream = Stream(root, maxOffsetsPerTrigger="17")
    seen: list[bytes] = []
    with MessageStore.open(root) as store:
        for number in range(90):
            store.put_message(Sample(f"m{number}", f"T{number % 7}", number % 2, 50).inner())
            if number % 20 == 0:
                seen += [row["body"] for row in stream.trigger()]
    seen += [row["body"] for batch in stream.drain() for row in batch]
    assert len(seen) == len(set(seen)) == 90


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.slow
def test_light_queues_come_whole(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan_by(way, monkeypatch)
    root = golden.store("lmq-4.9")
    wanted = in_order(read_table("messages", root))
    for most in ("4", "1000"):
        batches = Stream(root, maxOffsetsPerTrigger=most).drain()
        assert in_order([row for batch in batches for row in batch]) == wanted
        for batch in batches:
            assert len(batch) <= int(most) or len({row["commitlog_offset"] for row in batch}) == 1


def test_an_unchanged_or_small_trigger_looks_at_no_queue(tmp_path: Path) -> None:
    made = HandMade(CONFIG)
    for number in range(60):
        made.put(f"T{number % 7}", number % 3)
    root = written(made, tmp_path / "st")
    stream = Stream(root)
    stream.trigger()
    reader, start = stream.reader, json.loads(stream.at)
    limit = reader.getDefaultReadLimit()
    with no_queue_is_opened(root):
        assert reader.latestOffset(start, limit) == start
        assert reader.reportLatestOffset() is not None
    for number in range(9):
        made.put(f"T{number % 2}", 0)
    written(made, root)
    with no_queue_is_opened(root):
        end = reader.latestOffset(start, limit)
        parts = reader.partitions(start, end)
    ranges = [(part.topic, part.messages) for task in parts for part in task.value]
    assert ranges == [("T0", 5), ("T1", 4)]
    assert sum(batch.num_rows for part in parts for batch in reader.read(part)) == 9  # type: ignore[union-attr]


def test_a_trigger_opens_the_queues_that_have_moved_and_no_others(tmp_path: Path) -> None:
    made = HandMade(CONFIG)
    for number in range(60):
        made.put(f"T{number % 20}", number % 3)
    root = written(made, tmp_path / "st")
    stream = Stream(root)
    stream.trigger()
    for number in range(9):
        made.put(f"T{number % 2}", 0)
    written(made, root)
    with opened_below(root / "consumequeue") as opened:
        assert len(stream.trigger()) == 9
    assert {path[: len("T0/0")] for path in opened} == {"T0/0", "T1/0"}
    with opened_below(root / "consumequeue") as opened:
        assert stream.trigger() == []
    assert opened == set()


@pytest.mark.parametrize("missing", ["last", "all"])
def test_a_unit_that_its_broker_has_not_yet_written_is_made_again(
    tmp_path: Path, missing: str
) -> None:
    made = HandMade(CONFIG)
    for number in range(30):
        made.put("TU"[number % 2], 0)
    root = written(made, tmp_path / "st")
    stream = Stream(root)
    stream.trigger()
    new = [made.put("T", 0) for _ in range(5)]
    units = made.queues["T", 0]
    gone = slice(-20, None) if missing == "last" else slice(-100, None)
    units[gone] = bytes(len(units[gone]))
    (root / "abort").touch()
    (root / "lock").write_bytes(b"lock")
    made.write(root)
    with java_lock(root):
        found = [row["commitlog_offset"] for row in stream.trigger()]
    assert found == [one.commitlog_offset for one in new]


def test_a_queue_that_was_made_anew_gives_no_message_twice(tmp_path: Path) -> None:
    """The records of a deleted topic name offsets at which its queue has later messages."""
    made = HandMade(CONFIG)
    for _ in range(10):
        made.put("T", 0)
    root = written(made, tmp_path / "st")
    stream = Stream(root)
    start = json.loads(stream.at)
    end = stream.reader.latestOffset(start, stream.reader.getDefaultReadLimit())
    parts = stream.reader.partitions(start, end)
    shutil.rmtree(root / "consumequeue" / "T")
    made.queues.clear()
    later = [made.put("T", 0, b"later", queue_offset=number) for number in range(6)]
    written(made, root)
    rows = [batch.num_rows for part in parts for batch in stream.reader.read(part)]  # type: ignore[union-attr]
    assert sum(rows) == 0
    stream.at = json.dumps(end)
    assert [row["commitlog_offset"] for row in stream.trigger()] == [
        one.commitlog_offset for one in later
    ]


@pytest.mark.parametrize("way", WAYS)
def test_messages_deleted_after_a_batch_was_planned_are_no_silent_loss(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_by(way, monkeypatch)
    made = HandMade(CONFIG)
    for number in range(120):
        made.put("TU"[number % 2], number % 3, b"x" * 100)
    root = written(made, tmp_path / "st")
    stream = Stream(root)
    start = json.loads(stream.at)
    end = stream.reader.latestOffset(start, stream.reader.getDefaultReadLimit())
    parts = stream.reader.partitions(start, end)
    (root / "commitlog" / f"{0:020}").unlink()
    with pytest.raises(DataLossError, match="deleted after this query was planned"):
        [batch for part in parts for batch in stream.reader.read(part)]


@pytest.mark.parametrize("way", ["records", "tasks"])
def test_a_log_that_was_cut_after_planning_is_no_silent_loss(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_by(way, monkeypatch)
    made = HandMade(CONFIG)
    for number in range(60):
        made.put("TU"[number % 2], number % 3, b"x" * 100)
    root = written(made, tmp_path / "st")
    stream = Stream(root)
    start = json.loads(stream.at)
    end = stream.reader.latestOffset(start, stream.reader.getDefaultReadLimit())
    parts = stream.reader.partitions(start, end)
    shutil.rmtree(root)
    shorter = HandMade(CONFIG)
    for number in range(50):
        shorter.put("TU"[number % 2], number % 3, b"x" * 100)
    written(shorter, root)
    with pytest.raises(DataLossError, match=f"ends at byte {shorter.log_end}, and this query was"):
        [batch for part in parts for batch in stream.reader.read(part)]


# -- how much a batch takes ------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_bytes_are_limited_over_all_stores_together(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_by(way, monkeypatch)
    sizes = {}
    for name, count in (("a", 300), ("b", 100), ("c", 2)):
        made = HandMade(CONFIG)
        for number in range(count):
            made.put("T", number % 3, b"%s %d" % (name.encode(), number))
        written(made, tmp_path / name)
        sizes[name] = {one.commitlog_offset: one.size for one in made.messages}
    roots = [tmp_path / name for name in "abc"]
    batches = Stream(*roots, maxBytesPerTrigger="8000").drain()
    rows = [(row["broker"], row["commitlog_offset"]) for batch in batches for row in batch]
    assert sorted(rows) == sorted((name, at) for name, of in sizes.items() for at in of)
    longest = max(size for of in sizes.values() for size in of.values())
    taken = [
        sum(sizes[row["broker"]][row["commitlog_offset"]] for row in batch) for batch in batches
    ]
    assert max(taken) <= 8000 + 3 * longest
    assert all(size > 5000 for size in taken[:-1])
    brokers = [row["broker"] for row in batches[0]]
    assert brokers.count("a") == pytest.approx(3 * brokers.count("b"), abs=2)
    assert brokers.count("c") >= 1


@pytest.mark.slow
def test_a_batch_of_bytes_ends_where_a_record_begins(tmp_path: Path) -> None:
    world = World(tmp_path / "st", Random(3))
    for _ in range(8):
        world.append()
    places = {*records_of(world.root)} | {m.commitlog_offset + m.size for m in world.made.messages}
    stream = Stream(world.root, maxBytesPerTrigger="700")
    ends: list[int] = []
    while not ends or ends[-1] != world.made.log_end:
        stream.trigger()
        ends.append(json.loads(stream.at)["st"]["offset"])
    assert len(ends) > 10
    assert {*ends} <= places


@pytest.mark.parametrize("count", [1, 2, 7, 30, 1000])
def test_records_are_counted_up_to_a_number(tmp_path: Path, count: int) -> None:
    world = World(tmp_path / "st", Random(11))
    for _ in range(5):
        world.append()
    log = look_at_log(ref_of(world.root))
    choice = TopicChoice(names=frozenset({"T1", "T3"}))
    mine = [m for m in world.readable() if m.topic in {"T1", "T3"}]
    part = read_part(log, 0, log.end, choice, count)
    assert part is not None
    taken = [m for m in mine if m.commitlog_offset < part.end]
    assert len(taken) == part.messages == min(count, len(mine))
    assert part.oldest_timestamp == mine[0].store_timestamp
    for (topic, queue_id), share in part.queues.items():
        own = [m for m in taken if (m.topic, m.queue_id) == (topic, queue_id)]
        assert share.messages == len(own) == share.end - share.first
        assert (share.first, share.size) == (own[0].queue_offset, sum(m.size for m in own))


def test_a_part_that_is_no_row_of_records_says_nothing(tmp_path: Path) -> None:
    world = World(tmp_path / "st", Random(12))
    for _ in range(5):
        world.append()
    log = look_at_log(ref_of(world.root))
    places = records_of(world.root)
    everything = TopicChoice()
    assert read_part(log, places[3], log.end, everything) is not None
    assert read_part(log, places[3] + 1, log.end, everything) is None
    assert read_part(log, places[3], places[9] - 1, everything) is None
    assert next_record(log, places[3], places[7] + 1) == places[8]
    assert next_record(log, places[3], places[7]) == places[7]
    path = world.root / "commitlog" / f"{0:020}"
    whole = path.read_bytes()
    for position, value in (
        (0, bytes(16)),
        (PHYSICAL_OFFSET_POSITION + 7, b"\7"),  # a record of another place
        (SYS_FLAG_POSITION, REPLACED_FLAG.to_bytes(4, "big")),
    ):
        at = places[5] + position
        path.write_bytes(whole[:at] + value + whole[at + len(value) :])
        assert read_part(log, places[3], log.end, everything) is None
    path.write_bytes(whole)
    assert read_part(log, places[3], log.end, everything) is not None


def test_a_topic_that_was_deleted_counts_no_more(tmp_path: Path) -> None:
    root = tmp_path / "st"
    MessageStore.create(root, TINY_STORE)
    with MessageStore.open(root) as store:
        for number in range(20):
            store.put_message(Sample(f"m{number}", "TU"[number % 2], 0, 50).inner())
        store.delete_queues("T")
        for number in range(3):
            store.put_message(Sample(f"n{number}", "T", 0, 50).inner())
    log = look_at_log(StoreRef("st", str(root)))
    part = read_part(log, 0, log.end, TopicChoice())
    assert part is not None
    assert part.messages == 13
    assert len(read_table("messages", root)) == 13
    stream = Stream(root, maxOffsetsPerTrigger="4")
    assert [len(batch) for batch in stream.drain()] == [4, 4, 4, 1]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("number", [0, 4, 7])
def test_a_damaged_unit_is_no_silent_loss(
    tmp_path: Path, way: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it lies in a batch: at its begin, at its end or within."""
    plan_by(way, monkeypatch)
    made = HandMade(CONFIG)
    for _ in range(12):
        made.put("T", 0)
    made.queues["T", 0][number * 20 : number * 20 + 20] = bytes(20)
    root = written(made, tmp_path / "st")
    with pytest.raises(DamagedError, match=f"message {number} of T, queue 0"):
        Stream(root, maxOffsetsPerTrigger="5").drain()


@pytest.mark.parametrize("way", WAYS)
def test_a_stream_begins_at_the_message_of_each_queue(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_by(way, monkeypatch)
    made = HandMade(CONFIG)
    for number in range(60):
        made.put("T", number % 2)
    root = written(made, tmp_path / "st")
    begin = '{"st": {"T": {"0": 10, "1": 25}}}'
    rows = [row for batch in Stream(root, startingOffset=begin).drain() for row in batch]
    found = sorted((row["queue_id"], row["queue_offset"]) for row in rows)
    assert found == [(0, at) for at in range(10, 30)] + [(1, at) for at in range(25, 30)]


@pytest.mark.parametrize("way", ["queues", "tasks"])
def test_the_stores_of_the_benchmark_are_stores(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_by(way, monkeypatch)
    make_stores(tmp_path, 3, 20)
    rows = read_table("messages", tmp_path / "*" / "store")
    assert len(rows) == len({(row["broker"], row["topic"], row["queue_id"]) for row in rows}) == 60
    stream = Stream(tmp_path / "*" / "store")
    assert len(stream.trigger()) == 60
    assert stream.trigger() == []
