"""Ctrl-C while Spark starts or counts: no JVM, no file and no page of text stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support import golden
from tests.support.cli import ROOT
from tests.support.examples import one_in

PATIENCE_S = 60


def java_of(pid: int) -> int | None:
    """The JVM that a process has started."""
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in read(path).split():
            if b"SparkSubmit" in read(Path(f"/proc/{child.decode()}/cmdline")):
                return int(child)
    return None


def read(path: Path) -> bytes:
    """What the system says of a thread or a process; nothing if it has just ended."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.slow
@pytest.mark.parametrize("wanted", one_in(2, ["java", "worker"]))
def test_an_interrupted_report_leaves_nothing(wanted: str, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    place = tmp_path / "here"
    place.mkdir()
    running = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-P", "-m", "rmqctl", "lag", "report", "-q"]
        + ["-S", str(golden.store("basic-4.9"))],
        cwd=place,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(temporary),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        java = interrupted(running, wanted)
        try:
            out, err = running.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGABRT)  # its threads' stacks are shown as standard error
            out, err = running.communicate(timeout=PATIENCE_S)
    finally:
        running.kill()  # its JVM then reads the end of its standard input
        running.communicate()
    assert (running.returncode, err) == (130, ""), err
    assert out == ""
    deadline = time.monotonic() + PATIENCE_S
    while Path(f"/proc/{java}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert list(place.iterdir()) == []
    assert [path.name for path in temporary.iterdir() if path.name.startswith("rmqctl")] == []


def interrupted(running: subprocess.Popen[str], wanted: str) -> int:
    """Interrupt a report once it has a JVM, or once that has a worker; the JVM."""
    deadline = time.monotonic() + PATIENCE_S
    java = None
    while java is None or (wanted == "worker" and not has_children(java)):
        assert time.monotonic() < deadline
        assert running.poll() is None
        java = java_of(running.pid)
        time.sleep(0.005)
    running.send_signal(signal.SIGINT)
    return java


def has_children(pid: int) -> bool:
    return any(read(path).strip() for path in Path(f"/proc/{pid}/task").glob("*/children"))
