"""``offset history`` and ``audit``: changes, their users, and moves without a journal entry."""

import json
import shutil
import time
from typing import Any

import pytest

from broker.embedded.broker import EmbeddedBroker
from storage.configs.journal import Journal
from storage.configs.offset_samples import OffsetSamples
from storage.configs.progress import ProgressFile
from storage.format.fastjson import loads
from tests.support import golden
from tests.support.cli import run
from tests.support.copies import copy_store

FIELDS = [
    *("change_id", "at_timestamp", "command", "group", "topic", "queue_id", "old_offset"),
    *("new_offset", "user", "host", "reason", "undone_by"),
]
NOTE = {"command": "offset reset", "user": "ann", "host": "ship", "reason": "the bill run"}


def listed(*args):
    result = run(*args, "-o", "json")
    assert result.code == 0, result.err
    return result.json()


def history(*options):
    return listed("offset", "history", *options)


def move(store, group, targets, **note):
    with EmbeddedBroker.open(store) as broker:
        broker.progress.move(group, targets, {**NOTE, **note})


@pytest.fixture
def consumed(store):
    """Topics t and u, both read to the end by g; t by h, too."""
    for topic in ("t", "u"):
        run("produce", topic, "-Q", 0, stdin=b"a\nb\nc\nd\ne\n")
        run("consume", topic, "-g", "g", "-e")
    run("consume", "t", "-g", "h", "-e")
    return store


@pytest.mark.feature(79, 149)
@pytest.mark.slow
def test_a_move_says_who_when_why_and_from_where_to_where(consumed):
    move(consumed, "g", {("t", 0): 2, ("u", 0): None})
    rows = history()
    assert [list(row)[:12] for row in rows] == [FIELDS, FIELDS]
    assert [
        (row["topic"], row["queue_id"], row["old_offset"], row["new_offset"]) for row in rows
    ] == [("t", 0, 5, 2), ("u", 0, 5, None)]
    for row in rows:
        assert {name: row[name] for name in NOTE} == NOTE
        assert (row["group"], row["undone_by"], row["applied"]) == ("g", None, True)
        assert row["at_timestamp"] > 1_700_000_000_000
    assert rows[0]["change_id"] == rows[1]["change_id"]


@pytest.mark.slow
def test_groups_topics_and_times_can_be_chosen(consumed):
    move(consumed, "g", {("t", 0): 2})
    move(consumed, "h", {("t", 0): 3})
    move(consumed, "g", {("u", 0): 4})
    assert [row["new_offset"] for row in history("g")] == [2, 4]
    assert [row["new_offset"] for row in history("-g", "h", "-g", "g")] == [2, 3, 4]
    assert [row["new_offset"] for row in history("-t", "t")] == [2, 3]
    assert [row["new_offset"] for row in history("--since", "-1h")] == [2, 3, 4]
    assert history("--since", "now") == []
    assert history("--since", "2099-01-01") == []


@pytest.mark.slow
def test_an_undo_is_named_by_the_change_that_it_took_back(consumed):
    move(consumed, "g", {("t", 0): 2})
    (first,) = history("g")
    move(consumed, "g", {("t", 0): 5}, command="offset undo", undo_of=first["change_id"])
    first, second = history("g")
    assert first["undone_by"] == second["change_id"]
    assert second["undone_by"] is None


@pytest.mark.slow
def test_a_move_whose_writer_died_before_it_was_done_says_so(consumed):
    move(consumed, "g", {("t", 0): 2})
    lost = {"group": "g", "topic": "t", "queue_id": 0, "old": 2, "new": 0}
    Journal(consumed).append({**NOTE, "moves": [lost], "previous": 1}, 1_800_000_000_000)
    assert [(row["new_offset"], row["applied"]) for row in history("g")] == [(2, True), (0, False)]
    (row,) = listed("offset", "inspect", "g", "-t", "t", "-Q", 0)
    assert row["changed_timestamp"] < 1_800_000_000_000
    assert history("--where", "applied = false", "--columns", "new_offset") == [{"new_offset": 0}]


