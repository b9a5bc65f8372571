import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from broker import errors as broker_errors
from rmqctl import exit_codes
from rmqctl.cli import signals, tree
from rmqctl.errors import CliError, NotFound, PartlyDone, Refused, UsageProblem
from storage import errors
from tests.support.cli import ROOT, run


@pytest.fixture
def failing(monkeypatch):
    """Make `version` raise a given error."""

    def arrange(error):
        def version(ctx: typer.Context):
            raise error

        monkeypatch.setattr("rmqctl.help.version_command.version", version)

    return arrange


@pytest.mark.feature(142, 143)
@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (CliError("it failed"), 1, "it failed"),
        (UsageProblem("wrong value"), 2, "wrong value; see 'rmqctl version --help'"),
        (NotFound("no topic x"), 3, "no topic x"),
        (Refused("active members"), 7, "active members"),
        (PartlyDone("3 of 5"), 8, "3 of 5"),
        (CliError("several\nlines", 6), 6, "several lines"),
        (errors.StoreNotFoundError(Path("/x")), 3, "/x is not a RocketMQ store"),
        (errors.StoreInUseError(Path("/x"), "a Java broker"), 5, "in use by a Java broker"),
        (errors.StoreNotWritableError(Path("/x"), "read-only"), 5, "/x cannot be written"),
        (errors.CorruptFileError(Path("/x"), 7, "bad magic"), 4, "/x is damaged at byte 7"),
        (errors.UnsupportedStoreError(Path("/x"), "RocksDB queues"), 1, "RocksDB queues"),
        (errors.InvalidMessageError("body too long"), 2, "body too long"),
        (broker_errors.InvalidNameError("bad name"), 2, "bad name"),
        (broker_errors.MessageIllegalError("body too long"), 2, "body too long"),
        (broker_errors.TopicNotExistError("no topic x"), 3, "no topic x"),
        (broker_errors.ServiceNotAvailableError("disk full"), 5, "disk full"),
        (broker_errors.NoPermissionError("topic x may not be read"), 7, "may not be read"),
        (broker_errors.ClientIdInUseError("g", "a@b", "process 7"), 7, "a member a@b already"),
        (broker_errors.BrokerBusyError("busy"), 1, "busy"),
        (PermissionError(13, "Permission denied", "/x"), 5, "/x: Permission denied"),
        (OSError(28, "No space left on device", "/x"), 1, "/x: No space left on device"),
        (OSError(22, "Invalid argument"), 1, "'rmqctl version' failed: Invalid argument; "),
        (FileExistsError(17, "File exists", "/.x.tmp", None, "/x"), 1, "rmqctl: /x: File exists"),
        (FileNotFoundError(2, "No such file or directory", 7), 1, "'rmqctl version' failed: No su"),
        (KeyboardInterrupt(), 130, ""),
        (BrokenPipeError(), 141, ""),
        (signals.Terminated(), 143, ""),
        (signals.TimeLimit(), 124, "timed out after"),
        (ZeroDivisionError("oops"), 1, "internal error: ZeroDivisionError: oops"),
        (MemoryError(), 1, "out of memory"),
        (SystemExit(5), 5, ""),
    ],
)
def test_every_error_is_one_line_and_a_code(failing, monkeypatch, error, code, sentence):
    monkeypatch.setattr(signals, "silence_stdout", lambda: None)
    failing(error)
    result = run("version")
    assert result.code == code
    assert result.raw == b""
    if sentence:
        assert result.err.startswith("rmqctl: ")
        assert sentence in result.err
        assert result.err.count("\n") == 1
    else:
        assert result.err == ""


def test_a_traceback_is_shown_with_debug_only(failing):
    failing(ZeroDivisionError("oops"))
    assert "Traceback" not in run("version").err
    assert "Traceback" in run("--debug", "version").err


