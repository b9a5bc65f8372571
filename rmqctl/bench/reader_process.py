"""The reader of ``bench both``: a process of its own, so that sender and reader do not share an
interpreter."""

import json
import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from rmqctl.child_processes import kill_child
from rmqctl.errors import CliError

from .reading import Received

if TYPE_CHECKING:
    from .reading import Reading

_GO = b"go\n"


class ReaderProcess:
    """A forked process that reads until it is asked to end; see :func:`reader_process`."""

    def __init__(self, pid: int, commands: BinaryIO, answers: BinaryIO) -> None:
        self._pid = pid
        self._commands = commands
        self._answers = answers

    def begin(self) -> None:
        """Let it open the store and wait for messages; returns when it is ready."""
        self._commands.write(_GO)
        self._commands.flush()
        self._answer()

    def finish(self) -> Received:
        """Let it read what is left, and return what it has received."""
        self._commands.close()
        answer = self._answer()
        received = Received()
        received.messages, received.bytes = answer["messages"], answer["bytes"]
        received.unreadable = answer["unreadable"]
        received.begun, received.ended = answer["begun"], answer["ended"]
        received.end_to_end.add_parts(answer["end_to_end"])
        return received

    def _answer(self) -> dict[str, Any]:
        line = self._answers.readline()
        answer: dict[str, Any] = (
            json.loads(line) if line.endswith(b"\n") else {"error": "it ended unexpectedly"}
        )
        if "error" in answer:
            raise CliError(f"the reader process failed: {answer['error']}", answer.get("code"))
        return answer

    def end(self) -> None:
        """Kill it if it still runs."""
        self._commands.close()
        self._answers.close()
        kill_child(self._pid)


@contextmanager
def reader_process(read: Callable[[], "Reading"]) -> Iterator[ReaderProcess]:
    """Fork a process that calls ``read`` at :meth:`ReaderProcess.begin`, and follows the queues.

    No store may be open, and no thread may run.
    """
    commands_in, commands_out = os.pipe()
    answers_in, answers_out = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(commands_out)
        os.close(answers_in)
        _run(read, commands_in, answers_out)
    os.close(commands_in)
    os.close(answers_out)
    process = ReaderProcess(pid, os.fdopen(commands_out, "wb"), os.fdopen(answers_in, "rb"))
    try:
        yield process
    finally:
        process.end()


def _run(read: Callable[[], "Reading"], commands: int, answers: int) -> NoReturn:
    """The main function of the process. It never returns to the parent's code."""
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, 0)
        if os.read(commands, len(_GO)) != _GO:
            os._exit(0)  # the parent has ended
        with open(answers, "wb", buffering=0) as out:
            try:
                reading = read()
                out.write(b"{}\n")
                with reading.broker:
                    reading.follow(lambda: bool(select.select([commands], [], [], 0)[0]))
                out.write(json.dumps(_as_json(reading.received)).encode() + b"\n")
            except Exception as error:  # noqa: BLE001 - the parent raises it
                from rmqctl.app import judge

                code_of_error, sentence = judge(error)
                answer = {"error": sentence, "code": code_of_error}
                out.write(json.dumps(answer).encode() + b"\n")
        code = 0
    finally:
        os._exit(code)


def _as_json(received: Received) -> dict[str, object]:
    return {
        "messages": received.messages,
        "bytes": received.bytes,
        "unreadable": received.unreadable,
        "begun": received.begun,
        "ended": received.ended,
        "end_to_end": received.end_to_end.parts(),
    }
