"""Spark's JVM as a child process: started, connected to, and always ended.

PySpark starts one by itself, but an interrupt then leaves a JVM that no process ends. So it is
started here. It writes its address into a file, and PySpark gets it in the same way as from
spark-submit.
"""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final

from analytics.errors import SparkFailedError
from storage.platform.processes import is_at_work

_FILE_VARIABLE: Final = "_PYSPARK_DRIVER_CONN_INFO_PATH"
_PORT_VARIABLE: Final = "PYSPARK_GATEWAY_PORT"
_SECRET_VARIABLE: Final = "PYSPARK_GATEWAY_SECRET"
_LOOK_S: Final = 0.01
_START_S: Final = 300.0
_END_S: Final = 120.0
_OTHERS_S: Final = 2.0
_INT: Final = struct.Struct(">i")


class SparkJvm:
    """A running JVM of Spark. It ends when its standard input does, or this process."""

    def __init__(
        self, submit: Path, settings: Mapping[str, str], folder: Path, output: IO[bytes]
    ) -> None:
        """Start it; ``folder`` is for its address, ``output`` for its output."""
        self._info = folder / "listens"
        options = [
            word for name, value in settings.items() for word in ("--conf", f"{name}={value}")
        ]
        self._process = subprocess.Popen(
            [str(submit), *options, "pyspark-shell"],
            env={**os.environ, _FILE_VARIABLE: str(self._info), "SPARK_CONNECT_MODE": "0"},
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C ends us, and we end it
        )

    def gateway(self, conf: Any) -> Any:
        """Wait until it listens, and connect. Raises SparkFailedError."""
        from pyspark import java_gateway

        deadline = time.monotonic() + _START_S
        while not self._info.is_file():
            if self._has_ended() or time.monotonic() > deadline:
                raise SparkFailedError("its JVM ended before it was ready")
            time.sleep(_LOOK_S)
        data = self._info.read_bytes()
        (port,) = _INT.unpack_from(data)
        (length,) = _INT.unpack_from(data, _INT.size)
        secret = data[2 * _INT.size :][:length].decode("utf-8")
        with environment({_PORT_VARIABLE: str(port), _SECRET_VARIABLE: secret}):
            launch: Any = java_gateway.launch_gateway
            return launch(conf)

    def end(self, *, at_once: bool) -> None:
        """End it and wait for it: ``at_once``, or as soon as it ends by itself."""
        if at_once:
            self.kill()
        if self._process.stdin is not None:
            self._process.stdin.close()
        if not self._wait_for_its_end():
            self.kill()
            self._wait_for_its_end()
        self._process.poll()
        self._wait_for_the_others()

    def _has_ended(self) -> bool:
        """Popen's own look takes a lock, and an interrupt at that moment never gives it back."""
        try:
            options = os.WEXITED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, self._process.pid, options) is not None
        except ChildProcessError:
            return True

    def _wait_for_its_end(self) -> bool:
        deadline = time.monotonic() + _END_S
        while not self._has_ended():
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_S)
        return True

    def kill(self) -> None:
        """Kill the whole session: the JVM's parent is a shell, with a JVM that works out its
        command line, and its children are workers."""
        if self._process.returncode is None:  # else another process may have its number
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _wait_for_the_others(self) -> None:
        """Wait a moment for the processes that were killed with it: they may write until they
        end."""
        deadline = time.monotonic() + _OTHERS_S
        while time.monotonic() < deadline and is_at_work(self._process.pid):
            time.sleep(_LOOK_S)


@contextmanager
def environment(values: Mapping[str, str | None]) -> Iterator[None]:
    """Set variables for a block; None removes one."""
    before = {name: os.environ.get(name) for name in values}
    for name, value in values.items():
        _set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            _set(name, value)


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
