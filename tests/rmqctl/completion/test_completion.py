import os
import re
import shutil
import subprocess
import sys

import pytest

from rmqctl.cli.context import Cli
from rmqctl.completion.completers import COMPLETERS, changes, groups, topics
from rmqctl.completion.completion import possibilities
from rmqctl.completion.parameter import parameters_of
from rmqctl.help.completion_command import SCRIPTS
from storage.configs.journal import Journal
from tests.support.cli import ROOT, run, start
from tests.support.parameter_table import commands


@pytest.fixture
def store(tmp_path, monkeypatch):
    for name in ("orders", "payments", "%RETRY%audit"):
        (tmp_path / "consumequeue" / name).mkdir(parents=True)
    (tmp_path / "config").mkdir()
    (tmp_path / "config/topics.json").write_text(
        '{"topicConfigTable":{"empty":{"topicName":"empty","perm":6}}}'
    )
    (tmp_path / "config/consumerOffset.json").write_text(
        '{\n\t"offsetTable":{\n\t\t"orders@billing":{0:12,1:7\n\t\t}\n\t}\n}'
    )
    monkeypatch.setenv("RMQCTL_STORE", str(tmp_path))
    return tmp_path


def values(*words):
    return [value for value, _ in possibilities(words)]


@pytest.mark.parametrize("name", ["topics.json", "consumerOffset.json"])
def test_a_pipe_in_place_of_a_file_does_not_block(store, name):
    (store / "config" / name).unlink()
    os.mkfifo(store / "config" / name)
    assert "orders" in [name for name, _ in topics(Cli(dict(os.environ)))]
    assert "audit" in [name for name, _ in groups(Cli(dict(os.environ)))]


@pytest.mark.feature(139)
def test_commands_come_with_their_help():
    found = dict(possibilities(["vers"]))
    assert list(found) == ["version"]
    assert found["version"].startswith("Show the versions")


def test_long_options_are_offered_and_short_ones_after_a_single_dash():
    assert "--columns" in values("version", "--co")
    assert "-o" not in values("version", "--")
    assert {"-o", "--output"} <= set(values("version", "-"))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-o", "js"], ["json", "jsonl"]),
        (["version", "--output", "js"], ["json", "jsonl"]),
        (["version", "--output=js"], ["--output=json", "--output=jsonl"]),
        (["lag", "report", "-o", "h"], ["html", "help"]),
        (["lag", "check", "-o", "p"], ["prometheus"]),
        (["completion", "z"], ["zsh"]),
        (["completion", "zsh", ""], []),
        (["-q", "completion", "--", "fi"], ["fish"]),
        (["nonsense", "x", ""], []),
        (["nonsense", ""], []),
        (["topic", "nonsense", "--ou"], []),
        (["--tz", ""], []),
    ],
)
def test_values(words, expected):
    assert values(*words) == expected


@pytest.mark.feature(140)
def test_topics_and_groups_come_from_the_store(store):
    assert [name for name, _ in topics(Cli())] == ["empty", "orders", "payments"]
    assert values("topic", "describe", "") == ["empty", "orders", "payments"]
    assert values("topic", "describe", "%") == ["%RETRY%audit"]
    assert [name for name, _ in groups(Cli())] == ["audit", "billing"]


def test_queues_are_those_of_the_topic_before(store):
    config = store / "config/topics.json"
    config.write_text(
        '{"topicConfigTable":{"empty":{"topicName":"empty","readQueueNums":2,"writeQueueNums":3},'
        '"a.b":{"topicName":"a.b","readQueueNums":1}}}'
    )
    (store / "consumequeue/orders/11").mkdir()
    (store / "consumequeue/orders/2").mkdir()
    assert values("consume", "empty", "-Q", "") == ["0", "1", "2"]
    assert values("message", "get", "-t", "orders", "--queue", "") == ["2", "11"]
    assert values("consume", "axb", "-Q", "") == values("consume", "-Q", "") == []
    assert values("consume", "../orders", "-Q", "") == []


@pytest.mark.feature(137)
def test_fields_are_offered_and_the_last_of_several_is_completed():
    assert values("topic", "list", "--columns", "mes") == ["messages"]
    assert values("topic", "list", "--columns", "topic,mes") == ["topic,messages"]
    assert values("topic", "list", "--columns=topic,mes") == ["--columns=topic,messages"]
    assert values("topic", "list", "--sort", "topic,-mes") == ["topic,-messages"]
    assert values("topic", "list", "--sort", "-pe") == ["-perm"]
    assert values("topic", "list", "--where", "k") == ["kind"]
    assert values("store", "fsck", "--only", "log,qu") == ["log,queue"]
    assert values("completion", "--columns", "") == []
    assert dict(possibilities(["lag", "show", "--sort", "oldest_unread_t"])) == {
        "oldest_unread_timestamp": "when the oldest of those was stored"
    }


