"""The help of the program and completions come before Typer is loaded, and are what Typer gives."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rmqctl.cli import root_help
from tests.support.cli import ROOT, run

PROGRAM = [sys.executable, "-X", "importtime", "-m", "rmqctl"]


def started(*args, env=None, **pipes):
    """A process of the program; its standard error has a line for each module."""
    return subprocess.run(
        [*PROGRAM, *args],
        check=False,
        cwd="/",
        stderr=subprocess.PIPE,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin", "HOME": "/", **(env or {})},
        **({"stdout": subprocess.PIPE} | pipes),
    )


def imported(done):
    lines = done.stderr.decode().splitlines()
    return {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}


@pytest.mark.parametrize("columns", ["0", "1", "52", "60", "80", "99", "101", "200", "x"])
def test_the_help_is_the_one_that_typer_gives(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    assert run("--help").out == run("help").out == root_help.text()
    assert run("-h").out == run().out == root_help.text()


@pytest.mark.slow
@pytest.mark.parametrize("args", [[], ["--help"], ["-h"], ["help"]], ids=str)
def test_the_help_needs_no_typer(args):
    done = started(*args, env={"COLUMNS": "80"})
    assert done.returncode == 0
    assert done.stdout.startswith(b"Usage: rmqctl [OPTIONS] COMMAND ...\n")
    assert "rmqctl.cli.root_help" in imported(done)
    assert not imported(done) & {"typer", "shutil", "inspect", "storage", "broker"}


@pytest.mark.slow
def test_completion_needs_no_typer_and_no_command(tmp_path):
    (tmp_path / "consumequeue" / "orders" / "0").mkdir(parents=True)
    done = started("-S", str(tmp_path), "consume", "or", env={"_RMQCTL_COMPLETE": "1"})
    assert done.stdout == b"orders\t\n"
    assert not imported(done) & {"typer", "shutil", "inspect", "rmqctl.consume.command"}
    of_storage = {name for name in imported(done) if name.partition(".")[0] == "storage"}
    assert of_storage == {"storage", "storage.parse", "storage.parse.time_forms"}


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux with /dev/full")
def test_a_full_disk_is_reported_as_by_every_command():
    with Path("/dev/full").open("wb") as full:
        done = started("--help", stdout=full)
    assert done.returncode == 1
    assert b"No space left on device" in done.stderr


@pytest.mark.slow
def test_a_pipe_that_is_closed_is_no_failure_to_report():
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = started("--help", stdout=writing)
    finally:
        os.close(writing)
    lines = done.stderr.decode().splitlines()
    assert done.returncode == 141
    assert not [line for line in lines if not line.startswith("import time:")]
