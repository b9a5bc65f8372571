"""The harness is right: RocketMQ's answers are those that the golden manifests record."""

import fcntl
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.interop.broker_process import started_broker
from tests.interop.cluster import running_cluster
from tests.interop.samples import SMALL_FILES, samples
from tests.interop.store_probe import Row, StoreProbe, java_message
from tests.support.golden import extract, manifest, names
from tests.support.java import JavaError, JavaProcess, Release

pytestmark = pytest.mark.interop


def _only(names: str, rows: Iterable[Row]) -> list[Row]:
    return [{name: row[name] for name in names.split()} for row in rows]


def _without_text(rows: Iterable[Row]) -> list[Row]:
    return [{name: row[name] for name in row if name != "bodyText"} for row in rows]


@pytest.mark.parametrize("name", ["basic-4.9", "basic-5.3"])
def test_java_answers_about_a_golden_store_as_its_manifest_says(
    name: str, probe49: StoreProbe, probe53: StoreProbe, tmp_path: Path
) -> None:
    probe = probe49 if name.endswith("4.9") else probe53
    wanted = manifest(name)
    unfiltered = [row for row in wanted["pulls"] if row["expression"] == "*"]

    with probe.opened(extract(name, tmp_path), wanted["settings"]) as store:
        dump = store.dump()
        times = store.offset_by_time(_only("topic queueId timestamp", wanted["offsetByTime"]))
        hits = store.query_by_key(_only("topic key maxNum begin end", wanted["queryByKey"]))
        pulls = store.pulls(_only("topic queueId offset maxNums", unfiltered))
        store.kill()

    assert dump["minPhyOffset"] == wanted["minPhyOffset"]
    assert dump["maxPhyOffset"] == wanted["maxPhyOffset"]
    assert dump["queues"] == wanted["queues"]
    assert dump["messages"] == _without_text(wanted["messages"])
    assert dump["unreadable"] == dump["foreign"] == []
    for given, row in zip(times, wanted["offsetByTime"], strict=True):
        assert given == {**given, **row}
    assert hits == wanted["queryByKey"]
    assert [{**row, "expression": "*"} for row in pulls] == unfiltered


@pytest.mark.long
@pytest.mark.parametrize("name", names())
def test_java_finds_the_same_messages_in_each_golden_store_as_when_it_was_made(
    name: str, probe49: StoreProbe, probe53: StoreProbe, tmp_path: Path
) -> None:
    probe = probe49 if name.endswith("4.9") else probe53
    wanted = manifest(name)
    with probe.opened(extract(name, tmp_path), wanted["settings"]) as store:
        dump = store.dump()
        store.kill()
    assert dump["queues"] == wanted["queues"]
    for rows in ("messages", "foreign"):
        recorded = _without_text(wanted.get(rows, []))
        for given, row in zip(dump[rows], recorded, strict=True):
            assert given == {**given, **row}


@pytest.mark.long
def test_what_4_9_appends_and_closes_5_3_reads_byte_for_byte(
    probe49: StoreProbe, probe53: StoreProbe, tmp_path: Path
) -> None:
    written = samples()
    with probe49.opened(tmp_path, SMALL_FILES) as store:
        put = store.append([sample.java_message() for sample in written])
        by_4_9 = store.dump()
    assert not (tmp_path / "abort").exists()
    assert len(list((tmp_path / "commitlog").iterdir())) > 2

    with probe53.opened(tmp_path, SMALL_FILES) as store:
        by_5_3 = store.dump()
        store.kill()

    assert by_5_3["messages"] == by_4_9["messages"]
    places = {(row["topic"], row["queueId"], row["queueOffset"]): row for row in put}
    assert len(places) == len(by_4_9["messages"]) == len(written)
    for row in by_4_9["messages"]:
        place = places[row["topic"], row["queueId"], row["queueOffset"]]
        assert row["commitLogOffset"] == place["commitLogOffset"]
    assert sorted(int(row["properties"]["n"]) for row in by_4_9["messages"]) == list(range(120))


