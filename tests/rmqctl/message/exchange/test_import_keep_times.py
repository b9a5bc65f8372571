"""Messages come back as they were, times and ids and hosts, whatever form they went through."""

import json
import os
import pty
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from rmqctl import exit_codes
from rmqctl.admin.known_topics import INNER_TOPICS
from storage.config import SMALL_STORE, FlushDiskType
from storage.format.message import Message
from storage.readonly import Boundary, StoreView
from storage.tools.fsck import fsck
from tests.support import golden
from tests.support.aged_store import fill
from tests.support.cli import call, run, start
from tests.support.same_records import all_messages, content

FORMS = ["jsonl", "csv", "raw", "parquet"]
BROKERS = ["basic-4.9", "ipv6-4.9", "retry-dlq-4.9", "lmq-4.9", "basic-5.3"]
NEW = ("offset_msg_id", "commitlog_offset", "queue_offset")


def healthy(root: Path) -> None:
    with StoreView.open(root) as view:
        report = fsck(view)
    assert report.healthy, report.findings


def rows_of(root: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in run("message", "export", "-S", root).lines]
    for row in rows:
        if row["msg_id"] == row["offset_msg_id"]:
            del row["msg_id"]
        for name in NEW:
            del row[name]
        if not {"INNER_MULTI_DISPATCH"}.isdisjoint(row["properties"]):
            for name in ("INNER_MULTI_DISPATCH", "INNER_MULTI_QUEUE_OFFSET"):
                del row["properties"][name]
            row["store_size"] = 0
        # The order of properties, and a separator after the last one, are the writer's.
        row["properties"] = dict(sorted(row["properties"].items()))
    return rows


def new_store(root: Path) -> Path:
    create_store(root, SMALL_STORE)
    return root


@pytest.mark.feature(124)
@pytest.mark.parametrize(
    ("form", "name"),
    [
        pytest.param(form, name, marks=() if n == 0 or n == m + 1 else pytest.mark.long)
        for m, form in enumerate(FORMS)
        for n, name in enumerate(BROKERS)
    ],
)
@pytest.mark.slow
def test_an_export_comes_back_equal_but_for_offsets(form, name, tmp_path):
    source, target = golden.store(name), new_store(tmp_path / "new")
    file = tmp_path / f"all.{form}"
    assert run("message", "export", "-S", source, "--save", file).code == 0
    result = run("message", "import", file, "-S", target, "--keep-times", "--allow-empty")
    assert result.code == 0, result.err
    before, after = rows_of(source), rows_of(target)
    assert f"imported {len(before)} messages with the original times" in result.err
    assert len(before) > 0
    for old, new in zip(before, after, strict=True):
        if old["store_size"] == 0:
            new["store_size"] = 0
        if form != "raw":
            # How properties are divided, and by what a body was packed, stands in no row.
            old["store_size"] = new["store_size"]
            if old["sys_flag"] & 1:
                old |= {name: new[name] for name in ("body_crc", "sys_flag")}
                assert new["sys_flag"] & 1
        assert new == old
    healthy(target)
    with StoreView.open(target) as view:
        sample = all_messages(view)[-1]
        for key in sample.index_keys:
            hits = view.query_message(sample.topic, key, 64).messages
            assert sample.commitlog_offset in {hit.commitlog_offset for hit in hits}
        found = view.offset_in_queue_by_time(
            sample.topic, sample.queue_id, sample.store_timestamp, Boundary.LOWER
        )
        assert found <= sample.queue_offset


def aged(root: Path, *ages: str, topic: str = "t") -> Path:
    fill(
        root,
        (json.dumps({"at": age, "topic": topic, "body": f"from {age}", "queue": 1, "key": "k"})
         for age in ages),
    )  # fmt: skip
    return root


def exported(root: Path) -> bytes:
    return run("message", "export", "-S", root).raw


def bodies(root: Path) -> list[bytes]:
    with StoreView.open(root) as view:
        return [message.body for message in all_messages(view)]


