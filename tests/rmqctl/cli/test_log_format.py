"""``--log-format json``: every line on standard error is an object, whatever a command meets."""

import ast
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from datetime import datetime

import pytest

from rmqctl.cli.tree import TREE, CommandRef
from tests.support.cli import ROOT, call, run, start
from tests.support.java_lock import java_lock

LEVELS = {"debug", "info", "warning", "error"}
JSON = ("--log-format", "json")


def objects(text):
    """The objects of all lines; AssertionError names a line that is none."""
    found = []
    for line in text.splitlines():
        assert line.startswith("{"), line
        assert line.isprintable(), line
        found.append(json.loads(line))
        assert {"time", "level", "logger", "message"} <= found[-1].keys(), line
        assert found[-1]["level"] in LEVELS, line
        assert datetime.fromisoformat(found[-1]["time"]).utcoffset() is not None, line
    return found


def test_an_error_has_its_exit_code_and_what_it_is_about(store):
    done = run("topic", "describe", "nowhere", *JSON)
    assert done.code == 3
    (error,) = objects(done.err)
    assert (error["level"], error["logger"], error["exit_code"]) == ("error", "rmqctl", 3)
    assert (error["command"], error["store"]) == ("topic describe", str(store))
    assert error["topics"] == ["nowhere"]
    assert error["message"].startswith("topic nowhere does not exist")


@pytest.mark.slow
def test_the_form_is_a_setting_like_others(store, own_home):
    place = own_home / "rmqctl"
    place.mkdir()
    (place / "config.toml").write_text('log_format = "json"\nunknown = 1\n')
    done = run("topic", "describe", "nowhere")
    warning, *_, error = objects(done.err)  # the warning is about the file that says it
    assert warning["level"] == "warning"
    assert warning["message"].startswith("unknown setting 'unknown'")
    assert error["exit_code"] == 3
    shown = run("config", "show", "-o", "json").json()
    (row,) = [row for row in shown if row["setting"] == "log_format"]
    assert (row["value"], row["origin"]) == ("json", str(place / "config.toml"))
    checks = run("doctor", "-o", "json").json()
    assert f"log_format = json ({place / 'config.toml'})" in {row["found"] for row in checks}
    done = run("topic", "describe", "nowhere", env={"RMQCTL_LOG_FORMAT": "text"})
    assert "\nrmqctl: topic nowhere does not exist" in done.err
    assert run("config", "set", "log_format", "text").code == 0
    assert run("topic", "describe", "nowhere").err.startswith("rmqctl: ")
    assert run("config", "set", "log_format", "xml").code == 2


def test_another_form_is_refused_in_text(store):
    done = run("topic", "list", "--log-format", "xml")
    assert done.code == 2
    assert done.err.startswith("rmqctl: --log-format: 'xml' is not one of text, json")
    assert run("topic", "list", env={"RMQCTL_LOG_FORMAT": "xml"}).code == 2
    assert run("config", "show", env={"RMQCTL_LOG_FORMAT": "xml"}).code == 0


FAILING = (
    *("", "nonsense", "--nonsense", "topic", "topic nonsense", "topic list --nonsense"),
    *(
        "topic list -S /nowhere",
        "topic list --columns x",
        "topic list -o x",
    ),
    *(
        "topic list --where 'a ='",
        "topic list --sort x",
        "topic list --limit x",
        "topic list --tz x",
    ),
    *("topic create", "topic create 'a b'", "topic create %x% --queues 0", "topic create t -n"),
    *("topic alter orders --perm 9 -y", "topic delete orders", "topic delete orders -y"),
    *("group describe nobody", "group delete nobody -y", "group why nobody", "group create 'g g'"),
    *("consume nowhere -e", "consume orders -g 'g g' -e", "consume orders -f %q -e"),
    *("consume orders -g g -c 1 --exec nowhere", "consume orders -e --quiet --verbose"),
    *(
        "produce 'a b'",
        "produce orders /nowhere",
        "produce orders --input xml",
        "produce orders -Q 9",
    ),
    *("message get 00", "message query", "message get -t orders -Q 0 -O 99", "message search '('"),
    *(
        "offset reset -g nobody -t orders --to x -y",
        "offset reset -g readers -t orders --to earliest",
    ),
    *(
        "offset undo 99 -y",
        "offset import /nowhere -y",
        "dlq redrive nobody -y",
        "dlq list -g nobody",
    ),
    *("lag show nobody", "lag check -g nobody", "lag report --since 1h", "retry show nobody 1"),
    *(
        "store init .",
        "store dump nowhere",
        "store restore /nowhere x",
        "store snapshot --save /no/x",
    ),
    *("store carve x -t nowhere -y", "broker config set nonsense 1 -y", "broker start -n"),
    *("config get nonsense", "config set tz nowhere", "context use nowhere", "explain qqq"),
    *("mqadmin nonsense", "mqadmin consumerProgress -g nobody", "mqadmin topicList -n x:1"),
    *(
        "man nonsense",
        "cheat nonsense",
        "completion csh",
        "doctor --no-redact",
        "topic list --timeout x",
    ),
    *("topic list --context nowhere", "topic list --config /nowhere", "topic list -S a -S b"),
    *("bench produce -t orders --rate x", "audit show 99", "topic list --debug --where 'a ='"),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "verbose",
    [("--debug",), *(pytest.param(w, marks=pytest.mark.long) for w in ((), ("--verbose",)))],
    ids=" ".join,
)
def test_no_line_of_failing_commands_is_anything_else(store, verbose):
    assert run("produce", "orders", "-k", "k\x1b[1m", stdin=b"one\ntwo\n").code == 0
    levels = set()
    codes = set()
    for line in FAILING:
        args = shlex.split(line)
        done = run(*JSON, *args, *(() if "--quiet" in args else verbose))
        found = objects(done.err)
        levels |= {one["level"] for one in found}
        codes.add(done.code)
        if done.code in (2, 3, 5, 6, 7) and found:
            assert found[-1].get("exit_code") == done.code, line
        if done.code:
            assert found or args[:1] == ["lag"], line  # lag check answers monitors on stdout
    assert {"error", "info"} <= levels
    assert {2, 3, 7} <= codes