def test_choices_belong_to_a_parameter_that_is_there():
    known = {one.name for one in parameters_of("", is_group=True).of}
    for words, _ in commands():
        names = {one.name for one in parameters_of(words, is_group=False).of}
        known |= names | {f"{words} {name}" for name in names}
    assert set(COMPLETERS) <= known


def test_what_the_console_takes_is_of_the_store(store):
    assert values("console", "group", "") == values("console", "groups", "") == ["audit", "billing"]
    assert values("console", "g", "bi") == ["billing"]
    assert values("console", "messages", "o") == ["orders"]
    (store / "consumequeue/orders/3").mkdir()
    assert values("console", "messages", "orders", "") == ["3"]
    assert values("console", "messages", "orders", "3", "") == []
    assert values("console", "history", "billing", "") == []


def test_groups_are_no_folders_of_stores(store):
    assert values("offset", "diff", "") == values("offset", "diff", "x", "") == ["audit", "billing"]
    assert values("store", "diff", "") == values("store", "diff", "x", "") == []


def test_delay_levels_are_those_of_the_store(tmp_path, monkeypatch):
    monkeypatch.setenv("RMQCTL_STORE", str(tmp_path / "s"))
    run("store", "init", tmp_path / "s", "--small")
    assert run("broker", "config", "set", "messageDelayLevel", "1s 7s", "--yes").code == 0
    assert dict(possibilities(["produce", "t", "--delay-level", ""])) == {"1": "1s", "2": "7s"}


def test_change_ids_come_newest_first_with_what_they_were(tmp_path, monkeypatch):
    monkeypatch.setenv("RMQCTL_STORE", str(tmp_path / "s"))
    run("store", "init", tmp_path / "s", "--small")
    for topic in ("one", "two"):
        run("topic", "create", topic)
    assert dict(possibilities(["offset", "undo", ""])) == {
        "2": "topic create two",
        "1": "topic create one",
    }


@pytest.mark.parametrize(
    ("words", "some"),
    [
        (["mqadmin", "consumerP"], ["consumerProgress"]),
        (["explain", "UNIT_M"], ["UNIT_MISSING"]),
        (["cheat", "re"], ["reset"]),
        (["man", "off"], ["offset"]),
        (["lag", "histogram", "--of", "a"], ["age"]),
        (["offset", "reset", "--boundary", ""], ["lower", "upper", "nearest49"]),
        (["consume", "t", "--from", "-1"], ["-15m", "-1h", "-1d"]),
        (["consume", "t", "--from", "yes"], ["yesterday", "yesterday 15:00"]),
        (["offset", "reset", "--to-datetime", "last"], ["last friday"]),
        (["lag", "show", "--as-of", "0"], ["09:30"]),
        (["produce", "t", "--delay-level", "18"], ["18"]),
        (["broker", "config", ""], ["get", "set"]),
        (["broker", "config", "set", "file_res"], ["file_reserved_time_hours"]),
        (["config", "set", "no_h"], ["no_headers"]),
        (["config", "set", "output", "js"], ["json", "jsonl"]),
        (["config", "set", "color", ""], ["auto", "always", "never"]),
        (["config", "set", "raw", ""], ["true", "false"]),
        (["config", "set", "tz", ""], []),
        (["man", "topic", "des"], ["describe"]),
        (["man", "topic", "describe", ""], []),
        (["man", "version", ""], []),
        (["help", "topic", "des"], ["describe"]),
        (["man", "nonsense", ""], []),
        (["message", "export", "--as", ""], ["jsonl", "csv", "parquet", "raw"]),
        (["message", "import", "f", "--as", ""], ["jsonl", "csv", "parquet", "raw"]),
        (["store", "du", "--by", ""], ["topic", "kind", "group", "day"]),
        (["-oj"], ["-ojson", "-ojsonl"]),
        (["nonsense", "-oj"], []),
        (["produce", "t", "--input", ""], ["text", "jsonl", "csv", "hex"]),
        (["topic", "stats", "--by", ""], ["topic", "queue", "hour"]),
        (["message", "decode-id", "--as", ""], ["offset", "unique"]),
        (["message", "search", "x", "--in", "body,ta"], ["body,tags"]),
        (["store", "fsck", "--from", "yester"], ["yesterday", "yesterday 15:00"]),
        (["dlq", "redrive", "g", "--resume", ""], ["last"]),
        (["message", "search", "--resume", ""], []),
        (["consume", "t", "--body", ""], ["text", "json", "hex", "base64", "none"]),
        (["message", "export", "--body", ""], []),
        (["console", "dl"], ["dlqs", "dlq"]),
        (["console", "--theme", ""], ["dark", "light", "high-contrast"]),
        (["console", "overview", ""], []),
        (["console", "nonsense", ""], []),
    ],
)
def test_what_is_known_without_a_store_is_offered(words, some):
    assert values(*words) == some


