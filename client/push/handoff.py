"""Work left after a pull's messages are in the process queue: calling the listener, pulling on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from client.listener.worker_pool import BorrowedWorker


class ListenerHandoff:
    """A job that the broker's thread may do itself (a Handoff, see PullApi.pull_async).

    ``go_on`` is called once: when the job is done, when it is left to another thread, or when it
    takes too long for a queue that is not pulled meanwhile.
    """

    __slots__ = ("_borrowed", "_go_on")

    def __init__(self, borrowed: BorrowedWorker, go_on: Callable[[], object]) -> None:
        self._borrowed = borrowed
        self._go_on: Iterator[Callable[[], object]] = iter((go_on,))  # a step of it is atomic

    def __call__(self) -> None:
        """See Handoff."""
        self._borrowed.work()
        self.late()

    def late(self) -> None:
        """See Handoff."""
        for go_on in self._go_on:
            go_on()

    def leave(self) -> None:
        """See Handoff."""
        self._borrowed.leave()
        self.late()