@pytest.mark.slow
def test_every_command_without_arguments_says_objects_only(store):
    for name, entry in TREE.items():
        verbs = [[name]] if isinstance(entry, CommandRef) else [[name, v] for v in entry.verbs]
        for words in verbs:
            done = run(*words, *JSON, "--no-such-option")
            code = 3 if words == ["lag", "check"] else 2  # 2 is CRITICAL to a monitor
            assert objects(done.err)[-1]["exit_code"] == done.code == code, words


@pytest.mark.slow
def test_a_broker_that_starts_waits_and_ends(store):
    with start("broker", "start", *JSON, "-v", stdin=subprocess.DEVNULL) as process:
        first = process.stderr.readline()
        with start("broker", "start", *JSON, stdin=subprocess.DEVNULL) as other:
            second = other.stderr.readline()
            other.send_signal(signal.SIGINT)
            _, rest = other.communicate(timeout=60)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    (said,) = objects(first.decode())
    assert said["command"] == "broker start"
    assert said["store"] == str(store)
    assert "this process runs delay delivery" in said["message"]
    (said,) = objects(second.decode())
    assert f"process {process.pid} runs the services" in said["message"]
    objects((err + rest).decode())
    assert process.returncode == 143


@pytest.mark.slow
def test_what_programs_of_consume_write_and_what_the_libraries_log(store):
    assert run("produce", "orders", stdin=b"order 7\n").code == 0
    program = "sh -c 'echo \"no \x1b[31mstock\" >&2; echo twice >&2; exit 1'"
    done = call(
        *("consume", "orders", "-g", "shop", "--from-where", "first", "-c", "1", *JSON, "-v"),
        *("--exec", program),
    )
    found = objects(done.err)
    assert [one["message"] for one in found if one["logger"] == "rmqctl.exec"] == [
        "no \x1b[31mstock",
        "twice",
    ]
    logged = [one for one in found if one["logger"].startswith("rmqctl.client")]
    assert logged[0]["level"] == "warning"
    assert logged[0]["group"] == "shop"  # of the library's "group=%s"
    assert "exit code 1: twice" in logged[0]["error"]
    assert found[-1]["exit_code"] == done.code == 1


def test_warnings_of_damage_and_a_store_that_is_taken(store):
    (store / "abort").touch()
    with java_lock(store):
        (error,) = objects(run("topic", "create", "t", *JSON).err)
    (store / "abort").unlink()
    assert (error["level"], error["exit_code"]) == ("error", 5)


@pytest.mark.slow
def test_what_the_interpreter_itself_would_print(store):
    code = """
import logging, sys, threading
import typer
from rmqctl.app import main
from rmqctl.topic import commands
def list_topics(ctx: typer.Context):
    from rmqctl.cli.context import context_of
    def fail(): raise ValueError("in a thread")
    thread = threading.Thread(target=fail, name="worker-1")
    thread.start()
    thread.join()
    logging.getLogger("rmqctl.broker").warning("a queue moved: group=%s left=%d %s", "g", 3, 1.5)
    class Sly:
        def __del__(self): raise KeyError("in a finalizer")
    Sly()
commands.list_topics = list_topics
sys.exit(main(sys.argv[1:]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, "topic", "list", *JSON],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    thread, logged, ignored = objects(done.stderr)
    assert thread["message"] == "worker-1 ended with an exception"
    assert thread["error"] == "ValueError: in a thread"
    assert "Traceback" in thread["traceback"]
    assert (logged["logger"], logged["group"], logged["left"]) == ("rmqctl.broker", "g", 3)
    assert ignored["error"].startswith("KeyError")


def test_nothing_on_standard_output_changes_and_the_hooks_are_put_back(store):
    assert run("produce", "orders", stdin=b"one\n").code == 0
    hooks = (threading.excepthook, sys.unraisablehook)
    for words in (["topic", "list"], ["topic", "describe", "orders"], ["consume", "orders", "-e"]):
        assert run(*words, *JSON).raw == run(*words).raw
    assert (threading.excepthook, sys.unraisablehook) == hooks


@pytest.mark.slow
def test_standard_error_is_written_in_one_place():
    """So that its form is decided in one place: a stream may be asked, but not written to."""
    writers = set()
    for path in (ROOT / "rmqctl").rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                text = ast.unparse(node)
                if re.search(r"^sys\.stderr\.(buffer\.)?write|file=sys\.stderr|^print_exc", text):
                    writers.add(path.relative_to(ROOT).as_posix())
    assert writers == set()
