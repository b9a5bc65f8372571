"""``lag show`` against what real brokers say, and on stores that are made here."""

import subprocess
import sys

import pytest

from tests.support import golden, golden_samples
from tests.support.cli import ROOT, run, start

GROUP_FIELDS = [
    *("group", "topic", "queues", "lag", "lag_bytes", "oldest_unread_timestamp"),
    *("oldest_unread_age_ms", "rate_in", "rate_out", "drain_ms", "status", "retry", "dlq"),
    *("worst_queue_id", "skew", "lost", "risk_timestamp", "unknown_queues"),
]


def shown(*options):
    result = run("lag", "show", "-o", "json", *options)
    assert result.code == golden.code_of_reading(*options), result.err
    return result.json()


def golden_rows(name):
    """What mqadmin says of each group, topic and queue of a golden store."""
    return {
        (group["group"], row["topic"], row["queueId"]): row
        for group in golden.manifest(name).get("groups", [])
        for row in group.get("rows", [])
    }


def offsets_in_file(name):
    """Group, topic and queue to the offset that the broker's file holds."""
    manifest = golden.manifest(name)
    table = (
        manifest.get("consumerOffset") or manifest["configs"].get("lmqConsumerOffset.json") or {}
    )
    return {
        (key.rpartition("@")[2], key.rpartition("@")[0], int(queue_id)): offset
        for key, offsets in table.get("offsetTable", {}).items()
        for queue_id, offset in offsets.items()
    }


@pytest.mark.feature(41, 48)
@golden_samples.SOME
def test_each_queue_of_a_golden_store_has_the_lag_that_mqadmin_gives(name):
    """Where nothing is committed, or too much, mqadmin makes a number up and we say null."""
    rows = shown("-S", golden.store(name), "--by", "queue", "--include-retry")
    bounds = {
        (queue["topic"], queue["queueId"]): queue for queue in golden.manifest(name)["queues"]
    }
    said = golden_rows(name)
    committed = offsets_in_file(name)
    seen = set()
    for row in rows:
        key = row["group"], row["topic"], row["queue_id"]
        seen.add(key)
        assert row["committed_offset"] == committed.get(key)
        queue = bounds.get(key[1:], {"minOffset": 0, "maxOffset": 0})
        assert row["max_offset"] == queue["maxOffset"]
        offset = row["committed_offset"]
        if offset is None or offset > queue["maxOffset"]:
            assert row["lag"] is row["lag_bytes"] is row["lost"] is None
            continue
        assert row["lag"] == queue["maxOffset"] - offset
        if key in said:
            assert row["lag"] == said[key]["diff"]
    system = {key for key in committed if key[0].startswith("CID_RMQ_SYS_")}
    assert seen >= committed.keys() - system


@pytest.mark.feature(42, 43, 44, 45)
@golden_samples.SOME
def test_sums_bytes_and_times_of_a_golden_store_are_those_of_its_messages(name):
    """Against the manifest's own list of messages, one by one."""
    manifest = golden.manifest(name)
    rows = shown("-S", golden.store(name))
    committed = offsets_in_file(name)
    ends = {(queue["topic"], queue["queueId"]): queue["maxOffset"] for queue in manifest["queues"]}
    for row in rows:
        offsets = {
            key[2]: offset
            for key, offset in committed.items()
            if key[:2] == (row["group"], row["topic"]) and offset <= ends.get(key[1:], 0)
        }
        lags = [ends.get((row["topic"], q), 0) - offset for q, offset in offsets.items()]
        known = sum(lags) if offsets else None
        # Nothing that is known is unread, and something is unknown: that is no 0.
        assert row["lag"] == (None if row["unknown_queues"] and not known else known)
        unread = [
            message
            for message in manifest["messages"]
            if message["topic"] == row["topic"]
            and message["queueOffset"] >= offsets.get(message["queueId"], 1 << 62)
        ]
        if unread and "storeTimestamp" not in unread[0]:
            continue  # for stores made from others the manifest has less
        if len(unread) == sum(lags) - (row["lost"] or 0):
            size = sum(message["storeSize"] for message in unread)
            assert row["lag_bytes"] == (None if row["lag"] is None else size)
            stored = [message["storeTimestamp"] for message in unread]
            assert row["oldest_unread_timestamp"] == min(stored, default=None)


def test_the_fields_are_those_of_the_contract(store):
    run("produce", "t", stdin=b"a\n")
    run("consume", "t", "-g", "g", "-e")
    (row,) = shown()
    assert list(row) == GROUP_FIELDS


@pytest.mark.parametrize(
    ("args", "field"),
    [
        (["show", "--by", "queue"], "committed_offset"),
        (["show", "--by", "topic"], "groups"),
        (["show"], "unknown_queues"),
        (["watch", "--rate"], "members_needed"),
    ],
)
def test_help_lists_the_fields_of_the_rows_that_are_asked_for(store, args, field):
    result = run("lag", *args, "-o", "help")
    assert result.code == 0
    assert field in {line.split()[0] for line in result.lines}
    assert run("lag", args[0], "-o", "help", *args[1:]).out == result.out


