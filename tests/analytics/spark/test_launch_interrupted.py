"""Ctrl-C while the program looks whether Spark's JVM runs, and a JVM that does not answer."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from analytics.spark.interrupts import Interrupts
from analytics.spark.launch import SparkJvm
from analytics.spark.session import SparkSession
from tests.support.consumers import eventually

PATIENCE_S = 20
SILENT = """\
#!{python}
import os, socket, time
with socket.create_server(("127.0.0.1", 0)) as server:
    with open("{port}.new", "w") as file:
        file.write(str(server.getsockname()[1]))
    os.rename("{port}.new", "{port}")
    time.sleep(1000)
"""


def test_an_interrupt_within_a_look_at_the_jvm_does_not_keep_the_session_from_ending(
    tmp_path: Path,
) -> None:
    """Popen.poll() takes a lock; an interrupt right after that never gives it back."""
    submit = tmp_path / "submit"
    submit.write_text("#!/bin/sh\nexec sleep 1000\n", "utf-8")
    submit.chmod(0o755)
    with (tmp_path / "log").open("wb") as output:
        jvm = SparkJvm(submit, {}, tmp_path, output)
        lock = jvm._process._waitpid_lock  # type: ignore[attr-defined]
        assert lock.acquire(blocking=False)
        ending = threading.Thread(target=jvm.end, kwargs={"at_once": True}, daemon=True)
        ending.start()
        ending.join(PATIENCE_S)
        assert not ending.is_alive()
        lock.release()
        assert jvm._process.wait(PATIENCE_S) < 0


@contextmanager
def silent_session(folder: Path) -> Iterator[SparkSession]:
    """A session whose JVM takes connections and answers nothing, as one that is stopped."""
    from py4j.clientserver import (  # type: ignore[import-untyped]
        ClientServer,
        JavaParameters,
        PythonParameters,
    )

    submit, port = folder / "submit", folder / "port"
    submit.write_text(SILENT.format(python=sys.executable, port=port), "utf-8")
    submit.chmod(0o755)
    session: Any = SparkSession()
    with (folder / "log").open("wb") as output:
        session._jvm = SparkJvm(submit, {}, folder, output)
        process = session._jvm._process
    try:
        eventually(port.is_file)
        gateway = ClientServer(
            java_parameters=JavaParameters(port=int(port.read_text()), auth_token="none"),
            python_parameters=PythonParameters(port=0, eager_load=False),
        )
        session._context = SimpleNamespace(
            _gateway=gateway, _accumulatorServer=SimpleNamespace(handle_error=None)
        )
        yield session
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(PATIENCE_S)


def test_a_session_ends_though_its_jvm_does_not_answer(tmp_path: Path) -> None:
    with silent_session(tmp_path) as session:
        ending = threading.Thread(target=session.close, daemon=True)
        ending.start()
        ending.join(PATIENCE_S)
        assert not ending.is_alive()


def test_ctrl_c_ends_the_jvm_before_py4j_cleans_up(tmp_path: Path) -> None:
    """It asks the JVM to cancel the call, and waits for the answer."""
    with silent_session(tmp_path) as session:
        process = session._jvm._process  # type: ignore[union-attr]
        interrupts = session._interrupts
        interrupts.begin(session._kill)
        try:
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == -signal.SIGKILL
        finally:
            interrupts.end()
        session.close()


def test_a_handler_that_goes_on_ends_no_jvm() -> None:
    ended: list[bool] = []
    before = signal.signal(signal.SIGINT, lambda *_: None)
    interrupts = Interrupts()
    try:
        interrupts.begin(lambda: ended.append(True))
        signal.raise_signal(signal.SIGINT)
        assert interrupts.came
    finally:
        interrupts.end()
        signal.signal(signal.SIGINT, before)
    assert ended == []
