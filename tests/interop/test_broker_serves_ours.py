"""A real broker on the folder that the command line filled serves it to real clients."""

import json
from pathlib import Path

import pytest

from storage.readonly import StoreView
from tests.interop import answers
from tests.interop.cluster import running_cluster
from tests.interop.store_probe import Row, java_message
from tests.support.cli import run
from tests.support.java import Release

pytestmark = pytest.mark.interop

_TOPIC = "from-the-shell"
_LINES = 300


@pytest.fixture
def store(tmp_path: Path) -> Path:
    root = tmp_path / "store"
    assert run("store", "init", root, "--small").code == 0
    lines = "".join(
        f"key{i % 50} order-{i}\tline {i} \U0001f680 {'x' * i}\n" for i in range(_LINES)
    )
    sent = run("-S", root, "produce", _TOPIC, "-K", "\t", "--tag", "even", stdin=lines.encode())
    assert sent.code == 0, sent.err
    one = run("-S", root, "produce", _TOPIC, "--tag", "single", "-H", "a=b", stdin=b"one\n")
    assert one.code == 0, one.err
    big = run("-S", root, "produce", _TOPIC, "-D", "", stdin=b"0123456789" * 5000)
    assert big.code == 0, big.err
    return root


@pytest.mark.parametrize("release", ["java49", pytest.param("java53", marks=pytest.mark.long)])
def test_a_broker_serves_what_the_shell_sent_and_the_shell_reads_what_the_broker_took(
    release: str, store: Path, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    java: Release = request.getfixturevalue(release)
    with StoreView.open(store) as view:
        sent = answers.dump(view)["messages"]
    assert len(sent) == _LINES + 2
    numbers = {line.split("=")[0]: int(line.split("=")[1]) for line in _sizes(store)}

    with running_cluster(java, store, tmp_path, numbers) as cluster:
        received = cluster.consume(_TOPIC, "readers", len(sent))
        assert _by_place(received) == _by_place(sent)
        [only] = cluster.consume(_TOPIC, "singles", 1, expression="single")
        assert only["properties"]["a"] == "b"
        refused = run("-S", store, "produce", _TOPIC, stdin=b"beside the broker\n")
        assert refused.code == 5
        beside = run("-S", store, "consume", _TOPIC, "-e", "-o", "jsonl")
        assert len(beside.lines) == len(sent)
        hits = cluster.query_by_key(_TOPIC, "key7")
        wanted = [row for row in sent if "key7" in row["properties"].get("KEYS", "").split()]
        assert _by_place(hits) == _by_place(wanted)
        assert len(wanted) == 6

        more = [
            java_message(_TOPIC, n % 4, b"from Java %d" % n, {"KEYS": f"j{n}"}) for n in range(40)
        ]
        more.append(java_message("new-topic", None, b"\xf0\x9f\x9a\x80" * 2000, {"TAGS": "T"}))
        results = cluster.produce(more)
        assert {row["status"] for row in results} == {"SEND_OK"}
        again = cluster.consume(_TOPIC, "readers", 40)
        assert len(again) == 40
        progress = {
            (row["topic"], row["queueId"]): row["consumerOffset"]
            for row in cluster.consume_stats("readers")
            if row["topic"] == _TOPIC
        }
        held = cluster.topic_stats(_TOPIC)
        assert progress == {(_TOPIC, row["queueId"]): row["maxOffset"] for row in held}
        cluster.stop()
    assert not (store / "abort").exists()

    _reads(store, _TOPIC, _LINES + 2 + 40)
    _reads(store, "new-topic", 1)
    offsets = run("-S", store, "offset", "list", "-g", "readers", "-t", _TOPIC, "-o", "json")
    assert {
        (row["topic"], row["queue_id"]): row["committed_offset"] for row in offsets.json()
    } == progress
    found = run("-S", store, "message", "get", results[3]["msgId"], "-o", "json")
    assert found.code == 0, found.err
    assert "from Java 3" in found.out
    last = run("-S", store, "produce", _TOPIC, stdin=b"after the broker\n")
    assert last.code == 0, last.err
    _reads(store, _TOPIC, _LINES + 2 + 40 + 1)
    assert run("-S", store, "store", "fsck").code == 0


def _sizes(root: Path) -> list[str]:
    """Give what `store init` says a broker.conf must say, but for the paths."""
    printed = run("store", "init", root.with_name("other"), "--small").lines
    return [line for line in printed if not line.startswith("storePath")]


def _reads(root: Path, topic: str, count: int) -> None:
    """Check that the command line reads so many messages of a topic, each once."""
    read = run("-S", root, "consume", topic, "-e", "-o", "jsonl")
    assert read.code == 0, read.err
    rows = [json.loads(line) for line in read.lines]
    assert len({(row["queue_id"], row["queue_offset"]) for row in rows}) == len(rows) == count


def _by_place(rows: list[Row]) -> list[Row]:
    names = ("queueId", "queueOffset", "commitLogOffset", "bodySha256", "storeTimestamp")
    found = [{name: row[name] for name in names} for row in rows]
    return sorted(found, key=lambda row: (row["queueId"], row["queueOffset"]))
