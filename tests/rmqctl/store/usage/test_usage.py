"""What fills the disk, what is deleted next, and deleting it."""

import csv
import os
import subprocess
import time

import pytest

from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from storage.parse.durations import format_size
from storage.store import MessageStore
from tests.support import golden
from tests.support.cli import run
from tests.support.dead_letters import give_back
from tests.support.java_lock import java_lock
from tests.support.samples import TINY

DO = ("--execute", "--yes", "-q")
HOUR = 3_600
NOW = time.time()
DAY_MS = 86_400_000
START = 1_767_225_600_000
"""2026-01-01 00:00:00 UTC"""


def rows_of(root, *words):
    result = run("store", *words, "-S", root, "-o", "json")
    assert result.code == 0, result.err
    return result.json()


@pytest.fixture
def aged(tmp_path):
    """Two topics over some log files; all but the last three are four days old."""
    root = tmp_path / "s"
    MessageStore.create(root, TINY)
    with EmbeddedBroker.open(root) as broker:
        for topic in ("big", "small"):
            broker.update_topic(TopicConfig(topic, 1, 1))
        for n in range(120):
            broker.send(Message("big", b"%d" % n + bytes(300)), 0)
            if n % 4 == 0:
                broker.send(Message("small", b"%d" % n), 0)
        broker.update_consumer_offsets("late", [OffsetCommit("big", 0, 3)])
        broker.update_consumer_offsets("done", [OffsetCommit("big", 0, 120)])
    logs = sorted((root / "commitlog").iterdir())
    assert len(logs) > 5
    now = logs[-1].stat().st_mtime
    for path in logs[:-3]:
        os.utime(path, (now - 96 * HOUR, now - 96 * HOUR))
    return root, [path.name for path in logs]


@pytest.mark.slow
def test_bytes_of_all_topics_and_the_rest_are_the_log(aged):
    root, _ = aged
    rows = rows_of(root, "du")
    topics = {row["topic"]: row for row in rows}
    assert topics["big"]["messages"] == 120
    assert topics["big"]["bytes"] > 20 * topics["small"]["bytes"] / 2
    info = run("store", "info", "-S", root, "-o", "json").json()["commitlog"]
    assert sum(row["bytes"] for row in rows) == info["max_offset"] - info["min_offset"]
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    assert topics["big"]["unread_by"] == ["late"]
    assert topics["small"]["unread_by"] == []


@pytest.mark.feature(117, 118, 125)
@pytest.mark.slow
def test_what_is_said_to_be_freed_next_is_what_clean_frees(aged):
    root, logs = aged
    before = {row["topic"]: row for row in rows_of(root, "du")}
    told = run("store", "du", "-S", root).err
    assert f"the next clean deletes {len(logs) - 3} of {len(logs)} log files" in told
    assert ", now" in told or f"'rmqctl store clean' would delete {len(logs) - 3} now" in told
    assert "2 stay because they were written within the last 72 h" in told
    assert "the newest log file always stays" in told
    assert "% full" in told
    plan = rows_of(root, "clean", "-n")
    assert [row["file"] for row in plan] == [f"commitlog/{name}" for name in logs[:-3]]
    assert plan[0]["unread_by"] == ["late"]
    assert sorted(path.name for path in (root / "commitlog").iterdir()) == logs
    done = rows_of(root, "clean", "-y")
    assert all(row["applied"] for row in done)
    gone = [row for row in done if row["kind"] == "log"]
    assert [row["file"] for row in gone] == [row["file"] for row in plan]
    assert sorted(path.name for path in (root / "commitlog").iterdir()) == logs[-3:]
    after = {row["topic"]: row for row in rows_of(root, "du")}
    for topic in ("big", "small"):
        assert before[topic]["bytes"] - after[topic]["bytes"] == before[topic]["freed_next"] > 0
    of_plan = sum(row["messages"] for row in plan)
    assert sum(before[t]["messages"] - after[t]["messages"] for t in ("big", "small")) == of_plan
    assert rows_of(root, "clean", "-n") == []
    assert run("store", "fsck", "-S", root, "--fail-on", "warning").code == 0
    assert run("audit", "list", "-S", root, "-o", "json").json()[-1]["command"] == "store clean"


@pytest.mark.filterwarnings("always::storage.errors.DamagedFileWarning")
def test_a_damaged_index_file_is_named_and_stays(aged):
    root, logs = aged
    first = min((root / "index").iterdir())
    os.truncate(first, 10)
    result = run("store", "clean", "-S", root, "-o", "json", "-y")
    assert result.code == 0, result.err
    assert f"{first.name} is damaged at byte 10: the file ends before byte 40" in result.err
    assert len([row for row in result.json() if row["kind"] == "log"]) == len(logs) - 3
    assert first.exists()


def test_a_young_file_keeps_all_behind_it(aged):
    root, logs = aged
    os.utime(root / "commitlog" / logs[2])
    assert [row["file"] for row in rows_of(root, "clean", "-n")] == [
        f"commitlog/{name}" for name in logs[:2]
    ]