@pytest.mark.slow
@pytest.mark.feature(42, 48, 58)
def test_a_group_that_has_begun_some_queues_only_says_how_many_are_unknown(store):
    run("produce", "t", "--queue", 0, stdin=b"a\nb\nc\n")
    run("produce", "t", "--queue", 1, stdin=b"d\n")
    run("consume", "t", "-g", "g", "-e", "-c", 1, "-Q", 0)
    (row,) = shown()
    assert (row["queues"], row["lag"], row["unknown_queues"]) == (4, 2, 3)
    assert (row["worst_queue_id"], row["skew"]) == (0, 1.0)
    by_queue = shown("--by", "queue")
    assert [row["lag"] for row in by_queue] == [2, None, None, None]
    assert [row["status"] for row in by_queue] == ["OK", "UNKNOWN", "OK", "OK"]


@pytest.mark.slow
@pytest.mark.feature(42)
def test_topics_sum_up_their_groups(store):
    run("produce", "t", "--queue", 0, stdin=b"a\nb\nc\n")
    for group, count in (("g", 1), ("h", 2)):
        run("consume", "t", "-g", group, "-e", "-c", count, "-Q", 0)
    (row,) = shown("--by", "topic")
    assert (row["topic"], row["groups"], row["lag"]) == ("t", 2, 3)
    assert (row["worst_queue_id"], row["unknown_queues"]) == (0, 6)


@pytest.mark.feature(56)
def test_retries_and_dead_letters_stand_beside_the_lag():
    rows = {row["group"]: row for row in shown("-S", golden.store("retry-dlq-4.9"))}
    ends = {
        queue["topic"]: queue["maxOffset"] for queue in golden.manifest("retry-dlq-4.9")["queues"]
    }
    read = offsets_in_file("retry-dlq-4.9")
    for group in ("g-flaky", "g-late", "g-slow", "g-orderly", "g-fine"):
        retry = f"%RETRY%{group}"
        assert rows[group]["retry"] == ends.get(retry, 0) - read.get((group, retry, 0), 0)
        assert rows[group]["dlq"] == ends.get(f"%DLQ%{group}", 0)
    assert rows["g-slow"]["retry"] > 0
    assert rows["g-flaky"]["dlq"] > 0
    with_retry = shown("-S", golden.store("retry-dlq-4.9"), "g-slow", "--include-retry")
    assert [(row["topic"], row["lag"]) for row in with_retry] == [
        ("%RETRY%g-slow", rows["g-slow"]["retry"]),
        ("GoldenRetry", 0),
    ]


@pytest.mark.feature(53)
@pytest.mark.slow
def test_members_make_a_group_though_it_has_no_progress_yet(store):
    run("produce", "t", stdin=b"hello\n")
    with start("consume", "t", "-g", "new") as member:
        try:
            assert member.stdout.readline() == b"hello\n"
            assert {row["group"] for row in shown()} == {"new"}
            watched = run("lag", "watch", "new", "--rate", "-o", "jsonl", "--limit", 1)
            assert '"members":1,' in watched.lines[0]
        finally:
            member.kill()


@pytest.mark.parametrize("name", ["basic-4.9", "retention-5.3", "unclean-4.9"])
@pytest.mark.parametrize(
    "command", [["show"], ["check"], ["risk"], ["watch", "--until-drained", "--timeout", "300ms"]]
)
def test_looking_changes_nothing(tmp_path, name, command):
    root = golden.extract(name, tmp_path)
    before = {path: path.stat() for path in [root, *root.rglob("*")]}
    run("lag", *command, "-S", root)
    after = {path: path.stat() for path in [root, *root.rglob("*")]}
    assert {path: (s.st_mtime_ns, s.st_size, s.st_ino) for path, s in before.items()} == {
        path: (s.st_mtime_ns, s.st_size, s.st_ino) for path, s in after.items()
    }


@pytest.mark.slow
def test_a_look_at_a_small_store_loads_nothing_heavy(store):
    run("produce", "t", stdin=b"a\n")
    run("consume", "t", "-g", "g", "-e")
    probe = "import sys; from rmqctl.app import main; main(sys.argv[1:]); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", probe, "-S", str(store), "lag", "show", "-o", "json"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "analytics.lag.lag_snapshot" in loaded
    assert not loaded & {"numpy", "rich", "pyspark", "yaml", "pyarrow", "concurrent.futures"}


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["nope"], 3, "group nope has no progress and no members in"),
        (["-t", "nope"], 3, "topic nope does not exist in"),
        (["a b"], 2, "group 'a b' has characters other than"),
    ],
)
def test_unknown_names_are_one_sentence(store, args, code, sentence):
    result = run("lag", "show", *args)
    assert (result.code, result.err.count("\n")) == (code, 1)
    assert sentence in result.err


def test_a_store_without_groups_shows_nothing(store):
    assert shown() == []
