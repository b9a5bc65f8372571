"""A group with unknown queues is never OK, and its gauges are left out."""

import contextlib
import json

import pytest

from rmqctl.admin.lag.check_rows import Verdict
from rmqctl.admin.lag.limits import Limit, Limits, check
from storage.readonly import StoreView
from tests.rmqctl.lag.check.test_check import row
from tests.support import golden
from tests.support.cli import limited, run
from tests.support.hand_made import TINY, HandMade
from tests.support.terminal import on_a_terminal


@pytest.fixture
def grown(store):
    """A topic that got a queue, and messages there, after its group was through."""
    run("topic", "create", "t", "--queues", 1)
    run("produce", "t", "-q", stdin=b"a\n")
    run("consume", "t", "-g", "g", "-e", "-q")
    run("topic", "alter", "t", "--queues", 2, "-y", "-q")
    run("produce", "t", "-Q", 1, "-q", stdin=b"m\n" * 100)
    return store


@pytest.fixture
def ahead(tmp_path, monkeypatch):
    """Progress beyond the end in one queue, none unread in the other that has any."""
    root = golden.extract("basic-4.9", tmp_path)
    table = {"offsetTable": {"GoldenEight@g": {"0": 100, "1": 1, "2": 1}}}
    (root / "config" / "consumerOffset.json").write_text(json.dumps(table))
    monkeypatch.setenv("RMQCTL_STORE", str(root))
    return root


LIMITS = [
    ["--warn-lag", 10, "--crit-lag", 100000],
    ["--crit-lag", 100000],
    ["--crit-age", "9000d"],
    ["--warn-lag", 100000, "--crit-age", "9000d"],
]


@pytest.mark.slow
@pytest.mark.parametrize("limits", LIMITS)
def test_a_queue_without_progress_is_unknown_to_every_limit(grown, limits):
    result = run("lag", "check", "g", *limits)
    assert result.code == 3
    assert result.lines[0].startswith("LAG UNKNOWN - g in t: ")
    assert "no progress in queue 1 (100 messages there)" in result.lines[0]


@pytest.mark.parametrize("limits", LIMITS)
def test_progress_beyond_the_end_is_unknown_to_every_limit(ahead, limits):
    result = run("lag", "check", "g", *limits)
    assert result.code == 3
    assert "progress beyond the end in queue 0" in result.lines[0]


@pytest.mark.slow
def test_what_is_known_may_be_critical_already(ahead):
    run("produce", "GoldenEight", "-Q", 1, "-q", stdin=b"m\n" * 50)
    result = run("lag", "check", "g", "--warn-lag", 1, "--crit-lag", 10)
    assert (result.code, result.lines[0].split(" - ")[0]) == (2, "LAG CRITICAL")
    assert "progress beyond the end" in result.out


def test_a_warning_of_what_is_known_does_not_hide_what_is_not():
    known, partly = row(lag=50), row(group="h", lag=50)._replace(unknown_queues=2)
    limits = Limits(lag=Limit(10, 100))
    assert check([known], limits, 0).verdict is Verdict.WARNING
    assert check([partly], limits, 0).verdict is Verdict.UNKNOWN
    assert check([known, partly], limits, 0).verdict is Verdict.UNKNOWN
    assert check([row(lag=500), partly], limits, 0).verdict is Verdict.CRITICAL


@pytest.mark.slow
def test_a_limit_of_dead_letters_does_not_ask_for_the_lag(grown):
    result = run("lag", "check", "g", "--crit-dlq", 5)
    assert result.code == 0
    assert "at least 0 messages unread (g: partly unknown)" in result.out


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lag_messages", "lag_bytes", "oldest_unread_age_seconds"])
def test_a_gauge_that_is_not_known_is_absent(grown, name):
    lines = run("lag", "check", "-o", "prometheus").lines
    assert not [line for line in lines if line.startswith(f"rmqctl_group_{name}{{")]
    assert 'rmqctl_group_unknown_queues{group="g",topic="t"} 1' in lines


@pytest.mark.slow
def test_performance_data_says_that_it_is_not_known(grown):
    assert "'g@t lag'=U;" in run("lag", "check", "g", "--crit-lag", 5).lines[0]


@pytest.mark.slow
def test_the_reasons_are_in_the_json(grown):
    (group,) = run("lag", "check", "-o", "json", "--crit-lag", 5).json()["groups"]
    assert (group["lag"], group["verdict"]) == (None, "UNKNOWN")
    assert group["unknown"] == ["no progress in queue 1 (100 messages there)"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("lag", "show", "g"),
        ("lag", "show", "-t", "t", "--by", "topic"),
        ("lag", "report", "g", "--engine", "local"),
        ("lag", "watch", "g", "--limit", "1"),
    ],
    ids=" ".join,
)
def test_nothing_shows_0_where_messages_may_be_unread(grown, command):
    result = run(*command, "-o", "jsonl")
    first = json.loads(result.lines[0])
    found = first["groups"][0] if "groups" in first and "as_of" in first else first
    assert found["lag"] is None
    assert "no progress in" in result.err


