"""A real broker and a real consumer on stores that hold what consumers may not be able to use.

What was seen of RocketMQ 4.9.7, and is held here:

* A body that cannot be unpacked makes its client drop that message and the rest of the pull, in
  silence. The queue goes on with the next pull.
* A body without bytes is null there, and the client itself fails at it, whatever the listener does:
  what was pulled with it never comes to the listener, and the group's progress stands there. A
  consumer that is started again gets all later messages once more.

So no writer stores either unless that is asked for.
"""

import gzip
import json
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from broker.api.send import SendOptions
from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from storage.config import SMALL_STORE
from storage.configs.topics import TopicConfig
from storage.format.message import TRANS_HALF_TOPIC, Message
from storage.format.sys_flag import MessageSysFlag
from storage.readonly import StoreView
from storage.store import now_ms
from storage.tools.fsck import fsck
from tests.interop.cluster import Cluster, running_cluster
from tests.interop.store_probe import Row, Settings
from tests.support.cli import run
from tests.support.java import JavaError, Release

pytestmark = pytest.mark.interop

_SETTINGS: Settings = {
    "mappedFileSizeCommitLog": SMALL_STORE.mapped_file_size_commit_log,
    "mappedFileSizeConsumeQueue": SMALL_STORE.mapped_file_size_consume_queue,
    "maxHashSlotNum": SMALL_STORE.max_hash_slot_num,
    "maxIndexNum": SMALL_STORE.max_index_num,
    "messageDelayLevel": " ".join(["1s"] * 18),
}
_OF_A_PULL = 32
"""Messages that RocketMQ's consumer asks for at a time."""
_BEHIND = 40
_UNREADABLE = {
    "plain": (b"no zlib at all", 0x001),
    "gzip": (gzip.compress(b"a body"), 0x301),
    "raw-deflate": (zlib.compress(b"a body")[2:-4], 0x301),
    "cut": (zlib.compress(b"a longer body" * 50)[:-9], 0x301),
    "cut-to-a-byte": (zlib.compress(b"a body")[:1], 0x301),
    "wrong-sum": (zlib.compress(b"a body")[:-1] + b"?", 0x301),
    "no-type-known": (zlib.compress(b"a body"), 0x701),
    "said-to-be-zstd": (zlib.compress(b"a body"), 0x201),
    "said-to-be-lz4": (zlib.compress(b"a body"), 0x101),
}


@cache
def _bomb() -> tuple[bytes, int]:
    return zlib.compress(bytes((64 << 20) + 1)), 0x301


# A consumer of its own for each takes seconds: the short run has two kinds that differ.
_KINDS = pytest.mark.parametrize(
    "kinds",
    [["cut", "said-to-be-zstd"], pytest.param([*_UNREADABLE], marks=pytest.mark.long)],
    ids=["some", "all"],
)
_TOPICS = pytest.mark.parametrize(
    "consumed",
    [
        pytest.param(["lines", "packed"], marks=pytest.mark.long),
        pytest.param(
            ["with-keys", "csv", "blank-keys", "tag-of-two", "jsonl", "hex"], marks=pytest.mark.long
        ),
    ],
    ids=["some", "others"],
)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "store"
    create_store(root, SMALL_STORE)
    monkeypatch.setenv("RMQCTL_STORE", str(root))
    return root


def _send_around(root: Path, topic: str, body: bytes, flag: int, following: int = _BEHIND) -> None:
    """Store an odd body at offset 1 of queue 0, and messages around it and in queue 1."""
    with EmbeddedBroker.open(root) as broker:
        broker.update_topic(TopicConfig(topic, 2, 2))
        broker.send(Message(topic, b"first"), 0)
        broker.send(Message(topic, body, tags="odd"), 0, SendOptions(sys_flag=flag))
        for number in range(following):
            broker.send(Message(topic, b"behind %d" % number), 0)
        broker.send(Message(topic, b"in another queue"), 1)


def _offsets(rows: list[Row], queue_id: int = 0) -> list[int]:
    return sorted(row["queueOffset"] for row in rows if row["queueId"] == queue_id)


def _progress(cluster: Cluster, topic: str, group: str) -> dict[int, int]:
    return {
        row["queueId"]: row["consumerOffset"]
        for row in cluster.consume_stats(group)
        if row["topic"] == topic
    }


