"""Files that retention deletes after a query was planned, and stores that its tasks open."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from analytics.datasource.query.errors import DamagedError, DataLossError
from storage.readonly import StoreView
from tests.analytics.datasource.test_planning import WAYS, plan_by
from tests.support.hand_made import TINY, HandMade
from tests.support.spark_source import Stream, columns_of, rows_of, source

CONFIG = TINY.with_(mapped_file_size_commit_log=4096, mapped_file_size_consume_queue=140)


@pytest.fixture
def made() -> HandMade:
    made = HandMade(CONFIG)
    for number in range(120):
        made.put("TU"[number % 2], number % 3, b"x" * 100, step_ms=700)
    return made


def planned(root: Path, table: str, **options: str) -> Any:
    """A reader, and its tasks as they were planned, before anything is deleted."""
    reader = source(root, table=table, **options).reader(columns_of(table))
    parts = reader.partitions()
    reader.partitions = lambda: parts  # type: ignore[method-assign]
    return reader


@pytest.mark.parametrize("table", ["messages", "consumequeue"])
def test_messages_deleted_after_planning_fail_the_query_or_are_left_out(
    tmp_path: Path, made: HandMade, table: str, caplog: pytest.LogCaptureFixture
) -> None:
    root = made.write(tmp_path)
    strict, lenient = planned(root, table), planned(root, table, failOnDataLoss="false")
    for number in range(2):
        (root / "commitlog" / f"{number * 4096:020}").unlink()
    with pytest.raises(DataLossError) as error:
        rows_of(strict)
    assert "of T, queue 0, were deleted after this query was planned" in str(error.value)
    assert "failOnDataLoss=false" in str(error.value)
    assert "fsck" not in str(error.value)
    left = [m.commitlog_offset for m in made.messages if m.commitlog_offset >= 2 * 4096]
    assert 20 < len(left) < 100
    assert sorted(row["commitlog_offset"] for row in rows_of(lenient)) == left
    assert "left out" in caplog.text


def test_a_file_in_the_middle_is_left_out_like_the_first_ones(
    tmp_path: Path, made: HandMade
) -> None:
    root = made.write(tmp_path)
    strict = planned(root, "messages")
    lenient = planned(root, "messages", failOnDataLoss="false")
    (root / "commitlog" / f"{4096:020}").unlink()
    with pytest.raises(DataLossError):
        rows_of(strict)
    left = [m.commitlog_offset for m in made.messages if m.commitlog_offset // 4096 != 1]
    assert sorted(row["commitlog_offset"] for row in rows_of(lenient)) == left


@pytest.mark.parametrize("last", [False, True])
def test_files_deleted_while_a_task_reads(tmp_path: Path, made: HandMade, last: bool) -> None:
    root = made.write(tmp_path)
    reader = planned(root, "messages", failOnDataLoss="false", batchRows="4", topics="T")
    (part,) = reader.partitions()
    seen = []
    files = sorted((root / "commitlog").iterdir())
    for number, batch in enumerate(reader.read(part)):
        seen += [row["commitlog_offset"] for row in batch.to_pylist()]
        if number == 0:
            for path in files if last else files[:-1]:
                path.unlink()
    kept = [m.commitlog_offset for m in made.messages if m.topic == "T"]
    assert seen == sorted(set(seen) & set(kept), key=seen.index)
    if not last:  # those of the last file are still there
        assert {place for place in kept if place >= (len(files) - 1) * 4096} <= set(seen)


def test_a_damaged_message_is_still_damage_where_losses_are_accepted(
    tmp_path: Path, made: HandMade
) -> None:
    root = made.write(tmp_path)
    lenient = planned(root, "messages", failOnDataLoss="false")
    with (root / "commitlog" / f"{0:020}").open("r+b") as file:
        file.seek(4)
        file.write(b"\0\0\0\0")
    with pytest.raises(DamagedError, match="fsck"):
        rows_of(lenient)


@pytest.mark.parametrize("table", ["messages", "consumequeue"])
def test_a_task_opens_each_store_once(
    tmp_path: Path, made: HandMade, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = [made.write(_folder(tmp_path / name)) for name in "ab"]
    reader = source(*roots, table=table, minPartitions="1", copies="all").reader(columns_of(table))
    (part,) = reader.partitions()
    opened: list[str] = []
    whole = StoreView.open

    def counted(root: Path | str, *more: Any) -> StoreView:
        opened.append(str(root))
        return whole(root, *more)

    monkeypatch.setattr(StoreView, "open", counted)
    batches: Any = reader.read(part)
    assert sum(batch.num_rows for batch in batches) == 240
    assert opened == [str(root) for root in roots]


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


# -- streams ---------------------------------------------------------------------------------


def delete_before(root: Path, place: int) -> None:
    for start in range(0, place, 4096):
        (root / "commitlog" / f"{start:020}").unlink()


@pytest.mark.parametrize("way", WAYS)
def test_a_stream_of_what_is_available_notices_files_that_are_deleted_while_it_runs(
    tmp_path: Path,
    made: HandMade,
    way: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    plan_by(way, monkeypatch)
    root = made.write(tmp_path)
    strict = Stream(root, maxOffsetsPerTrigger="10")
    lenient = Stream(root, maxOffsetsPerTrigger="10", failOnDataLoss="false")
    seen = []
    for stream in (strict, lenient):
        stream.reader.prepareForTriggerAvailableNow()  # type: ignore[attr-defined]
        seen = [row["commitlog_offset"] for row in stream.trigger()]
    delete_before(root, 8192)
    with pytest.raises(DataLossError, match=r"bytes of the log from \d+ on were deleted before"):
        strict.trigger()
    seen += [row["commitlog_offset"] for batch in lenient.drain() for row in batch]
    places = [m.commitlog_offset for m in made.messages]
    assert sorted(seen) == [*places[:10], *(place for place in places if place >= 8192)]
    assert "bytes of the log from" in caplog.text


@pytest.mark.parametrize("way", WAYS)
def test_a_batch_of_a_topic_that_was_deleted_whole_is_no_silent_loss(
    tmp_path: Path, made: HandMade, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the moment when Spark asks for a batch's end, and that when it asks for its tasks;
    nothing is left of the topic for a task."""
    plan_by(way, monkeypatch)
    for number in range(3):
        made.put("V", number)
    end_of_file = made.log_end + -made.log_end % 4096
    while made.log_end <= end_of_file:
        made.put("T", 0, b"x" * 100)
    root = made.write(tmp_path)
    for fail in ("true", "false"):
        stream = Stream(root, topics="V", failOnDataLoss=fail)
        reader, start = stream.reader, json.loads(stream.at)
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        if fail == "true":
            delete_before(root, end_of_file)
            with pytest.raises(DataLossError, match=r"bytes of the log from \d+ on were deleted"):
                reader.partitions(start, end)
        else:
            found: Any = [reader.read(part) for part in reader.partitions(start, end)]
            assert sum(batch.num_rows for batches in found for batch in batches) == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fail", ["true", "false"])
