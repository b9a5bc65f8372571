"""How much a batch of a stream takes, and what the stream reports as not yet read."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from analytics.datasource.plan import log_part
from analytics.datasource.query.errors import OptionError
from analytics.datasource.query.options import read_options
from analytics.datasource.stream import backlog
from analytics.datasource.stream.backlog import shares
from storage.format.layout import SYS_FLAG_POSITION
from tests.support import golden
from tests.support.hand_made import TINY, HandMade
from tests.support.spark_source import Stream, read_table

STORE_TIMESTAMP_POSITION = SYS_FLAG_POSITION + 20
CONFIG = TINY.with_(mapped_file_size_commit_log=4096, mapped_file_size_consume_queue=140)


def store(root: Path, count: int, queues: int = 3) -> HandMade:
    made = HandMade(CONFIG)
    for number in range(count):
        body = b"%s %d" % (root.name.encode(), number)
        made.put("TTU"[number % 3], number % queues, body, step_ms=700)
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    made.write(root)
    return made


@pytest.mark.slow
def test_a_batch_takes_so_many_messages_of_all_stores_together(tmp_path: Path) -> None:
    for name, count in (("a", 90), ("b", 30), ("c", 1)):
        store(tmp_path / name, count)
    stream = Stream(tmp_path / "a", tmp_path / "b", tmp_path / "c", maxOffsetsPerTrigger="40")
    batches = stream.drain()
    assert [len(batch) for batch in batches] == [40, 40, 40, 1]
    brokers = [row["broker"] for row in batches[0]]
    assert [brokers.count(name) for name in "abc"] == [30, 10, 0]  # in proportion
    keys = {(row["broker"], row["commitlog_offset"]) for batch in batches for row in batch}
    assert len(keys) == 121


@pytest.mark.parametrize("at_once", [1_000_000, 5])
@pytest.mark.parametrize("most", [1, 7, 50])
@pytest.mark.slow
def test_each_message_comes_once_whatever_the_limit(
    tmp_path: Path, most: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "_AT_ONCE", at_once)
    monkeypatch.setattr(log_part, "MOST_BYTES", 0)
    made = store(tmp_path / "a", 60, queues=7)
    batches = Stream(tmp_path / "a", topics="T", maxOffsetsPerTrigger=str(most)).drain()
    places = [row["commitlog_offset"] for batch in batches for row in batch]
    assert sorted(places) == [m.commitlog_offset for m in made.messages if m.topic == "T"]
    assert all(len(batch) == most for batch in batches[:-1])


@pytest.mark.slow
def test_messages_of_one_record_come_together() -> None:
    root = golden.store("lmq-4.9")
    batches = Stream(root, maxOffsetsPerTrigger="1").drain()
    rows = [(row["topic"], row["queue_id"], row["queue_offset"]) for b in batches for row in b]
    assert len(rows) == len(set(rows)) == len(read_table("messages", root))
    for batch in batches[:-1]:
        assert len({row["commitlog_offset"] for row in batch}) == 1


@pytest.mark.slow
def test_begins_of_queues_are_not_counted_before_them(tmp_path: Path) -> None:
    store(tmp_path / "a", 60, queues=2)
    begin = '{"a": {"T": {"0": 10}}}'
    whole = Stream(tmp_path / "a", startingOffset=begin).drain()
    parts = Stream(tmp_path / "a", startingOffset=begin, maxOffsetsPerTrigger="8").drain()
    assert sum(map(len, parts)) == sum(map(len, whole)) == 50
    assert {len(batch) for batch in parts[:-1]} == {8}


def test_a_batch_waits_for_so_many_messages(tmp_path: Path) -> None:
    store(tmp_path / "a", 5)
    stream = Stream(tmp_path / "a", minOffsetsPerTrigger="10", maxTriggerDelay="1h")
    assert len(stream.trigger()) == 5  # the first one does not wait
    store(tmp_path / "a", 14)
    assert stream.trigger() == []
    store(tmp_path / "a", 15)
    assert len(stream.trigger()) == 10
    store(tmp_path / "a", 16)
    soon = Stream(tmp_path / "a", at=stream.at, minOffsetsPerTrigger="10", maxTriggerDelay="0s")
    assert len(soon.trigger()) == 1
    store(tmp_path / "a", 17)
    assert len(soon.trigger()) == 1
    store(tmp_path / "a", 18)
    start = json.loads(stream.at)
    assert stream.reader.latestOffset(start, ReadAllAvailable()) != start, "Spark asks for all"
    now = Stream(tmp_path / "a", at=stream.at, minOffsetsPerTrigger="10")
    now.trigger()
    store(tmp_path / "a", 19)
    reader: Any = now.reader
    reader.prepareForTriggerAvailableNow()
    assert len(now.trigger()) == 1, "a stream of what is there now waits for nothing"


def test_what_is_not_read_is_reported(tmp_path: Path) -> None:
    made = store(tmp_path / "a", 60)
    stream = Stream(tmp_path / "a", topics="T", maxOffsetsPerTrigger="15")
    assert stream.reader.reportLatestOffset() is None
    read = len(stream.trigger())
    report = stream.reader.reportLatestOffset()
    assert report is not None
    (found,) = report.values()
    mine = [message for message in made.messages if message.topic == "T"]
    assert found["offset"] == made.log_end
    assert found["unreadMessages"] == len(mine) - read == 25
    at = json.loads(stream.at)["a"]["offset"]
    assert found["unreadBytes"] == made.log_end - at
    assert found["unreadAgeMs"] > 0
    stream.drain()
    assert stream.reader.reportLatestOffset() == {
        "a": {"offset": made.log_end, "unreadMessages": 0, "unreadBytes": 0}
    }


@pytest.mark.parametrize("way", ["records", "queues"])
@pytest.mark.parametrize("stored", [1 << 60, -1, -(1 << 63)])
def test_a_damaged_store_time_is_no_age_of_what_is_not_read(
    tmp_path: Path, way: str, stored: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "queues":
        monkeypatch.setattr(log_part, "MOST_BYTES", 0)
    made = store(tmp_path / "a", 60)
    stream = Stream(tmp_path / "a", maxOffsetsPerTrigger="15")
    assert len(stream.trigger()) == 15
    place = made.messages[15].commitlog_offset + STORE_TIMESTAMP_POSITION
    begin = place // 4096 * 4096
    with (tmp_path / "a" / "commitlog" / f"{begin:020d}").open("r+b") as file:
        file.seek(place - begin)
        file.write(stored.to_bytes(8, "big", signed=True))
    since = time.time_ns() // 1_000_000
    report = stream.reader.reportLatestOffset()
    until = time.time_ns() // 1_000_000
    assert report is not None
    oldest = made.messages[16].store_timestamp
    assert since - oldest <= report["a"]["unreadAgeMs"] <= until - oldest


def test_shares_are_in_proportion_and_add_up() -> None:
    assert shares([3, 4], 10) == [3, 4]
    for counts, most in [([1, 1, 1], 2), ([1000, 1], 10), ([5, 0, 7], 1), ([10**12, 3], 10**9)]:
        found = shares(counts, most)
        assert sum(found) == most
        assert all(0 <= one <= count for one, count in zip(found, counts, strict=True))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"maxOffsetsPerTrigger": "0"}, "not a number from 1 on"),
        ({"maxOffsetsPerTrigger": "5", "maxBytesPerTrigger": "5"}, "give one of them"),
        ({"maxOffsetsPerTrigger": "5", "minOffsetsPerTrigger": "6"}, "6 is more than maxOffsets"),
        ({"maxTriggerDelay": "5s"}, "no effect without minOffsetsPerTrigger"),
        ({"minOffsetsPerTrigger": "5", "maxTriggerDelay": "soon"}, "'soon' is no time, as 500ms"),
    ],
)
def test_wrong_limits_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        read_options({"path": ".", **options})
