"""``lag histogram`` and ``lag risk``, against what real brokers left."""

import json
import os
import re
import time
from collections import Counter

import pytest

from analytics.lag.exact_times import Part
from analytics.lag.queue_position import QueuePosition
from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from rmqctl.admin.lag.backlog import name_rows
from storage.config import SMALL_STORE
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from tests.support import golden
from tests.support.cli import run
from tests.support.hand_made import START_MS, TINY, HandMade


def rows(*args):
    result = run("lag", *args, "-o", "json")
    assert result.code == 0, result.err
    return result.json()


def unread(name, group):
    """The unread messages of a group, by the manifest."""
    manifest = golden.manifest(name)
    table = manifest["consumerOffset"]["offsetTable"]
    found = []
    for key, offsets in table.items():
        topic, _, reader = key.rpartition("@")
        if reader == group and topic != f"%RETRY%{group}":
            found += [
                message
                for message in manifest["messages"]
                if message["topic"] == topic
                and message["queueOffset"] >= offsets.get(str(message["queueId"]), 1 << 62)
            ]
    return found


@pytest.mark.feature(47)
@pytest.mark.parametrize("name", ["basic-4.9", "basic-5.3"])
@pytest.mark.parametrize("group", ["g-half", "g-partial", "g-tags"])
def test_tags_are_counted_by_name_although_their_hashes_collide(name, group):
    expected = Counter(
        (message.get("properties") or {}).get("TAGS", "(none)") for message in unread(name, group)
    )
    found = rows("histogram", group, "--of", "tag", "--buckets", 1000, "-S", golden.store(name))
    assert {row["bucket"]: row["messages"] for row in found} == expected
    counts = [row["messages"] for row in found]
    assert counts == sorted(counts, reverse=True)
    assert sum(row["bytes"] for row in found) == sum(
        message["storeSize"] for message in unread(name, group)
    )


@pytest.mark.feature(47)
def test_rare_names_come_last_together():
    found = rows(
        "histogram", "g-half", "--of", "tag", "--buckets", 2, "-S", golden.store("basic-4.9")
    )
    assert [row["bucket"] for row in found][2:] == ["(other)"]
    assert sum(row["messages"] for row in found) == len(unread("basic-4.9", "g-half"))
    hosts = rows("histogram", "g-half", "--of", "host", "-S", golden.store("basic-4.9"))
    assert [row["bucket"] for row in hosts] == ["127.0.0.1"]


@pytest.mark.feature(46)
def test_sizes_and_ages_cover_the_whole_backlog():
    store = golden.store("basic-4.9")
    messages = unread("basic-4.9", "g-half")
    for of, buckets in (("size", "1K,4K,16K"), ("age", "1h,1000w")):
        found = rows("histogram", "g-half", "--of", of, "--buckets", buckets, "-S", store)
        assert sum(row["messages"] for row in found) == len(messages)
        assert sum(row["bytes"] for row in found) == sum(m["storeSize"] for m in messages)
        assert sum(row["share"] for row in found) == pytest.approx(1, abs=0.001)


def test_shares_are_of_messages_where_a_message_has_several_keys(tmp_path):
    create_store(tmp_path / "s", SMALL_STORE)
    with EmbeddedBroker.open(tmp_path / "s") as broker:
        broker.update_topic(TopicConfig("t", 1, 1))
        for number in range(10):
            broker.send(Message("t", b"x", keys=["all", f"a{number}", f"b{number}"]), 0)
        size = broker.view.log_max_offset()
        parts = [Part("t", 0, QueuePosition(0, 0, 10))]
        rows, read = name_rows(broker.view, parts, lambda m: m.keys, 2, lambda _: None)
    assert read == 10
    assert [row[:4] for row in rows] == [
        ("all", 10, 1.0, size),
        ("a0", 1, 0.1, size // 10),
        ("(other)", 10, 1.0, size),
    ]
    assert len({row.bar for row in rows if row.messages == 10}) == 1


@pytest.mark.feature(46)
def test_ages_are_told_in_a_sentence_and_buckets_have_edges(store):
    run("produce", "t", "--queue", 0, stdin=b"a\nb\n")
    run("consume", "t", "-g", "g", "-e", "-c", 1, "-Q", 0)
    result = run("lag", "histogram", "g", "--buckets", "1h,2h", "-o", "json")
    (row,) = result.json()
    assert (row["bucket"], row["low"], row["high"]) == ("< 1h", None, 3_600_000)
    assert (row["messages"], row["share"]) == (1, 1.0)
    assert result.err.startswith("3 queues are not counted") or "ages: median" in result.err


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["nobody"], 3, "group nobody has no progress"),
        (["g", "--buckets", "5m,1m"], 2, "'5m,1m' is not an ascending list"),
        (["g", "--of", "tag", "--buckets", "x"], 2, "'x' is not a number of names"),
        (["g", "--of", "size", "--buckets", "1m"], 0, ""),
    ],
)
def test_wrong_buckets_are_one_sentence(store, args, code, sentence):
    run("produce", "t", stdin=b"a\n")
    run("consume", "t", "-g", "g", "-e")
    result = run("lag", "histogram", *args)
    assert result.code == code
    assert sentence in result.err


