from typing import Any

import pytest

from tests.support import golden
from tests.support.cli import run

FIELDS = [
    *("group", "topic", "broker", "queue_id", "min_offset", "committed_offset", "max_offset"),
    *("lag", "state", "note"),
]


def listed(*options):
    result = run("offset", "list", "-o", "json", *options)
    assert result.code == 0, result.err
    return result.json()


@pytest.mark.feature(41, 110)
@pytest.mark.parametrize("name", ["basic-4.9", "retry-dlq-4.9", "time-4.9"])
def test_committed_offsets_and_lags_are_those_that_mqadmin_shows(name):
    rows = {
        (row["group"], row["topic"], row["queue_id"]): row
        for row in listed("-S", golden.store(name))
    }
    seen = 0
    for group in golden.manifest(name)["groups"]:
        for expected in group.get("rows", []):
            if expected["consumerOffset"] < 0:
                continue  # mqadmin's word for unknown
            row = rows.get((group["group"], expected["topic"], expected["queueId"]))
            if row is None or row["committed_offset"] is None:
                continue  # a real broker makes up offsets for young queues
            assert row["committed_offset"] == expected["consumerOffset"]
            assert row["max_offset"] == expected["brokerOffset"]
            assert row["lag"] == expected["diff"]
            seen += 1
    assert seen


def test_every_offset_of_the_file_is_listed():
    rows = listed("-S", golden.store("basic-4.9"))
    assert [list(row) for row in rows] == [FIELDS] * len(rows)
    assert {row["note"] for row in rows} == {None}
    found: dict[Any, Any] = {}
    for row in rows:
        if row["committed_offset"] is not None:
            key = f"{row['topic']}@{row['group']}"
            found.setdefault(key, {})[str(row["queue_id"])] = row["committed_offset"]
    assert found == golden.manifest("basic-4.9")["consumerOffset"]["offsetTable"]


@pytest.mark.feature(48)
def test_a_queue_without_progress_is_unknown_and_not_zero():
    rows = listed("-S", golden.store("basic-4.9"), "-g", "g-partial", "--where", "queue_id = 2")
    (row,) = rows
    assert (row["committed_offset"], row["lag"], row["state"]) == (None, None, "NONE")


def test_a_group_ahead_of_the_end_has_no_lag_and_says_by_how_many():
    rows = listed("-S", golden.store("small-files-4.9"), "--where", "state = AHEAD")
    assert rows
    for row in rows:
        assert row["lag"] is None
        assert row["note"] == f"{row['committed_offset'] - row['max_offset']} beyond the end"


def test_messages_deleted_before_they_were_read_are_told_and_counted():
    rows = listed("-S", golden.store("retention-4.9"), "--where", "state = LOST")
    assert {row["group"] for row in rows} == {"g-behind", "g-idle", "g-mixed"}
    for row in rows:
        assert row["committed_offset"] < row["min_offset"]
        assert row["lag"] == row["max_offset"] - row["committed_offset"]
        assert row["note"] == f"{row['min_offset'] - row['committed_offset']} deleted unread"


@pytest.mark.slow
def test_states_follow_a_consumer(store):
    run("produce", "t", "--queue", 0, stdin=b"a\nb\nc\n")
    run("consume", "t", "-g", "g", "-e", "-c", 2, "-Q", 0)
    rows = listed("-t", "t")
    assert [(row["committed_offset"], row["lag"], row["state"]) for row in rows] == [
        (2, 1, "BEHIND"),
        *[(None, None, "NONE")] * 3,
    ]
    run("consume", "t", "-g", "g", "-e")
    assert {row["state"] for row in listed()} == {"CAUGHT_UP"}


@pytest.mark.slow
def test_groups_and_topics_can_be_chosen(store):
    for topic, group in (("a", "g"), ("b", "g"), ("a", "h")):
        run("produce", topic, stdin=b"x\n")
        run("consume", topic, "-g", group, "-e")
    assert {row["topic"] for row in listed("-g", "g")} == {"a", "b", "%RETRY%g"}
    assert {row["group"] for row in listed("-t", "a")} == {"g", "h"}
    assert {row["group"] for row in listed("-g", "g", "-g", "h", "-t", "a")} == {"g", "h"}


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["-g", "nope"], 3, "group nope has no progress in"),
        (["-t", "nope"], 3, "topic nope does not exist in"),
        (["-g", "a b"], 2, "group 'a b' has characters other than"),
    ],
)
def test_unknown_names_are_one_sentence(store, args, code, sentence):
    result = run("offset", "list", *args)
    assert (result.code, result.err.count("\n")) == (code, 1)
    assert sentence in result.err


def test_a_store_without_groups_lists_nothing(store):
    assert listed() == []
