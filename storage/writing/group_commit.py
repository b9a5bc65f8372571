"""One sync for all threads that wait for one (CommitLog.GroupCommitService).

Whoever comes while nobody syncs does it himself. Who comes meanwhile waits, and when that sync is
over, those that it covers go on at once, all of them; one of the others does the next. So nobody
whom a sync has covered waits for another one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class _Waiter:
    __slots__ = ("end", "leads", "woken")

    def __init__(self, end: int) -> None:
        self.end = end
        self.leads = False
        self.woken = threading.Lock()
        self.woken.acquire()


class GroupCommit:
    """Divides syncs among the threads of a process; ``flushed_to`` says how far they reach.

    ``sync`` makes that at least what had been written when it was called, or raises.
    """

    def __init__(self, flushed_to: Callable[[], int], sync: Callable[[], object]) -> None:
        self._flushed_to = flushed_to
        self._sync = sync
        self._lock = threading.Lock()  # guards what follows; held for no time
        self._is_led = False
        self._waiting: list[_Waiter] = []

    def commit(self, end: int, timeout: float) -> bool:
        """Return when the device has the log up to ``end``; False after ``timeout`` seconds.

        The thread that syncs returns when the device does. What ``sync`` raises is raised here, in
        each thread that had to do it.
        """
        with self._lock:
            if self._flushed_to() >= end:
                return True
            waiter = _Waiter(end) if self._is_led else None
            if waiter is None:
                self._is_led = True
            else:
                self._waiting.append(waiter)
        if waiter is not None:
            try:
                leads = self._is_to_lead(waiter, timeout)
            except BaseException:  # a signal's: somebody else goes on for the others
                self._give_up(waiter)
                raise
            if not leads:
                return self._flushed_to() >= end
        try:
            self._sync()
        finally:
            self._hand_on()
        return True

    def _is_to_lead(self, waiter: _Waiter, timeout: float) -> bool:
        """Wait; False if a sync of somebody else covered it, or none did in time."""
        if not waiter.woken.acquire(timeout=timeout):
            self._leave(waiter)
        return waiter.leads

    def _leave(self, waiter: _Waiter) -> None:
        with self._lock:
            if waiter in self._waiting:
                self._waiting.remove(waiter)

    def _give_up(self, waiter: _Waiter) -> None:
        self._leave(waiter)
        if waiter.leads:
            self._hand_on()

    def _hand_on(self) -> None:
        with self._lock:
            if not self._waiting:  # nearly always
                self._is_led = False
                return
            flushed_to = self._flushed_to()
            covered = [waiter for waiter in self._waiting if waiter.end <= flushed_to]
            self._waiting = [waiter for waiter in self._waiting if waiter.end > flushed_to]
            self._is_led = bool(self._waiting)
            if self._waiting:
                following = self._waiting.pop(0)
                following.leads = True
                covered.insert(0, following)
        for waiter in covered:
            waiter.woken.release()
