"""``lag check`` as monitoring systems call it."""

import pytest

from tests.support.cli import run


@pytest.fixture
def end(store):
    """A group with two unread messages of a moment ago."""
    run("produce", "t", "--queue", 0, stdin=b"a\nb\nc\n")
    run("consume", "t", "-g", "g", "-e", "-c", 1, "-Q", 0)
    return store


@pytest.mark.feature(130)
@pytest.mark.parametrize(
    ("args", "code", "word"),
    [
        (["--warn-lag", 2], 0, "OK"),
        (["--warn-lag", 1], 1, "WARNING"),
        (["--warn-lag", 0, "--crit-lag", 1], 2, "CRITICAL"),
        (["--crit-age", "1h", "--crit-dlq", 0], 0, "OK"),
        (["--crit-age", "0ms"], 2, "CRITICAL"),
        (["nobody"], 3, "UNKNOWN"),
        (["-S", "nowhere"], 3, "UNKNOWN"),
    ],
)
def test_exit_code_and_first_line_agree(end, args, code, word):
    result = run("lag", "check", *args)
    assert result.code == code
    assert result.lines[0].startswith(f"LAG {word} - ")


@pytest.mark.slow
@pytest.mark.parametrize("args", [["nobody"], ["-S", "nowhere"], ["-t", "none"]])
def test_a_failure_is_said_in_one_place(end, args):
    text = run("lag", "check", *args)
    assert (text.code, len(text.lines), text.err) == (3, 1, "")
    data = run("lag", "check", "-o", "json", *args)
    assert (data.code, data.err.count("\n")) == (3, 1)
    found = data.json()
    assert (found["verdict"], found["code"], found["groups"]) == ("UNKNOWN", 3, [])
    assert text.lines[0] == f"LAG UNKNOWN - {found['summary']}"
    gauges = run("lag", "check", "-o", "prometheus", *args)
    assert (gauges.code, gauges.err.count("\n")) == (3, 1)
    samples = [line for line in gauges.lines if not line.startswith("#")]
    assert samples == ["rmqctl_check_failed 1", "rmqctl_check_code 3"]


@pytest.mark.slow
def test_a_group_that_is_nearly_right_is_suggested(end):
    run("consume", "t", "-g", "readers", "-e")
    result = run("lag", "check", "raeders")
    assert "did you mean 'readers'?" in result.lines[0]


@pytest.mark.feature(130)
@pytest.mark.parametrize("args", [["--warn-lag", "x"], ["--no-such"], ["-o", "table"], ["a b"]])
def test_a_wrong_command_line_is_no_alarm(end, args):
    result = run("lag", "check", *args)
    assert (result.code, result.err.count("\n")) == (3, 1)


@pytest.mark.parametrize(
    ("name", "warn", "crit"),
    [("lag", 10, 9), ("age", "1h", "59m"), ("dlq", 1, 0), ("risk", "1h", "2h")],
)
def test_limits_in_the_wrong_order_are_refused(end, name, warn, crit):
    limits = (f"--warn-{name}", warn, f"--crit-{name}", crit)
    result = run("lag", "check", *limits)
    assert (result.code, result.out) == (3, "")
    assert f"--warn-{name} {warn} lies" in result.err
    assert "so nothing would be a warning" in result.err
    equal = run("lag", "check", f"--warn-{name}", warn, f"--crit-{name}", warn)
    assert equal.lines[0].startswith("LAG ")


@pytest.mark.parametrize(
    ("option", "value"), [("--where", "group = other"), ("--limit", "0"), ("--sort", "group")]
)
@pytest.mark.parametrize("form", ["nagios", "prometheus", "json"])
def test_a_verdict_is_about_all_rows_so_none_can_be_left_out(end, option, value, form):
    result = run("lag", "check", "-o", form, "--crit-lag", 0, option, value)
    assert (result.code, result.out) == (3, "")
    assert f"{option} is for rows, and lag check judges all of them" in result.err
    assert "-g or -t" in result.err


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-o", "prometheus")], ids=" ".join)
@pytest.mark.parametrize("column", ["nosuch", "verdict"])
def test_a_text_for_monitors_has_no_columns(end, options, column):
    result = run("lag", "check", *options, "--columns", column)
    assert (result.code, result.out) == (3, "")
    assert "--columns is for the object of -o json" in result.err


@pytest.mark.slow
def test_columns_of_the_json_object_can_be_chosen(end):
    unknown = run("lag", "check", "-o", "json", "--columns", "nosuch")
    assert (unknown.code, unknown.out) == (3, "")
    assert "nosuch" in unknown.err
    result = run("lag", "check", "-o", "json", "--crit-lag", 0, "--columns", "verdict")
    assert (result.code, result.json()) == (2, {"verdict": "CRITICAL"})


@pytest.mark.slow
def test_other_commands_keep_their_codes(end):
    assert run("lag", "show", "--no-such").code == 2
    assert run("lag", "show", "nobody").code == 3


@pytest.mark.slow
def test_json_holds_what_was_found(end):
    result = run("lag", "check", "-o", "json", "--warn-lag", 1)
    found = result.json()
    assert (result.code, found["code"], found["verdict"]) == (1, 1, "WARNING")
    (group,) = found["groups"]
    assert (group["lag"], group["reasons"]) == (2, ["lag 2 messages (limit 1)"])
    assert run("-o", "json", "lag", "check").json()["groups"]


@pytest.mark.parametrize(("form", "begin"), [("json", "{"), ("table", "LAG OK"), ("csv", "LAG OK")])
def test_json_may_be_the_setting_for_all_commands(end, form, begin):
    result = run("lag", "check", "--warn-lag", 2, env={"RMQCTL_OUTPUT": form})
    assert (result.code, result.out.startswith(begin)) == (0, True)
    typed = run("lag", "check", "-o", "nagios", "--warn-lag", 2, env={"RMQCTL_OUTPUT": form})
    assert typed.out.startswith("LAG OK")


@pytest.mark.feature(131)
def test_prometheus_gets_gauges(end):
    lines = run("lag", "check", "-o", "prometheus").lines
    assert 'rmqctl_group_lag_messages{group="g",topic="t"} 2' in lines
    assert 'rmqctl_group_status{group="g",topic="t",status="STOP"} 0' in lines


def test_a_store_without_groups_is_unknown(store):
    result = run("lag", "check")
    assert (result.code, result.lines) == (3, ["LAG UNKNOWN - no group has any progress"])
