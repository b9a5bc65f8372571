"""A part of a store as a store of its own: the same messages, at the same places, healthy."""

import json
import os
import threading
from pathlib import Path

import pytest

from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from rmqctl.admin.known_topics import INNER_TOPICS
from storage.config import SMALL_STORE
from storage.configs.consumer_offsets import load_consumer_offsets
from storage.configs.subscription_groups import SubscriptionGroupConfig, subscription_groups_file
from storage.configs.topics import TopicConfig
from storage.files.fs import FileSystem
from storage.format.message import Message, MessageExt
from storage.readonly import StoreView
from storage.tools.fsck import fsck
from tests.support import golden
from tests.support.aged_store import fill
from tests.support.cli import run
from tests.support.dead_letters import bury
from tests.support.same_records import all_messages, content

DONE = ("--execute", "--yes", "-q")


def placed(message: MessageExt) -> tuple[object, ...]:
    """All of a message but its log offset."""
    return (
        content(message),
        message.property_bytes,
        message.queue_offset,
        message.store_timestamp,
        message.version,
    )


def carve(source: Path, target: Path, *options: object) -> None:
    result = run("store", "carve", target, "-S", source, *options, *DONE)
    assert result.code == 0, result.err
    healthy(target)


def healthy(root: Path) -> None:
    with StoreView.open(root) as view:
        report = fsck(view)
    assert report.healthy, report.findings


def files_of(root: Path) -> dict[str, tuple[int, int, bytes]]:
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder) / name
            status = path.stat()
            head = path.read_bytes()[: 1 << 20] if status.st_size < 1 << 26 else b""
            found[str(path.relative_to(root))] = (status.st_mtime_ns, status.st_size, head)
    return found


CLEAN = [
    "basic-4.9",
    "basic-5.3",
    "retention-4.9",
    "ipv6-4.9",
    "time-4.9",
    "retry-dlq-4.9",
    "small-files-4.9",
    "cqext-4.9",
    "lmq-4.9",
    "transaction-5.3",
]


