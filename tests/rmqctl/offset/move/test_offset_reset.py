"""offset reset: every target, its plan, and what is refused."""

import os
import re
import time

import pytest

from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from rmqctl.admin.offsets import plan_summary
from rmqctl.admin.offsets.queues import TopicChoice, parse_topic_choice
from storage.configs.consumer_offsets import load_consumer_offsets
from storage.configs.pending_commits import PendingCommits
from storage.configs.progress import ProgressFile
from storage.configs.progress_table import QueueProgress
from storage.format.message import Message
from tests.support.cli import run
from tests.support.java_lock import java_lock
from tests.support.samples import Sample, Ticking, new_store, open_store, prepared

START = 1_767_225_600_000
MINUTE = 60_000


def reset(*options):
    return run("offset", "reset", "-g", "g", "-t", "orders", *options)


def message_id(root, queue_id, offset):
    with EmbeddedBroker.open(root, read_only=True) as broker:
        [message] = broker.view.get_message("orders", queue_id, offset, 1).messages
        return message.msg_id


TIME = str(START + 3 * MINUTE + 20_000)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param(["--to-datetime", TIME], {0: 4, 1: 4}, marks=pytest.mark.feature(61)),
        (["--to-datetime", TIME, "--boundary", "upper"], {0: 3, 1: 3}),
        (["--to-datetime", TIME, "--boundary", "nearest49"], {0: 3, 1: 3}),
        (["--to-datetime", "2099-01-01"], {0: 10, 1: 5}),
        (["--to-datetime", "1970-01-01"], {0: 0, 1: 0}),
        pytest.param(["--to-earliest"], {0: 0, 1: 0}, marks=pytest.mark.feature(63)),
        pytest.param(["--to-latest"], {0: 10, 1: 5}, marks=pytest.mark.feature(63)),
        (["--to-current"], {0: 5, 1: None}),
        pytest.param(["--to-offset", "2"], {0: 2, 1: 2}, marks=pytest.mark.feature(64)),
        (["--to-offset", "0"], {0: 0, 1: 0}),
        (["--to-offset", "7"], {0: 7, 1: 5}),
        pytest.param(["--shift-by", "-2"], {0: 3, 1: None}, marks=pytest.mark.feature(65)),
        pytest.param(["--shift-by", "+2"], {0: 7, 1: None}, marks=pytest.mark.feature(65)),
        (["--shift-by", "-9"], {0: 0, 1: None}),
        (["--shift-by", "99"], {0: 10, 1: None}),
    ],
)
def test_every_queue_goes_where_it_was_told(orders, offsets, options, expected):
    assert reset(*options, "-n").code == 0
    assert reset(*options).code == 7, "nothing without a terminal and --yes"
    assert offsets() == {0: 5, 1: None}
    result = reset(*options, "--execute", "--yes", "-o", "json")
    assert result.code == 0, result.err
    assert offsets() == expected
    assert {row["queue_id"]: row["new_offset"] for row in result.json()} == expected
    assert [row["applied"] for row in result.json() if row["new_offset"] is None] in ([], [None])
    assert all(row["applied"] for row in result.json() if row["new_offset"] is not None)


@pytest.mark.feature(62)
def test_back_by_a_duration(store, aged):
    aged(store, {"-26h": "old", "-25h": "old", "-2h": "young"})
    result = run(
        "offset",
        "reset",
        "-g",
        "new",
        "--new-group",
        "-t",
        "T",
        "--by-duration",
        "1d",
        "-o",
        "json",
    )
    [row] = result.json()
    assert row["new_offset"] == 2
    assert 7_200_000 <= row["age_new_ms"] < 7_300_000


@pytest.mark.slow
@pytest.mark.feature(68)
def test_one_queue_only(orders, offsets):
    result = run(
        *("offset", "reset", "-g", "g", "-t", "orders:1", "--to-latest", "--execute", "--yes")
    )
    assert result.code == 0, result.err
    assert offsets() == {0: 5, 1: 5}
    assert reset("--queue", "0", "--to-latest", "--execute", "--yes").code == 0
    assert offsets() == {0: 10, 1: 5}
    assert reset("-Q", "7", "--to-latest").code == 3


@pytest.mark.feature(73)
def test_to_a_message_and_what_was_stored_from_then_on(orders, offsets):
    result = reset("--to-message", message_id(orders, 0, 2), "--execute", "--yes")
    assert result.code == 0, result.err
    assert offsets() == {0: 2, 1: 2}
    unknown = reset("--to-message", "7F" * 16)
    assert unknown.code == 3