@pytest.mark.slow
def test_older_messages_are_refused_behind_newer_ones(tmp_path):
    old = exported(aged(tmp_path / "old", "-3h", "-2h"))
    target = aged(tmp_path / "target", "-1h")
    result = run("message", "import", "-", "-S", target, "--keep-times", stdin=old)
    assert result.code == 7
    assert "store times must not decrease within a log; import into a new store" in result.err
    assert "line 1: was stored at 2" in result.err
    assert bodies(target) == [b"from -1h"]
    newer = aged(tmp_path / "newer", "-4h")
    result = run("message", "import", "-", "-S", newer, "--keep-times", stdin=old)
    assert result.code == 0, result.err
    assert bodies(newer) == [b"from -4h", b"from -3h", b"from -2h"]
    healthy(newer)


def test_what_the_log_refuses_makes_no_topic(tmp_path):
    old = exported(aged(tmp_path / "old", "-3h", topic="of-the-file"))
    target = aged(tmp_path / "target", "-1h")
    before = run("topic", "list", "-S", target).out
    result = run("message", "import", "-", "-S", target, "--keep-times", stdin=old)
    assert result.code == 7
    assert run("topic", "list", "-S", target).out == before


@pytest.mark.parametrize("keeps", [True, False])
def test_what_is_left_out_makes_no_topic(keeps, tmp_path):
    old = exported(aged(tmp_path / "old", "-3h", topic="of-the-file"))
    row = json.loads(old) | {"body": ""}
    target = new_store(tmp_path / "target")
    result = run(
        *("message", "import", "-", "-S", target, "--skip-invalid"),
        *(["--keep-times"] if keeps else []),
        stdin=json.dumps(row).encode(),
    )
    assert result.code == 2, result.err
    assert "the message body length is zero" in result.err
    assert "of-the-file" not in run("topic", "list", "-S", target).out


@pytest.mark.parametrize(
    "change", [{"body": "x" * (4 << 20) + "x"}, {"keys": ["a\x01"], "properties": {}}]
)
def test_what_no_broker_takes_makes_no_topic(change, tmp_path):
    row = {"topic": "of-the-file", "queue_id": 3, "body": "b"} | change
    target = new_store(tmp_path / "target")
    line = json.dumps(row).encode()
    result = run("message", "import", "-", "-S", target, stdin=line)
    assert result.code == 2, result.err
    assert "line 1: " in result.err
    assert "of-the-file" not in run("topic", "list", "-S", target).out


def test_times_that_do_not_rise_end_it_there_or_are_left_out(tmp_path):
    lines = exported(aged(tmp_path / "old", "-3h", "-2h", "-1h")).splitlines(keepends=True)
    mixed = lines[0] + lines[2] + lines[1] + lines[2]
    target = new_store(tmp_path / "a")
    result = run("message", "import", "-", "-S", target, "--keep-times", stdin=mixed)
    assert result.code == 8
    assert "line 3: was stored at" in result.err
    assert "2 messages before it stored, nothing after it" in result.err
    assert bodies(target) == [b"from -3h", b"from -1h"]
    target = new_store(tmp_path / "b")
    result = run(
        *("message", "import", "-", "-S", target, "--keep-times", "--skip-invalid"), stdin=mixed
    )
    assert result.code == 8
    assert "left out 1 message that cannot be stored; the first: line 3" in result.err
    assert bodies(target) == [b"from -3h", b"from -1h", b"from -1h"]


@pytest.mark.slow
def test_a_file_that_cannot_be_read_to_its_end_tells_how_many_are_stored(tmp_path):
    """A terminal whose other end is closed gives what was written, then EIO."""
    lines = exported(aged(tmp_path / "old", "-3h", "-2h"))
    target = new_store(tmp_path / "target")
    terminal, inside = pty.openpty()
    os.write(inside, lines)
    os.close(inside)
    with start("message", "import", "-", "-S", target, "--keep-times", stdin=terminal) as process:
        os.close(terminal)
        err = process.stderr.read().decode()
    assert process.returncode == exit_codes.PARTLY, err
    assert err.endswith("Input/output error; the 2 messages before are stored\n")
    assert bodies(target) == [b"from -3h", b"from -2h"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, exit_codes.TERMINATED), (signal.SIGINT, exit_codes.INTERRUPTED)],
)
def test_an_import_that_is_ended_early_counts(tmp_path, number, code):
    lines = exported(aged(tmp_path / "old", "-3h", "-2h"))
    target = new_store(tmp_path / "target")
    given = ("message", "import", "-", "-S", target, "--keep-times", "--skip-invalid")
    with start(*given, "-o", "jsonl") as process:
        process.stdin.write(b"no row\n" + lines)
        process.stdin.flush()
        for _ in range(2):
            assert json.loads(process.stdout.readline())["send_status"] == "SEND_OK"
        process.send_signal(number)
        err = process.stderr.read().decode()
    assert process.returncode == code
    assert "ended early: 2 messages stored in their topics, 1 failed, 0 unknown" in err
    assert bodies(target) == [b"from -3h", b"from -2h"]


