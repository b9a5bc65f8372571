"""Several requests at a time, and an end to waiting for them.

Libraries of object stores try again by themselves, some of them for a quarter of an hour, and a
call of theirs cannot be interrupted. So requests run in daemon threads: one that does not end keeps
neither its caller nor the process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Final

THREADS: Final = 16
"""Requests at the same time."""
PATIENCE_S: Final = 60.0
"""How long none of them may end."""
_AFTERWARDS_S: Final = 1.0


class NoAnswerError(Exception):
    """No request has ended for too long."""


def in_parallel(jobs: Sequence[Callable[[], None]], patience_s: float = PATIENCE_S) -> None:
    """Do all jobs, some at a time. Raises the first error of one, and NoAnswerError if none has
    ended for ``patience_s``; the others are not begun then."""
    todo = deque(jobs)
    done: SimpleQueue[BaseException | None] = SimpleQueue()
    stopped = Event()

    def work() -> None:
        while todo and not stopped.is_set():
            try:
                job = todo.popleft()
            except IndexError:
                return
            try:
                job()
            except BaseException as error:  # noqa: BLE001 - it goes to the caller
                done.put(error)
            else:
                done.put(None)

    threads = [Thread(target=work, daemon=True) for _ in range(min(THREADS, len(jobs)))]
    for thread in threads:
        thread.start()
    late = False
    try:
        for _ in jobs:
            error = done.get(timeout=patience_s)
            if error is not None:
                raise error
    except Empty:
        late = True
        raise NoAnswerError from None
    finally:
        stopped.set()
        if not late:
            for thread in threads:
                thread.join(_AFTERWARDS_S)