@pytest.mark.feature(71, 72, 73)
def test_the_plan_tells_what_it_would_mean(orders):
    result = reset("--to-datetime", TIME, "-o", "json")
    assert result.code == 7
    row, other = result.json()
    with EmbeddedBroker.open(orders, read_only=True) as broker:
        found = broker.view.get_message("orders", 0, 4, 1).messages[0]
    age = row.pop("age_new_ms")
    assert 0 <= time.time() * 1000 - START - 4 * MINUTE - age < 60_000
    assert row == {
        "group": "g",
        "topic": "orders",
        "broker": "broker-a",
        "queue_id": 0,
        "old_offset": 5,
        "new_offset": 4,
        "move": -1,
        "lands_on_timestamp": START + 4 * MINUTE,
        "lag_old": 5,
        "lag_new": 6,
        "bytes": found.store_size,
        "lands_on_key": "k4",
        "lands_on_msg_id": found.msg_id,
        "lower": 4,
        "upper": 3,
        "nearest49": 3,
        "note": None,
    }
    assert (other["old_offset"], other["move"], other["lag_old"], other["lag_new"]) == (
        None,
        None,
        None,
        1,
    )
    moment, store, first = result.err.splitlines()[:3]
    assert moment.startswith(f"--to-datetime '{TIME}' is 2026-01-01T0")
    assert store.startswith("store /")
    assert first.startswith("2 queues: 1 back, 1 message (")
    days = re.search(
        r"; 1 begin; lag at least 5 -> 7; oldest unread at least (\d+)d.* -> (\d+)d", first
    )
    assert days, first
    assert days[1] == days[2]
    assert "read again, by tag: a 1" in result.err
    assert "nothing was changed: no terminal to ask on; add --yes to proceed" in result.err


def test_a_short_preview_looks_at_no_messages(orders):
    [row, _] = reset("--to-earliest", "--preview", "short", "-o", "json").json()
    assert (row["new_offset"], row["bytes"], row["lands_on_msg_id"]) == (0, None, None)
    said = reset("--to-earliest", "--preview", "short").err.splitlines()[1]
    assert said == "2 queues: 1 back, 5 messages read again; 1 begin; lag at least 5 -> 15"


@pytest.mark.slow
def test_a_lag_that_is_known_in_part_is_never_0(orders):
    with EmbeddedBroker.open(orders) as broker:
        beyond = [OffsetCommit("orders", 0, 10), OffsetCommit("orders", 1, 9)]
        broker.update_consumer_offsets("g", beyond)
    said = reset("--to-earliest", "--preview", "short", "-n").err
    assert "lag unknown -> 15" in said
    assert re.search(
        "lag unknown -> 15; oldest unread unknown -> [0-9]+d", reset("--to-earliest").err
    )
    one = ("offset", "reset", "-g", "g", "-t", "orders:0", "--to-offset", "4", "-y")
    assert run(*one).code == 0
    said = reset("--to-offset", "9", "--no-clamp", "--preview", "short", "-n").err
    assert "lag at least 6 -> " in said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--to-latest", "--no-forward"], "queue 0 of orders in group g would go forward by 5"),
        (["--to-earliest", "--no-backward"], "would go back by 5"),
        (["--to-offset", "7", "--no-clamp"], "queue 1 of orders in group g has messages 0 to 4"),
        (["--shift-by", "-6", "--no-clamp"], "-1 is outside"),
    ],
)
def test_what_the_options_forbid_is_refused_below_the_plan(orders, offsets, options, words):
    result = reset(*options, "--execute", "--yes", "-o", "plain")
    assert result.code == 7
    assert words in result.err
    assert len(result.lines) == 3, "the plan is shown"
    assert offsets() == {0: 5, 1: None}


def test_many_tags_are_counted_when_asked_for(orders, monkeypatch):
    monkeypatch.setattr(plan_summary, "CHEAP", 4)
    assert "by tag: not counted, as it is 5 messages" in reset("--to-earliest").err
    assert "by tag: a 3, b 2" in reset("--to-earliest", "--preview", "full").err
    assert "by tag: b 2, a 1" in reset("--to-offset", "8").err


