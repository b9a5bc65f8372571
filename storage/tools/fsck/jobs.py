"""Processes that divide the parts of the log among them, and return the results of each.

They are forked, so that they have the check's data and begin at once. A free process takes the next
part, this process too.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, Self

from .log_part import LogRange
from .log_pass import WalkPart

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess

Work = Callable[[LogRange], WalkPart | None]

_TICKET: Final = Struct("=i")
_SIGNALS: Final = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGALRM})
"""Signals that a program may turn into exceptions."""


def can_fork() -> bool:
    """Whether a copy of this process can be trusted: other threads might hold locks."""
    return threading.active_count() == 1


class LogJobs:
    """``jobs`` processes beside this one, started when this is made; a context manager that ends
    them."""

    def __init__(self, pieces: list[LogRange], work: Work, jobs: int) -> None:
        self._pieces = pieces
        self._work = work
        self._found: dict[int, WalkPart | None] = {}
        self._running: dict[Connection, ForkProcess] = {}
        # One number for each part: the process that reads it has the part.
        self._tickets, tickets = os.pipe()
        os.write(tickets, b"".join(map(_TICKET.pack, range(len(pieces)))))
        os.close(tickets)
        try:
            self._begin(min(jobs, len(pieces) - 1))
        except BaseException:
            self.__exit__()
            raise

    def _begin(self, jobs: int) -> None:
        forking = multiprocessing.get_context("fork")
        for _ in range(jobs):
            ours, theirs = forking.Pipe(duplex=False)
            process = forking.Process(target=self._serve, args=(theirs, ours), daemon=True)
            before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
            try:
                process.start()
                self._running[ours] = process
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()

    def parts(self) -> Iterator[tuple[LogRange, WalkPart | None]]:
        """The results of each part, in the order of the log; None where the caller must walk it.

        Raises ChildProcessError if a process died, and OSError where one could not read.
        """
        for number, piece in enumerate(self._pieces):
            while number not in self._found:
                mine = self._ticket()
                if mine is not None:
                    self._found[mine] = self._work(self._pieces[mine])
                self._take(wait_for_one=mine is None)
            yield piece, self._found.pop(number)

    def _ticket(self) -> int | None:
        data = os.read(self._tickets, _TICKET.size)
        return _TICKET.unpack(data)[0] if data else None

    def _take(self, *, wait_for_one: bool) -> None:
        """Collect the results of other processes so far."""
        for answers in wait(list(self._running), None if wait_for_one else 0):
            assert isinstance(answers, Connection)
            try:
                answer: Any = answers.recv()
            except (EOFError, OSError):
                self._ended(answers)
                continue
            if isinstance(answer, OSError):
                raise answer
            number, part = answer
            self._found[number] = part
        if wait_for_one and not self._running and not self._found:
            raise ChildProcessError("the processes of the check ended before their work")

    def _ended(self, answers: Connection) -> None:
        process = self._running.pop(answers)
        answers.close()
        process.join()
        if process.exitcode:
            raise ChildProcessError(f"a process of the check died (exit code {process.exitcode})")

    def _serve(self, answers: Connection, theirs: Connection) -> None:
        """Main function of another process."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        theirs.close()
        for other in self._running:  # so that a write fails after the reader has ended
            other.close()
        with suppress(BrokenPipeError):
            try:
                while (number := self._ticket()) is not None:
                    answers.send((number, self._work(self._pieces[number])))
            except BrokenPipeError:
                raise
            except OSError as error:
                answers.send(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._tickets)
        for answers, process in self._running.items():
            answers.close()
            process.kill()
            process.join()