@pytest.mark.feature(142, 145)
@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["vesion"], "no such command 'vesion', did you mean 'version'?; see 'rmqctl --help'"),
        (["xyzzy"], "'xyzzy'; 'rmqctl cheat' lists commands by task; see 'rmqctl --help'"),
        (["version", "x"], "got unexpected extra argument"),
        (["version", "--nope"], "no such option"),
        (["--limit"], "requires an argument; see 'rmqctl --help'"),
        (["version", "-o", "jsn"], "--output: 'jsn' is not a format"),
        (["-o", "jsn", "version"], "--output: 'jsn' is not a format"),
        (["version", "--tz", "x"], "--tz: 'x' is not a time zone"),
        (["version", "--limit", "-1"], "--limit: '-1' is not a number"),
        (["version", "--timeout", "10"], "--timeout: '10' has no unit"),
        (["version", "--color", "x"], "--color: 'x' is not one of"),
        (["version", "--columns", "x"], "--columns: 'x' is not a field"),
        (
            ["completion"],
            "missing argument 'SHELL'; a shell is bash, zsh, fish or powershell; see "
            "'rmqctl completion --help'",
        ),
        (["completion", "-o", "help"], "prints no rows"),
        (["-S"], "requires an argument"),
        (["--config", "/nowhere/x.toml", "version"], "no settings file /nowhere/x.toml"),
    ],
)
@pytest.mark.slow
def test_usage_errors_are_one_line_with_the_help_to_read(args, sentence):
    result = run(*args)
    assert result.code == exit_codes.USAGE
    assert sentence in result.err
    assert "; see 'rmqctl" in result.err
    assert result.err.count("\n") == 1
    assert result.raw == b""


def test_global_options_are_taken_before_and_after_the_command_and_the_later_wins():
    for args in (["-o", "json", "version"], ["version", "-o", "json"]):
        assert run(*args).json()["rmqctl"]
    assert run("-o", "csv", "version", "-o", "json").json()["rmqctl"]
    assert run("--columns", "rmqctl", "-o", "tsv", "version").lines[0] == "rmqctl"


@pytest.mark.feature(138)
def test_o_help_lists_fields_wherever_it_stands_and_runs_nothing():
    before = run("-o", "help", "version")
    assert before.lines[0].split() == ["FIELD", "TYPE", "UNIT", "MEANING"]
    assert run("version", "-o", "help").out == before.out


def test_without_arguments_the_short_help_is_the_answer():
    short, whole = run(), run("--help", "--all")
    assert (short.code, short.err) == (0, "")
    assert len(short.lines) < len(whole.lines) - 20
    assert "--columns" in whole.out
    assert "--columns" not in short.out
    assert "More: rmqctl COMMAND --help; --help --all" in short.out
    for name in tree.TREE:
        assert any(line.startswith(f"  {name} ") for line in short.lines), name
    assert whole.out == run("-h", "--all").out
    assert short.out == run("-h").out


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (["help"], ["--help"]),
        (["help", "topic"], ["topic", "--help"]),
        (["help", "topic", "list"], ["topic", "list", "--help"]),
        (["-q", "topic", "help", "list"], ["topic", "list", "--help"]),
        (["topic", "help"], ["topic", "--help"]),
    ],
)
def test_help_may_be_asked_for_by_word(words, same):
    result = run(*words)
    assert (result.code, result.out, result.err) == (0, run(*same).out, "")
    assert result.out


def test_help_of_what_is_no_command_says_so():
    result = run("help", "topic", "lsit")
    assert result.code == 2
    assert "no such command 'lsit', did you mean 'list'?" in result.err


def test_examples_come_first():
    for result in (run(), run("--help")):
        assert result.out.index("Examples:") < result.out.index("Produce and consume:")
    consume = run("consume", "--help").out
    assert consume.index("rmqctl consume greetings") < consume.index("Options:")


@pytest.mark.feature(145)
@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (["inspect"], "no such command 'inspect', did you mean 'offset inspect'?"),
        (["redrive"], "did you mean 'dlq redrive'?"),
        (["get"], "did you mean 'message get' or 'config get'?"),
        (["send"], "did you mean 'produce'?"),
        (["prodcue"], "did you mean 'produce'?"),
        (["CONSUMERPROGRESS"], ", mqadmin's is 'rmqctl mqadmin consumerProgress'"),
        (["topic", "lsit"], "no such command 'lsit', did you mean 'list'?"),
        (["topic", "list", "--exectue"], "--execute"),
    ],
)
def test_a_near_miss_names_what_was_meant(args, hint):
    result = run(*args)
    assert result.code == 2
    assert hint in result.err