def test_what_is_cut_is_said(orders):
    rows = reset("--to-offset", "7", "-o", "json").json()
    assert [row["note"] for row in rows] == [None, "7 is beyond the end; cut to it"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "expected", "note"),
    [
        ("9", 9, None),
        ("10", 10, None),
        ("11", 10, "11 is beyond the end; cut to it"),
    ],
)
def test_the_end_itself_is_not_beyond_it(orders, offsets, asked, expected, note):
    only = ("-g", "g", "-t", "orders:0", "--to-offset", asked)
    [row] = run("offset", "reset", *only, "-o", "json").json()
    assert (row["new_offset"], row["note"], row["lag_new"]) == (expected, note, 10 - expected)
    exact = run("offset", "reset", *only, "--no-clamp", "--execute", "--yes")
    assert exact.code == (0 if note is None else 7)
    assert offsets()[0] == (expected if note is None else 5)
    assert run("offset", "reset", *only, "--execute", "--yes").code == 0
    assert offsets()[0] == expected


def without_oldest(tmp_path, monkeypatch):
    """A store whose oldest messages are deleted; where topic T begins, and where it ends."""
    root = tmp_path / "aged"
    with open_store(new_store(root), clock=Ticking()) as store:
        for number in range(20):
            store.put(prepared([Sample(f"m{number}", "T", size=800)]))
        for path in sorted((root / "commitlog").iterdir())[:2]:
            os.utime(path, (1, 1))
        assert store.clean(manual=True).log_files
        low = store.view.min_offset_in_queue("T", 0)
    assert 2 < low < 19
    monkeypatch.setenv("RMQCTL_STORE", str(root))
    return root, low


@pytest.mark.parametrize(
    ("below", "note"), [(0, None), (1, "{asked} is before the first; cut to it")]
)
def test_a_plan_over_deleted_messages_is_cut_to_the_first_that_is_left(
    tmp_path, monkeypatch, below, note
):
    root, low = without_oldest(tmp_path, monkeypatch)
    asked = low - below
    plan = tmp_path / "plan.csv"
    plan.write_text(f"group,topic,queue_id,new_offset\ng,T,0,{asked}\n")
    [row] = run("offset", "reset", "--from-file", plan, "-o", "json").json()
    expected_note = None if note is None else note.format(asked=asked)
    assert (row["new_offset"], row["note"], row["lag_new"]) == (low, expected_note, 20 - low)
    exact = ("offset", "reset", "--from-file", plan, "--no-clamp", "--execute", "--yes")
    assert run(*exact).code == (7 if below else 0)
    result = run("offset", "reset", "--from-file", plan, "--execute", "--yes")
    assert result.code == 0, result.err
    assert load_consumer_offsets(root)["T@g"] == {0: low}


@pytest.mark.parametrize("below", [0, 1])
def test_an_undoing_into_deleted_messages_says_so(tmp_path, monkeypatch, below):
    root, low = without_oldest(tmp_path, monkeypatch)
    with EmbeddedBroker.open(root) as broker:
        broker.update_consumer_offsets("g", [OffsetCommit("T", 0, low - below)])
    reset = ("offset", "reset", "-g", "g", "-t", "T", "--to-latest", "--execute", "--yes")
    assert run(*reset).code == 0
    [row] = run("offset", "undo", "--last", "-o", "json").json()
    assert row["new_offset"] == low - below
    assert row["note"] == (f"messages before {low} are deleted" if below else None)


def test_where_it_is_is_neither_forward_nor_back(orders, offsets):
    """--no-forward and --no-backward refuse what moves."""
    stay = ("-g", "g", "-t", "orders:0", "--to-offset", "5", "--no-forward", "--no-backward")
    result = run("offset", "reset", *stay, "--execute", "--yes")
    assert result.code == 0, result.err
    assert offsets()[0] == 5


@pytest.mark.parametrize("number", [0, 1, 2])
def test_of_messages_of_one_time_the_one_that_is_named_is_landed_on(tmp_path, monkeypatch, number):
    root = new_store(tmp_path / "s")
    with open_store(root, clock=Ticking(step=0)) as store:
        for n in range(3):
            store.put(prepared([Sample(f"7F0000010A0B0C0D0E0F1011121314{n:02}", "T")]))
        [message] = store.view.get_message("T", 0, number, 1).messages
    monkeypatch.setenv("RMQCTL_STORE", str(root))
    to = ("--to-message", message.msg_id)
    [row] = run("offset", "reset", "-g", "g", "-t", "T", *to, "--new-group", "-o", "json").json()
    assert row["new_offset"] == number


