"""What is left of a pull once its messages are in the process queue: the listener, and going on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from client.listener.worker_pool import BorrowedWorker


class ListenerHandoff:
    """A job that the broker's thread may do itself (a Rest, see Reading.pull_async).

    ``go_on`` is called once: when the job is done, when it is left to another thread, or when it
    lasts for longer than is good for a queue that is not pulled meanwhile.
    """

    __slots__ = ("_borrowed", "_go_on")

    def __init__(self, borrowed: BorrowedWorker, go_on: Callable[[], object]) -> None:
        self._borrowed = borrowed
        self._go_on: Iterator[Callable[[], object]] = iter((go_on,))  # a step of it is whole

    def __call__(self) -> None:
        """See Rest."""
        self._borrowed.work()
        self.late()

    def late(self) -> None:
        """See Rest."""
        for go_on in self._go_on:
            go_on()

    def leave(self) -> None:
        """See Rest."""
        self._borrowed.leave()
        self.late()