@pytest.mark.slow
@pytest.mark.parametrize("command", [("histogram", "g"), ("risk", "g")], ids=" ".join)
def test_what_a_backlog_leaves_out_is_told(grown, command):
    assert "no progress in queue 1 (100 messages there)" in run("lag", *command).err


def test_an_empty_queue_without_progress_is_known(store):
    run("produce", "t", "--queue", 0, "-q", stdin=b"a\n")
    run("consume", "t", "-g", "g", "-e", "-Q", 0, "-q")
    result = run("lag", "check", "--crit-lag", 5)
    assert (result.code, result.err) == (0, "")


def emptied(root):
    """As a power cut leaves it, where it was never replaced."""
    file = root / "config" / "consumerOffset.json"
    file.with_name("consumerOffset.json.bak").unlink()
    file.write_bytes(b"")
    return file


def from_bak(root):
    """As after a power cut in the middle of a write."""
    file = root / "config" / "consumerOffset.json"
    file.rename(file.with_name("consumerOffset.json.bak"))
    file.write_text('{"offsetTable":{"GoldenEi')


@pytest.mark.parametrize("limits", [[], ["--crit-lag", 100000], ["--crit-age", "9000d"]])
def test_numbers_from_a_bak_are_never_green(ahead, limits):
    from_bak(ahead)
    result = run("lag", "check", "g", *limits)
    assert result.code == (1 if not limits else 3)
    assert "these offsets are from its .bak" in result.out


@pytest.mark.parametrize(
    "command",
    [
        ("lag", "show", "g"),
        ("lag", "report", "--engine", "local"),
        ("lag", "watch", "g", "--limit", "1"),
        ("lag", "histogram", "g"),
        ("offset", "list"),
        ("offset", "inspect", "g"),
        ("offset", "export", "-g", "g"),
        ("offset", "reset", "-g", "g", "-t", "GoldenEight", "--to-earliest", "-n"),
        ("resetOffsetByTime", "-g", "g", "-t", "GoldenEight", "-s", "now", "-n"),
        ("group", "list"),
        ("group", "describe", "g"),
        ("group", "why", "g"),
        ("store", "du"),
        ("lag", "risk"),
        ("lag", "record", "--dry-run", "../lag.jsonl"),
        ("offset", "diff", "g", "now"),
        ("offset", "diff", "g", "@-1h"),
        ("offset", "diff", "store:.", "group:g"),
        ("store", "diff", ".", "."),
        ("retry", "browse", "g"),
        ("message", "life", "KGolden5"),
    ],
    ids=" ".join,
)
def test_numbers_from_a_bak_are_told_by_every_command(ahead, command):
    from_bak(ahead)
    with contextlib.chdir(ahead):
        result = run(*command)
    assert "these offsets are from its .bak" in result.err


@pytest.mark.parametrize(
    "command",
    [("lag", "show"), ("lag", "report", "--engine", "local"), ("offset", "list")],
    ids=" ".join,
)
def test_an_empty_file_of_offsets_is_told(ahead, command):
    emptied(ahead)
    assert "consumerOffset.json is empty and has no .bak" in run(*command).err


def test_a_check_of_an_empty_file_of_offsets_says_so(ahead):
    emptied(ahead)
    result = run("lag", "check", "--crit-lag", 1)
    assert result.code == 3
    assert "is empty and has no .bak" in result.lines[0]


@pytest.mark.slow
def test_no_group_begins_anew_unasked_where_progress_is_lost(ahead):
    file = emptied(ahead)
    refused = run("consume", "GoldenEight", "-g", "g", "-e")
    assert refused.code == 7
    assert "store recover-offsets" in refused.err
    assert "group g would start as a new group" in refused.err
    assert file.read_bytes() == b""
    assert run("consume", "GoldenEight", "-g", "g", "-e", "-y").code == 0


UNTIL_DRAINED = ["lag", "watch", "--until-drained", "-i", "100ms", "-o", "jsonl"]
AT_MOST = ["--timeout", "20s"]


def test_progress_beyond_the_end_is_not_drained(ahead):
    with StoreView.open(ahead) as view:
        ends = {q: view.queue_bounds(t, q)[1] for t, q in view.queues() if t == "GoldenEight"}
    table = {"offsetTable": {"GoldenEight@g": {**ends, 0: 100}}}
    (ahead / "config" / "consumerOffset.json").write_text(json.dumps(table))
    result = run(*UNTIL_DRAINED, *AT_MOST, "g")
    assert result.code == 3
    assert "progress is incomplete: group g in GoldenEight: progress beyond the end" in result.err


