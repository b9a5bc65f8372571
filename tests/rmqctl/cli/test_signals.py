"""Real processes, because signals and pipes are the operating system's."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rmqctl import exit_codes
from rmqctl.cli.signals import TimeLimit, end_time_limit, limit_time
from tests.support.cli import ROOT, call, run, start

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


def waiting(*args, on_close="pass"):
    """The program with a command that waits until a signal ends it, and then closes."""
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING.format(on_close=on_close), "version", *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    return process


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


def test_a_second_ctrl_c_ends_at_once():
    with waiting(on_close="print('closing', flush=True); threading.Event().wait(60)") as process:
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "closing\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30) == ("", "")
    assert process.returncode == exit_codes.INTERRUPTED


@pytest.mark.slow
def test_a_time_limit_closes_and_says_so():
    with waiting("--timeout", "200ms") as process:
        assert process.communicate(timeout=30) == ("closed\n", "rmqctl: timed out after 200ms\n")
    assert process.returncode == exit_codes.TIMED_OUT


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


@pytest.mark.slow
def test_the_console_script_leaves_with_the_code_of_the_call():
    with start("nope") as process:
        process.communicate()
    assert process.returncode == exit_codes.USAGE


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
        Slow()
        time.sleep(5)

    hook = sys.unraisablehook
    limit_time(20)
    try:
        with pytest.raises(TimeLimit):
            run_long()
    finally:
        end_time_limit()
    assert sys.unraisablehook is hook
