"""``offset inspect``: facts, sources, and the messages around a position."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from storage.configs.journal import Journal
from tests.support import golden
from tests.support.cli import ROOT, run
from tests.support.copies import copy_store
from tests.support.privileges import without_privileges

FIELDS = [
    *("group", "topic", "broker", "queue_id", "min_offset", "committed_offset", "max_offset"),
    *("lag", "oldest_unread_age_ms", "last_consumed_timestamp", "state", "note", "lag_bytes"),
    *("oldest_unread_timestamp", "oldest_unread_msg_id", "source", "changed_timestamp"),
    "changed_by",
]


def inspected(*options):
    result = run("offset", "inspect", "-o", "json", *options)
    assert result.code == 0, result.err
    return result.json()


@pytest.fixture
def half_read(store):
    """Ten messages in queue 0 of t, four of them consumed by g."""
    run("produce", "t", "-Q", 0, stdin=b"".join(b"m%d\n" % number for number in range(10)))
    assert run("consume", "t", "-g", "g", "-e", "-c", 4, "-Q", 0).code == 0
    return store


@pytest.fixture
def java_store(tmp_path):
    """A copy of a store that a Java broker has left."""
    return golden.extract("basic-4.9", tmp_path)


def set_offsets(root, name, offsets):
    table = {"offsetTable": {"GoldenFour@g-all": {str(q): o for q, o in offsets.items()}}}
    (root / "config" / name).write_text(json.dumps(table), "utf-8")


def test_the_fields_are_those_of_the_contract_in_order(half_read):
    for row in inspected("g"):
        assert list(row) == FIELDS


def test_plain_output_has_the_short_fields(half_read):
    result = run("offset", "inspect", "g")
    assert result.lines[0].split("\t")[:11] == FIELDS[:11]
    assert "lag_bytes" not in result.lines[0]


@pytest.mark.slow
def test_ages_are_counted_from_the_start_of_the_call(half_read):
    (row, *others) = inspected("g", "-t", "t")
    messages = [json.loads(line) for line in run("consume", "t", "-e", "-o", "jsonl").lines]
    assert row["oldest_unread_timestamp"] == messages[4]["store_timestamp"]
    assert row["oldest_unread_msg_id"] == messages[4]["msg_id"]
    assert row["last_consumed_timestamp"] == messages[3]["store_timestamp"]
    assert 0 <= row["oldest_unread_age_ms"] < 60_000
    assert row["lag"] == 6
    sizes = run("consume", "t", "-e", "-o", "jsonl", "--columns", "store_size").lines
    assert row["lag_bytes"] == sum(json.loads(line)["store_size"] for line in sizes[4:])
    for other in others:
        assert other["state"] == "NONE"
        assert other["lag_bytes"] is other["oldest_unread_age_ms"] is other["source"] is None


def test_fields_that_are_not_shown_can_still_choose_and_sort(half_read):
    shown = ["--columns", "queue_id"]
    assert (
        run("offset", "inspect", "--where", "lag_bytes > 100", *shown, "--no-headers").out == "0\n"
    )
    lines = run("offset", "inspect", "--sort", "-lag-bytes", *shown, "--no-headers").lines
    assert lines[0] == "0"


@pytest.mark.slow
def test_several_groups_topics_and_queues_can_be_chosen(half_read):
    run("produce", "u", stdin=b"x\n")
    run("consume", "u", "-g", "h", "-e")
    places = {(row["group"], row["topic"], row["queue_id"]) for row in inspected("g", "h")}
    assert {(group, topic) for group, topic, _ in places} >= {("g", "t"), ("h", "u")}
    assert {row["group"] for row in inspected("-g", "h")} == {"h"}
    assert {row["topic"] for row in inspected("-t", "u")} == {"u"}
    assert [row["queue_id"] for row in inspected("g", "-t", "t", "-Q", "0,2-3")] == [0, 2, 3]


@pytest.mark.slow
def test_a_group_without_progress_in_a_topic_that_is_named_is_unknown_there(half_read):
    run("produce", "u", stdin=b"x\n")
    assert {row["state"] for row in inspected("g", "-t", "u")} == {"NONE"}
    assert "u" not in {row["topic"] for row in inspected("g")}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["nope"], 3, "group nope has no progress in"),
        (["-t", "nope"], 3, "topic nope does not exist in"),
        (["g", "-Q", "7-9"], 3, "none of the topics that were chosen has a queue 7, 8, 9"),
        (["a b"], 2, "group 'a b' has characters other than"),
        (["--", "-nope"], 3, "group -nope has no progress in"),
        (["%nope"], 3, "group %nope has no progress in"),
        (["g", "-Q", "x"], 2, "--queue: 'x' is not a list of queues"),
        (["g", "--around", "x"], 2, "--around: 'x' is not how many messages before and after"),
        (["g", "--at", "1:5"], 2, "--at: '1:5' is not one place but a range"),
        (["g", "--at", "?"], 2, "--at: '?' is not a position"),
        (["g", "--source", "x"], 2, "--source: 'x' is not one of file, bak, journal"),
        (["g", "--body", "x"], 2, "--body: 'x' is not one of text, json"),
        (["g", "--source", "journal"], 3, "has no changes of offsets"),
    ],
)
def test_what_is_not_there_is_one_sentence(half_read, args, code, sentence):
    result = run("offset", "inspect", *args)
    assert (result.code, result.err.count("\n")) == (code, 1)
    assert sentence in result.err


@pytest.mark.slow
@pytest.mark.feature(25)
def test_the_messages_before_and_after_the_progress_are_shown(half_read):
    rows = inspected("g", "-t", "t", "--around", "2,3", "-Q", 0)
    assert [(row["distance"], row["queue_offset"], row["body"]) for row in rows] == [
        (-2, 2, "m2"),
        (-1, 3, "m3"),
        (0, 4, "m4"),
        (1, 5, "m5"),
        (2, 6, "m6"),
    ]
    (whole, *_) = map(json.loads, run("consume", "t", "-e", "-o", "jsonl", "--offset", 2).lines)
    first = rows[0]
    assert (first.pop("group"), first.pop("distance")) == ("g", -2)
    assert first == whole


@pytest.mark.parametrize(
    ("options", "bodies"),
    [
        (["--at", "start"], ["m0"]),
        (["--at", "7"], ["m7"]),
        (["--at=-3"], ["m7"]),
        (["--at", "+2"], ["m2"]),
        (["--at", "stored"], ["m4"]),
        (["--at", "@-1h"], ["m0"]),
        (["--at", "end", "--around", "2"], ["m8", "m9"]),
        (["--at", "0", "--around", "2,2"], ["m0", "m1"]),
        (["--around", "0,0"], []),
        (["--at", "5000", "--around", "2,2"], []),
    ],
)
def test_any_position_can_be_looked_at(half_read, options, bodies):
    rows = inspected("g", "-t", "t", "-Q", 0, *options)
    assert [row["body"] for row in rows] == bodies


@pytest.mark.slow
def test_a_queue_without_such_messages_is_told_of(half_read):
    result = run("offset", "inspect", "g", "-t", "t", "-Q", 0, "--at", 5000)
    assert result.err == "queue 0 of topic t has no messages around offset 5000: it has 0 to 9\n"
    result = run("offset", "inspect", "g", "-t", "t", "-Q", 1, "--around", 1)
    assert result.err == "group g has no progress in queue 1 of topic t\n"


@pytest.mark.slow
def test_a_message_that_can_not_be_read_is_told_of_and_the_others_are_shown(half_read, tmp_path):
    copy = tmp_path / "copy"
    copy_store(half_read, copy, ignore=shutil.ignore_patterns("bells"))
    log = copy / "commitlog" / f"{0:020d}"
    data = log.read_bytes()
    log.write_bytes(data.replace(b"m5", b"mX"))
    result = run("offset", "inspect", "g", "-t", "t", "-Q", 0, "--around", "0,3", "-S", copy)
    assert result.code == 8
    assert result.err.splitlines() == [
        "rmqctl: warning: the message at offset 5 of queue 0 of topic t cannot be read; "
        "'rmqctl store fsck' shows why"
    ]
    assert [line.split("\t")[4] for line in result.lines[1:]] == ["4", "6"]
    result = run("offset", "inspect", "g", "-t", "t", "-Q", 0, "--around", "0,3", "-S", copy, "-q")
    assert (result.code, result.err, len(result.lines)) == (8, "", 3)
    result = run("offset", "inspect", "g", "-t", "t", "-Q", 0, "--around", "1,1", "-S", copy)
    assert (result.code, result.err) == (0, ""), "nothing damaged is asked for"


@pytest.mark.slow
def test_a_place_that_a_repair_emptied_is_not_damaged(half_read, tmp_path):
    copy = tmp_path / "copy"
    copy_store(half_read, copy, ignore=shutil.ignore_patterns("bells"))
    (stored,) = run("consume", "t", "-e", "-o", "json", "--offset", 5, "-c", 1).json()
    with (copy / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(stored["commitlog_offset"])
        file.write(bytes(stored["store_size"]))
    around = ("offset", "inspect", "g", "-t", "t", "-Q", 0, "--around", "0,3", "-S", copy)
    assert run(*around).code == 8
    assert run("store", "repair", "--yes", "-S", copy).code == 0
    result = run(*around)
    assert (result.code, len(result.lines)) == (0, 3)
    assert result.err == (
        "offset 5 of queue 0 of topic t has no message: a repair has taken it out\n"
    )


def test_javas_older_file_can_be_read(java_store):
    set_offsets(java_store, "consumerOffset.json.bak", {0: 7, 1: 8})
    rows = inspected("g-all", "-S", java_store, "--source", "bak")
    assert [(row["committed_offset"], row["source"]) for row in rows] == [
        (7, "bak"),
        (8, "bak"),
        (None, None),
        (None, None),
    ]
    assert [row["lag"] for row in rows] == [33, 30, None, None]


@pytest.mark.feature(115)
def test_a_torn_file_of_java_is_replaced_by_its_older_one_and_the_rows_say_so(java_store):
    set_offsets(java_store, "consumerOffset.json.bak", {0: 7})
    (java_store / "config" / "consumerOffset.json").write_text('{"offsetTa', "utf-8")
    result = run("offset", "inspect", "-S", java_store, "-o", "json", "--where", "lag != null")
    assert "consumerOffset.json cannot be read; these offsets are from its .bak" in result.err
    assert [(row["committed_offset"], row["source"]) for row in result.json()] == [(7, "bak")]


def test_files_that_say_nothing_are_damage_and_not_an_empty_list(java_store):
    (java_store / "config" / "consumerOffset.json").write_text('{"offsetTa', "utf-8")
    (java_store / "config" / "consumerOffset.json.bak").unlink(missing_ok=True)
    result = run("offset", "inspect", "-S", java_store)
    assert (result.code, result.out, result.err.count("\n")) == (4, "", 1)
    result = run("offset", "inspect", "-S", java_store, "--source", "bak")
    assert result.code == 3
    assert "there is no" in result.err


def test_a_store_without_an_offsets_file_has_no_rows(java_store):
    for path in (java_store / "config").glob("consumerOffset*"):
        path.unlink()
    assert inspected("-S", java_store) == []


@pytest.mark.slow
def test_a_damaged_offsets_file_of_ours_is_named_with_its_remedy(half_read, tmp_path):
    copy = tmp_path / "copy"
    copy_store(half_read, copy, ignore=shutil.ignore_patterns("bells"))
    path = copy / "rmqctl" / "offsets.log"
    path.write_bytes(path.read_bytes().replace(b"4", b"5", 1))
    result = run("offset", "inspect", "g", "-S", copy)
    assert (result.code, result.err.count("\n")) == (4, 1)
    assert "check sum is wrong" in result.err


@pytest.mark.slow
def test_light_queues_and_names_in_any_script_are_shown_whole(java_store):
    name = "\u7ec4-\u043e\u0442\u0441\u0442\u0430\u0451\u0442-\U0001f600"
    table = {"offsetTable": {f"%LMQ%x@%LMQ%{name}": {"0": 3}, f"-t@-{name}": {"0": 1}}}
    (java_store / "config" / "consumerOffset.json").write_text(json.dumps(table), "utf-8")
    rows = inspected("-S", java_store)
    assert {(row["group"], row["topic"]) for row in rows} == {
        (f"%LMQ%{name}", "%LMQ%x"),
        (f"-{name}", "-t"),
    }
    assert {row["state"] for row in rows} == {"AHEAD"}
    assert len(inspected("-S", java_store, "--", f"-{name}")) == 1
    assert len(inspected("-S", java_store, "-g", f"-{name}")) == 1


@pytest.mark.slow
def test_who_moved_an_offset_last_and_when_stands_beside_it(half_read):
    move = {"group": "g", "topic": "t", "queue_id": 0, "old": 4, "new": 2}
    note = {"command": "offset reset", "user": "ann", "host": "ship", "moves": [move]}
    change_id = Journal(half_read).append(note, 1_700_000_000_000)
    # A later change names it, so it was done.
    Journal(half_read).append({**note, "moves": [], "previous": change_id}, 1_700_000_000_001)
    (row,) = inspected("g", "-t", "t", "-Q", 0)
    assert (row["changed_timestamp"], row["changed_by"]) == (1_700_000_000_000, "ann@ship")
    assert (row["committed_offset"], row["source"]) == (4, "file")
    (row,) = inspected("g", "-t", "t", "-Q", 0, "--source", "journal")
    assert (row["committed_offset"], row["lag"], row["source"]) == (2, 8, "journal")
    for where in ("changed < 2023-12-01", "'changed' != null", "Changed-By = ann@ship"):
        shown = run("offset", "inspect", "g", "-Q", 0, "--where", where, "-o", "plain")
        assert len(shown.lines) == 2, where


@pytest.mark.slow
@pytest.mark.feature(126)
def test_looking_changes_nothing_and_works_where_nothing_may_be_written(java_store):
    def state():
        return {
            path: (path.stat().st_mtime_ns, path.stat().st_size) for path in java_store.rglob("*")
        }

    before = state()
    for path in [java_store, *before]:
        path.chmod(path.stat().st_mode & 0o555)
    try:
        for options in ([], ["--around", "1,1"], ["-o", "json"]):
            command = [sys.executable, "-m", "rmqctl", "offset", "inspect", "-S", java_store]
            done = subprocess.run(
                [*without_privileges(), *command, *options],
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                capture_output=True,
                text=True,
                check=False,
            )
            assert (done.returncode, done.stderr.count("rmqctl:")) == (0, 0), done.stderr
            assert "GoldenFour" in done.stdout
    finally:
        for path in [java_store, *before]:
            path.chmod(path.stat().st_mode | 0o200)
    assert state() == before