def test_numbers_from_a_bak_are_not_drained(ahead):
    with StoreView.open(ahead) as view:
        ends = {q: view.queue_bounds(t, q)[1] for t, q in view.queues() if t == "GoldenEight"}
    table = {"offsetTable": {"GoldenEight@g": ends}}
    (ahead / "config" / "consumerOffset.json").write_text(json.dumps(table))
    assert run(*UNTIL_DRAINED, *AT_MOST, "g").code == 0
    (ahead / "config" / "consumerOffset.json").rename(ahead / "config" / "consumerOffset.json.bak")
    (ahead / "config" / "consumerOffset.json").write_text('{"offsetTable":{"GoldenEi')
    result = run(*UNTIL_DRAINED, *AT_MOST, "g")
    assert result.code == 3
    assert "these offsets are from its .bak" in result.err


@pytest.mark.slow
def test_messages_in_a_queue_without_progress_are_waited_for(grown):
    why = "no progress in queue 1 (100 messages there)"
    result = limited(
        lambda limit: run(*UNTIL_DRAINED, "g", "--timeout", limit), lambda found: why in found.err
    )
    assert result.code == 124
    assert why in result.err


def test_no_group_at_all_is_not_drained(store):
    assert run(*UNTIL_DRAINED, *AT_MOST).code == 3


def test_the_status_of_a_broker_warns_of_a_bak(ahead):
    assert ".bak" not in run("broker", "status").err
    from_bak(ahead)
    assert "these offsets are from its .bak" in run("broker", "status").err


def test_a_store_of_several_that_can_not_be_read_is_told(ahead, tmp_path):
    broken = tmp_path / "broken"
    (broken / "commitlog").mkdir(parents=True)
    (broken / "commitlog" / "00000000000000000000").write_bytes(b"x" * 100)
    (broken / "config").mkdir()
    (broken / "config" / "consumerOffset.json").write_text("{")
    result = run("lag", "report", "--engine", "local", "-S", ahead, "-S", broken)
    assert result.code == 8, result.err
    assert "1 of 2 stores could not be read" in result.err
    assert "broken" in result.err
    assert run("lag", "check", "--crit-lag", 5, "-S", broken).code == 3


@pytest.mark.slow
@pytest.mark.parametrize("command", [("show",), ("report", "--engine", "local")], ids=" ".join)
def test_a_topic_with_an_unknown_group_has_no_lag_of_0(grown, command):
    run("consume", "t", "-g", "all", "-e", "-q")
    [row] = run("lag", *command, "--by", "topic", "-t", "t", "-o", "json").json()
    found = (row["groups"], row["lag"], row["lag_bytes"], row["unknown_queues"])
    assert found == (2, None, None, 1)


NOTHING_LOST = "no unread message was deleted"


@pytest.mark.slow
def test_a_risk_that_is_unknown_is_a_row_and_no_comfort(grown):
    result = run("lag", "risk", "g", "--within", "7d", "-o", "json")
    [row] = result.json()
    assert (row["lost"], row["at_risk"], row["at_risk_bytes"]) == (None, None, None)
    assert NOTHING_LOST not in result.err


@pytest.mark.slow
def test_a_risk_that_a_filter_hides_is_no_comfort(grown):
    assert NOTHING_LOST not in run("lag", "risk", "g", "--where", "lost = 1").err
    assert NOTHING_LOST not in run("lag", "risk", "g", "--limit", "0").err


def test_a_risk_beyond_the_end_is_unknown(ahead):
    result = run("lag", "risk", "g", "-o", "json")
    assert [row["at_risk"] for row in result.json()] == [None]
    assert NOTHING_LOST not in result.err


def with_all_read(root):
    with StoreView.open(root) as view:
        ends = {q: view.queue_bounds(t, q)[1] for t, q in view.queues() if t == "GoldenEight"}
    table = {"offsetTable": {"GoldenEight@g": ends, "GoldenEight@h": ends}}
    (root / "config" / "consumerOffset.json").write_text(json.dumps(table))


@pytest.mark.slow
def test_a_risk_by_numbers_from_a_bak_is_unknown(ahead):
    with_all_read(ahead)
    known = run("lag", "risk", "-o", "json")
    assert known.json() == []
    assert NOTHING_LOST in known.err
    from_bak(ahead)
    result = run("lag", "risk", "-o", "json")
    assert {row["group"]: row["at_risk"] for row in result.json()} == {"g": None, "h": None}
    assert NOTHING_LOST not in result.err


