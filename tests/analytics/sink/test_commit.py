"""Staged rows are stored once, whenever the process is killed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from analytics.errors import SinkCommitError
from analytics.sink import commit as sink_commit
from analytics.sink.commit import append, commit
from analytics.sink.marker import BEGUN, Marker, MarkerFile, has_begun
from analytics.sink.options import SinkOptions
from analytics.sink.rows import Outgoing, RowReader
from analytics.sink.staging import stage, staged_messages
from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from storage.config import SMALL_STORE
from storage.configs.subscription_groups import SubscriptionGroupConfig
from storage.format.message import Message, dlq_topic, retry_topic
from storage.readonly import StoreView
from tests.support.cli import run
from tests.support.crash import fast_folder
from tests.support.killed_sink import stage_rows, stored_bodies
from tests.support.slim import Slim
from tests.support.spark_source import read_table

BODIES = [f"0-{number}" for number in range(50)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    create_store(tmp_path / "store", SMALL_STORE)
    return tmp_path / "store"


def staged(root: Path, *bodies: str, partition: int = 0):
    part = stage_rows(root, root.parent / "staging", partition, list(bodies or BODIES))
    assert part is not None
    return part


def test_a_batch_is_stored_once_however_often_it_is_committed(root):
    assert commit(root, "w", 0, [staged(root)]) == 50
    assert commit(root, "w", 0, [staged(root)]) == 0
    assert commit(root, "w", 1, [staged(root, "1-0")]) == 1
    assert commit(root, "w", 0, [staged(root)]) == 0
    assert Counter(stored_bodies(root)) == Counter([*BODIES, "1-0"])


def test_a_cut_commit_goes_on_with_the_rows_that_were_staged_first(root):
    first = staged(root, *BODIES[:30]), staged(root, *BODIES[30:], partition=1)
    with EmbeddedBroker.open(root) as broker, MarkerFile(root, "w") as file:
        file.put(Marker(3, BEGUN, broker.view.log_max_offset(), first))
        rows = [row for part in first for row in staged_messages(part)]
        append(broker, [rows[number] for number in (0, 3, 20, 40)])
    again = staged(root)  # the same rows, with other ids
    assert commit(root, "w", 3, [again]) == 46
    assert Counter(stored_bodies(root)) == Counter(BODIES)
    assert not Path(first[0].path).exists()


def test_rows_of_a_retry_topic_that_become_dead_letters_are_known_when_a_cut_commit_goes_on(root):
    with EmbeddedBroker.open(root) as broker:
        broker.update_group(SubscriptionGroupConfig("g", retry_max_times=0))
    topics = [retry_topic("g"), "A", retry_topic("g"), "A"]
    batch = pa.record_batch(
        {"body": BODIES[:4], "topic": topics, "delay_level": pa.array([None, None, 1, 1])}
    )
    rows = RowReader(SinkOptions(root, None, True, None, None), 0).messages(batch)
    part = stage(root.parent / "staging", 0, rows)
    assert part is not None
    with EmbeddedBroker.open(root) as broker, MarkerFile(root, "w") as file:
        file.put(Marker(3, BEGUN, broker.view.log_max_offset(), (part,)))
        append(broker, staged_messages(part))
        stored = {queue: broker.view.max_offset_in_queue(*queue) for queue in broker.view.queues()}
    assert (dlq_topic("g"), 0) in stored
    assert commit(root, "w", 3, []) == 0
    with StoreView.open(root) as view:
        assert {queue: view.max_offset_in_queue(*queue) for queue in view.queues()} == stored


def test_a_batch_without_rows_stores_nothing_and_others_go_on(root):
    assert commit(root, "w", 0, []) == 0
    assert commit(root, "w", 1, [staged(root, "1-0")]) == 1
    assert stored_bodies(root) == ["1-0"]


def test_what_is_not_known_is_not_written_again(root):
    part = staged(root)
    with MarkerFile(root, "w") as file:
        file.put(Marker(0, BEGUN, 0, (part,)))
    Path(part.path).unlink()
    with pytest.raises(SinkCommitError, match="staged rows of partition 0 cannot be read"):
        commit(root, "w", 0, [staged(root)])
    assert stored_bodies(root) == []


@pytest.mark.parametrize("kind", ["is not here", "is cut", "lacks rows"])
def test_a_batch_begins_only_when_all_its_staged_rows_can_be_read(root, kind):
    """As with a folder that this machine does not share: with another one the batch is stored."""
    parts = [staged(root, *BODIES[:30]), staged(root, *BODIES[30:], partition=1)]
    path = Path(parts[1].path)
    if kind == "is not here":
        path.unlink()
    elif kind == "is cut":
        path.write_bytes(path.read_bytes()[:-100])
    else:
        parts[1] = parts[1]._replace(rows=21)
    with pytest.raises(
        SinkCommitError, match=r"rows of partition 1 .*; nothing was stored"
    ) as error:
        commit(root, "w", 0, parts)
    assert "'stagingLocation' is to be a folder" in str(error.value)
    assert not has_begun(root, "w")
    assert stored_bodies(root) == []
    assert commit(root, "w", 0, [staged(root)]) == 50
    assert Counter(stored_bodies(root)) == Counter(BODIES)


def test_a_cut_commit_goes_on_with_rows_whose_folder_has_moved(root):
    """As with a checkpoint that has another path by now."""
    first = staged(root, *BODIES[:30]), staged(root, *BODIES[30:], partition=1)
    with EmbeddedBroker.open(root) as broker, MarkerFile(root, "w") as file:
        file.put(Marker(3, BEGUN, broker.view.log_max_offset(), first))
        append(broker, list(staged_messages(first[0]))[:10])
    old = Path(first[0].path).parent
    moved = root.parent / "elsewhere" / old.name
    moved.parent.mkdir()
    old.rename(moved)
    with pytest.raises(SinkCommitError, match=r"cannot be read .*; the rest .* cannot be stored"):
        commit(root, "w", 3, [])
    assert commit(root, "w", 3, [], staging=moved.parent) == 40
    assert Counter(stored_bodies(root)) == Counter(BODIES)
    assert not moved.exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"version": 2}',
        '{"version": 1, "batch": "x", "state": "begun", "parts": []}',
    ],
)
def test_a_marker_that_is_none_stops_the_write(root, text):
    commit(root, "w", 0, [staged(root)])
    path = root / "rmqctl" / "sink" / "w.json"
    path.write_text(text)
    with pytest.raises(SinkCommitError, match=r"sink/w\.json is no marker of a write"):
        commit(root, "w", 1, [staged(root, "1-0")])
    assert path.read_text() == text
    assert Counter(stored_bodies(root)) == Counter(BODIES)


def test_two_drivers_of_one_write_do_not_commit_at_once(root):
    with (
        MarkerFile(root, "w"),
        pytest.raises(SinkCommitError, match="another process commits rows of the same write"),
    ):
        commit(root, "w", 0, [staged(root)])


def test_a_write_that_cannot_come_again_leaves_nothing(root):
    commit(root, "w", 0, [staged(root)], once=True)
    assert list((root / "rmqctl" / "sink").iterdir()) == []
    assert list((root.parent).glob("staging/*")) == []


def test_the_marker_says_what_was_stored(root):
    commit(root, "w", 7, [staged(root)])
    value = json.loads((root / "rmqctl" / "sink" / "w.json").read_text())
    assert (value["batch"], value["state"], value["rows"]) == (7, "done", 50)


@pytest.mark.slow
def test_a_snapshot_has_no_markers(root):
    commit(root, "w", 0, [staged(root)])
    assert run("-S", root, "store", "snapshot", "--save", root.parent / "copy").code == 0
    assert (root.parent / "copy" / "rmqctl").is_dir()
    assert not (root.parent / "copy" / "rmqctl" / "sink").exists()


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize("kills", [4, pytest.param(400, marks=pytest.mark.long)])
def test_commits_that_are_killed_lose_and_double_nothing(kills):
    with fast_folder() as folder:
        one = Slim(
            "tests.support.killed_sink:kill_commits", folder=str(folder), seed=kills, kills=kills
        )
        found = one.result()
    assert found["failures"] == []
    assert found["begun"] > 0, found  # some were killed in the middle


@pytest.mark.parametrize("size", [1, 1000, 30_000])
def test_many_rows_are_stored_where_a_batch_may_have_few_bytes(tmp_path, size):
    root = tmp_path / "store"
    create_store(root, SMALL_STORE.with_(max_message_size=64 << 10))
    bodies = [f"{'x' * size}-{number}" for number in range(2500 if size == 1 else 200)]
    assert commit(root, "w", 0, [staged(root, *bodies)]) == len(bodies)
    assert Counter(stored_bodies(root)) == Counter(bodies)


def test_rows_over_many_queues_do_not_wait_for_all_of_them(root, monkeypatch):
    """What waits is in memory: a batch for each queue would be without a bound."""
    monkeypatch.setattr(sink_commit, "_MOST_WAITING", 100_000)
    topics = [f"t{number}" for number in range(40)]
    most = 0

    def rows(broker: EmbeddedBroker) -> Iterator[Outgoing]:
        nonlocal most
        for given in range(800):
            stored = sum(broker.view.max_offset_in_queue(topic, 0) for topic in topics)
            most = max(most, given - stored)
            topic = topics[0] if given % 4 else topics[given // 4 % 40]
            yield Outgoing(Message(topic, b"%04d" % given + bytes(1000)), 0, 1004)

    with EmbeddedBroker.open(root) as broker:
        assert append(broker, rows(broker)) == 800
    assert 30 < most < 100
    stored: dict[str, list[bytes]] = {}
    for row in read_table("messages", root, columns=["topic", "queue_offset", "body"]):
        stored.setdefault(row["topic"], []).append(row["body"][:4])
    assert {topic: len(bodies) for topic, bodies in stored.items()} == {
        topic: 605 if topic == topics[0] else 5 for topic in topics
    }
    assert all(bodies == sorted(bodies) for bodies in stored.values())