@pytest.mark.slow
@pytest.mark.feature(121)
@pytest.mark.parametrize("name", CLEAN)
def test_all_topics_of_a_brokers_store_go_over_with_their_queue_offsets(name, tmp_path):
    source = golden.store(name)
    before = files_of(source)
    with StoreView.open(source) as view:
        topics = sorted(
            {
                topic
                for topic, _ in view.queues()
                if topic not in INNER_TOPICS and not topic.startswith("%LMQ%")
            }
        )
        wanted = all_messages(view, topics)
        bounds = {
            (topic, queue_id): view.queue_bounds(topic, queue_id)
            for topic, queue_id in view.queues()
            if topic in topics
        }
    options = [text for topic in topics for text in ("-t", topic)]
    carve(source, tmp_path / "out", *options)
    assert files_of(source) == before
    with StoreView.open(tmp_path / "out") as view:
        found = all_messages(view)
        for queue, (low, high) in bounds.items():
            if low < high:
                assert view.queue_bounds(*queue) == (low, high)
        assert len(found) == len(wanted) > 0
        for new, old in zip(found, wanted, strict=True):
            if b"INNER_MULTI_DISPATCH" in old.property_bytes:
                assert b"INNER_MULTI" not in new.property_bytes
                old.property_bytes, old.store_size = new.property_bytes, new.store_size
                old.properties = new.properties
            assert placed(new) == placed(old)
        for message in found[:: max(1, len(found) // 20)]:
            for key in message.index_keys:
                hits = view.query_message(message.topic, key, 64).messages
                assert message.commitlog_offset in {hit.commitlog_offset for hit in hits}
        assert set(view.topics()) >= set(topics)


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """Two topics in turns since three hours ago; a group that has read some of it."""
    root = tmp_path / "orders"
    fill(
        root,
        (
            json.dumps(
                {
                    "at": f"-{180 - number}m",
                    "topic": "orders" if number % 3 else "stock",
                    "body": f"n {number}",
                    "queue": number % 2,
                    "key": f"k{number}",
                    "tag": "even" if number % 2 == 0 else "odd",
                }
            )
            for number in range(150)
        ),
    )
    with EmbeddedBroker.open(root) as broker:
        broker.update_topic(TopicConfig("orders", 2, 2, order=True))
        broker.update_group(SubscriptionGroupConfig("readers", retry_max_times=3))
        broker.progress.move("readers", {("orders", 0): 20, ("orders", 1): 35, ("stock", 0): 1}, {})
        broker.progress.move("others", {("orders", 0): 3, ("stock", 1): 5}, {})
    return root


def progress_of(root: Path) -> dict[str, dict[int, int]]:
    return load_consumer_offsets(root)


@pytest.mark.slow
def test_a_topic_takes_its_settings_its_groups_and_their_progress_along(orders, tmp_path):
    out = tmp_path / "out"
    carve(orders, out, "-t", "orders")
    with StoreView.open(out) as view:
        assert {topic for topic, _ in view.queues()} == {"orders"}
        assert view.topics()["orders"] == TopicConfig("orders", 2, 2, order=True)
        assert len(all_messages(view)) == 100
    assert progress_of(out) == {"orders@readers": {0: 20, 1: 35}, "orders@others": {0: 3}}
    groups = subscription_groups_file(out).read(0).items
    assert groups["readers"].retry_max_times == 3
    row = run("lag", "show", "readers", "-S", out, "-o", "json").json()[0]
    there = run("lag", "show", "readers", "-S", orders, "-o", "json", "--where", "topic=orders")
    assert row["lag"] == there.json()[0]["lag"] == 45


def test_a_time_range_keeps_queue_offsets_and_brings_progress_within(orders, tmp_path):
    out = tmp_path / "out"
    carve(orders, out, "-t", "orders", "--from", "-130m", "--to", "-100m")
    with StoreView.open(orders) as view:
        whole = {(m.queue_id, m.queue_offset): placed(m) for m in all_messages(view, ["orders"])}
    with StoreView.open(out) as view:
        found = all_messages(view)
        assert 18 <= len(found) <= 20
        assert all(placed(m) == whole[m.queue_id, m.queue_offset] for m in found)
        low, high = view.queue_bounds("orders", 0)
        assert low > 3
        assert progress_of(out) == {
            "orders@readers": {0: 20, 1: view.queue_bounds("orders", 1).max_offset},
            "orders@others": {0: low},
        }
        assert low < 20 < high
        assert view.log_min_offset() > 0, "Java takes fillers before the log's start for deleted"


@pytest.mark.slow
def test_a_filter_that_leaves_gaps_numbers_anew_and_maps_progress(orders, tmp_path):
    out = tmp_path / "out"
    result = run("store", "carve", out, "-S", orders, "-t", "orders", "--tag", "even", "-n")
    assert (result.code, out.exists()) == (0, False)
    assert "the filters leave gaps, so queue offsets will count from 0" in result.err
    carve(orders, out, "-t", "orders", "--regex", "[05]$")
    with StoreView.open(orders) as view:
        old = [m for m in all_messages(view, ["orders"]) if m.body[-1:] in b"05"]
    with StoreView.open(out) as view:
        new = all_messages(view)
    assert [m.body for m in new] == [m.body for m in old]
    assert [m.store_timestamp for m in new] == [m.store_timestamp for m in old]
    for queue_id in (0, 1):
        numbers = [m.queue_offset for m in new if m.queue_id == queue_id]
        assert numbers == list(range(len(numbers)))
    unread = {m.body for m in old if m.queue_id == 0 and m.queue_offset >= 20}
    there = progress_of(out)["orders@readers"][0]
    assert {m.body for m in new if m.queue_id == 0 and m.queue_offset >= there} == unread
    assert 0 < there < len([m for m in new if m.queue_id == 0])


@pytest.mark.slow
def test_a_group_is_its_topics_its_retries_and_its_dead_letters(orders, tmp_path):
    bury(orders, "readers", [Message("orders", b"dead", keys="d-1")])
    out = tmp_path / "out"
    carve(orders, out, "-g", "readers")
    with StoreView.open(out) as view:
        assert {t for t, _ in view.queues()} == {"orders", "stock", "%DLQ%readers"}
    assert set(progress_of(out)) == {"orders@readers", "stock@readers"}
    [dead] = run("dlq", "browse", "readers", "-S", out, "-o", "json").json()
    assert dead["keys"] == ["d-1"]
    carve(orders, tmp_path / "dead", "-t", "%DLQ%readers")
    [alone] = run("dlq", "browse", "readers", "-S", tmp_path / "dead", "-o", "json").json()
    assert alone["msg_id"] == dead["msg_id"]
    carve(orders, tmp_path / "both", "-g", "readers", "-t", "stock")
    with StoreView.open(tmp_path / "both") as view:
        assert {t for t, _ in view.queues()} == {"stock", "%DLQ%readers"}


@pytest.mark.slow
def test_the_plan_is_not_the_deed_and_the_rows_tell_of_both(orders, tmp_path):
    out = tmp_path / "deep" / "out"
    plan = run("store", "carve", out, "-S", orders, "-t", "orders", "-o", "json")
    assert plan.json() == [
        {"topic": "orders", "queue_id": q, "first_offset": 0, "end_offset": 50, "messages": 50}
        for q in (0, 1)
    ]
    assert not out.parent.exists()
    assert "nothing was changed: no terminal to ask on; add --yes to proceed" in plan.err
    assert plan.code == 7
    done = run("store", "carve", out, "-S", orders, "-t", "orders", *DONE, "-o", "json")
    assert [(r["messages"], r["new_end_offset"], r["applied"]) for r in done.json()] == [
        (50, 50, True),
        (50, 50, True),
    ]
    assert [path.name for path in out.parent.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        ([], 2, "give --topic or --group"),
        (["-t", "nowhere"], 3, "topic nowhere does not exist"),
        (["-g", "nobody"], 3, "group nobody does not exist"),
        (["-t", "SCHEDULE_TOPIC_XXXX"], 7, "they would be delivered twice"),
        (["-t", "orders", "--mask", "body"], 2, "--mask: 'body' is not a rule"),
        (["-t", "orders", "--mask", "@/dev/null"], 2, "--mask: /dev/null has no rule"),
        (["-t", "orders", "--mask-key", "k"], 2, "--mask-key needs --mask"),
        (["-t", "orders", "--mask", "keys=hash", "--mask-key", ""], 2, "the key is empty"),
        (["-t", "orders", "--from", "xyz"], 2, "--from"),
    ],
)
def test_what_can_not_be_is_said(orders, tmp_path, options, code, sentence):
    if "SCHEDULE_TOPIC_XXXX" in options:
        with EmbeddedBroker.open(orders) as broker:
            broker.send(Message("orders", b"later", delay_time_level=18))
    result = run("store", "carve", tmp_path / "out", "-S", orders, *options, *DONE)
    assert (result.code, sentence in result.err) == (code, True), result.err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_folder_that_holds_something_and_the_store_itself_are_left_alone(orders, tmp_path):
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine").write_text("mine")
    for target, code in ((full, 7), (orders, 2), (orders / "sub", 2)):
        result = run("store", "carve", target, "-S", orders, "-t", "orders", *DONE)
        assert result.code == code, result.err
    assert [path.name for path in full.iterdir()] == ["mine"]
    empty = tmp_path / "empty"
    empty.mkdir()
    carve(orders, empty, "-t", "orders")


@pytest.mark.slow
def test_damage_is_passed_over_and_told(orders, tmp_path):
    with StoreView.open(orders) as view:
        victim = all_messages(view, ["orders"])[40]
    log = orders / "commitlog" / f"{0:020d}"
    with log.open("r+b") as file:
        file.seek(victim.commitlog_offset + 88)
        file.write(b"?")
    out = tmp_path / "out"
    result = run("store", "carve", out, "-S", orders, "-t", "orders", *DONE)
    assert result.code == 8, result.err
    assert "1 message could not be read or masked" in result.err
    healthy(out)
    with StoreView.open(out) as view:
        found = {(m.queue_id, m.queue_offset) for m in all_messages(view)}
        assert (victim.queue_id, victim.queue_offset) not in found
        assert len(found) == 99
        assert view.queue_bounds("orders", victim.queue_id) == (0, 50)


@pytest.mark.slow
def test_nothing_old_is_deleted_by_the_way_and_writers_may_go_on(orders, tmp_path):
    out = tmp_path / "out"
    carve(orders, out, "-t", "orders", "--from", "-100m")
    with StoreView.open(out) as view:
        end = view.queue_bounds("orders", 0).max_offset
    with EmbeddedBroker.open(out) as broker:
        sent = broker.send(Message("orders", b"new", keys="new-1"), 0)
        assert sent.queue_offset == end
    assert not (out / "rmqctl" / "created").exists()
    healthy(out)
    row = run("message", "query", "-t", "orders", "-k", "new-1", "-S", out, "-o", "json").json()
    assert [m["queue_offset"] for m in row] == [end]


@pytest.mark.slow
def test_what_is_carved_while_others_write_is_of_one_moment(orders, tmp_path):
    """All before it, in every queue, and no progress beyond it."""
    stop = threading.Event()

    def write_and_consume() -> None:
        with EmbeddedBroker.open(orders) as broker:
            number = 0
            while not stop.is_set():
                sent = broker.send(Message("orders", b"live %d" % number, keys="live"), number % 2)
                broker.progress.move("others", {("orders", number % 2): sent.queue_offset + 1}, {})
                number += 1

    writer = threading.Thread(target=write_and_consume)
    writer.start()
    numbers: list[int] = []
    try:
        for turn in range(8):
            out = tmp_path / f"out-{turn}"
            carve(orders, out, "-t", "orders")
            with StoreView.open(out) as view:
                numbers = [
                    int(m.body.split()[1]) for m in all_messages(view) if m.body.startswith(b"live")
                ]
                assert numbers == list(range(len(numbers)))
                for queue_id, offset in progress_of(out).get("orders@others", {}).items():
                    assert offset <= view.queue_bounds("orders", queue_id).max_offset
    finally:
        stop.set()
        writer.join()
    assert len(numbers) > 0


def test_a_full_disk_leaves_nothing_behind(orders, tmp_path, monkeypatch):
    class Full(FileSystem):
        def free_bytes(self, path: Path) -> int:
            return 1 << 20

    monkeypatch.setattr("rmqctl.admin.store.carve_run.FileSystem", Full)
    result = run("store", "carve", tmp_path / "out", "-S", orders, "-t", "orders", *DONE)
    assert result.code == 5, result.err
    assert "MiB are free" in result.err
    assert not list(tmp_path.glob("*out*"))
    assert not list(tmp_path.glob(".*"))


@pytest.mark.slow
def test_log_files_roll(tmp_path):
    root = tmp_path / "wide"
    create_store(root, SMALL_STORE)
    with EmbeddedBroker.open(root) as broker:
        for _ in range(20):
            broker.send_column("wide", [b"x" * 60_000] * 32, 0)
    carve(root, tmp_path / "out", "-t", "wide")
    with StoreView.open(tmp_path / "out") as view:
        assert view.queue_bounds("wide", 0) == (0, 640)
        assert len(list((tmp_path / "out" / "commitlog").iterdir())) == 3


@pytest.mark.slow
def test_a_small_store_of_a_large_one(tmp_path):
    """Files of other lengths: the same messages in more of them."""
    root, out = tmp_path / "large", tmp_path / "out"
    create_store(root)
    with EmbeddedBroker.open(root) as broker:
        for number in range(20):
            broker.send_column("wide", [b"x" * 60_000] * 32, number % 2)
    carve(root, out, "-t", "wide", "--small")
    with StoreView.open(root) as view, StoreView.open(out) as small:
        assert small.config.mapped_file_size_commit_log < view.config.mapped_file_size_commit_log
        assert [placed(m) for m in all_messages(small)] == [placed(m) for m in all_messages(view)]
        assert len(list((out / "commitlog").iterdir())) > 1
