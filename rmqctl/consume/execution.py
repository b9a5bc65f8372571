"""``consume --exec``: runs a program for each message."""

import os
import shlex
import shutil
import subprocess
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rmqctl.errors import UsageProblem
from rmqctl.output.last_line import LAST_LINE
from rmqctl.output.message_variables import message_variables

from .listener import OutputFailedError
from .reader import check_reader

if TYPE_CHECKING:
    from rmqctl.admin.message_filter import Predicate
    from storage.format.message import MessageExt


class CommandFailedError(Exception):
    """The program failed; the text becomes the failure reason of the message."""


class CommandRunner:
    """Runs a program for each message: the body on standard input, other fields in ``RMQ_*``.

    Exit code 0 means consumed. The program inherits standard output: once the output has no
    reader, no program is started, and a failure is attributed to the output. Thread-safe.
    """

    def __init__(self, command: str, predicate: "Predicate | None") -> None:
        """Split ``command`` into words, without a shell. UsageProblem for an unknown program.

        Messages for which ``predicate`` is false count as consumed.
        """
        self._predicate = predicate
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise UsageProblem(f"--exec: {error}") from None
        if not self._words:
            raise UsageProblem("--exec is empty")
        if shutil.which(self._words[0]) is None:
            raise UsageProblem(f"--exec: there is no program {self._words[0]!r}")
        self._lock = threading.Lock()  # guards the field below
        self._running: set[subprocess.Popen[bytes]] = set()

    def __call__(self, messages: "Sequence[MessageExt]") -> None:
        """Consume messages one by one.

        CommandFailedError at the first one that fails, OutputFailedError if the output has no
        reader.
        """
        for done, message in enumerate(messages):
            if self._predicate is None or self._predicate(message):
                try:
                    self._run(message)
                except BrokenPipeError as error:
                    raise OutputFailedError(done) from error

    def terminate(self) -> None:
        """Kill the programs that still run; their outcome no longer counts."""
        with self._lock:
            for process in self._running:
                process.terminate()

    def _run(self, message: "MessageExt") -> None:
        check_reader()
        body = message.body  # BodyError: the program is not started
        # A process group of its own: Ctrl-C ends rmqctl, not the program that is running.
        with subprocess.Popen(
            self._words,
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **message_variables(message)},
            start_new_session=True,
        ) as process:
            with self._lock:
                self._running.add(process)
            try:
                _, words = process.communicate(body)
            finally:
                with self._lock:
                    self._running.discard(process)
        if words:
            LAST_LINE.pass_on(words, "rmqctl.exec")
        if process.returncode:
            check_reader()  # the program may have failed because the output has no reader
            raise CommandFailedError(_reason(process.returncode, words))


def _reason(code: int, words: bytes) -> str:
    how = f"exit code {code}" if code > 0 else f"killed by signal {-code}"
    lines = words.decode("utf-8", "replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f"{how}: {last}" if last else how
