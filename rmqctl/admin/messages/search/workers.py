"""Work on many pieces in parallel: forked processes with a pipe each; results in order.

A child inherits what the parent has opened and read, so it starts in milliseconds. It writes a
result for each of its pieces and waits while its pipe is full, so few results are buffered.
Children never outlive the work: the parent ends them in every case, and the pipes of a killed
parent break.
"""

import os
import signal
from collections.abc import Callable, Generator, Iterator, Sequence, Set
from contextlib import contextmanager
from struct import Struct
from typing import BinaryIO, Final, NoReturn, TypeVar

from rmqctl.child_processes import kill_child
from rmqctl.errors import CliError

T = TypeVar("T")

_LENGTH: Final = Struct(">q")
_FAILED: Final = -1
_SIGNALS: Final = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGALRM})
"""Signals that the program turns into exceptions."""


def in_order(
    items: Sequence[T], work: Callable[[T], bytes], jobs: int
) -> Generator[tuple[T, bytes]]:
    """Yield each item with the result of ``work``, in the order of the items.

    With one job nothing is forked. ``work`` runs in up to ``jobs`` processes, each of which takes
    every ``jobs``-th item; an error of it is raised here as a CliError. A caller that stops early
    closes the generator, which ends the processes.
    """
    jobs = min(jobs, len(items))
    if jobs <= 1:
        for item in items:
            yield item, work(item)
        return
    children: list[_Child] = []
    try:
        for number in range(jobs):
            with _later(_SIGNALS):  # so that every child is recorded
                children.append(_Child(items[number::jobs], work, children))
        for number, item in enumerate(items):
            yield item, children[number % jobs].answer()
    finally:
        for child in children:
            child.end()


@contextmanager
def _later(signals: Set[signal.Signals]) -> Iterator[None]:
    """Defer signals until after the block; children of the block have no signal blocked."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Child:
    """One forked process."""

    def __init__(
        self, items: Sequence[T], work: Callable[[T], bytes], others: "Sequence[_Child]"
    ) -> None:
        reading, writing = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.close(reading)
            for other in others:  # so that their pipes break when the parent ends
                os.close(other.pipe.fileno())
            _run(items, work, writing)
        os.close(writing)
        self.pipe: BinaryIO = os.fdopen(reading, "rb")

    def answer(self) -> bytes:
        """The next result; blocks until it is available."""
        head = self.pipe.read(_LENGTH.size)
        length = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else None
        if length == _FAILED:
            raise CliError(self.pipe.read().decode("utf-8", "replace"))
        data = b"" if length is None else self.pipe.read(length)
        if length is None or len(data) < length:
            raise CliError("a search process ended unexpectedly")
        return data

    def end(self) -> None:
        """Kill the process if it still runs, and wait for its end."""
        self.pipe.close()
        kill_child(self.pid)


def _run(items: Sequence[T], work: Callable[[T], bytes], descriptor: int) -> NoReturn:
    """The main function of the child. It never returns to the parent's code."""
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        with open(descriptor, "wb") as pipe:
            try:
                for item in items:
                    data = work(item)
                    pipe.write(_LENGTH.pack(len(data)) + data)
                    pipe.flush()
            except Exception as error:  # noqa: BLE001 - the parent raises it
                pipe.write(_LENGTH.pack(_FAILED) + f"{type(error).__name__}: {error}".encode())
        code = 0
    except BrokenPipeError:
        pass
    finally:
        os._exit(code)