def test_files_of_a_store_that_is_new_to_a_stream_are_no_silent_loss_once_it_was_seen(
    tmp_path: Path, made: HandMade, way: str, fail: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are deleted between the moment when Spark asks for a batch's end, and that when it asks
    for its tasks."""
    plan_by(way, monkeypatch)
    end_of_file = made.log_end + -made.log_end % 4096
    while made.log_end <= end_of_file:
        made.put("T", 0, b"x" * 100)
    root = made.write(tmp_path)
    reader = Stream(root, failOnDataLoss=fail).reader
    end = reader.latestOffset({}, reader.getDefaultReadLimit())
    delete_before(root, end_of_file)
    if fail == "true":
        with pytest.raises(DataLossError, match=r"bytes of the log from 0 on were deleted"):
            reader.partitions({}, end)
    else:
        found: Any = [reader.read(part) for part in reader.partitions({}, end)]
        kept = [m for m in made.messages if m.commitlog_offset >= end_of_file]
        assert sum(batch.num_rows for batches in found for batch in batches) == len(kept)


def test_a_log_whose_files_are_all_deleted_while_a_stream_runs_ends_where_it_did(
    tmp_path: Path, made: HandMade
) -> None:
    root = made.write(tmp_path)
    stream = Stream(root, maxOffsetsPerTrigger="10", failOnDataLoss="false")
    stream.reader.prepareForTriggerAvailableNow()  # type: ignore[attr-defined]
    assert len(stream.trigger()) == 10
    end = made.log_end
    last_file = end + -end % 4096
    while made.log_end <= last_file:
        made.put("T", 0, b"x" * 100)
    made.write(root)
    delete_before(root, last_file)
    assert stream.drain() == [[]]
    (store,) = json.loads(stream.at).values()
    assert store["offset"] == end
