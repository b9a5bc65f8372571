"""``store diff``: a row for each difference, none where there is none."""

from __future__ import annotations

import pytest

from storage.store import MessageStore
from tests.support.cli import run
from tests.support.copies import copy_store
from tests.support.crash import fast_folder
from tests.support.rich_store import SIZES


@pytest.fixture
def place():
    with fast_folder() as folder:
        yield folder


@pytest.fixture
def two(place):
    a, b = place / "a", place / "b"
    MessageStore.create(a, SIZES)
    run("produce", "t", "-Q", 0, "-S", a, stdin=b"one\ntwo\nthree\n")
    run("group", "create", "g", "-S", a)
    run("consume", "t", "-g", "g", "--from-where", "first", "-c", 1, "-S", a)
    copy_store(a, b)
    return a, b


def rows(a, b, *options):
    result = run("store", "diff", a, b, "-o", "json", *options)
    assert result.code == 0, result.err
    return [
        (row["part"], row["name"], row["queue_id"], row["field"], row["a"], row["b"])
        for row in result.json()
    ]


@pytest.mark.parametrize("options", [[], ["--deep"], ["-t", "t"]])
def test_copies_do_not_differ(two, options):
    assert rows(*two, *options) == []


@pytest.mark.feature(120)
@pytest.mark.slow
def test_settings_queues_and_progress_that_differ_are_told(two):
    a, b = two
    run("topic", "alter", "t", "--perm", 4, "--yes", "-S", b)
    run("topic", "create", "new", "-S", b)
    run("group", "delete", "g", "--confirm", "g", "--yes", "-S", a)
    run("broker", "config", "set", "fileReservedTime", 24, "--yes", "-S", b)
    run("consume", "t", "-g", "g", "-c", 1, "-S", b)
    found = rows(a, b)
    assert ("topic", "t", None, "perm", 6, 4) in found
    assert ("topic", "new", None, "exists", False, True) in found
    assert ("group", "g", None, "exists", False, True) in found
    assert ("config", "store", None, "file_reserved_time_hours", None, 24) in found
    assert ("offset", "t@g", 0, "committed_offset", 1, 2) in found
    assert all(part != "message" for part, *_ in found)


@pytest.mark.slow
def test_the_end_of_a_queue_that_grew_is_told(two):
    a, b = two
    run("produce", "t", "-Q", 0, "-S", b, stdin=b"four\n")
    found = rows(a, b)
    assert ("queue", "t", 0, "max_offset", 3, 4) in found
    assert {row[:2] for row in found} == {("queue", "t"), ("log", "commitlog")}


@pytest.mark.slow
def test_the_first_message_that_differs_is_named(place):
    for name, last in (("a", b"THREE"), ("b", b"three")):
        MessageStore.create(place / name, SIZES)
        for body in (b"one", b"two", last):
            run("produce", "t", "-Q", 0, "-k", "same", "-S", place / name, stdin=body)
    result = run("store", "diff", place / "a", place / "b", "--deep", "-t", "t", "-o", "json")
    (row,) = [row for row in result.json() if row["part"] == "message"]
    # Unique ids and times of birth differ from the first message on.
    assert (row["queue_offset"], row["note"]) == (
        0,
        "the first of 3 that differ, of 3 that both have",
    )
    assert row["a"] != row["b"]
    assert [r for r in rows(place / "a", place / "b", "-t", "t") if r[0] == "message"] == []


@pytest.mark.slow
def test_one_flipped_bit_is_found_by_deep_alone(two):
    a, b = two
    path = b / "commitlog" / f"{0:020d}"
    data = path.read_bytes()
    path.write_bytes(data.replace(b"two", b"tvo", 1))
    assert rows(a, b) == []
    ((part, _, queue_id, field, _, _),) = rows(a, b, "--deep")
    assert (part, queue_id, field) == ("message", 0, "content")
