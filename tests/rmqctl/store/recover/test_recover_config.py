"""Settings that were half written are put together again, and nothing in them is made up."""

import os
import shutil
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl import app
from storage.config import SMALL_STORE
from storage.configs.config_file import ConfigFile
from storage.configs.delay_offsets import load_delay_offsets
from storage.configs.subscription_groups import subscription_groups_file
from storage.configs.topics import TopicConfig, topics_file
from storage.format.fastjson import dumps, loads
from storage.format.message import SCHEDULE_TOPIC, Message
from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.config_recovery.delays import salvage_delays
from tests.support import golden, golden_samples
from tests.support.cli import run
from tests.support.copies import copy_store
from tests.support.crash import Child
from tests.support.dead_letters import deliver
from tests.support.every_instant import die_at
from tests.support.java_lock import java_lock
from tests.support.watched_fs import WatchedFileSystem

RECOVER = ("store", "recover-config")
DO = ("--execute", "--yes", "-q")
TOPICS = "config/topics.json"
GROUPS = "config/subscriptionGroup.json"
DELAYS = "config/delayOffset.json"
START = 1_700_000_000_000


def recovered(root, *options):
    result = run(
        *RECOVER, "-S", root, "-o", "json", *options, *([] if "--yes" in options else ["-n"])
    )
    assert result.code == 0, result.err
    return {(row["file"], row["name"]): row for row in result.json()}


def lose_bak(root, file):
    (root / f"{file}.bak").unlink(missing_ok=True)


@golden_samples.SOME
def test_files_that_can_be_read_stay_as_they_are(name):
    assert recovered(golden.store(name)) == {}