def test_a_store_of_one_log_file_keeps_it_for_ever(store):
    run("produce", "t", stdin=b"x\n")
    for path in (store / "commitlog").iterdir():
        os.utime(path, (1, 1))
    assert rows_of(store, "clean", "-n") == []
    assert "nothing will be deleted" in run("store", "du").err


@pytest.mark.slow
def test_it_is_refused_beside_a_java_broker(aged):
    root, logs = aged
    with java_lock(root):
        assert run("store", "clean", "-S", root, *DO).code == 5
    assert sorted(path.name for path in (root / "commitlog").iterdir()) == logs


def test_retries_and_dead_letters_stand_by_group(store):
    with EmbeddedBroker.open(store) as broker:
        sent = broker.send(Message("t", b"x"), 0)
        (message,) = broker.query_unique("t", sent.msg_id)
        give_back(broker, "g", message)
        give_back(broker, "g", message)
    (row,) = rows_of(store, "du", "--by", "group")
    assert (row["group"], row["messages"], row["topic"]) == ("g", 2, None)


def test_days_add_up_to_what_topics_hold(tmp_path):
    root = tmp_path / "s"
    clock = [START]
    MessageStore.create(root, TINY)
    with EmbeddedBroker.open(root, clock=lambda: clock[0]) as broker:
        broker.update_topic(TopicConfig("t", 2, 2))
        for day, count in enumerate((3, 0, 5, 1)):
            clock[0] = START + day * DAY_MS
            for n in range(count):
                clock[0] += 1_000
                broker.send(Message("t", b"%d" % n), n % 2)
    rows = rows_of(root, "--tz", "UTC", "du", "--by", "day")
    assert [(row["from_timestamp"], row["messages"]) for row in rows] == [
        (START, 3),
        (START + 2 * DAY_MS, 5),
        (START + 3 * DAY_MS, 1),
    ]


@pytest.mark.slow
@pytest.mark.feature(117)
def test_the_sum_is_what_du_says_in_every_form(aged):
    root, _ = aged
    line = ["du", "-s", "--block-size=1", str(root)]
    said = int(subprocess.run(line, capture_output=True, check=True).stdout.split()[0])
    assert sum(row["disk_bytes"] for row in rows_of(root, "du")) == said
    assert sum(row["disk_bytes"] for row in rows_of(root, "du", "--by", "kind")) == said
    result = run("store", "du", "--by", "kind", "-S", root, "-o", "csv")
    assert sum(int(line["disk_bytes"]) for line in csv.DictReader(result.out.splitlines())) == said
    assert f"{format_size(said)} on the disk, as 'du -s' counts" in result.err


def test_nothing_to_clean_names_what_decides(aged):
    root, logs = aged
    for name in logs:
        os.utime(root / "commitlog" / name, (0, NOW - 30 * HOUR if name in logs[:2] else NOW))
    result = run("store", "clean", "-n", "-S", root)
    assert result.code == 0
    assert "fileReservedTime is 72 h" in result.err
    assert "'rmqctl store clean --older-than 24h' would free 2 files, 8K" in result.err
    assert "the clean hour is 04 (deleteWhen), which would free nothing now" in result.err
    assert "(diskMaxUsedSpaceRatio)" in result.err
    assert result.err.endswith("there is nothing to change\n")
    plan = rows_of(root, "clean", "-n", "--older-than", "24h")
    assert [row["file"] for row in plan] == [f"commitlog/{name}" for name in logs[:2]]


@pytest.mark.slow
def test_a_shorter_age_needs_the_name_of_the_folder(aged):
    root, logs = aged
    words = ("store", "clean", "-S", root, "--older-than", "1s", "--yes")
    refused = run(*words)
    assert (refused.code, "--confirm s --yes" in refused.err) == (7, True)
    assert sorted(path.name for path in (root / "commitlog").iterdir()) == logs
    for path in (root / "commitlog").iterdir():
        os.utime(path, (1, 1))
    assert run(*words, "--confirm", "s").code == 0
    assert sorted(path.name for path in (root / "commitlog").iterdir()) == logs[-1:]
    assert run("store", "clean", "-S", root, "--older-than", "soon").code == 2


@pytest.mark.parametrize("name", ["retention-4.9", "retry-dlq-4.9", "lmq-4.9", "cqext-4.9"])
def test_stores_of_brokers_are_counted_and_left_alone(name):
    root = golden.store(name)
    before = sorted(path for path in root.rglob("*"))
    usage = {row["topic"]: row for row in run("topic", "usage", "-S", root, "-o", "json").json()}
    for row in rows_of(root, "du"):
        if row["kind"] in ("topic", "deleted"):
            known = usage.get(row["topic"])  # of no topic: the rest of the log, if there is one
            assert row["bytes"] == (known["bytes"] if known else 0)
    assert run("store", "clean", "-S", root, "-n").code == 0
    assert sorted(path for path in root.rglob("*")) == before
