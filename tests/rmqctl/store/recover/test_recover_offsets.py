"""Lost progress comes back from all remaining evidence, and is never more than it was."""

import os
import shutil
from contextlib import ExitStack
from unittest.mock import patch

import pytest

from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from rmqctl import app
from storage.config import SMALL_STORE
from storage.configs.config_file import ConfigFile
from storage.configs.consumer_offsets import load_consumer_offsets
from storage.configs.offset_samples import OffsetSamples
from storage.configs.progress import ProgressFile
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from storage.store import MessageStore
from tests.support import golden, golden_samples
from tests.support.cli import run
from tests.support.copies import copy_store
from tests.support.crash import Child
from tests.support.every_instant import die_at
from tests.support.java_lock import java_lock
from tests.support.watched_fs import WatchedFileSystem

RECOVER = ("store", "recover-offsets")
DO = ("--execute", "--yes", "-q")
JAVA = "config/consumerOffset.json"
BAK = "config/consumerOffset.json.bak"
OURS = "rmqctl/offsets.log"


def recovered(root, *options):
    result = run(
        *RECOVER, "-S", root, "-o", "json", *options, *([] if "--yes" in options else ["-n"])
    )
    assert result.code == 0, result.err
    return {(row["group"], row["topic"], row["queue_id"]): row for row in result.json()}


def by_place(table):
    return {
        (key.rpartition("@")[2], key.rpartition("@")[0], int(queue_id)): offset
        for key, queues in table.items()
        for queue_id, offset in queues.items()
    }


def is_healthy(root):
    return run("store", "fsck", "-S", root, "--fail-on", "warning").code == 0


def now(root):
    return by_place(ProgressFile(root).read().offsets())


@pytest.fixture
def orders(tmp_path):
    """Groups g and h have read 5 and 7 of the 10 messages in each of two queues."""
    store = tmp_path / "s"
    MessageStore.create(store, SMALL_STORE)
    with EmbeddedBroker.open(store) as broker:
        broker.update_topic(TopicConfig("orders", 2, 2))
        for n in range(20):
            broker.send(Message("orders", b"%d" % n), n % 2)
        for group, offset in (("g", 5), ("h", 7)):
            commits = [OffsetCommit("orders", queue_id, offset) for queue_id in (0, 1)]
            broker.update_consumer_offsets(group, commits)
    return store


ALL = {
    **{("g", "orders", queue_id): 5 for queue_id in (0, 1)},
    **{("h", "orders", queue_id): 7 for queue_id in (0, 1)},
}


@golden_samples.SOME
def test_a_healthy_store_has_lost_nothing(name):
    result = run(*RECOVER, "-S", golden.store(name), "-o", "json")
    assert (result.code, result.json()) == (0, [])
    assert "there is nothing to change" in result.err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["retry-dlq-4.9", "retry-dlq-5.3", "basic-4.9", "time-5.3"])