def _bodies_at_fault(root: Path) -> list[str]:
    with StoreView.open(root) as view:
        return [found.code for found in fsck(view).findings if found.code.startswith("BODY_")]


def _odd_lines(root: Path) -> Iterator[str]:
    """Have each writer store what it takes of odd input; give the topics."""
    given = b"a\n\nfail once\n \n\t\nb\n\n"
    for topic, options, lines in (
        ("lines", [], given),
        ("blank-keys", ["-k", "order 17  x"], given),
        ("tag-of-two", ["--tag", "a||b"], given),
        ("with-keys", ["-K", ","], b"k 1,a\n\nk,fail once\nk2,\nk3,b\n"),
        ("jsonl", ["--input", "jsonl"], b'{"body":"a"}\n\n{"body":"fail once"}\n{"body":""}\n'),
        ("hex", ["--input", "hex"], b"61\n\n6661696c\n\n62\n"),
        ("csv", ["--input", "csv"], b'body,tags\na,x\nfail once,"x||y"\n"",z\n'),
        ("packed", ["-D", ""], b"\n" * 9_000),
    ):
        assert run("topic", "create", topic, "--queues", 2).code == 0
        sent = run("produce", topic, *options, stdin=lines)
        assert sent.code in {0, 8}, sent.err
        assert run("produce", topic, "-Q", 0, stdin=b"behind\n").code == 0
        assert run("produce", topic, "-Q", 1, stdin=b"behind\n").code == 0
        yield topic


@_TOPICS
def test_a_consumer_reads_all_that_our_writers_store_by_themselves(
    java49: Release, store: Path, tmp_path: Path, consumed: list[str]
) -> None:
    """Odd lines, and records of another store that cannot be used: no queue stands still."""
    topics = list(_odd_lines(store))
    assert set(consumed) < set(topics)
    other = tmp_path / "other"
    create_store(other, SMALL_STORE)
    for kind, (body, flag) in {**_UNREADABLE, "bomb": _bomb(), "empty": (b"", 0)}.items():
        _send_around(other, f"from-{kind}", body, flag, 3)
    raw = tmp_path / "all.raw"
    raw.write_bytes(run("-S", other, "message", "export", "--as", "raw").raw)
    for keeps in ([], ["--keep-times"]):
        target = tmp_path / f"target{len(keeps)}"
        create_store(target, SMALL_STORE)
        imported = run("-S", target, "message", "import", raw, "--skip-invalid", *keeps)
        assert imported.code == 8, imported.err
        assert not _bodies_at_fault(target)
        for kind in (*_UNREADABLE, "bomb", "empty"):
            assert len(run("-S", target, "consume", f"from-{kind}", "-e").lines) == 5
    assert not _bodies_at_fault(store)
    wanted = {topic: run("consume", topic, "-e", "-o", "jsonl").lines for topic in topics}

    with running_cluster(java49, store, tmp_path, _SETTINGS) as cluster:
        for topic in consumed:
            places = {_place(json.loads(line)) for line in wanted[topic]}
            # One that a listener fails at comes once more; once is enough to see, it takes 20 s.
            fails = sum('"fail' in line for line in wanted[topic]) if topic == "lines" else 0
            failing = "fail" if fails else None
            got = cluster.consume(
                topic, f"g-{topic}", len(places) + fails, fails_at=failing, deadline=90.0
            )
            first = [row for row in got if not row["reconsumeTimes"]]
            again = [row for row in got if row["reconsumeTimes"]]
            assert {(row["queueId"], row["queueOffset"]) for row in first} == places, topic
            assert (len(first), len(again)) == (len(places), fails), topic
            ends = {row["queueId"]: row["maxOffset"] for row in cluster.topic_stats(topic)}
            assert _progress(cluster, topic, f"g-{topic}") == ends, topic


def _place(row: Row) -> tuple[int, int]:
    return row["queue_id"], row["queue_offset"]


