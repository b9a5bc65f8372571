"""Unknown progress of a group is unknown in each command that shows lag."""

import json

import pytest

from tests.support import golden
from tests.support.cli import run


def with_progress(tmp_path, name, table):
    """A golden store whose consumerOffset.json a broker has left so."""
    root = golden.extract(name, tmp_path)
    path = root / "config" / "consumerOffset.json"
    path.write_text(json.dumps({"offsetTable": table}))
    return root


def test_an_offset_below_zero_is_no_progress_in_any_command(tmp_path):
    table = {"GoldenFour@neg": {"0": -1, "1": 38, "2": 40, "3": 45}}
    root = with_progress(tmp_path, "basic-4.9", table)
    fields = ["lag", "lag_bytes", "lost", "unknown_queues", "queues"]
    options = ["-S", root, "-o", "json", "--columns", ",".join(fields)]
    [shown] = run("lag", "show", "neg", *options).json()
    assert shown["unknown_queues"] == 1
    reported = run("lag", "report", "neg", "--engine", "local", "-S", root, "-o", "json")
    assert reported.code == 0, reported.err
    [row] = reported.json()["groups"]
    assert {field: row[field] for field in fields} == shown
    assert "deleted" not in reported.err


@pytest.mark.slow
def test_an_unknown_rate_is_unknown_by_topic_too(tmp_path):
    root = with_progress(tmp_path, "basic-4.9", {"GoldenEight@allahead": {"0": 100, "1": 100}})
    options = ["-t", "GoldenEight", "-S", root, "-o", "json", "--columns", "lag,rate_out"]
    [row] = run("lag", "show", *options, "--by", "topic").json()
    assert row == {"lag": None, "rate_out": None}
    assert [row] == run("lag", "show", *options).json()


@pytest.mark.parametrize("asked", [["--include-retry"], ["-t", "%RETRY%g-late"]])
def test_a_retry_topic_that_its_group_never_committed_to_is_a_row(asked):
    store = golden.store("retry-dlq-4.9")
    held = run("topic", "queues", "%RETRY%g-late", "-S", store, "-o", "json").json()
    assert sum(row["max_offset"] for row in held) == 12, "that is what it would be silent about"
    for rows in (
        run("lag", "show", "g-late", *asked, "-S", store, "-o", "json").json(),
        run(
            "lag", "report", "g-late", *asked, "--engine", "local", "-S", store, "-o", "json"
        ).json()["groups"],
    ):
        found = {row["topic"]: (row["lag"], row["unknown_queues"]) for row in rows}
        assert found["%RETRY%g-late"] == (None, 1)


@pytest.mark.parametrize("command", ["show", "report", "risk"])
def test_a_topic_that_is_not_there_is_an_error(command):
    engine = ("--engine", "local") if command == "report" else ()
    store = golden.store("retry-dlq-4.9")
    result = run("lag", command, "-t", "nosuch", *engine, "-S", store)
    assert result.code == 3, result.out
    assert "topic nosuch does not exist" in result.err


@pytest.mark.slow
def test_a_topic_that_no_group_reads_is_late_nowhere(tmp_path):
    root = with_progress(tmp_path, "basic-4.9", {"GoldenFour@g": {"0": 1}})
    for command in (("show",), ("report", "--engine", "local")):
        result = run("lag", *command, "-t", "GoldenEight", "-S", root)
        assert result.code == 0, result.err


@pytest.mark.parametrize(
    "command",
    [
        ("lag", "show"),
        ("lag", "show", "--by", "topic"),
        ("lag", "risk"),
        ("lag", "record", "--dry-run", "lag.jsonl"),
        ("offset", "list"),
        ("offset", "export"),
    ],
    ids=" ".join,
)
def test_where_no_group_has_progress_each_command_says_so(tmp_path, command):
    root = with_progress(tmp_path, "basic-4.9", {})
    result = run(*command, "-S", root)
    assert result.code == 0, result.err
    assert "no group that was asked for has any progress: what is unread is unknown" in result.err
    assert "no unread message was deleted" not in result.err


@pytest.fixture
def narrowed(store):
    """A topic that lost its second read queue before its group had read the messages there."""
    run("topic", "create", "t", "--queues", 2)
    run("produce", "t", "-Q", 0, "-q", stdin=b"a\n")
    run("produce", "t", "-Q", 1, "-q", stdin=b"a\n")
    run("consume", "t", "-g", "g", "-e", "-q")
    run("produce", "t", "-Q", 1, "-q", stdin=b"m\n" * 5)
    altered = run("topic", "alter", "t", "--read-queues", 1, "-y", "-q")
    assert altered.code == 0, altered.err
    return store


@pytest.mark.parametrize(
    "command",
    [
        ("lag", "show", "-o", "json"),
        ("lag", "show", "--by", "queue"),
        ("lag", "risk"),
        ("lag", "histogram", "g"),
        ("lag", "check", "-o", "json"),
        ("lag", "check", "-o", "prometheus"),
        ("lag", "record", "--dry-run", "lag.jsonl"),
        ("lag", "record", "--dry-run", "--interval", "1s", "lag.jsonl"),
        ("lag", "watch", "-o", "jsonl", "--limit", 1),
    ],
    ids=lambda words: " ".join(map(str, words)),
)
def test_unread_messages_in_a_queue_that_is_not_read_are_told(narrowed, command):
    result = run(*command)
    assert "group g in t: queue 1 (5 messages unread) is not read" in result.err
    assert "'rmqctl topic alter t --read-queues 2'" in result.err


@pytest.mark.parametrize("command", [("inspect", "g"), ("list", "g")], ids=" ".join)
def test_a_queue_that_is_not_read_has_a_note(narrowed, command):
    options = ("-t", "t", "-o", "json", "--columns", "queue_id,note")
    rows = run("offset", *command, *options).json()
    assert [row["note"] for row in rows] == [None, "not read: the topic has 1 read queue(s)"]


def test_advice_for_a_queue_that_is_not_read_is_to_make_it_read(narrowed):
    advice = run("group", "why", "g", "-o", "json").json()["advice"]
    assert "rmqctl topic alter t --read-queues 2" in advice
    assert not any(line.startswith("rmqctl consume") for line in advice)