def test_a_killed_jvm_leaves_abort_and_its_messages(probe49: StoreProbe, tmp_path: Path) -> None:
    with probe49.opened(tmp_path, SMALL_FILES) as store:
        store.append([java_message("T", 0, b"before the kill", {"KEYS": "k"})])
        store.kill()
    assert (tmp_path / "abort").exists()

    with probe49.opened(tmp_path, SMALL_FILES) as store:
        store.append([java_message("T", 0, b"after it")])
        messages = store.dump()["messages"]
        [hit] = store.query_by_key(
            [{"topic": "T", "key": "k", "maxNum": 32, "begin": 0, "end": 2**63 - 1}]
        )
    assert [(row["queueOffset"], row["bodyLength"]) for row in messages] == [(0, 15), (1, 8)]
    assert hit["commitLogOffsets"] == [0]


def test_java_refuses_settings_it_does_not_know_and_stores_it_cannot_load(
    probe49: StoreProbe, tmp_path: Path
) -> None:
    with (
        pytest.raises(JavaError, match="no setting mapedFileSize"),
        probe49.opened(tmp_path, {"mapedFileSize": 4096}),
    ):
        pass
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / f"{0:020}").write_bytes(b"too short")
    with (
        pytest.raises(JavaError, match=r"load\(\) of .* gave false"),
        probe49.opened(tmp_path, SMALL_FILES),
    ):
        pass


@pytest.mark.long
def test_a_broker_serves_a_golden_store_to_a_push_consumer(java49: Release, tmp_path: Path) -> None:
    wanted = manifest("basic-4.9")
    root = extract("basic-4.9", tmp_path)
    expected = [row for row in wanted["messages"] if row["topic"] == "GoldenFour"]

    with running_cluster(java49, root, tmp_path, wanted["settings"]) as cluster:
        received = cluster.consume("GoldenFour", "g-new", len(expected))
        names = "queueId queueOffset commitLogOffset storeTimestamp bodySha256 offsetMsgId"
        received.sort(key=lambda row: (row["queueId"], row["queueOffset"]))
        assert _only(names, received) == _only(names, expected)

        [sent] = cluster.produce([java_message("GoldenFour", 2, b"one more", {"KEYS": "more"})])
        [after] = cluster.consume("GoldenFour", "g-new", 1)
        [found] = cluster.query_by_key("GoldenFour", "more")
        assert after["msgId"] == sent["msgId"]
        assert after["offsetMsgId"] == sent["offsetMsgId"] == found["offsetMsgId"]
        offsets = {row["queueId"]: row["maxOffset"] for row in cluster.topic_stats("GoldenFour")}
        progress = cluster.consume_stats("g-new")
        assert offsets == {
            row["queueId"]: row["consumerOffset"] for row in progress if row["topic"][0] != "%"
        }


@pytest.mark.long
def test_a_broker_fails_beside_a_holder_of_the_lock_and_boots_without_one(
    java49: Release, tmp_path: Path
) -> None:
    root = tmp_path / "store"
    root.mkdir()
    with (root / "lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX, 1)
        with started_broker(java49, root, tmp_path, SMALL_FILES) as broker:
            assert not broker.booted
            assert broker.code == 255
            assert "Lock failed" in broker.logged
    with started_broker(java49, root, tmp_path, SMALL_FILES) as broker:
        assert broker.booted
        assert broker.code is None


def test_a_jvm_ends_with_the_process_that_started_it(java49: Release, tmp_path: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path; from tests.support.java import *\n"
        "jvm = JavaProcess(sys.argv[2:], Path(sys.argv[1]))\n"
        "print(jvm.pid, flush=True); sys.stdin.read(); os._exit(1)"
    )
    command = java49.command("StoreProbe", home=tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "log"), *command],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdin is not None
        jvm = os.pidfd_open(int(parent.stdout.readline()))
        try:
            assert select.select([jvm], [], [], 0)[0] == []
            parent.stdin.close()
            assert select.select([jvm], [], [], 30.0)[0] == [jvm]
        finally:
            os.close(jvm)
    assert parent.returncode == 1


def test_an_answer_that_does_not_come_is_an_error_not_a_hang(
    java49: Release, tmp_path: Path
) -> None:
    command = java49.command("StoreProbe", home=tmp_path)
    with JavaProcess(command, tmp_path / "log") as process:
        with pytest.raises(JavaError, match="IllegalArgumentException: nonsense"):
            process.ask("nonsense")
        os.kill(process.pid, signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)  # a signal takes a moment to stop all threads
        with pytest.raises(JavaError, match=r"dump: no answer in 0\.0 s"):
            process.ask("dump", deadline=0.0)
        assert not process.alive
        with pytest.raises(JavaError, match="the JVM is gone"):
            process.ask("dump")
