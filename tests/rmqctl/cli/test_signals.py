"""Real processes, because signals and pipes are the operating system's."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rmqctl import exit_codes
from rmqctl.cli.signals import TimeLimit, end_time_limit, limit_time
from tests.support.cli import ROOT, Result, call, limited, run, start

WAITING = """
import sys
from rmqctl import app
import rmqctl.help.version_command as commands
import typer

def version(ctx: typer.Context) -> None:
    import threading
    class Store:
        def __enter__(self): return self
        def __exit__(self, *error):
            {on_close}
            print("closed", flush=True)
    with Store():
        print("ready", flush=True)
        threading.Event().wait(60)

commands.version = version
sys.exit(app.main(sys.argv[1:]))
"""


AT_AN_IMPORT = """
import os, signal, sys
from rmqctl.__main__ import main

class Finder:
    def find_spec(name, *rest):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder)
main()
"""
AT_A_SUGGESTION = """
import os, sys
from rmqctl import app
from rmqctl.completion import suggest

suggest.thing_meant = lambda cli, sentence: os.kill(os.getpid(), {number})
app.run()
"""
AT_THE_END = """
import atexit, os, signal, sys
from rmqctl import app
atexit.register(os.kill, os.getpid(), {number})
app.run()
"""


def ignoring(*numbers):
    """For ``preexec_fn``: a caller that ignores signals, as nohup and a shell's ``&`` do."""

    def ignore():
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)

    return ignore


def started(*args, on_close="pass", **popen):
    """The program with a command that waits until a signal ends it, and then closes."""
    return subprocess.Popen(
        [sys.executable, "-c", WAITING.format(on_close=on_close), "version", *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        **popen,
    )


def waiting(*args, **popen):
    """The same, once it waits."""
    process = started(*args, **popen)
    assert process.stdout.readline() == "ready\n"
    return process


def check_time_limit(numbers=(), **popen):
    """It waits up to a time limit in spite of these signals, then closes and says so."""
    limits = []

    def wait(limit):
        limits.append(limit)
        with started("--timeout", limit, **popen) as process:
            first = process.stdout.readline()
            for number in numbers if first == "ready\n" else ():
                process.send_signal(number)
            out, err = process.communicate(timeout=90)
        return Result(process.returncode, (first + out).encode(), err)

    result = limited(wait, lambda result: result.out.startswith("ready\n"))
    assert (result.out, result.err) == (
        "ready\nclosed\n",
        f"rmqctl: timed out after {limits[-1]}\n",
    )
    assert result.code == exit_codes.TIMED_OUT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, exit_codes.TERMINATED), (signal.SIGINT, exit_codes.INTERRUPTED)],
)
def test_signals_close_cleanly_and_in_silence(number, code):
    with waiting() as process:
        process.send_signal(number)
        assert process.communicate(timeout=30) == ("closed\n", "")
    assert process.returncode == code


def after_it_ran(program, *words, **popen):
    """Exit code and output of a Python program with these words."""
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
        **popen,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("module", ["rmqctl.first_answers", "typer", "rmqctl.app", "rmqctl.errors"])
def test_ctrl_c_while_the_program_starts_is_silent(module):
    program = AT_AN_IMPORT.format(module=module)
    assert after_it_ran(program, "version") == (-signal.SIGINT, "", "")
    ignored = ignoring(signal.SIGINT)
    code, out, err = after_it_ran(program, "version", preexec_fn=ignored)
    assert (code, out.startswith("rmqctl"), err) == (0, True, "")


@pytest.mark.slow
@pytest.mark.parametrize("program", [AT_A_SUGGESTION, AT_THE_END])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_at_an_error_and_at_the_end_are_silent(store, program, number):
    code, out, err = after_it_ran(program.format(number=int(number)), "topic", "queues", "nowhere")
    if program == AT_A_SUGGESTION:
        assert (code, out, err) == (128 + number, "", "")
    else:  # it has done its work
        assert (code, out, err.count("\n")) == (exit_codes.NOT_FOUND, "", 1)


@pytest.mark.slow
def test_signals_that_the_caller_ignores_stay_ignored():
    numbers = signal.SIGTERM, signal.SIGINT
    check_time_limit(numbers, preexec_fn=ignoring(*numbers))


@pytest.mark.slow
def test_exit_codes_of_programs_count_where_the_caller_ignores_ends_of_children(store):
    """Where SIGCHLD is ignored, the system forgets exit codes, and Python takes them as 0."""
    ignored = ignoring(signal.SIGCHLD)
    run("produce", "t", stdin=b"a\n")
    words = ("-g", "g", "--offset", "start", "-c", 1, "--max-reconsume-times", 0)
    done = call("consume", "t", *words, "--exec", "false", preexec_fn=ignored)
    assert done.code == exit_codes.FAILURE, done.err
    assert run("dlq", "list", "-o", "json", "--columns", "group,depth").json() == [
        {"group": "g", "depth": 1}
    ]
    piped = ("dlq", "redrive", "g", "--all", "--pipe", "cat; exit 1", "--yes")
    assert call(*piped, preexec_fn=ignored).code != 0
    assert run("dlq", "list", "-o", "json", "--columns", "unhandled").json() == [{"unhandled": 1}]


