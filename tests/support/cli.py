"""Run the command line: in this process for most tests, as a real process where that matters."""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from rmqctl import app
from rmqctl.output.last_line import LAST_LINE

ROOT = Path(__file__).resolve().parents[2]


class Result(NamedTuple):
    """What a call gave; ``out`` and ``err`` as text, ``raw`` as the bytes of stdout."""

    code: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        return self.raw.decode("utf-8", "surrogateescape")

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    def json(self) -> Any:
        import json

        return json.loads(self.out)


def run(
    *args: object,
    stdin: bytes | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Result:
    """Run the program's own main function in this process, with its three streams replaced."""
    out = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    err = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    source = io.TextIOWrapper(io.BytesIO(stdin or b""), "utf-8")
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    folder = Path.cwd()
    with ExitStack() as stack:
        stack.enter_context(patch.object(sys, "stdin", source))
        stack.enter_context(patch.object(sys, "stdout", out))
        stack.enter_context(patch.object(sys, "stderr", err))
        stack.enter_context(patch.dict(os.environ, env or {}))
        try:
            if cwd:
                os.chdir(cwd)
            code = app.main([str(arg) for arg in args])
        finally:
            os.chdir(folder)
            LAST_LINE.writes_json, LAST_LINE.fields = bool, dict
            for number, handler in before.items():
                signal.signal(number, handler)
    raw = out.buffer.getvalue()
    return Result(code, raw, err.buffer.getvalue().decode())


def start(
    *args: object,
    env: Mapping[str, str] | None = None,
    python: Sequence[str] = (),
    **popen: Any,
) -> Any:
    """Start the program as a process of its own; streams are pipes unless ``popen`` says else.

    A Popen, typed so that its streams need no proof of being there.
    """
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(
        [sys.executable, *python, "-m", "rmqctl", *map(str, args)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
        **{**streams, **popen},
    )


def call(*args: object, stdin: bytes = b"", timeout: float = 60, **popen: Any) -> Result:
    """Run the program as a process to its end."""
    with start(*args, **popen) as process:
        out, err = process.communicate(stdin, timeout)
    return Result(process.returncode, out or b"", (err or b"").decode())


def limited(command: Callable[[str], Result], was_enough: Callable[[Result], bool]) -> Result:
    """Run a command with a time limit: a longer one each time that it was too short on this
    machine, as the program's start counts, too. Gives the last result."""
    seconds = 1
    while not was_enough(result := command(f"{seconds}s")) and seconds < 64:
        seconds *= 4
    return result