@pytest.mark.slow
def test_an_import_that_is_ended_early_ends_its_array(tmp_path):
    lines = exported(aged(tmp_path / "old", "-3h", "-2h"))
    target = new_store(tmp_path / "target")
    with start("message", "import", "-", "-S", target, "--keep-times", "-o", "json") as process:
        process.stdin.write(lines)
        process.stdin.flush()
        read = os.read(process.stdout.fileno(), 1)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=30)
    assert process.returncode == exit_codes.TERMINATED
    assert [row["queue_offset"] for row in json.loads(read + out)] == [0, 1]


@pytest.mark.slow
def test_an_output_that_is_full_tells_how_many_are_stored(tmp_path):
    lines = exported(aged(tmp_path / "old", "-3h", "-2h"))
    target = new_store(tmp_path / "target")
    with Path("/dev/full").open("wb") as full:
        given = ("message", "import", "-", "-S", target, "--keep-times", "-o", "jsonl")
        done = call(*given, stdin=lines, stdout=full)
    said = "standard output: No space left on device; the 2 messages before are stored"
    assert (done.code, said in done.err) == (exit_codes.PARTLY, True), done.err
    assert bodies(target) == [b"from -3h", b"from -2h"]


def test_what_the_device_did_not_confirm_in_time_is_said(tmp_path, monkeypatch):
    lines = exported(aged(tmp_path / "old", "-3h", "-2h"))
    config = replace(SMALL_STORE, flush_disk_type=FlushDiskType.SYNC_FLUSH, sync_flush_timeout_ms=1)
    create_store(tmp_path / "target", config)

    def slow(fd: int) -> None:
        os.fsync(fd)
        end = time.monotonic() + 0.002
        while time.monotonic() < end:
            pass

    monkeypatch.setattr("storage.files.fs.sync_data", slow)
    given = ("message", "import", "-", "-S", tmp_path / "target", "--keep-times", "-o", "jsonl")
    result = run(*given, stdin=lines)
    statuses = [json.loads(line)["send_status"] for line in result.lines]
    assert statuses == ["FLUSH_DISK_TIMEOUT"] * 2
    assert "2 messages are stored, but not confirmed by the device" in result.err
    assert result.code == exit_codes.PARTLY


def test_a_time_that_is_yet_to_come_is_refused(tmp_path):
    row = json.loads(exported(aged(tmp_path / "old", "-3h")))
    row["store_timestamp"] = time.time_ns() // 1_000_000 + 3_600_000
    target = new_store(tmp_path / "a")
    line = json.dumps(row).encode()
    result = run("message", "import", "-", "-S", target, "--keep-times", stdin=line)
    assert result.code == 2
    assert "in the future by this machine's clock" in result.err
    assert bodies(target) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"store_timestamp": None}, "its store_timestamp is None; --keep-times needs every field"),
        ({"store_timestamp": 123}, "its store_timestamp '123' would be 1970-01-01"),
        ({"born_timestamp": 8 * 10**18}, "a time must lie between 1990 and 2200"),
        ({"born_timestamp": -5}, "its born_timestamp -5 lies before 1970"),
        ({"born_host": "nowhere"}, "'nowhere' is not ip:port"),
        ({"properties": None}, "has no properties"),
        ({"sys_flag": 4}, "is a half message"),
        ({"topic": "SCHEDULE_TOPIC_XXXX"}, "an internal topic of the broker"),
        ({"topic": "../up"}, "'../up'"),
        ({"flag": 1 << 40}, "not a 32-bit number"),
    ],
)
def test_what_is_no_whole_message_is_named_by_its_line(tmp_path, change, sentence):
    row = json.loads(exported(aged(tmp_path / "old", "-3h")))
    target = new_store(tmp_path / "a")
    line = json.dumps({**row, **change}).encode()
    result = run("message", "import", "-", "-S", target, "--keep-times", stdin=line)
    assert (result.code, sentence in result.err) == (2, True), result.err
    assert bodies(target) == []