@pytest.mark.slow
def test_a_second_ctrl_c_ends_at_once():
    with waiting(on_close="print('closing', flush=True); threading.Event().wait(60)") as process:
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "closing\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30) == ("", "")
    assert process.returncode == exit_codes.INTERRUPTED


@pytest.mark.slow
def test_a_time_limit_closes_and_says_so():
    check_time_limit()


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("args", [["--help"], ["version", "-o", "json"]])
def test_a_reader_that_goes_away_is_silence_and_141(args, unbuffered):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        result = call(*args, stdout=writing, env={"PYTHONUNBUFFERED": unbuffered})
    finally:
        os.close(writing)
    assert result.code == exit_codes.BROKEN_PIPE
    assert result.err == ""


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_under_stdout_is_one_sentence(unbuffered):
    with Path("/dev/full").open("wb") as full:
        result = call("version", stdout=full, env={"PYTHONUNBUFFERED": unbuffered})
    assert result.code == exit_codes.FAILURE
    assert result.err == "rmqctl: standard output: No space left on device\n"


@pytest.mark.parametrize("locale", ["C", "POSIX", "C.UTF-8", "de_DE.ISO-8859-1"])
@pytest.mark.slow
def test_text_is_utf_8_whatever_the_locale(locale):
    env = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    result = call("\u00fcber", env=env)
    assert result.code == 2
    assert "'\u00fcber'" in result.err


LATIN_1 = "de_DE.ISO-8859-1"
EUC_JP = "ja_JP.EUC-JP"


@pytest.fixture(scope="module")
def locales(tmp_path_factory):
    """A folder with a locale whose encoding is ISO 8859-1, and one of EUC-JP."""
    folder = tmp_path_factory.mktemp("locales")
    for name in (LATIN_1, EUC_JP):
        source, _, encoding = name.partition(".")
        command = ["localedef", "-i", source, "-f", encoding, str(folder / name)]
        if shutil.which(command[0]) is None or subprocess.run(command, check=False).returncode:
            pytest.skip(f"needs localedef on PATH, and its source of {source}")
    return folder


@pytest.mark.parametrize("locale", ["C", LATIN_1, EUC_JP])
@pytest.mark.slow
def test_paths_are_utf_8_whatever_the_locale(locale, locales, tmp_path):
    env = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    options = {"env": {**env, "LOCPATH": str(locales)}, "cwd": tmp_path}
    encoding = "import sys; print(sys.getfilesystemencoding())"
    command = [sys.executable, "-c", encoding]
    there = subprocess.run(command, env={**os.environ, **options["env"]}, capture_output=True)
    assert there.stdout.strip() in (b"ascii", b"iso8859-1", b"euc_jp")
    store, lines = "b\u00fccher \u65e5\u672c", tmp_path / "\u00fc.txt"
    lines.write_text("\u00fc\n")
    made = call("store", "init", store, "-q", **options)
    assert (made.code, made.err) == (0, "")
    assert (tmp_path / store / "commitlog").is_dir()
    sent = call("produce", "t", lines.name, "-S", store, "-q", **options)
    assert (sent.code, sent.err) == (0, "")
    assert call("consume", "t", "-e", "-S", store, **options).out == "\u00fc\n"
    program = f"{sys.executable} -c '{encoding}'"
    child = call("consume", "t", "-g", "g", "-c", 1, "--exec", program, "-S", store, **options)
    assert child.raw == there.stdout, "programs of --exec have the caller's locale"


@pytest.mark.slow
def test_the_console_script_leaves_with_the_code_of_the_call():
    with start("nope") as process:
        process.communicate()
    assert process.returncode == exit_codes.USAGE


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["2562047h", "99999999d", "106751991167d"])
def test_a_time_limit_of_centuries_is_one(limit):
    by_option = call("version", "--timeout", limit)
    by_variable = call("version", env={"RMQCTL_TIMEOUT": limit})
    assert (by_option.code, by_variable.code) == (0, 0), by_option.err


def test_a_timer_of_other_code_goes_on():
    """The test runner's, for one: without it a test that hangs would hang for ever."""
    before = signal.getitimer(signal.ITIMER_REAL)
    handler = signal.signal(signal.SIGALRM, signal.SIG_IGN)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1000)
        assert run("version").code == 0
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 900
        assert run("version", "--timeout", "10s").code == 0
        assert signal.getsignal(signal.SIGALRM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, *before)


def test_a_time_limit_that_a_finalizer_swallows_comes_again():
    class Slow:
        def __del__(self):
            time.sleep(0.2)

    def run_long():
        limit_time(20)  # within "raises": it may be over at once
        Slow()
        time.sleep(5)

    hook = sys.unraisablehook
    try:
        with pytest.raises(TimeLimit):
            run_long()
    finally:
        end_time_limit()
    assert sys.unraisablehook is hook