@pytest.mark.slow
@pytest.mark.feature(115)
@pytest.mark.parametrize("file", [TOPICS, GROUPS])
@pytest.mark.parametrize("name", ["retry-dlq-4.9", "basic-5.3"])
def test_what_is_whole_of_a_cut_file_comes_back_as_it_was(name, file, tmp_path):
    root = golden.extract(name, tmp_path)
    text = (root / file).read_text()
    member = "topicConfigTable" if file == TOPICS else "subscriptionGroupTable"
    document: Any = loads(text)
    true = document[member]
    lose_bak(root, file)
    known = 0
    for end in range(0, len(text) - 1, len(text) // 20):
        (root / file).write_text(text[:end])
        rows = recovered(root).values()
        whole = [row for row in rows if row["source"] == "file"]
        assert all(row["new_value"] == true[row["name"]] for row in whole)
        assert len(whole) >= known
        known = len(whole)
        for row in rows:
            assert row["source"] in {"file", "queues", "offsets", "retry"}
            if file == TOPICS and row["source"] == "queues" and row["name"] in true:
                assert row["new_value"]["readQueueNums"] <= true[row["name"]]["readQueueNums"]
    assert known > len(true) // 2


@pytest.mark.slow
def test_topics_come_from_queues_and_groups_from_progress_and_retries(tmp_path):
    root = golden.extract("retry-dlq-4.9", tmp_path)
    for file in (TOPICS, GROUPS):
        (root / file).write_bytes(b"\0" * 4096)
        lose_bak(root, file)
    rows = recovered(root, *DO)
    assert all(row["applied"] for row in rows.values())
    topics, groups = topics_file(root).read(0), subscription_groups_file(root).read(0)
    assert topics.get("GoldenRetry") == TopicConfig("GoldenRetry", 4, 4)
    assert topics.get("%RETRY%g-flaky") == TopicConfig("%RETRY%g-flaky", 1, 1)
    assert SCHEDULE_TOPIC not in topics.items
    assert {"g-flaky", "g-fine", "g-late", "g-orderly"} <= set(groups.items)
    assert rows["subscriptionGroup.json", "g-fine"]["source"] == "offsets"
    assert rows["topics.json", "GoldenRetry"]["source"] == "queues"
    for file in (TOPICS, GROUPS):
        text = (root / file).read_text()
        assert dumps(loads(text)) == text
    assert recovered(root) == {}
    kept = list((root / "rmqctl/quarantine").glob("*/config/*.json"))
    assert {path.read_bytes() for path in kept} == {b"\0" * 4096}
    history = run("audit", "list", "-S", root, "-o", "json").json()
    assert {row["command"] for row in history} == {"store recover-config"}


def test_the_version_goes_on_from_what_is_whole(tmp_path):
    root = golden.extract("retry-dlq-4.9", tmp_path)
    before = topics_file(root).read(0).data_version
    text = (root / TOPICS).read_text()
    (root / TOPICS).write_text(text[: len(text) // 2])
    lose_bak(root, TOPICS)
    recovered(root, *DO)
    after = topics_file(root).read(0).data_version
    assert after.counter == before.counter + 1
    assert after.timestamp > before.timestamp


def test_the_bak_adds_what_the_file_has_lost(tmp_path):
    root = golden.extract("retry-dlq-4.9", tmp_path)
    text = (root / TOPICS).read_text()
    names = set(topics_file(root).read(0).items)
    (root / f"{TOPICS}.bak").write_text(text)
    (root / TOPICS).write_text(text[: len(text) // 2])
    rows = recovered(root, *DO)
    assert {row["source"] for row in rows.values()} == {"file", "bak"}
    assert set(topics_file(root).read(0).items) == names
    assert ConfigFile(root / TOPICS).load().source == "FILE"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["retry-dlq-4.9", "retry-dlq-5.3", "time-4.9"])
def test_delays_of_real_brokers_are_never_beyond_what_was_delivered(name, tmp_path):
    root = golden.extract(name, tmp_path)
    true = load_delay_offsets(root)
    (root / DELAYS).write_bytes(b"")
    lose_bak(root, DELAYS)
    rows = recovered(root)
    for row in rows.values():
        assert 0 < row["new_value"] <= true[int(row["name"])]
        assert row["source"] == "delivered"
    if name == "retry-dlq-4.9":
        assert {int(row["name"]): row["new_value"] for row in rows.values()} == true


@pytest.fixture
def delayed(tmp_path):
    """100 messages of level 1 and 20 of level 2, a second apart; gives the store and the clock."""
    root = tmp_path / "s"
    MessageStore.create(root, SMALL_STORE)
    clock = [START]
    with EmbeddedBroker.open(root, clock=lambda: clock[0]) as broker:
        broker.update_topic(TopicConfig("T", 2, 2))
        for n in range(20):
            properties = {"UNIQ_KEY": f"{1000 + n:032X}"}
            broker.send(Message("T", b"%d" % n, delay_time_level=2, properties=properties), n % 2)
        for n in range(100):
            properties = {"UNIQ_KEY": f"{n:032X}"}
            broker.send(Message("T", b"%d" % n, delay_time_level=1, properties=properties), n % 2)
            clock[0] += 1_000
    return root, clock


@pytest.mark.parametrize("seconds", [0, 1, 2, 50, 98, 200])
def test_delays_go_on_where_delivery_stopped(delayed, seconds):
    root, _ = delayed
    now = START + seconds * 1_000
    with EmbeddedBroker.open(root, clock=lambda: now) as broker:
        deliver(broker, now)
    true = {level: offset for level, offset in load_delay_offsets(root).items() if offset}
    (root / DELAYS).unlink(missing_ok=True)
    lose_bak(root, DELAYS)
    rows = recovered(root, *DO)
    assert {int(row["name"]): row["new_value"] for row in rows.values()} == true
    assert {level: offset for level, offset in load_delay_offsets(root).items() if offset} == true


def test_what_was_sent_before_its_time_is_no_delivery(delayed):
    root, _ = delayed
    now = START + 30_000
    with EmbeddedBroker.open(root, clock=lambda: now) as broker:
        deliver(broker, now)
        at, end = broker.view.queue_bounds(SCHEDULE_TOPIC, 0).max_offset - 69, 100
        while at < end:
            waiting = broker.view.get_message(SCHEDULE_TOPIC, 0, at, 32).messages
            broker.cutting_short.deliver(waiting)
            at += len(waiting)
    true = load_delay_offsets(root)[1]
    (root / DELAYS).unlink()
    lose_bak(root, DELAYS)
    with StoreView.open(root) as view:
        found = salvage_delays(view)
    assert found is not None
    assert {row.name: row.value for row in found.rows} == {"1": true, "2": 20}


@pytest.mark.slow
@pytest.mark.parametrize("way", ["recover-config", "repair"])
@pytest.mark.parametrize("seconds", [0, 30])
def test_progress_behind_what_waits_is_told_and_set_back(delayed, seconds, way):
    root, _ = delayed
    now = START + seconds * 1_000
    with EmbeddedBroker.open(root, clock=lambda: now) as broker:
        deliver(broker, now)
    true, other = (load_delay_offsets(root).get(level, 0) for level in (1, 2))
    (root / DELAYS).write_text(f'{{"offsetTable":{{1:99999,2:{other}}}}}')
    lose_bak(root, DELAYS)
    (finding,) = delays_found(root)
    waiting = 100 - true
    assert (finding["code"], finding["severity"]) == ("OFFSET_BEHIND_END", "warning")
    assert finding["effect"] == f"{waiting} messages that wait will not be delivered"
    assert finding["fix"] == "rmqctl store recover-config"
    assert run("store", way, "-S", root, *DO).code == 0
    assert load_delay_offsets(root) == {1: true, 2: other}
    assert delays_found(root) == []
    later = START + 1_000_000
    with EmbeddedBroker.open(root, clock=lambda: later) as broker:
        deliver(broker, later)
        ends = [broker.view.queue_bounds("T", number).max_offset for number in (0, 1)]
    assert sum(ends) == 120


@pytest.mark.slow
def test_progress_behind_a_level_that_was_delivered_is_no_warning(delayed):
    root, _ = delayed
    later = START + 1_000_000
    with EmbeddedBroker.open(root, clock=lambda: later) as broker:
        deliver(broker, later)
    (root / DELAYS).write_text('{"offsetTable":{1:99999,2:20}}')
    (finding,) = delays_found(root)
    assert finding["severity"] == "info"
    assert recovered(root) == {}


def delays_found(root):
    result = run("store", "fsck", "-S", root, "-o", "json")
    return [finding for finding in result.json()["findings"] if finding["file"] == DELAYS]


def test_it_is_refused_beside_a_java_broker(tmp_path):
    root = golden.extract("retry-dlq-4.9", tmp_path)
    (root / TOPICS).write_bytes(b"")
    (root / "rmqctl").mkdir(exist_ok=True)
    with java_lock(root):
        result = run(*RECOVER, "-S", root, *DO)
    assert result.code == 5
    assert (root / TOPICS).read_bytes() == b""


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.long)])
def test_killed_at_every_instant_it_is_finished_by_the_next_one(delayed, tmp_path, step):
    root, _ = delayed
    run("group", "create", "g", "-S", root)
    run("produce", "T", "-S", root, stdin=b"x\n")
    for file in (TOPICS, GROUPS):
        (root / file).write_text((root / file).read_text()[:-20])
        lose_bak(root, file)
    for path in root.rglob("*"):
        os.utime(path, (1, 1))  # no process seems to write now, so none is watched
    original = copy_store(root, tmp_path / "original")
    wanted = {row["name"] for row in recovered(root).values()}
    assert "T" in wanted
    seen = set()
    number, killed = 0, True
    while killed:
        number += step
        shutil.rmtree(root)
        copy_store(original, root)

        def recover(_, number=number):
            fs = WatchedFileSystem(lambda instant: die_at(number, instant))
            with ExitStack() as stack:
                for module in ("configs.config_file", "configs.journal", "tools.quarantine"):
                    stack.enter_context(patch(f"storage.{module}.FileSystem", lambda: fs))
                app.main([*RECOVER, "-S", str(root), *DO])

        killed, _ = Child(recover).wait()
        rows = recovered(root, *DO)
        seen.add(len({row["file"] for row in rows.values()}))
        names = {*topics_file(root).read(0).items, *subscription_groups_file(root).read(0).items}
        assert wanted <= names, number
        assert recovered(root) == {}
    assert number > 20
    assert len(seen) > 1
