"""Surprises are announced: stranded delays, keys with blanks, programs that fail, DLQ perms."""

import pytest

from analytics.lag.delayed import levels as levels_of
from rmqctl.admin.retries.due_list import STRANDED, _state, stranded
from storage.readonly import StoreView
from tests.support.cli import run

THREE = ["broker", "config", "set", "messageDelayLevel", "1s 5s 10s"]


@pytest.fixture
def delayed(store):
    run("produce", "t", "--delay-level", 18, "-q", stdin=b"a\nb\n")
    yield store
    run("broker", "config", "set", "messageDelayLevel", "--unset", "--yes")


def test_fewer_delay_levels_are_planned_with_what_they_strand(delayed):
    for options in (["--dry-run"], ["--yes"]):
        result = run(*THREE, *options)
        assert result.code == 0
        assert "2 messages wait in delay levels that messageDelayLevel lacks" in result.err
        assert "(2 in level 18)" in result.err


@pytest.mark.slow
def test_stranded_messages_are_shown_with_the_remedy(delayed):
    assert run(*THREE, "--yes").code == 0
    status = run("broker", "status", "-o", "json")
    (level,) = status.json()["delay_levels"]
    assert (level["level"], level["waiting"], level["delay_ms"]) == (18, 2, None)
    assert "at least 18 levels" in status.err


def test_an_agenda_of_what_is_overdue_and_stranded_names_the_remedy(store):
    run("produce", "t", "--delay-level", 1, "-q", stdin=b"a\n")
    with StoreView.open(store) as view:
        (level,) = levels_of(view)
        gone = level._replace(delay_ms=None)
        assert _state(gone, 1, 2, running=False) == STRANDED
        assert _state(gone, 1, 2, running=True) == STRANDED
        assert stranded(view, 0) == {1: 1}
        assert stranded(view, 1) == {}


def test_levels_that_stay_strand_nothing(delayed):
    longer = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 3h"
    assert "delay levels" not in run(*THREE[:-1], longer, "--yes").err


def test_a_key_with_a_blank_is_told_where_it_is_stored_and_looked_for(store):
    sent = run("produce", "t", "-k", "order 17", stdin=b"x\n")
    assert "is 2 keys" in sent.err
    assert "contains a blank" in run("consume", "t", "-e", "-k", "order 17").err
    assert "contains a blank" not in run("consume", "t", "-e", "-k", "order").err


ROWS = {
    "jsonl": [
        '{"body":"1","keys":["a","order 17","c"]}',
        '{"body":"2","keys":"b c"}',
        '{"body":"3","keys":["d", "e f"]}',
    ],
    "csv": ["name,body", "Bo,1", "order 17,2", "Jo,3", "Ann Smith,4"],
}


@pytest.mark.parametrize("count", [0, 40])
@pytest.mark.parametrize(("form", "line"), [("jsonl", 1), ("csv", 3)])
def test_keys_of_rows_that_are_several_are_told_of_once(store, form, line, count):
    usual = {"jsonl": '{"body":"x","keys":["a","b"]}', "csv": "k,x"}[form]
    text = "\n".join([*ROWS[form], *[usual] * count, ""])
    options = ["--key-field", "name"] if form == "csv" else []
    sent = run("produce", "t", "--input", form, *options, stdin=text.encode())
    assert sent.code == 0
    assert [text for text in sent.err.splitlines() if "splits keys" in text] == [
        f"rmqctl: warning: line {line}: the key 'order 17' is 2 keys, as RocketMQ splits keys at "
        "blanks; 1 more line has such a key"
    ]


def test_a_column_of_keys_may_have_several(store):
    rows = ["keys,body", *["a b,x"] * 20, ""]
    sent = run("produce", "t", "--input", "csv", stdin="\n".join(rows).encode())
    assert (sent.code, "splits keys" in sent.err) == (0, False)


def test_a_tag_with_bars_is_told(store):
    told = run("produce", "t", "--tag", "A || B", stdin=b"x\n")
    assert "so no subscription can name this tag" in told.err


@pytest.mark.slow
@pytest.mark.parametrize("topic", ["%DLQ%g", "t"])
def test_a_topic_that_may_not_be_read_names_a_remedy(store, topic):
    run("produce", "t", "-q", stdin=b"x\n")
    run("consume", "t", "-g", "g", "-e", "--exec", "false", "--max-reconsume-times", 0, "-q")
    run("topic", "alter", topic, "--perm", 2, "--yes")
    refused = run("consume", topic, "-e")
    assert refused.code == 7
    assert f"rmqctl topic alter {topic} --perm 6" in refused.err
    assert ("rmqctl dlq browse g" in refused.err) == (topic != "t")


@pytest.mark.slow
def test_programs_that_fail_are_seen_in_the_exit_code(store):
    run("produce", "t", "-Q", 0, "-q", stdin=b"good\nbad\n")
    once = ["-e", "--max-reconsume-times", 0]
    some = run("consume", "t", "-g", "some", *once, "--exec", "grep -q good")
    assert (some.code, "1 of 2 messages failed" in some.err) == (8, True)
    every = run("consume", "t", "-g", "every", *once, "--exec", "false")
    assert (every.code, "2 of 2 messages failed" in every.err) == (1, True)
    assert run("consume", "t", "-g", "none", *once, "--exec", "true").code == 0


@pytest.mark.slow
def test_progress_beyond_the_end_of_a_topic_that_was_made_anew_is_told(store):
    run("topic", "create", "t", "--queues", 1)
    run("produce", "t", "-q", stdin=b"1\n2\n3\n")
    run("consume", "t", "-g", "g", "-e", "-q")
    run("topic", "delete", "t", "--confirm", "t", "--keep-offsets", "-y", "-q")
    run("topic", "create", "t", "--queues", 1)
    run("produce", "t", "-q", stdin=b"4\n")
    result = run("consume", "t", "-g", "g", "-e")
    assert "had progress 3 in queue 0 of t, beyond its end 1" in result.err
    assert "offset reset -g g -t t --to-earliest" in result.err
