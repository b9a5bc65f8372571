"""One sync for all threads that wait for one (CommitLog.GroupCommitService).

A thread that comes while no other thread syncs does the sync itself. A thread that comes during a
sync waits. When that sync is over, all threads that it covers go on at once; one of the others does
the next sync. So no thread waits for a second sync after one that covers it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class _Waiter:
    __slots__ = ("end", "is_covered", "woken")

    def __init__(self, end: int) -> None:
        self.end = end
        self.is_covered = False  # a sync reached its end; a slower process may note less afterwards
        self.woken: threading.Lock | None = None  # of a thread that waits for another thread's sync

    def get_ready(self) -> threading.Lock:
        """Make the lock to sleep on, before other threads can see the waiter."""
        woken = self.woken = threading.Lock()
        woken.acquire()
        return woken

    def wake(self) -> None:
        if self.woken is not None:
            self.woken.release()


class GroupCommit:
    """Divides syncs among the threads of a process; ``flushed_to`` says how far they reach.

    ``sync`` makes that at least what had been written when it was called, or raises.
    """

    def __init__(self, flushed_to: Callable[[], int], sync: Callable[[], object]) -> None:
        self._flushed_to = flushed_to
        self._sync = sync
        self._lock = threading.Lock()  # guards what follows; held briefly
        self._leader: _Waiter | None = None
        self._waiting: list[_Waiter] = []

    def commit(self, end: int, timeout: float) -> bool:
        """Return when the device has the log up to ``end``; False after ``timeout`` seconds.

        The thread that syncs returns when the device does. An exception of ``sync`` is raised here,
        in each thread that had to call it.
        """
        own = _Waiter(end)
        woken = None
        try:
            try:
                with self._lock:
                    if self._flushed_to() >= end:
                        return True
                    if self._leader is None:
                        self._leader = own
                    else:
                        woken = own.get_ready()
                        self._waiting.append(own)
                if woken is not None:
                    woken.acquire(timeout=timeout)
                    if self._leader is not own:  # covered by another sync, or none in time
                        return own.is_covered or self._flushed_to() >= end
                self._sync()
                return True
            finally:
                self._leave(own)
        except BaseException:  # a signal may have come when it was about to leave
            self._leave(own)
            raise

    def _leave(self, own: _Waiter) -> None:
        """Wait no longer, lead no longer: another thread leads the others. Twice is fine."""
        with self._lock:
            if self._leader is own and not self._waiting:  # nearly always
                self._leader = None
                return
            if own in self._waiting:
                self._waiting.remove(own)
            if self._leader is not own:
                return
            flushed_to = self._flushed_to()
            woken = [waiter for waiter in self._waiting if waiter.end <= flushed_to]
            for waiter in woken:
                waiter.is_covered = True
            left = [waiter for waiter in self._waiting if waiter.end > flushed_to]
            following = left.pop(0) if left else None
            # At once: if a signal comes now, they wake by themselves when their time is over.
            self._waiting, self._leader = left, following
        if following is not None:
            woken.insert(0, following)
        for waiter in woken:
            waiter.wake()