def test_all_topics_to_a_message_are_those_that_the_groups_read(tmp_path, monkeypatch):
    root = new_store(tmp_path / "s")
    unique_id = "7F0000010A0B0C0D0E0F101112131400"
    retries = "%RETRY%billing"
    with open_store(root, clock=Ticking()) as store:
        for topic in ("orders", retries, "SCHEDULE_TOPIC_XXXX", "bills"):
            store.put(prepared([Sample(unique_id, topic)]))
    with EmbeddedBroker.open(root) as broker:
        for topic in ("orders", "bills"):
            broker.update_consumer_offsets("billing", [OffsetCommit(topic, 0, 1)])
        broker.update_consumer_offsets("billing", [OffsetCommit(retries, 0, 1)])
        broker.update_consumer_offsets("readers", [OffsetCommit("orders", 0, 1)])
    monkeypatch.setenv("RMQCTL_STORE", str(root))
    to = ("--all-topics", "--to-message", unique_id, "--execute", "--yes", "-o", "json")
    moved = run("offset", "reset", "-g", "readers", "-g", "billing", *to)
    assert moved.code == 0, moved.err
    rows = [(row["group"], row["topic"], row["new_offset"]) for row in moved.json()]
    assert rows == [("billing", "bills", 0), ("billing", "orders", 0), ("readers", "orders", 0)]
    everything = run("offset", "reset", "--all-groups", *to)
    assert [row["topic"] for row in everything.json()] == ["bills", "orders", "orders"]
    named = run("offset", "reset", "-g", "billing", "-t", retries, *to[1:])
    assert [row["topic"] for row in named.json()] == [retries], "a topic that is named"


@pytest.mark.slow
@pytest.mark.feature(66)
def test_where_another_group_is(orders, offsets):
    with EmbeddedBroker.open(orders) as broker:
        broker.update_consumer_offsets("h", [OffsetCommit("orders", 1, 3)])
    result = reset("--to-group", "h", "--execute", "--yes", "-o", "json")
    assert result.code == 0, result.err
    assert offsets() == {0: 5, 1: 3}
    assert result.json()[0]["note"] == "h has no progress"
    assert reset("--to-group", "nobody").code == 3


@pytest.mark.slow
@pytest.mark.feature(69, 70)
def test_many_groups_and_topics_in_one_change(orders, offsets):
    with EmbeddedBroker.open(orders) as broker:
        broker.send(Message("other", b"x"), 0)
        broker.update_consumer_offsets("h", [OffsetCommit("orders", 1, 3)])
        broker.update_consumer_offsets("g", [OffsetCommit("other", 0, 1)])
        broker.update_consumer_offsets("g", [OffsetCommit("%RETRY%g", 0, 1)])
    everything = ("--to-earliest", "--execute", "--yes", "-o", "json")
    result = run("offset", "reset", "-g", "g", "--all-topics", *everything)
    assert {row["topic"] for row in result.json()} == {"orders", "other"}, "no retry topic"
    assert offsets("g", "other")[0] == 0
    result = run("offset", "reset", "--all-groups", "-t", "orders", *everything)
    assert {row["group"] for row in result.json()} == {"g", "h"}
    assert offsets("g") == offsets("h") == {0: 0, 1: 0}
    result = run("offset", "reset", "-g", "g", "-g", "h", "-t", "orders:0", *everything)
    assert len(result.json()) == 2
    assert len({row["change_id"] for row in run("offset", "history", "-o", "json").json()}) == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--to-latest"], "name groups"),
        (["-g", "g", "--to-latest"], "name topics"),
        (["-g", "g", "--all-groups", "-t", "orders", "--to-latest"], "name groups"),
        (["-g", "g", "-t", "orders"], "say where to"),
        (["-g", "g", "-t", "orders", "--to-latest", "--to-earliest"], "do not go together"),
        (["-g", "g", "-t", "orders:x", "--to-latest"], "is not a list of queues"),
        (["-g", "g", "-t", "orders", "--to-offset", "-1"], "is not an offset"),
        (["-g", "g", "-t", "orders", "--shift-by", "few"], "is not a number of messages"),
        (["-g", "g", "-t", "orders", "--by-duration", "1"], "has no unit"),
        (["-g", "g", "-t", "orders", "--to-datetime", "soon"], "is not a time"),
        (["-g", "g", "-t", "orders", "--to-latest", "--preview", "big"], "full, short"),
        (["-g", "g", "-t", "orders", "--to-latest", "--export", "plan.txt"], ".csv"),
    ],
)
def test_nothing_defaults_to_now_or_all(orders, options, words):
    result = run("offset", "reset", *options, "--execute", "--yes")
    assert result.code == 2
    assert words in result.err
    assert result.out == ""


