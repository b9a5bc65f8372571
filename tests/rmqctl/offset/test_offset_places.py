"""``offset inspect`` where a store is damaged, odd, or written by a broker at this moment."""

import json
import shutil

import pytest

from benchmarks.large_store import FIRST_MS, RECORD, make_large_store, write_records
from tests.support import golden
from tests.support.cli import run
from tests.support.hand_made import TINY, HandMade
from tests.support.java_lock import java_lock


def inspected(root, *options):
    result = run("offset", "inspect", "-S", root, "-o", "json", *options)
    assert result.code == 0, result.err
    return result.json()


def commit(root, table):
    (root / "config").mkdir(exist_ok=True)
    path = root / "config" / "consumerOffset.json"
    path.write_text(json.dumps({"offsetTable": table}), "utf-8")


@pytest.fixture
def made(tmp_path):
    """A store of twelve messages, two in every three of queue 0, as a broker has it open."""
    root = tmp_path / "s"
    root.mkdir()
    store = HandMade(TINY, clean=False)
    for number in range(12):
        store.put("T", queue_id=number % 3 // 2, body=b"m%d" % number, keys=[f"k{number}"])
    (root / "lock").write_bytes(b"lock")
    store.write(root)
    return root, store


@pytest.mark.feature(126)
def test_a_broker_that_writes_meanwhile_is_followed_and_not_disturbed(made):
    root, store = made
    commit(root, {"T@g": {"0": 3, "1": 4}})
    with java_lock(root):
        first = inspected(root, "g")
        assert [(row["max_offset"], row["lag"]) for row in first] == [(8, 5), (4, 0)]
        for _ in range(5):
            store.put("T", queue_id=1, body=b"more")
        store.write(root)
        commit(root, {"T@g": {"0": 8, "1": 4}})
        files = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
        second = inspected(root, "g")
        assert [(row["max_offset"], row["lag"]) for row in second] == [(8, 0), (9, 5)]
        added = [message.size for message in store.messages[-5:]]
        assert [row["lag_bytes"] for row in second] == [0, sum(added)]
        assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == files


def test_units_that_the_broker_had_not_written_yet_count(made):
    root, store = made
    commit(root, {"T@g": {"1": 2}})
    for path in (root / "consumequeue" / "T" / "1").iterdir():
        path.unlink()
    row = inspected(root, "g", "-Q", 1)[0]
    unread = [message for message in store.messages if message.queue_id == 1][2:]
    assert (row["max_offset"], row["lag"]) == (4, 2)
    assert row["lag_bytes"] == sum(message.size for message in unread)
    assert row["oldest_unread_timestamp"] == unread[0].store_timestamp


def test_a_gap_in_the_queue_makes_the_bytes_before_it_unknown_and_nothing_else(tmp_path):
    root = golden.extract("hole-4.9", tmp_path)
    commit(root, {"GoldenTiny@before": {"0": 10}, "GoldenTiny@behind": {"0": 100}})
    before, end = inspected(root, "before", "behind")
    assert (before["lag"], before["lag_bytes"]) == (270, None)
    assert before["oldest_unread_timestamp"] is not None
    assert end["lag"] == 180
    assert end["lag_bytes"] > 0
    commit(root, {"GoldenTiny@within": {"0": 50}})
    (within,) = inspected(root, "within")
    assert (within["lag"], within["state"]) == (230, "BEHIND")
    assert within["oldest_unread_age_ms"] is within["oldest_unread_msg_id"] is None


@pytest.mark.parametrize(
    ("offset", "committed", "state", "note"),
    [
        (-1, None, "NONE", None),
        (0, 0, "BEHIND", None),
        (8, 8, "CAUGHT_UP", None),
        (2**63 - 1, 2**63 - 1, "AHEAD", f"{2**63 - 1 - 8} beyond the end"),
    ],
)
def test_odd_offsets_are_shown_for_what_they_are(made, offset, committed, state, note):
    root, _ = made
    commit(root, {"T@g": {"0": offset}})
    row = inspected(root, "g")[0]
    assert (row["committed_offset"], row["state"], row.get("note")) == (committed, state, note)


def test_keys_that_name_no_group_are_left_out(made):
    root, _ = made
    commit(root, {"T": {"0": 1}, "@g": {"0": 1}, "T@": {"0": 1}, "T@x@g": {"0": 1}})
    assert [(row["group"], row["topic"]) for row in inspected(root)] == [("g", "T@x")]


def test_progress_in_a_topic_or_a_queue_that_is_gone_is_still_shown(made):
    root, _ = made
    commit(root, {"gone@g": {"0": 7}, "T@g": {"9": 2}})
    rows = {(row["topic"], row["queue_id"]): row for row in inspected(root)}
    assert rows["gone", 0]["note"] == "7 beyond the end"
    assert rows["T", 9]["state"] == "AHEAD"
    assert rows["T", 0]["state"] == "NONE"  # its queues are known by their folders


def test_a_store_of_nothing_but_a_log_is_read(made):
    root, _ = made
    commit(root, {"T@g": {"0": 3}})
    for name in ("consumequeue", "index"):
        shutil.rmtree(root / name)
    for name in ("checkpoint", "lock"):
        (root / name).unlink()
    rows = inspected(root, "g")
    assert [(row["queue_id"], row["max_offset"], row["lag"]) for row in rows] == [
        (0, 8, 5),
        (1, 4, None),
    ]


def test_a_topics_file_that_can_not_be_read_leaves_the_queues_that_have_folders(made):
    root, _ = made
    commit(root, {"T@g": {"0": 3}})
    (root / "config" / "topics.json").write_text('{"topicConf', "utf-8")
    for command in ("inspect", "list"):
        result = run("offset", command, "-S", root, "-o", "json")
        assert (result.code, result.err.count("\n")) == (0, 1)
        assert "topics.json is damaged" in result.err
        assert "queues are known by their folders alone" in result.err
        assert [(row["queue_id"], row["lag"]) for row in result.json()] == [(0, 5), (1, None)]
    assert run("offset", "export", "-S", root).lines == ["g,T,0,3"]


def test_names_never_reach_the_terminal_raw(made):
    root, _ = made
    commit(root, {"T\x1b[31m@g\x07": {"0": 1}})
    for form in ("table", "wide", "md"):
        result = run("offset", "inspect", "-S", root, "-o", form)
        assert result.code == 0
        assert "\x1b[31m" not in result.out
        assert "\x07" not in result.out
        assert "x1b" in result.out


@pytest.mark.slow
@pytest.mark.feature(43)
def test_millions_of_unread_messages_are_added_up_exactly(tmp_path):
    root = tmp_path / "large"
    queues, each = 2, 1_300_000
    make_large_store(root, "big", queues * each, queues)
    write_records(root, "big", queues, [(0, 100_000), (0, 99_999), (1, each - 1)])
    commit(root, {"big@late": {"0": 100_000, "1": each - 1}, "big@never": {"1": 0}})
    rows = {(row["group"], row["queue_id"]): row for row in inspected(root)}
    for place, unread in {("late", 0): each - 100_000, ("late", 1): 1, ("never", 1): each}.items():
        assert rows[place]["lag"] == unread
        assert rows[place]["lag_bytes"] == unread * RECORD
    late = rows["late", 0]
    assert late["oldest_unread_timestamp"] == FIRST_MS + 100_000 * queues
    assert late["last_consumed_timestamp"] == FIRST_MS + 99_999 * queues