@_KINDS
def test_bodies_that_cannot_be_unpacked_hold_no_queue_up(
    java49: Release, store: Path, tmp_path: Path, kinds: list[str]
) -> None:
    """Nor does one that is larger than we unpack, which RocketMQ's client gives to its listener."""
    for kind, (body, flag) in {**_UNREADABLE, "bomb": _bomb()}.items():
        _send_around(store, kind, body, flag)
        assert len(run("consume", kind, "-e").lines) == _BEHIND + 2
    assert _bodies_at_fault(store) == ["BODY_UNREADABLE"] * (len(_UNREADABLE) + 1)
    end = _BEHIND + 2
    good = [0, *range(2, end)]
    with running_cluster(java49, store, tmp_path, _SETTINGS) as cluster:
        for kind in kinds:
            single = cluster.consume(kind, f"one-{kind}", end, pull_batch_size=1)
            assert (_offsets(single), _offsets(single, 1)) == (good, [0]), kind
            later = range(_OF_A_PULL, end)
            found = cluster.consume(kind, f"g-{kind}", 2 + len(later))
            assert (_offsets(found), _offsets(found, 1)) == ([0, *later], [0]), kind
            assert _progress(cluster, kind, f"g-{kind}") == {0: end, 1: 1}, kind
        found = cluster.consume("bomb", "g-bomb", end + 1)
        assert _offsets(found) == list(range(end))
        assert _progress(cluster, "bomb", "g-bomb") == {0: end, 1: 1}


@pytest.mark.long
@pytest.mark.parametrize("batch", [_OF_A_PULL, 1])
def test_a_body_without_bytes_stops_a_group_so_it_must_be_asked_for(
    java49: Release, store: Path, tmp_path: Path, batch: int
) -> None:
    assert run("topic", "create", "t", "--queues", 2).code == 0
    given = b"first\n\n" + b"behind\n" * _BEHIND
    end = _BEHIND + 2
    assert run("produce", "t", "-Q", 0, "--allow-empty", "-q", stdin=given).code == 0
    assert run("produce", "t", "-Q", 1, stdin=b"in another queue\n").code == 0
    assert _bodies_at_fault(store) == ["BODY_EMPTY"]
    stands = 1 if batch == 1 else 0
    following = [*range(max(2, batch), end)]
    with running_cluster(java49, store, tmp_path, _SETTINGS) as cluster:
        for passed, others in (([*range(stands)], [0]), ([], [])):
            wanted = [*passed, *following]
            count = len(wanted) + len(others)
            found = cluster.consume("t", "g", count, pull_batch_size=batch, stands_at=stands)
            assert (_offsets(found), _offsets(found, 1)) == (wanted, others)
            assert _progress(cluster, "t", "g") == {0: stands, 1: 1}
        cluster.stop()
    # What helps such a group: its progress is moved past the message.
    moved = run("offset", "reset", "-g", "g", "-t", "t:0", "--to-offset", 2, "--execute", "-y")
    assert moved.code == 0, moved.err
    with running_cluster(java49, store, tmp_path, _SETTINGS) as cluster:
        found = cluster.consume("t", "g", end - 2, pull_batch_size=batch)
        assert _offsets(found) == list(range(2, end))
        assert _progress(cluster, "t", "g") == {0: end, 1: 1}


@pytest.mark.long
def test_a_half_message_without_a_body_holds_no_transaction_up(
    java49: Release, store: Path, tmp_path: Path
) -> None:
    """A broker takes it, as RocketMQ's does; its check asks about it and about later ones."""
    prepared = SendOptions(sys_flag=MessageSysFlag.TRANSACTION_PREPARED_TYPE)
    half = {"TRAN_MSG": "true", "PGROUP": "p"}
    with EmbeddedBroker.open(store, clock=lambda: now_ms() - 100_000) as broker:
        for body in (b"", b"behind", b""):
            broker.send(Message("Tx", body, properties=half), 0, prepared)
    settings = {**_SETTINGS, "transactionTimeOut": 1_000, "transactionCheckInterval": 500}
    with running_cluster(java49, store, tmp_path, settings) as cluster:
        deadline = time.monotonic() + 30
        end = 3
        while end < 3 * 3:  # each was asked about twice, and is stored again before it is asked
            assert time.monotonic() < deadline
            with suppress(JavaError):  # the name server hears of the topic at the first check
                [row] = cluster.topic_stats(TRANS_HALF_TOPIC)
                end = row["maxOffset"]
        cluster.stop()
    with StoreView.open(store) as view:
        found = view.get_message(TRANS_HALF_TOPIC, 0, 0, 9).messages
    assert sorted(message.raw_body for message in found) == [b""] * 6 + [b"behind"] * 3