@pytest.mark.feature(145)
def test_a_topic_or_group_that_is_misspelled_is_guessed(store):
    run("topic", "create", "orders")
    run("group", "create", "billing")
    for args in (["consume", "ordres", "-e"], ["topic", "queues", "Orders"]):
        result = run(*args)
        assert result.code == 3
        assert result.err.endswith("; did you mean 'orders'?\n")
    result = run("group", "describe", "biling")
    assert result.code == 3
    assert result.err.endswith("; did you mean 'billing'?\n")
    assert "did you mean" not in run("topic", "queues", "xyzzy").err


def test_the_version_is_printed_by_option_too():
    assert run("--version").out == run("version", "--version").out
    assert run("--version").out.startswith("rmqctl ")


def leaves():
    for name, entry in tree.TREE.items():
        if isinstance(entry, tree.CommandRef):
            yield [name]
        else:
            yield from ([name, verb] for verb in entry.verbs)


@pytest.mark.parametrize("words", list(leaves()), ids=" ".join)
def test_every_command_has_help_within_a_hundred_columns(words):
    result = run(*words, "--help", "--all")
    assert result.code == 0, result.err
    assert result.out.startswith(f"Usage: rmqctl {' '.join(words)} ")
    assert "Global options (see rmqctl --help --all)" in result.out
    assert max(map(len, result.lines)) <= 100


def test_the_help_of_the_root_names_every_command_once():
    sections = [name for names in tree.SECTIONS.values() for name in names]
    assert set(tree.TREE) <= set(sections)
    assert len(sections) == len(set(sections))


def test_settings_reach_a_command(tmp_path):
    (tmp_path / "rmqctl.toml").write_text('output = "json"\nfoo = 1\n')
    result = run("version", cwd=tmp_path)
    assert result.json()["rmqctl"]
    assert "warning: unknown setting 'foo'" in result.err
    assert run("version", "-q", cwd=tmp_path).err == ""
    assert run("version", env={"RMQCTL_OUTPUT": "csv"}, cwd=tmp_path).lines[0].startswith("rmqctl,")


def test_a_traceback_is_shown_where_a_variable_asks_for_it(failing, monkeypatch):
    failing(ZeroDivisionError("oops"))
    assert "Traceback" in run("version", env={"RMQCTL_DEBUG": "1"}).err
    assert "Traceback" not in run("version", env={"RMQCTL_DEBUG": "0"}).err
    wrong = run("version", env={"RMQCTL_DEBUG": "maybe"})
    assert (wrong.code, wrong.err.count("\n")) == (1, 1)
    with_settings_that_fail = run("--config", "/nowhere.toml", "--debug", "version")
    assert "Traceback" in with_settings_that_fail.err


def without_folder(tmp_path, *args, **options):
    """Call the program in a working folder that was removed."""
    gone = tmp_path / "gone"
    gone.mkdir()
    program = [sys.executable, "-m", "rmqctl", *map(str, args)]
    command = ["sh", "-c", 'cd "$0" && rmdir "$0" && exec "$@"', str(gone), *program]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, **options)
    return done.returncode, done.stdout, done.stderr


def test_a_working_folder_that_was_removed_stops_only_what_needs_it(store, tmp_path, monkeypatch):
    run("produce", "t", "-q", stdin=b"x\n")
    columns = ("--columns", "topic", "--no-headers", "--where", "topic = t")
    assert without_folder(tmp_path, "topic", "list", "-q", "-S", store, *columns) == (0, "t\n", "")
    code, out, err = without_folder(
        tmp_path, "config", "path", "--columns", "layer", "--no-headers"
    )
    assert (code, out.split(), err) == (0, ["user", "system"], "")
    sentence = "the working folder was removed; go to another one"
    for args in (
        ("topic", "list", "-S", "s"),
        ("config", "set", "tz", "UTC", "--project"),
    ):
        code, out, err = without_folder(tmp_path, *args)
        assert (code, out) == (1, ""), err
        assert err.startswith(f"rmqctl: {sentence}"), err
    monkeypatch.delenv("RMQCTL_STORE")
    assert sentence in without_folder(tmp_path, "topic", "list")[2]
    assert without_folder(tmp_path, "config", "set", "store", "/data", "-q")[0] == 0