@pytest.mark.slow
def test_without_a_readable_offsets_file_it_is_unknown_whether_the_last_move_was_done(
    consumed, tmp_path
):
    move(consumed, "g", {("t", 0): 2})
    move(consumed, "h", {("t", 0): 2})
    copy = tmp_path / "copy"
    copy_store(consumed, copy, ignore=shutil.ignore_patterns("bells", "members"))
    ProgressFile(copy).path.write_bytes(b"x")
    rows = listed("audit", "list", "-S", copy, "--where", "command = 'offset reset'")
    assert [row["applied"] for row in rows] == [True, None]
    result = run("offset", "history", "-S", copy, "-o", "json")
    assert (result.code, result.json()) == (0, rows)
    assert "offsets.log is damaged" in result.err
    (row,) = listed("offset", "inspect", "-S", copy, "--source", "journal", "-t", "t", "-Q", 0)
    assert (row["group"], row["committed_offset"]) == ("g", 2)


@pytest.mark.slow
def test_a_group_that_was_never_moved_has_an_empty_history(consumed):
    assert history("g") == []


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["offset", "history", "nope"], 3, "group nope has neither progress nor a history in"),
        (["offset", "history", "-t", "nope"], 3, "topic nope does not exist in"),
        (["offset", "history", "a b"], 2, "group 'a b' has characters other than"),
        (["offset", "history", "--since", "x"], 2, "--since: 'x' is not a time"),
        (["audit", "show", "77"], 3, "has no change 77"),
        (["audit", "show", "x"], 2, "'x' is not a valid"),
    ],
)
@pytest.mark.slow
def test_what_is_not_there_is_one_sentence(consumed, args, code, sentence):
    result = run(*args)
    assert (result.code, result.err.count("\n")) == (code, 1)
    assert sentence in result.err


def change_behind_our_back(store, group, topic, offset):
    """Move progress as a program does that does not write rmqctl's journal."""
    key = f"{topic}@{group}"
    ProgressFile(store).move({(key, 0): offset})


@pytest.mark.feature(79)
@pytest.mark.slow
def test_a_move_between_two_changes_without_a_journal_entry_is_found(consumed):
    move(consumed, "g", {("t", 0): 4})
    change_behind_our_back(consumed, "g", "t", 1)
    move(consumed, "g", {("t", 0): 3})
    rows = history("g")
    assert [(row["change_id"], row["old_offset"], row["new_offset"]) for row in rows] == [
        (rows[0]["change_id"], 5, 4),
        (None, 4, 1),
        (rows[2]["change_id"], 1, 3),
    ]
    ids = f"{rows[0]['change_id']} and {rows[2]['change_id']}"
    assert rows[1]["note"] == f"no journal entry; between changes {ids}"
    assert rows[1]["user"] is rows[1]["command"] is None
    assert rows[1]["at_timestamp"] == rows[2]["at_timestamp"]  # when it was first seen


@pytest.mark.slow
def test_a_change_that_goes_back_further_does_not_hide_what_it_met(consumed):
    move(consumed, "g", {("t", 0): 4})
    change_behind_our_back(consumed, "g", "t", 2)
    move(consumed, "g", {("t", 0): 0})
    assert [(row["old_offset"], row["new_offset"]) for row in history("g")] == [
        (5, 4),
        (4, 2),
        (2, 0),
    ]


def sample(store, at, offset, group="g"):
    """Note where a group stands, as the process does that samples."""
    table = {} if offset is None else {f"t@{group}": {0: offset}}
    OffsetSamples(store).append(table, {"t": {0: 5}}, at)


@pytest.mark.slow
def test_a_move_between_two_samples_without_a_journal_entry_is_found(consumed):
    now = int(time.time() * 1000)
    for at, offset in ((now - 900_000, 3), (now - 800_000, 5), (now - 700_000, 2)):
        sample(consumed, at, offset)
    (row,) = history("g")
    assert (row["old_offset"], row["new_offset"], row["change_id"]) == (5, 2, None)
    assert row["at_timestamp"] == now - 700_000
    assert row["note"] == "no journal entry; between a sample and a sample, 100000 ms later"
    assert history("g", "--since", "-10m") == []


@pytest.mark.slow
def test_a_sample_noted_after_a_change_that_it_did_not_see_yet_reports_no_move(consumed):
    move(consumed, "g", {("t", 0): 2})
    (noted,) = history("g")
    for late_ms, offset in ((5, 5), (10_005, 2), (20_005, 4)):
        sample(consumed, noted["at_timestamp"] + late_ms, offset)
    run("consume", "t", "-g", "g", "-e")
    assert history("g") == [noted]


