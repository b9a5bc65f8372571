"""``commitGroup``: a stream's position is the progress of a group, by the rules of all groups."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from analytics.datasource.query.errors import OptionError
from analytics.errors import GroupProgressError
from broker.api.members import ConsumerData, ConsumeType, HeartbeatData, MessageModel
from broker.api.offsets import ConsumeFromWhere
from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from storage.config import SMALL_STORE
from storage.errors import StoreError, StoreInUseError
from storage.format.fastjson import loads
from storage.format.message import Message
from tests.support.cli import run
from tests.support.java_lock import java_lock
from tests.support.spark_source import Row, Stream, columns_of, read_table, source
from tests.support.users import CAP_DAC_OVERRIDE, User, as_user, needs_root, shared_folder, tree

OF_JAVA = Path("config", "consumerOffset.json")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    create_store(tmp_path / "store", SMALL_STORE)
    put(tmp_path / "store", 8)
    return tmp_path / "store"


def put(root: Path, count: int, topic: str = "t", queues: int = 3) -> None:
    with EmbeddedBroker.open(root) as broker:
        for number in range(count):
            broker.send(Message(topic, b"x" * 100), number % queues)


def progress(root: Path, group: str = "spark", topic: str = "t") -> dict[int, int | None]:
    return {
        row["queue_id"]: row["committed_offset"]
        for row in read_table("offsets", root)
        if (row["group"], row["topic"]) == (group, topic)
    }


def unread(root: Path, group: str = "spark") -> int:
    rows = [row for row in read_table("lag", root) if row["group"] == group]
    assert rows
    return sum(row["lag"] for row in rows)


def lagged(root: Path, group: str = "spark") -> int:
    rows = run("-S", root, "lag", "show", group, "-o", "json").json()
    return int(sum(row["lag"] for row in rows))


@pytest.mark.slow
def test_progress_is_what_batches_have_given_and_lag_sees_it(root: Path) -> None:
    stream = Stream(root, commitGroup="spark", topics="t", maxOffsetsPerTrigger="3")
    given = 0
    while rows := stream.trigger():
        if given:
            assert unread(root) == 8 - given, "the batch that is under way is not done"
        else:
            assert progress(root) == {}
        given += len(rows)
    assert given == 8
    assert unread(root) == lagged(root) == 0
    assert progress(root) == {0: 3, 1: 3, 2: 2, 3: 0}  # the last one never had a message
    put(root, 5)
    assert unread(root) == lagged(root) == 5
    stored: Any = loads((root / OF_JAVA).read_text())
    assert {int(key): value for key, value in stored["offsetTable"]["t@spark"].items()} == progress(
        root
    )


def test_commit_writes_a_batch_that_no_other_one_follows(root: Path) -> None:
    stream = Stream(root, commitGroup="spark", topics="t")
    assert len(stream.trigger()) == 8
    assert progress(root) == {}
    stream.commit()
    assert unread(root) == 0
    written = (root / "rmqctl" / "offsets.log").stat()
    stream.commit()
    assert stream.trigger() == []
    now = (root / "rmqctl" / "offsets.log").stat()
    assert (now.st_ino, now.st_mtime_ns) == (written.st_ino, written.st_mtime_ns)


def test_a_stream_that_goes_on_writes_what_its_checkpoint_has(root: Path) -> None:
    stream = Stream(root, commitGroup="spark", topics="t")
    assert stream.trigger()
    again = Stream(root, commitGroup="spark", topics="t", at=stream.at)
    assert again.trigger() == []
    assert unread(root) == 0


@pytest.mark.slow
def test_a_stream_that_is_killed_in_its_first_batch_begins_again(root: Path) -> None:
    stream = Stream(root, commitGroup="spark", topics="t", maxOffsetsPerTrigger="3")
    stream.trigger()
    again = Stream(root, commitGroup="spark", topics="t", maxOffsetsPerTrigger="3")
    assert len(again.trigger()) == 3
    assert again.reader.initialOffset(), "Spark asks for it more than once"
    again.drain()
    assert again.reader.initialOffset()
    assert unread(root) == 0
    with pytest.raises(GroupProgressError, match="this is a new stream"):
        Stream(root, commitGroup="spark", topics="t")


def test_progress_never_goes_back_by_itself(root: Path) -> None:
    stream = Stream(root, commitGroup="spark", topics="t", maxOffsetsPerTrigger="3")
    stream.trigger()
    early = stream.at
    stream.drain()
    assert unread(root) == 0
    restored = Stream(root, commitGroup="spark", topics="t", at=early)
    assert len(restored.trigger()) == 5
    assert unread(root) == 0


@pytest.mark.slow
def test_a_move_of_the_group_holds_until_the_stream_is_started_again(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stream = Stream(root, commitGroup="spark", topics="t")
    stream.drain()
    moved = run("-S", root, "offset", "reset", "spark", "-t", "t", "--to-earliest", "-y")
    assert moved.code == 0, moved.err
    put(root, 3)
    stream.drain()
    assert progress(root) == {0: 0, 1: 0, 2: 0, 3: 0}
    assert "its progress was moved in 3 queues since this stream was started" in caplog.text
    put(root, 3)
    Stream(root, commitGroup="spark", topics="t", at=stream.at).drain()
    assert unread(root) == 0


@pytest.mark.slow
def test_a_new_stream_takes_no_group_that_has_progress_unless_it_goes_on_there(
    root: Path,
) -> None:
    consumed = run("-S", root, "consume", "t", "-g", "shop", "-c", 4, "--from-where", "first")
    assert consumed.code == 0
    before = progress(root, "shop")
    with pytest.raises(GroupProgressError, match=r"group shop has progress in t .*group:shop"):
        Stream(root, commitGroup="shop", topics="t")
    assert progress(root, "shop") == before
    stream = Stream(root, commitGroup="shop", topics="t", startingOffset="group:shop")
    assert sum(map(len, stream.drain())) == 4
    assert unread(root, "shop") == 0
    put(root, 4, "other")
    assert Stream(root, commitGroup="shop", topics="other").trigger()


@contextmanager
def live_consumer(root: Path, group: str) -> Iterator[None]:
    consumer = ConsumerData(
        group,
        ConsumeType.CONSUME_PASSIVELY,
        MessageModel.CLUSTERING,
        ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    )
    with EmbeddedBroker.open(root) as broker:
        broker.connect("one", object())  # type: ignore[arg-type]  # no call comes
        broker.heartbeat(HeartbeatData("one", consumers=(consumer,)))
        yield


def test_a_group_with_live_consumers_is_refused_and_left_alone(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        live_consumer(root, "spark"),
        pytest.raises(GroupProgressError, match="group spark has a live consumer in"),
    ):
        Stream(root, commitGroup="spark", topics="t")
    stream = Stream(root, commitGroup="spark", topics="t")
    with live_consumer(root, "spark"):
        stream.drain()
        assert progress(root) == {}
        assert "it has live consumers: this stream's position is not written" in caplog.text
    stream.trigger()
    assert unread(root) == 0


@pytest.mark.slow
def test_a_store_of_a_java_broker_is_refused_by_name_when_the_stream_starts(root: Path) -> None:
    with java_lock(root), pytest.raises(StoreInUseError, match=r"store is in use by a Java broker"):
        Stream(root, commitGroup="spark")
    stream = Stream(root, commitGroup="spark", topics="t")
    stream.trigger()
    with java_lock(root), pytest.raises(StoreInUseError, match="in use by a Java broker"):
        stream.trigger()
    stream.trigger()
    assert unread(root) == 0


def test_a_snapshot_is_refused(root: Path, tmp_path: Path) -> None:
    assert run("-S", root, "store", "snapshot", "--save", tmp_path / "copy").code == 0
    with pytest.raises(StoreError, match="copy cannot be written"):
        Stream(tmp_path / "copy", commitGroup="spark")
    assert Stream(tmp_path / "copy", topics="t").trigger()


@needs_root
@pytest.mark.slow
def test_a_folder_that_cannot_be_written_is_refused_and_read_without_the_option() -> None:
    def refusal(root: Path) -> str:
        assert len(Stream(root, topics="t").trigger()) == 8
        with pytest.raises(StoreError) as error:
            Stream(root, commitGroup="spark")
        return str(error.value)

    with shared_folder() as folder:
        create_store(folder / "store", SMALL_STORE)
        put(folder / "store", 8)
        before = tree(folder)
        said = as_user(User(1001, 3000, without=(CAP_DAC_OVERRIDE,)), refusal, folder / "store")
        assert "store cannot be written" in said
        assert tree(folder) == before


@pytest.mark.parametrize(
    ("group", "said"),
    [
        ("CID_RMQ_SYS_x", "belongs to RocketMQ"),
        ("DEFAULT_CONSUMER", "is reserved"),
        ("no/slash", "no/slash"),
        ("g" * 121, "characters"),
    ],
)
def test_names_that_no_group_has_are_refused(root: Path, group: str, said: str) -> None:
    with pytest.raises(GroupProgressError, match=f"commitGroup: .*{said}"):
        Stream(root, commitGroup=group)


def test_batches_and_other_tables_refuse_the_option(root: Path) -> None:
    with pytest.raises(OptionError, match="commitGroup has no effect in a batch"):
        source(root, commitGroup="spark").reader(columns_of("messages"))
    with pytest.raises(OptionError, match="commitGroup has no effect on lag"):
        source(root, table="lag", commitGroup="spark").reader(columns_of("lag"))
    with pytest.raises(OptionError, match="commitGroup: ' ' names no group"):
        source(root, commitGroup=" ").streamReader(columns_of("messages"))


def test_streams_of_units_and_of_several_stores_write_progress(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "store"
    other.parent.mkdir()
    create_store(other, SMALL_STORE)
    put(other, 4)
    stream = Stream(root, other, table="consumequeue", commitGroup="spark")
    rows: list[Row] = [row for batch in stream.drain() for row in batch]
    assert len(rows) == 12
    assert unread(root) == unread(other) == 0


def test_a_reader_goes_to_workers(root: Path) -> None:
    stream = Stream(root, commitGroup="spark", topics="t")
    stream.trigger()
    copy = pickle.loads(pickle.dumps(stream.reader))
    assert copy.latestOffset(json.loads(stream.at), copy.getDefaultReadLimit())