def test_a_cut_file_gives_back_what_is_whole_of_it_at_any_cut(name, tmp_path):
    root = golden.extract(name, tmp_path)
    text = (root / JAVA).read_text()
    true = by_place(load_consumer_offsets(root))
    (root / BAK).unlink(missing_ok=True)
    known = 0
    for end in range(0, len(text) - 1, max(1, len(text) // 25)):
        (root / JAVA).write_text(text[:end])
        rows = recovered(root)
        found = {place: row for place, row in rows.items() if row["new_offset"] is not None}
        assert all(row["new_offset"] == true[place] for place, row in found.items())
        assert {row["source"] for row in found.values()} <= {"file"}
        assert all(row["bound"] == "EXACTLY_AT" for row in found.values())
        assert len(found) >= known
        known = len(found)
    assert known


@pytest.mark.slow
def test_what_the_bak_holds_comes_back_and_says_at_least(tmp_path):
    root = golden.extract("retry-dlq-4.9", tmp_path)
    true = by_place(load_consumer_offsets(root))
    (root / JAVA).write_bytes(b"")
    rows = recovered(root)
    assert {place: row["new_offset"] for place, row in rows.items()} == true
    assert {(row["source"], row["bound"]) for row in rows.values()} == {("bak", "AT_LEAST")}
    done = recovered(root, *DO)
    assert all(row["applied"] for row in done.values())
    assert by_place(load_consumer_offsets(root)) == true
    assert ConfigFile(root / JAVA).load().source == "FILE"
    (kept,) = (root / "rmqctl/quarantine").glob("*/config/consumerOffset.json")
    assert kept.read_bytes() == b""


@pytest.mark.parametrize("name", ["retry-dlq-4.9", "retry-dlq-5.3", "basic-4.9"])
def test_what_a_group_gave_back_is_no_bound_by_itself(name, tmp_path):
    """In a golden store a group gave message 16 back and has committed 0: an earlier one hung."""
    root = golden.extract(name, tmp_path)
    true = by_place(load_consumer_offsets(root))
    (root / JAVA).write_bytes(b"")
    (root / BAK).unlink(missing_ok=True)
    rows = recovered(root)
    assert rows
    for place, row in rows.items():
        assert row["new_offset"] is None or row["new_offset"] <= true[place]
        assert row["new_offset"] != 0
    handed = {place: row["handed_offset"] for place, row in rows.items()}
    assert any(offset is not None for offset in handed.values())
    if name == "basic-4.9":
        assert (handed["g-half", "GoldenEight", 2], true["g-half", "GoldenEight", 2]) == (17, 0)


@pytest.mark.slow
def test_who_asks_for_it_goes_on_behind_what_was_handed_out(tmp_path):
    root = golden.extract("retry-dlq-4.9", tmp_path)
    (root / JAVA).write_bytes(b"")
    (root / BAK).unlink()
    rows = recovered(root, "--handed")
    found = [row for row in rows.values() if row["new_offset"] is not None]
    assert found
    for row in found:
        assert row["new_offset"] == row["handed_offset"]
        assert (row["bound"], row["source"]) == ("HANDED", "retry")
        assert run("message", "get", row["evidence"], "-S", root).code == 0


@pytest.mark.feature(115)
@pytest.mark.parametrize("damage", ["missing", "empty", "zeros", "cut"])
def test_progress_whose_files_are_all_lost_comes_back_from_samples(orders, damage):
    OffsetSamples(orders).append(
        {"orders@g": {0: 5, 1: 4}}, {"orders": {0: 10, 1: 10}}, 1_700_000_000_000
    )
    for path in (orders / JAVA, orders / BAK, orders / OURS):
        if not path.exists():
            continue
        size = path.stat().st_size
        if damage == "missing":
            path.unlink()
        else:
            cut = path.read_bytes()[:4]
            path.write_bytes({"empty": b"", "zeros": b"\0" * size, "cut": cut}[damage])
    rows = recovered(orders, *DO)
    assert {place: row["new_offset"] for place, row in rows.items()} == {
        ("g", "orders", 0): 5,
        ("g", "orders", 1): 4,
    }
    assert {(row["source"], row["bound"]) for row in rows.values()} == {("sample", "EXACTLY_AT")}
    assert now(orders) == by_place({"orders@g": {0: 5, 1: 4}})
    assert load_consumer_offsets(orders) == {"orders@g": {0: 5, 1: 4}}
    assert is_healthy(orders)


def test_a_truth_of_our_own_that_is_whole_makes_javas_file_anew(orders):
    (orders / JAVA).write_bytes(b"")
    assert recovered(orders) == {}
    assert (orders / JAVA).read_bytes() == b""
    recovered(orders, *DO)
    assert by_place(load_consumer_offsets(orders)) == ALL == now(orders)
    assert is_healthy(orders)


def test_a_truth_of_our_own_that_is_damaged_is_replaced_by_what_javas_file_says(orders):
    data = bytearray((orders / OURS).read_bytes())
    data[len(data) // 2] ^= 1
    (orders / OURS).write_bytes(data)
    assert run("offset", "list", "-S", orders).code == 4
    rows = recovered(orders, *DO)
    assert {place: row["new_offset"] for place, row in rows.items()} == ALL
    assert {row["source"] for row in rows.values()} == {"file"}
    assert now(orders) == ALL


def test_it_can_be_undone(orders):
    (orders / OURS).unlink()
    (orders / JAVA).write_text((orders / JAVA).read_text()[:-12])
    (orders / BAK).unlink(missing_ok=True)
    recovered(orders, *DO)
    before = now(orders)
    assert before
    result = run("offset", "undo", "--last", "--execute", "--yes", "-S", orders)
    assert result.code == 0, result.err
    assert now(orders) == {}
    assert run("offset", "undo", "--last", "--execute", "--yes", "-S", orders).code == 0
    assert now(orders) == before


def test_progress_that_is_there_is_left_alone_unless_asked(orders):
    table = {"orders@g": {0: 9, 1: 9}, "orders@new": {0: 3}}
    OffsetSamples(orders).append(table, {}, 1_700_000_000_000)
    rows = recovered(orders, *DO)
    assert {place: row["new_offset"] for place, row in rows.items()} == {("new", "orders", 0): 3}
    assert now(orders) == {**ALL, ("new", "orders", 0): 3}
    recovered(orders, "--overwrite", *DO)
    assert now(orders) == {**ALL, **by_place(table)}


def test_progress_that_was_deleted_is_not_recovered(orders):
    run("produce", "orders", "-S", orders, stdin=b"x\n")
    assert run("offset", "delete", "-g", "g", "-t", "orders", "--yes", "-S", orders).code == 0
    assert recovered(orders) == {}
    for path in (orders / JAVA, orders / OURS):
        path.write_bytes(b"")
    rows = recovered(orders)
    assert {row["new_offset"] for row in rows.values() if row["group"] == "g"} <= {None}


def test_a_reset_counts_for_more_than_what_was_before_it(orders):
    """The .bak of a moment before has the larger offset; the journal decides."""
    back = ("offset", "reset", "-g", "h", "-t", "orders", "--to-offset", 2, "--execute", "--yes")
    assert run(*back, "-S", orders).code == 0
    assert (
        by_place(ConfigFile(orders / BAK).load().document["offsetTable"])["h", "orders", 0]
        == ALL["h", "orders", 0]
    )
    for path in (orders / JAVA, orders / OURS):
        path.write_bytes(b"")
    row = recovered(orders)["h", "orders", 0]
    assert (row["new_offset"], row["source"]) == (2, "journal")
    assert recovered(orders)["g", "orders", 0]["new_offset"] == 5


def test_it_is_refused_beside_a_java_broker(orders):
    (orders / JAVA).write_bytes(b"")
    (orders / OURS).unlink()
    before = (orders / JAVA).read_bytes()
    with java_lock(orders):
        result = run(*RECOVER, "-S", orders, *DO)
    assert result.code == 5
    assert "in use by a Java broker" in result.err
    assert (orders / JAVA).read_bytes() == before


def test_nothing_is_changed_without_consent(orders):
    for path in (orders / JAVA, orders / OURS):
        path.write_bytes(b"")
    before = {path: path.stat().st_mtime_ns for path in orders.rglob("*")}
    assert run(*RECOVER, "-S", orders).code == 7
    assert {path: path.stat().st_mtime_ns for path in orders.rglob("*")} == before


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.long)])
def test_killed_at_every_instant_it_is_finished_by_the_next_one(orders, tmp_path, step):
    OffsetSamples(orders).append({"orders@g": {0: 5, 1: 5}}, {}, 1_700_000_000_000)
    (orders / OURS).write_bytes(b"\0\0\0")
    text = (orders / JAVA).read_text()
    (orders / JAVA).write_text(text[: text.index("@h") - 10])
    (orders / BAK).unlink(missing_ok=True)
    for path in orders.rglob("*"):
        os.utime(path, (1, 1))  # no process seems to write now, so none is watched
    original = copy_store(orders, tmp_path / "original")
    wanted = {place: offset for place, offset in ALL.items() if place[0] == "g"}
    seen = set()
    number, killed = 0, True
    while killed:
        number += step
        shutil.rmtree(orders)
        copy_store(original, orders)

        def recover(_, number=number):
            fs = WatchedFileSystem(lambda instant: die_at(number, instant))
            with ExitStack() as stack:
                for module in ("configs.progress", "configs.journal", "tools.quarantine"):
                    stack.enter_context(patch(f"storage.{module}.FileSystem", lambda: fs))
                app.main([*RECOVER, "-S", str(orders), *DO])

        killed, _ = Child(recover).wait()
        rows = recovered(orders, *DO)
        seen.add(not rows)
        assert now(orders) == wanted, number
        assert by_place(load_consumer_offsets(orders)) == wanted, number
    assert number > 20
    assert seen == {False, True}


@pytest.mark.slow
def test_where_nothing_tells_anything_groups_begin_as_new_ones(orders):
    store = orders
    for name in (JAVA, OURS):
        (store / name).write_bytes(b"")
    for name in (BAK, "rmqctl/cli/progress"):
        path = store / name
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
    shutil.rmtree(store / "rmqctl/journal", ignore_errors=True)
    told = run(*RECOVER, "-S", store)
    assert told.code == 7
    assert "no file has what rmqctl/offsets.log held" in told.err
    assert (store / OURS).exists()
    done = run(*RECOVER, "-S", store, "--execute", "--yes")
    assert done.code == 0
    assert "no group has progress now" in done.err
    assert not (store / OURS).exists()
    assert [path.read_bytes() for path in (store / "rmqctl/quarantine").rglob("offsets.log")] == [
        b""
    ]
    assert run("lag", "show", "-S", store).code == 0
    assert run("audit", "list", "-S", store, "-o", "json").json()[0]["what"] == OURS
    assert run("store", "fsck", "-S", store).code == 0