@pytest.mark.slow
def test_consuming_on_after_a_move_is_no_move(consumed):
    move(consumed, "g", {("t", 0): 1})
    run("consume", "t", "-g", "g", "-e")
    move(consumed, "g", {("t", 0): 2})
    run("consume", "t", "-g", "g", "-e")
    assert [row["change_id"] is None for row in history("g")] == [False, False]


@pytest.mark.parametrize("offset", [1, None])
@pytest.mark.slow
def test_a_move_since_the_last_change_without_a_journal_entry_is_found(consumed, offset):
    move(consumed, "g", {("t", 0): 4})
    change_behind_our_back(consumed, "g", "t", offset)
    noted, found = history("g")
    assert (found["old_offset"], found["new_offset"]) == (4, offset)
    assert found["note"] == f"no journal entry; since change {noted['change_id']}"
    assert history("h") == []


def test_javas_older_file_betrays_a_reset_of_mqadmins(tmp_path):
    root = golden.extract("basic-4.9", tmp_path)
    now: Any = loads((root / "config" / "consumerOffset.json").read_text("utf-8"))
    before = {"offsetTable": {**now["offsetTable"], "GoldenFour@g-gone": {"0": 2}}}
    before["offsetTable"]["GoldenFour@g-all"] = {"0": 41, "1": 3}
    (root / "config" / "consumerOffset.json.bak").write_text(json.dumps(before), "utf-8")
    rows = listed("offset", "history", "-S", root)
    assert {
        (row["group"], row["queue_id"], row["old_offset"], row["new_offset"]) for row in rows
    } == {("g-all", 0, 41, 40), ("g-gone", 0, 2, None)}
    for row in rows:
        assert ".bak of consumerOffset.json has the old offset" in row["note"]


@pytest.mark.feature(149)
@pytest.mark.slow
def test_the_audit_lists_changes_of_settings_and_of_progress(consumed):
    run("topic", "create", "fresh", "--queues", 3, "--reason", "new shop")
    move(consumed, "g", {("t", 0): 2, ("u", 0): 1})
    created, *moved = listed("audit", "list")
    assert created["topic"] == "fresh"
    assert (created["group"], created["old_offset"], created["reason"]) == (None, None, "new shop")
    assert created["new"]["read_queue_nums"] == 3
    assert [row["new_offset"] for row in moved] == [2, 1]
    assert [list(row)[:12] for row in (created, *moved)] == [FIELDS] * 3
    assert listed("audit", "list", "--since", "2099-01-01") == []


@pytest.mark.slow
def test_values_of_settings_are_filtered_by_their_types(store):
    run("topic", "create", "many", "--queues", 16)
    run("topic", "create", "few", "--queues", 2)
    assert run("broker", "config", "set", "fileReservedTime", 24, "--yes").code == 0

    def found(condition):
        return [row["topic"] for row in listed("audit", "list", "--where", condition)]

    assert found("new.write_queue_nums > 9") == ["many"]
    assert found("new.write_queue_nums < 9") == ["few"]
    assert found("new > 9") == [None]


@pytest.mark.slow
def test_one_change_is_shown_with_everything_that_was_noted(consumed):
    move(consumed, "g", {("t", 0): 2, ("u", 0): 1}, ticket=4711)
    (row, _) = history("g")
    shown = listed("audit", "show", row["change_id"])
    assert {name: shown[name] for name in NOTE} == NOTE
    assert shown["moves"] == [
        {"group": "g", "topic": "t", "queue_id": 0, "old_offset": 5, "new_offset": 2},
        {"group": "g", "topic": "u", "queue_id": 0, "old_offset": 5, "new_offset": 1},
    ]
    assert shown["more"] == {"ticket": 4711}
    assert shown["applied"] is True


def test_a_store_of_java_alone_has_no_journal_and_that_is_no_error(tmp_path):
    root = golden.extract("small-files-4.9", tmp_path)
    assert listed("audit", "list", "-S", root) == []
    assert history("-S", root) == []


@pytest.mark.slow
def test_a_torn_line_of_the_journal_hides_no_other(consumed):
    move(consumed, "g", {("t", 0): 2})
    (path,) = Journal(consumed).files()
    with path.open("ab") as file:
        file.write(b'{"crc":"00000000","entry":{"change')
    move(consumed, "g", {("t", 0): 3})
    assert [row["new_offset"] for row in history("g")] == [2, 3]
