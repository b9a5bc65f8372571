"""Fetching the next messages of a queue in another thread, while the last ones are printed.

Reading columns and writing output take turns else: both wait for memory and files most of the time,
and compiled code lets other threads run meanwhile.
"""

import threading
from collections.abc import Callable
from contextlib import nullcontext
from queue import SimpleQueue
from typing import Final

from storage.platform.processors import usable_processors

from .cursor import COLUMN, Fetched, Fetcher

MOST_QUEUES: Final = 16
"""Queues of which the next messages are kept, too."""


def has_processors() -> bool:
    """Whether another thread can run beside this one."""
    return usable_processors() > 1


class _Fetch:
    """One fetch, done by the thread that begins it first."""

    def __init__(self, fetch: Callable[[], Fetched], offset: int) -> None:
        self.offset: Final = offset
        self._fetch = fetch
        self._begun = threading.Lock()  # held from its beginning on
        self._done = threading.Event()
        self._fetched: Fetched | None = None
        self._error: BaseException | None = None

    def do(self) -> None:
        """Do it, unless another thread has begun it."""
        if not self._begun.acquire(blocking=False):
            return
        try:
            self._fetched = self._fetch()
        except BaseException as error:  # noqa: BLE001 - raised again by ``result``
            self._error = error
        finally:
            self._done.set()

    def result(self) -> Fetched:
        """What it fetched; blocks while another thread fetches. Raises what the fetch raised."""
        self.do()
        self._done.wait()
        if self._error is not None:
            raise self._error
        assert self._fetched is not None
        return self._fetched


class ReadAhead:
    """A Fetcher over another one. Call ``close`` at the end.

    ``end_of`` gives the end of a queue now. ``alone``: the other one is called by one thread at a
    time; else by two, for different queues.
    """

    def __init__(self, fetch: Fetcher, end_of: Callable[[int], int], *, alone: bool) -> None:
        self._fetch = fetch
        self._end_of = end_of
        self._alone = threading.Lock() if alone else nullcontext()  # held while the fetcher runs
        self._next: dict[int, _Fetch] = {}
        self._waiting: SimpleQueue[_Fetch | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False

    def __call__(self, queue_id: int, offset: int, count: int) -> Fetched:
        """See Fetcher; there may be more than ``count`` messages."""
        ahead = self._next.pop(queue_id, None)
        if ahead is None or ahead.offset != offset:
            fetched = self._fetched(queue_id, offset, count)
        else:
            fetched = ahead.result()
            following = fetched.next_offset
            fetched = fetched._replace(more=following < self._end_of(queue_id))
        if fetched.more and count == COLUMN:
            self._begin(queue_id, fetched.next_offset)
        return fetched

    def close(self) -> None:
        """End the thread; waits for a fetch that runs."""
        self._closed = True
        self._next.clear()
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join()
            self._thread = None

    def _fetched(self, queue_id: int, offset: int, count: int) -> Fetched:
        with self._alone:
            return self._fetch(queue_id, offset, count)

    def _begin(self, queue_id: int, offset: int) -> None:
        ahead = _Fetch(lambda: self._fetched(queue_id, offset, COLUMN), offset)
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="read-ahead", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the system gives none
                return
            self._thread = thread
        self._next[queue_id] = ahead
        self._waiting.put(ahead)

    def _run(self) -> None:
        while (ahead := self._waiting.get()) is not None:
            if not self._closed:
                ahead.do()
            ahead = None  # it is kept by its reader only