@pytest.fixture
def unreadable(tmp_path):
    """Forty unread messages a minute apart, of which five cannot be read."""
    made = HandMade(TINY)
    for number in range(40):
        made.put("T", 0, tags="ab"[number % 2], keys=(f"k{number}",), step_ms=60_000)
    for number in (0, 1, 20, 21, 30):
        at = made.messages[number].commitlog_offset
        made.log[at + 4 : at + 8] = bytes(4)
    root = tmp_path / "damaged"
    root.mkdir()
    made.write(root)
    (root / "config").mkdir()
    offsets = {"offsetTable": {"T@g": {"0": 0}}}
    (root / "config" / "consumerOffset.json").write_text(json.dumps(offsets))
    return root


@pytest.mark.feature(46, 47)
@pytest.mark.parametrize("of", ["age", "tag", "key", "host"])
def test_what_can_not_be_read_is_counted_in_a_sentence(unreadable, of):
    done = run("lag", "histogram", "g", "--of", of, "-S", unreadable, "-o", "json")
    assert done.code == 8
    assert sum(row["messages"] for row in done.json()) == 35
    assert "5 of 40 unread messages cannot be read and are in no row" in done.err
    if of == "age":
        half, oldest = re.findall(r"median (\d+)d.* maximum (\d+)d", done.err)[0]
        days = (time.time() * 1000 - START_MS) / 86_400_000
        assert int(half) <= int(oldest) <= days


@pytest.fixture
def aged(tmp_path):
    """A golden store in which the oldest of its three log files was written five days ago."""
    root = golden.extract("retention-4.9", tmp_path)
    files = sorted((root / "commitlog").iterdir())
    assert len(files) == 3
    for path in files:
        os.utime(path)
    five_days_ago = time.time() - 5 * 86_400
    os.utime(files[0], (five_days_ago, five_days_ago))
    return root, int(files[1].name)


@pytest.mark.feature(52)
def test_what_will_be_deleted_unread_is_counted_message_by_message(aged):
    root, safe = aged
    found = {row["group"]: row for row in rows("risk", "--within", "2d", "-S", root)}
    for group in ("g-behind", "g-inside", "g-mixed"):
        doomed = [m for m in unread("retention-4.9", group) if m["commitLogOffset"] < safe]
        row = found.get(group, {"at_risk": 0, "at_risk_bytes": 0})
        assert row["at_risk"] == len(doomed)
        assert row["at_risk_bytes"] == sum(message["storeSize"] for message in doomed)
    assert found["g-behind"]["at_risk"] > 0
    assert 0 <= found["g-behind"]["risk_in_ms"] <= 86_400_000


@pytest.mark.parametrize("of", ["age", "size", "tag"])
def test_what_was_deleted_unread_is_told_beside_the_rows_of_the_rest(of):
    root = golden.store("retention-4.9")
    lost = {row["group"]: row["lost"] for row in rows("risk", "-S", root)}
    group = next(name for name, count in lost.items() if count)
    result = run("lag", "histogram", group, "--of", of, "-S", root, "-o", "json")
    assert f"{lost[group]} unread messages were deleted before the group read them" in result.err


@pytest.mark.feature(52)
def test_what_was_deleted_unread_is_told_by_every_command(aged):
    root, _ = aged
    said = {row["group"]: row["lost"] for row in rows("risk", "--within", "1ms", "-S", root)}
    manifest = golden.manifest("retention-4.9")
    # Of a queue that has lost everything 4.9 says that it begins at 0; it begins at its end.
    bounds = {(q["topic"], str(q["queueId"])): q["maxOffset"] for q in manifest["queues"]}
    for message in manifest["messages"]:
        place = message["topic"], str(message["queueId"])
        bounds[place] = min(bounds[place], message["queueOffset"])
    table = manifest["consumerOffset"]["offsetTable"]
    for group, lost in said.items():
        assert lost == sum(
            max(0, bounds[key.rpartition("@")[0], queue_id] - offset)
            for key, offsets in table.items()
            for queue_id, offset in offsets.items()
            if key.endswith(f"@{group}") and (key.rpartition("@")[0], queue_id) in bounds
        )
    shown = {row["group"]: row["lost"] for row in rows("show", "-S", root)}
    assert said == {group: lost for group, lost in shown.items() if lost}


@pytest.mark.feature(52)
def test_the_time_that_files_are_kept_can_be_named(aged):
    root, _ = aged
    run_away = ["risk", "--within", "1d", "--file-reserved-time", "100d", "-S", root]
    found = {row["group"]: row["at_risk"] for row in rows(*run_away)}
    # Of g-mixed it is unknown what it has read of queue 3.
    assert found == {"g-behind": 0, "g-idle": 0, "g-mixed": None}
    (row,) = [row for row in rows("show", "-S", root) if row["group"] == "g-behind"]
    assert row["risk_timestamp"] > time.time() * 1000 - 1000


def test_nothing_at_risk_is_said_in_a_sentence(store):
    run("produce", "t", stdin=b"a\n")
    run("consume", "t", "-g", "g", "-e")
    result = run("lag", "risk", "--within", "7d", "-o", "json")
    assert (result.json(), result.code) == ([], 0)
    assert "no unread message was deleted, and none will be within 7d" in result.err
