"""Ctrl-C amid Spark's own code: standard error stays clean, and the interrupt is not lost."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from analytics.errors import SparkFailedError
from analytics.spark.interrupts import Interrupts, own_handler, put_off
from analytics.spark.launch import SparkJvm
from analytics.spark.session import SparkSession
from tests.support.consumers import eventually


@pytest.fixture
def interrupts() -> Iterator[Interrupts]:
    made = Interrupts()
    made.begin()
    yield made
    made.end()


def log_as_py4j(level: int = logging.ERROR) -> None:
    root = logging.getLogger()
    spec = find_spec("py4j.java_gateway")
    assert spec is not None
    path = str(spec.origin)
    root.handle(root.makeRecord("root", level, path, 1, "KeyboardInterrupt while", (), None))


def test_what_py4j_logs_through_the_root_logger_reaches_no_handler(interrupts, caplog):
    log_as_py4j()
    assert caplog.records == []
    logging.getLogger().error("of another library")
    assert [record.message for record in caplog.records] == ["of another library"]
    interrupts.end()
    log_as_py4j()
    assert len(caplog.records) == 2


def test_the_root_logger_has_a_handler_only_meanwhile():
    root = logging.getLogger()
    before = (list(root.handlers), list(root.filters), sys.unraisablehook)
    interrupts = Interrupts()
    interrupts.begin()
    assert len(root.handlers) == len(before[0]) + 1  # so that Python sets none up
    interrupts.end()
    interrupts.end()
    assert (list(root.handlers), list(root.filters), sys.unraisablehook) == before


class Finalized:
    """Something whose finalizer is interrupted."""

    def __del__(self) -> None:
        raise KeyboardInterrupt


def lose_it() -> None:
    thing = Finalized()
    del thing
    threading.Event().wait(0.001)
    for _ in range(10_000_000):  # raised again between two steps of the interpreter
        threading.get_ident()


def test_an_interrupt_within_a_finalizer_is_raised_again(interrupts, capsys):
    with pytest.raises(KeyboardInterrupt):
        lose_it()
    assert capsys.readouterr().err == ""


def test_the_handler_of_ctrl_c_stays_where_pyspark_sets_its_own():
    def theirs(number: int, frame: object) -> None:
        raise AssertionError

    theirs.__module__ = "pyspark.core.context"
    before = signal.getsignal(signal.SIGINT)
    with own_handler():
        signal.signal(signal.SIGINT, theirs)
    assert signal.getsignal(signal.SIGINT) is before


def test_another_handler_that_is_set_meanwhile_stays():
    """As the one for a second Ctrl-C does, which ends the process at once."""
    before = signal.getsignal(signal.SIGINT)
    try:
        with own_handler():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interrupt_is_put_off_until_what_was_begun_is_known():
    begun = False

    def begin() -> None:
        nonlocal begun
        with put_off():
            signal.raise_signal(signal.SIGINT)
            begun = True

    with pytest.raises(KeyboardInterrupt):
        begin()
    assert begun


def test_the_shell_before_the_jvm_is_killed_with_all_that_it_has_started(tmp_path):
    submit = tmp_path / "spark-submit"
    submit.write_text(
        f"#!/bin/sh\nsleep 60 &\necho $! > {tmp_path}/child.new\n"
        f"mv {tmp_path}/child.new {tmp_path}/child\nwait\n"
    )
    submit.chmod(0o755)
    with (tmp_path / "said").open("wb") as said:
        jvm = SparkJvm(submit, {}, tmp_path, said)
        eventually(lambda: (tmp_path / "child").exists())
        jvm.end(at_once=True)
    child = int((tmp_path / "child").read_text())
    try:
        state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return
    assert state in "ZX"  # it has ended, and its parent has not looked yet


def interrupted_session(interrupted: bool) -> SparkSession:
    """A session of which only what it notes of Ctrl-C has begun."""
    session = SparkSession()
    session._interrupts.begin()
    if interrupted:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    return session


@pytest.mark.parametrize("error", [None, OSError("socket"), SparkFailedError("a job failed")])
def test_what_py4j_raises_in_the_place_of_an_interrupt_is_no_error(error):
    before = signal.getsignal(signal.SIGINT)
    session = interrupted_session(interrupted=True)
    with pytest.raises(KeyboardInterrupt):
        session.__exit__(type(error), error, None)
    assert signal.getsignal(signal.SIGINT) is before


def test_an_error_without_an_interrupt_stays_one():
    session = interrupted_session(interrupted=False)
    session.__exit__(OSError, OSError("x"), None)