def test_an_empty_file_of_offsets_is_no_comfort(ahead):
    emptied(ahead)
    assert NOTHING_LOST not in run("lag", "risk").err


@pytest.mark.slow
def test_a_terminal_is_not_told_that_nothing_is_unread(grown):
    words = ["-m", "rmqctl", "lag", "histogram", "g"]
    shown = on_a_terminal(words, columns=200)
    assert "no progress in queue 1" in shown
    assert "no unread messages" not in shown
    run("consume", "t", "-g", "g", "-e", "-q")
    assert "no unread messages" in on_a_terminal(words, columns=200)


@pytest.mark.parametrize("limits", [["--crit-risk", "1h"], ["--warn-risk", "1h"]], ids=" ".join)
def test_a_time_of_deletion_in_a_missing_file_is_unknown_to_a_limit(holed, limits):
    result = run("lag", "check", "g", *limits)
    assert result.code == 3, result.out
    why = "it is unknown when the oldest unread message of queue 0 may be deleted"
    assert why in result.lines[0]
    assert run("lag", "check", "g", "--crit-lag", "0", *limits).code == 2
    [row] = run("lag", "risk", "g", "-o", "json").json()
    assert (row["lost"], row["at_risk"], row["lag"]) == (0, None, 14)


@pytest.fixture
def holed(tmp_path, monkeypatch):
    """A group whose first unread message is in a file of its queue that is missing."""
    made = HandMade(TINY)
    for _ in range(20):
        made.put("T", 0, step_ms=1000)
    root = tmp_path / "holed"
    made.write(root)
    sorted((root / "consumequeue" / "T" / "0").iterdir())[1].unlink()
    (root / "config").mkdir()
    table = {"offsetTable": {"T@g": {"0": 6}}}
    (root / "config" / "consumerOffset.json").write_text(json.dumps(table))
    monkeypatch.setenv("RMQCTL_STORE", str(root))
    return root


@pytest.mark.slow
def test_a_record_warns_of_what_is_unknown(grown, tmp_path):
    file = tmp_path / "lag.jsonl"
    once = run("lag", "record", file)
    assert (once.code, once.err.count("no progress in queue 1 (100 messages there)")) == (0, 1)

    def again(limit):
        file.unlink(missing_ok=True)
        return run("lag", "record", file, "--interval", "100ms", "--timeout", limit)

    def looks():
        return len(file.read_text().splitlines()) if file.exists() else 0

    often = limited(again, lambda _: looks() > 1)
    assert looks() > 1
    assert often.err.count("no progress in queue 1 (100 messages there)") == 1


@pytest.mark.slow
def test_a_record_of_numbers_from_a_bak_is_not_compared_with(ahead, tmp_path):
    with_all_read(ahead)
    file = tmp_path / "lag.jsonl"
    certain = (ahead / "config" / "consumerOffset.json").read_bytes()
    from_bak(ahead)
    result = run("lag", "record", file)
    assert (result.code, "these offsets are from its .bak" in result.err) == (0, True)
    (ahead / "config" / "consumerOffset.json").write_bytes(certain)
    compared = run("lag", "show", "g", "--compare", file, "-o", "json")
    [row] = compared.json()
    assert (row["lag_then"], row["lag"], row["lag_change"]) == (None, 0, None)
    assert "these offsets are from its .bak" in compared.err


def test_a_record_of_an_empty_file_of_offsets_is_told(ahead, tmp_path):
    emptied(ahead)
    result = run("lag", "record", tmp_path / "lag.jsonl")
    assert "consumerOffset.json is empty and has no .bak" in result.err


def test_numbers_from_a_bak_have_no_status_ok_for_prometheus(ahead):
    with_all_read(ahead)
    from_bak(ahead)
    result = run("lag", "check", "-o", "prometheus")
    assert result.code == 3
    lines = [line for line in result.lines if line.startswith("rmqctl_group_status{")]
    states = {line.rpartition('status="')[2].partition('"')[0] for line in lines if line[-1] == "1"}
    assert (len(lines), states) == (12, {"UNKNOWN"})


@pytest.mark.slow
def test_a_report_says_of_a_lag_that_is_known_in_part_that_it_is_at_least_so_much(grown):
    run("produce", "t", "-Q", 0, "-q", stdin=b"b\n")
    words = ("lag", "report", "--engine", "local")
    assert "lag of at least 1 message" in run(*words).err
    page = run(*words, "-o", "html").out
    assert "at least 1 unread messages in 1 group" in page
    run("consume", "t", "-g", "g", "-e", "-q")
    assert "lag of 0 messages" in run(*words).err
    assert "0 unread messages in 1 group" in run(*words, "-o", "html").out