def test_what_choices_there_are_is_what_the_commands_take():
    """Those of --by and --as, which the commands check themselves."""
    for words in (
        ("message", "stats", "--by"),
        ("store", "du", "--by"),
        ("message", "export", "--as"),
        ("topic", "stats", "--by"),
    ):
        refused = run(*words, "nonsense").err
        choices = re.split(", | or ", refused.partition(" is not one of ")[2].partition(";")[0])
        offered = values(*words, "")
        single = [value for value in offered if "," not in value]
        assert single == [re.sub("[A-Z]+$", "", choice) for choice in choices]  # json.PATH
        for pair in set(offered) - set(single):
            assert set(pair.split(",")) <= set(single)


@pytest.mark.slow
def test_options_of_mqadmin_come_after_its_commands():
    offered = dict(possibilities(["mqadmin", "topicStatus", "-"]))
    assert {"-t", "--topic", "-n", "--namesrvAddr", "-S", "--store"} <= set(offered)
    assert offered["-t"] == "topic (required)"
    assert "--group" not in offered
    assert offered["-n"] == "namesrvAddr"
    assert values("mqadmin", "topicstatus", "-t", "x", "--na") == ["--namesrvAddr"]
    with start("mqadmin", "nonsense", "-", env={"_RMQCTL_COMPLETE": "1"}) as process:
        assert process.communicate() == (b"", b"")
    assert "-S" in values("mqadmin", "-")
    assert "-t" not in values("mqadmin", "-")


@pytest.mark.parametrize("named", [["-S{}"], ["-qS{}"], ["-qS", "{}"], ["-S", "{}"]])
def test_a_store_may_stand_right_behind_its_option(store, tmp_path_factory, named):
    other = tmp_path_factory.mktemp("other")
    (other / "consumequeue" / "refunds").mkdir(parents=True)
    words = [word.format(other) for word in named]
    assert values(*words, "consume", "") == ["refunds"]
    assert values("consume", *words, "") == ["refunds"]


def test_a_store_that_can_not_be_read_is_silence(tmp_path, monkeypatch):
    monkeypatch.setenv("RMQCTL_STORE", str(tmp_path / "none"))
    assert list(topics(Cli())) == list(groups(Cli())) == []


def test_changes_are_offered_newest_first_with_what_they_did(store):
    journal = Journal(store)
    move = {"group": "billing", "topic": "orders", "queue_id": 0, "old": 1, "new": 2}
    journal.append({"command": "offset reset", "moves": [move]}, 1)
    journal.append({"command": "topic create", "topic": "orders"}, 2)
    assert list(changes(Cli())) == [("2", "topic create orders"), ("1", "offset reset billing")]
    assert values("audit", "show", "") == ["2", "1"]
    assert values("offset", "inspect", "--source", "") == ["file", "bak", "journal"]


def test_at_most_500_items(store, monkeypatch):
    for number in range(600):
        (store / "consumequeue" / f"t{number}").mkdir()
    monkeypatch.setattr("rmqctl.completion.completion.COMPLETERS", {"shell": topics})
    assert len(values("completion", "")) == 500
    assert len(values("completion", "t59")) == 11


@pytest.mark.slow
def test_an_answer_is_a_line_each_and_never_an_error():
    with start("-o", "cs", env={"_RMQCTL_COMPLETE": "1"}) as process:
        out, err = process.communicate()
    assert (out, err, process.returncode) == (b"csv\t\n", b"", 0)
    with start("--config", "/nowhere", "--context", "", env={"_RMQCTL_COMPLETE": "1"}) as process:
        out, err = process.communicate()
    assert (out, err, process.returncode) == (b"", b"", 0)


@pytest.mark.parametrize("shell", SCRIPTS)
def test_the_scripts_in_completions_are_what_the_program_prints(shell):
    name, text = SCRIPTS[shell]
    assert (ROOT / "completions" / name).read_text("utf-8") == text
    assert run("completion", shell).out == text


def test_bash_completes_with_the_script(tmp_path):
    if shutil.which("bash") is None:
        pytest.skip("needs bash on PATH")
    program = tmp_path / "rmqctl"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m rmqctl "$@"\n')
    program.chmod(0o755)
    script = f"""
        source {ROOT}/completions/rmqctl.bash
        COMP_LINE='{program} version --output js' COMP_POINT=1000
        _rmqctl {program} js --output
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    out = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["json", "jsonl"]


def test_what_can_be_rebuilt_and_how_it_is_dumped_is_offered():
    assert values("store", "rebuild", "") == ["queue", "index"]
    assert values("store", "dump", "0", "--as", "") == ["fields", "hex"]
    assert "end" in values("store", "tail", "--from", "")