@pytest.mark.parametrize("topic", ["../up", "../../out", "a/b", "rmq_sys_x", "SELF_TEST_TOPIC"])
def test_a_topic_that_cannot_be_made_gets_no_message_and_no_file(tmp_path, topic):
    row = json.loads(exported(aged(tmp_path / "old", "-3h")))
    target = new_store(tmp_path / "a")
    lines = b"".join(json.dumps(row | {"topic": name}).encode() + b"\n" for name in (topic, "t"))
    given = ("message", "import", "-", "-S", target, "--keep-times", "--skip-invalid")
    result = run(*given, stdin=lines)
    assert result.code == 8, result.err
    assert "left out 1 message that cannot be stored; the first: line 1: " in result.err
    assert run("store", "info", "-S", target, "-o", "json").json()["messages"] == 1
    healthy(target)
    folders = {path.name for path in tmp_path.rglob("*") if path.is_dir()}
    assert folders.isdisjoint({"up", "out", topic})


@pytest.mark.parametrize("in_second", [1, 1000, 10**6, 10**9])
def test_times_are_read_in_any_unit_of_an_epoch(tmp_path, in_second):
    row = json.loads(exported(aged(tmp_path / "old", "-3h")))
    second = row["store_timestamp"] // 1000
    row |= dict.fromkeys(("store_timestamp", "born_timestamp"), second * in_second)
    target = new_store(tmp_path / "a")
    line = json.dumps(row).encode()
    assert run("message", "import", "-", "-S", target, "--keep-times", stdin=line).code == 0
    kept = json.loads(exported(target))
    assert {kept["store_timestamp"], kept["born_timestamp"]} == {second * 1000}


def test_topics_are_mapped_and_made_with_the_queues_that_they_need(tmp_path):
    source = tmp_path / "old"
    lines = ({"at": "-1h", "topic": "t", "body": f"{n}", "queue": n} for n in (0, 6, 3))
    create_store(source, SMALL_STORE)
    with EmbeddedBroker.open(source) as broker:
        from storage.configs.topics import TopicConfig

        broker.update_topic(TopicConfig("t", 7, 7))
    fill(source, map(json.dumps, lines))
    target = new_store(tmp_path / "new")
    result = run(
        *("message", "import", "-", "-S", target, "--keep-times", "--map-topic", "t=copy"),
        *("-o", "json"),
        stdin=exported(source),
    )
    assert [(row["topic"], row["queue_id"]) for row in result.json()] == [
        ("copy", 0),
        ("copy", 6),
        ("copy", 3),
    ]
    with StoreView.open(target) as view:
        assert view.topics()["copy"].write_queue_nums == 7
        assert [message.body for message in all_messages(view)] == [b"0", b"6", b"3"]
    with EmbeddedBroker.open(target) as broker:
        assert broker.send(Message("copy", b"new"), 6).queue_offset == 1
    healthy(target)


@pytest.mark.slow
def test_carved_and_imported_stores_hold_the_same(tmp_path):
    """Two roads to the same messages."""
    source = golden.store("basic-4.9")
    with StoreView.open(source) as view:
        topics = sorted(
            {
                topic
                for topic, _ in view.queues()
                if topic not in INNER_TOPICS and not topic.startswith("%LMQ%")
            }
        )
    options = [text for topic in topics for text in ("-t", topic)]
    carved = run("store", "carve", tmp_path / "c", "-S", source, *options, "--execute", "--yes")
    assert carved.code == 0, carved.err
    raw = tmp_path / "x.raw"
    assert run("message", "export", "-S", source, *options, "--save", raw).code == 0
    target = new_store(tmp_path / "i")
    assert run("message", "import", raw, "-S", target, "--keep-times").code == 0
    with StoreView.open(tmp_path / "c") as one, StoreView.open(target) as other:
        assert [content(m) for m in all_messages(one)] == [content(m) for m in all_messages(other)]
