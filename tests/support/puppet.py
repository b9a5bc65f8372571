"""Another process with the store open, that a test controls.

``python -m tests.support.puppet`` reads commands as JSON lines and answers each with one; an error
is answered with its class and text.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.samples import Sample, Ticking, open_store, prepared
from tests.support.slim import ROOT


class PuppetError(Exception):
    """What the puppet's command raised: its class's name and its text."""


class Puppet:
    """The test's end: ``puppet.call("open", root=...)``."""

    def __init__(self, module: str = "tests.support.puppet") -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, command: str, **arguments: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([command, arguments]).encode() + b"\n")
        self._process.stdin.flush()

    def receive(self) -> Any:
        assert self._process.stdout is not None
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise PuppetError(answer["error"])
        return answer["result"]

    def call(self, command: str, **arguments: Any) -> Any:
        self.send(command, **arguments)
        return self.receive()

    def begin(self, command: str, **arguments: Any) -> Self:
        """Have the first thing done; if that fails there is no puppet."""
        try:
            self.call(command, **arguments)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def stop(self) -> None:
        """SIGSTOP, and wait until the kernel says so."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


class _Commands:
    """The puppet's end. Each method is a command."""

    def __init__(self) -> None:
        self._write_lock = ExitStack()

    def open(self, root: str, gate_timeout_ms: int = 5_000, exclusive: bool = False) -> bool:
        """Open the store; whether that took a recovery."""
        self._store = open_store(
            Path(root), clock=Ticking(), gate_timeout_ms=gate_timeout_ms, exclusive=exclusive
        )
        return self._store.recovery is not None

    def put(self, name: str, topic: str = "A") -> list[int]:
        result = self._store.put(prepared([Sample(name, topic)]))
        return [int(result.commitlog_offsets[0]), int(result.queue_offsets[0])]

    def close(self) -> None:
        self._store.close()

    def take_gate(self) -> None:
        self._write_lock.enter_context(self._store.write_lock())

    def release_gate(self) -> None:
        self._write_lock.close()

    def work(self, milliseconds: int) -> None:
        """Use the processor for so long."""
        end = time.process_time() + milliseconds / 1000
        while time.process_time() < end:
            pass

    def lock_as_java(self, root: str) -> bool:
        """FileChannel.tryLock(0, 1, false), and the write to the file that follows it."""
        self._java = os.open(Path(root) / "lock", os.O_RDWR)
        try:
            fcntl.lockf(self._java, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
        except BlockingIOError:
            os.close(self._java)
            return False
        os.pwrite(self._java, b"lock", 0)
        return True

    def unlock_as_java(self) -> None:
        os.close(self._java)


def obey(commands: object) -> None:
    """Do what the test says until it ends; each method of ``commands`` is a command."""
    for line in sys.stdin.buffer:
        command, arguments = json.loads(line)
        try:
            answer = {"result": getattr(commands, command)(**arguments)}
        except Exception as error:  # noqa: BLE001 - reported to the test, which judges it
            answer = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    obey(_Commands())