def test_a_light_topic_may_have_colons():
    assert parse_topic_choice("%LMQ%a:b") == TopicChoice("%LMQ%a:b")
    assert parse_topic_choice("a:0,2-3") == TopicChoice("a", (0, 2, 3))


@pytest.mark.parametrize(
    ("choice", "text"),
    [
        (TopicChoice("a"), "a"),
        (TopicChoice("a", (0, 2, 3)), "a:0,2,3"),
        (TopicChoice("%LMQ%a", (0,)), "%LMQ%a"),
        (TopicChoice("%LMQ%a:b", (0,)), "%LMQ%a:b"),
    ],
)
def test_a_choice_is_written_as_it_is_read(choice, text):
    assert str(choice) == text
    assert parse_topic_choice(text).topic == choice.topic


@pytest.mark.parametrize("where", [["-t", "nowhere"], ["-t", "orders:2"]])
def test_what_is_not_there_is_named(orders, where):
    result = run("offset", "reset", "-g", "g", *where, "--to-latest")
    assert result.code == 3
    assert where[1].split(":")[0] in result.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "dry"),
    [
        (("offset", "reset", "-g", "g", "-t", "orders", "--to-latest", "--execute"), "--dry-run"),
        (("offset", "undo", "--last", "--execute"), "--dry-run"),
        (("offset", "delete", "-g", "g", "-t", "orders"), "--dry-run"),
        (("offset", "orphans", "--fix"), "--dry-run"),
        (("offset", "import", "saved.csv", "-g", "g"), "--dry-run"),
        (("resetOffsetByTime", "-g", "g", "-t", "orders", "-s", "now"), "--dry-run"),
    ],
    ids=lambda given: given[1] if isinstance(given, tuple) else "",
)
def test_beside_a_java_broker_it_only_looks(orders, own_home, command, dry):
    (own_home / "saved.csv").write_text("orders,0,3\n")
    with EmbeddedBroker.open(orders) as broker:
        broker.update_consumer_offsets("g", [OffsetCommit("orders", 1, 50)])
    assert reset("--to-earliest", "--execute", "--yes").code == 0
    file = orders / "rmqctl/offsets.log"
    before = file.read_bytes()
    with java_lock(orders):
        looked, done = run(*command, dry), run(*command, "--yes")
    assert (looked.code, done.code) == (0, 5), done.err
    assert "in use by a Java broker" in done.err
    assert file.read_bytes() == before


def test_a_full_journal_stops_it(orders, offsets, monkeypatch):
    (orders / "rmqctl/journal").rename(orders / "rmqctl/elsewhere")
    (orders / "rmqctl/journal").write_bytes(b"")
    result = reset("--to-latest", "--execute", "--yes")
    assert result.code == 5
    assert offsets() == {0: 5, 1: None}


@pytest.mark.slow
def test_what_java_wrote_below_0_is_no_progress(orders, offsets):
    ProgressFile(orders).move({("orders@g", 0): -1})
    assert set(offsets().values()) <= {None}
    [row, _] = reset("--to-latest", "-o", "json").json()
    assert (row["old_offset"], row["new_offset"], row["move"]) == (None, 10, None)
    assert reset("--to-latest", "--execute", "--yes").code == 0
    [undone, _] = run("offset", "undo", "--last", "-o", "json").json()
    assert (undone["old_offset"], undone["new_offset"]) == (10, None)
    assert run("offset", "undo", "--last", "--execute", "--yes").code == 0
    assert set(offsets().values()) <= {None}
    assert ProgressFile(orders).read().get("orders@g", 0).offset is None, "not -1"
    assert "orders@g" not in load_consumer_offsets(orders)


@pytest.mark.slow
def test_what_a_killed_consumer_had_in_memory_counts(orders, offsets):
    """It pulled past its last commit; no process has taken that over yet."""
    generation = ProgressFile(orders).read().get("orders@g", 0).generation
    (orders / "rmqctl/members").mkdir(exist_ok=True)
    notes = PendingCommits(orders / "rmqctl/members/dead.notes")
    notes.write(("orders@g", 0), QueueProgress(generation, 8))
    notes.close()
    [row, _] = reset("--to-earliest", "-o", "json").json()
    assert (row["old_offset"], row["new_offset"]) == (8, 0)
    assert reset("--to-earliest", "--execute", "--yes").code == 0
    assert offsets() == {0: 0, 1: 0}
    assert run("offset", "undo", "--last", "--execute", "--yes").code == 0
    assert offsets() == {0: 8, 1: None}
