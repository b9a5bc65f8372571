"""The write lock: the right to append, open, close and replace configs, held by one process at a
time.

Java's ``lock`` file carries both locks of a store on one descriptor, because locks of two files
would be released one after the other when a process dies:

* byte 0: Java's exclusive lock, or the shared lock of every rmqctl process that may write;
* byte 1: the write lock.

Two system calls a put are a fifth of a put, and passing the write lock on after each put leaves it
unused until the next process wakes up. So a process that puts repeatedly *keeps* the write lock
between puts (a biased lock):

* while no process asks for it (see write_lock_idle.py), if puts are short; after a request it is
  not kept for a while;
* after the process had to wait for it: for a turn (_TURN), though others ask.

Some milliseconds without a put end both. Those that wait stand in a line (write_lock_line.py), and
each release wakes the next one, which the releasing process lets go first. No process steals a lock
of a living process. Where nothing is compiled waiting is polling, which is not fair: a process that
took the write lock again and again while others asked pauses for them.

Signals (Ctrl-C) may raise at any call of Python code, and must not leave the write lock taken for
ever:

    write_lock.wait_turn()
    with write_lock.thread_mutex:       # in C: nothing comes between taking it and the block
        try:
            if not write_lock.holding:
                write_lock.take()
            ...
        finally:
            try:
                write_lock.give_back()
            except BaseException:       # it came just now
                write_lock.give_back()
                raise
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from storage.deadlines import waitable
from storage.errors import (
    StoreClosedError,
    StoreInUseError,
    StoreNotWritableError,
    WriteLockTimeoutError,
)
from storage.format.names import SNAPSHOT_MANIFEST
from storage.platform.file_locks import HAS_LOCKS_OF_DESCRIPTORS

from .locks import LockFile, LockOwner
from .shared_state import Word
from .write_lock_idle import IdleWatch, change_unmapped
from .write_lock_line import WaitingLine, line_of_unmapped

if TYPE_CHECKING:
    from .shared_state import SharedState
    from .write_lock_progress import WriteLockProgress

JAVA_BYTE: Final = 0
WRITE_LOCK_BYTE: Final = 1
_FIRST_PAUSE: Final = 50e-6
LONGEST_PAUSE: Final = 2e-3
"""Seconds between two attempts of a process that has been waiting for a while, and is not woken,
or wants the lock once."""
_QUICK_GAP: Final = 1e-3
"""The longest time between two puts of a busy process, and at most about twice the time of a put:
otherwise others could use the time in between."""
_MAKING_A_BATCH: Final = 200e-6
"""... but at least this, which is not worth the two system calls of a put."""
_QUICK_FOR_BIAS: Final = 16
_SHORT_PUT: Final = 100e-6
"""The two system calls are little beside a longer put, and checking for idleness costs more."""
_QUICK_FOR_TURN: Final = 2
_TURN: Final = 25e-3
"""Seconds. The first puts of a turn take longer, and a hand-over leaves the lock unused for a
moment: much of 10 ms, and little of this (docs/internals/concurrency.md)."""
_MOST_CONTENDED_TIME: Final = 20e-3
"""A process that had the write lock so long while others asked leaves it free until they have
tried."""
_LEFT_FREE: Final = 1.25 * LONGEST_PAUSE
_IN_LINE: Final = 1.1 * _TURN
"""Seconds between two attempts of a process that waits for a turn: those of its holder are over
then, and the request ends one that is."""
_LONG_WAIT: Final = 1.0
"""Seconds after which a process that waits for a turn goes before others that do."""
_QUIET: Final = 0.2
"""Seconds after a request in which no process keeps the lock without having waited."""
_OPENERS_HURRY: Final = 0.1
_OPENER_PAUSE: Final = 20e-3
"""Seconds between two attempts of a process that opens the store and has waited for a while."""
_SLEEP_SHARE: Final = 0.1
_LONGEST_SLEEP: Final = 0.5
"""Seconds between two attempts of a process that stands in the line: this share of the time that it
has waited. Hundreds that try each 2 ms would have no time left for the one that holds the lock."""
_CHECKS_A_LIMIT: Final = 4
"""How often a waiter checks, within its time limit, whether the holders make progress."""
_MOST_LIMITS: Final = 30
"""A waiter gives up after so many time limits, whatever progress the holders make."""
_LAST_LOOK: Final = 0.5
"""Seconds that a process waits for the write lock at least, when it closes the store."""
_COUNT: Final = (1 << 62) - 1
_ORDERED: Final = os.uname().machine in {"x86_64", "i686"}
"""Whether releasing a thread lock is a full memory barrier, as a system call is everywhere."""


class WriteLock:
    """Both locks of one store through one descriptor, and a mutex for the threads that share it."""

    def __init__(self, root: Path, lock_path: Path, *, timeout_ms: int) -> None:
        """Open the lock file. Raises StoreNotWritableError for a snapshot, and OSError."""
        if (root / SNAPSHOT_MANIFEST).exists():
            raise StoreNotWritableError(
                root, "it is a snapshot; make it a store with 'store restore'"
            )
        self._root = root
        self._timeout_ms = timeout_ms
        self.lock_file = LockFile(lock_path)
        """The descriptor; the write lock closes it."""
        self.thread_mutex = threading.Lock()
        """The mutex of the threads of this process: held whenever the write lock is used."""
        self._pid = os.getpid()
        self._shared: SharedState | None = None
        self._words: Any = None
        self._line: WaitingLine | None = None
        self._watch = IdleWatch(self._release_if_idle)
        self.may_bias = _ORDERED
        """Whether byte 1 may stay locked between puts."""
        self._lone_after = _QUICK_GAP
        # Guarded by thread_mutex:
        self.holding = False
        """Byte 1 stays locked from one use to the next."""
        self.heard = 0
        """The shared state's LOCK_WANTED when it was last read."""
        self._request_once = 0  # the last one to use the lock once
        self._may_wait = False  # other processes may stand in the line
        self._lets_go_first = False  # the process that was woken at the last release ...
        self._served = 0  # ... unless a wait has ended since (LINE_SERVED)
        self._rest_of_turn = 0.0  # of one that a request to use the lock once has interrupted
        self._kept = False
        self.uncontended_after = float("inf")
        """A put from this time on (monotonic, in seconds) may take the write lock, if no process
        asks for it, and give it back. Only this field is updated then: such a put is no run of
        puts."""
        self._closing = False
        self._taken = False  # byte 1 is surely locked
        self._ends = float("inf")
        self._turn_end = 0.0
        self._asked_at = float("-inf")
        self._quick = 0  # how many times in a row the write lock was taken again at once
        self._taken_at = 0.0
        self._released_at = float("-inf")
        self._held_for = 0.0
        self._contended_time = 0.0  # how long it was held while others asked, without ever waiting
        self._seen_end = -1

    @property
    def shared(self) -> SharedState | None:
        """Where holders and waiters communicate. Set while the write lock is held, once the shared
        state is mapped; set back to None before the shared state is closed, and after
        :meth:`shut`."""
        return self._shared

    @shared.setter
    def shared(self, shared: SharedState | None) -> None:
        if shared is not None:
            self.heard = shared.words[Word.LOCK_WANTED]
            self._may_wait = True
            shared.words[Word.HOLDER_PID] = self._pid
        self._shared = shared
        self._words = None if shared is None else shared.words
        self._line = None if shared is None else WaitingLine(shared.map, shared.words)

    # -- byte 1 -------------------------------------------------------------------------------

    def wait_turn(self, timeout_ms: int | None = None) -> None:
        """Wait while other threads of this process use the write lock; ``thread_mutex`` is free
        then, or nearly.

        Raises WriteLockTimeoutError after ``timeout_ms`` (default: the store's).
        """
        if self.thread_mutex.locked():
            limit = self._timeout_ms if timeout_ms is None else timeout_ms
            if not self.thread_mutex.acquire(timeout=waitable(limit / 1000)):
                raise WriteLockTimeoutError(self._root, limit, "another thread of this process")
            self.thread_mutex.release()

    def take(self, timeout_ms: int | None = None) -> None:
        """Lock byte 1 if it is not :attr:`holding`; needs ``thread_mutex``.

        Raises StoreClosedError, and WriteLockTimeoutError after ``timeout_ms`` (default: the
        store's) in which the write lock made no progress: one process held it and stored nothing.
        """
        if self._closing:
            raise StoreClosedError(f"{self._root} has been closed")
        if not self.holding:
            self._take(self._timeout_ms if timeout_ms is None else timeout_ms)

    def give_back(self) -> None:
        """Release the write lock, unless it is kept and no process asks; also a full memory barrier
        if it is released.

        Needs ``thread_mutex``; fine if :meth:`take` failed, and twice.
        """
        if not self._taken:
            self._unlock()  # after an interrupt it is unknown whether it is locked
        elif not self.holding or self._words[Word.LOCK_WANTED] != self.heard:
            self._release_or_keep()

    def keep(self) -> None:
        """Take the write lock until :meth:`close`: from now on only threads of this process use it.

        Raises WriteLockTimeoutError.
        """
        with self.held():
            self._kept = self.holding = True

    def never_bias(self) -> None:
        """Make each put take and release the lock: while a store syncs the put, others use the
        lock."""
        self.may_bias = False
        self._lone_after = 0.0

    def hurry(self, seconds: float) -> None:
        """Make all waits for the write lock, begun or not, end soon if its holder makes no
        progress: ``seconds`` from now, and not before they have checked for half a second. It is
        being closed, so it is not kept any longer."""
        seconds = max(seconds, _LAST_LOOK)
        self._ends = time.monotonic() + seconds
        self._timeout_ms = min(self._timeout_ms, round(seconds * 1000))
        if self.thread_mutex.acquire(False):  # no put keeps it from others during what comes next
            try:
                if self.biased:
                    self._release(time.monotonic())
            finally:
                self.thread_mutex.release()

    def shut(self) -> None:
        """Make all later uses fail with StoreClosedError. The thread that uses it now, the last
        one, gives the write lock back as usual."""
        self._closing = True
        self.may_bias = self._kept = self.holding = False
        self.uncontended_after = float("inf")
        self._watch.stop()

    @property
    def biased(self) -> bool:
        """Whether byte 1 stays locked between two puts now, apart from :meth:`keep`."""
        return self.holding and not self._kept

    @contextmanager
    def held(self, timeout_ms: int | None = None) -> Iterator[None]:
        """Hold the write lock for a block. Raises WriteLockTimeoutError and StoreClosedError."""
        self.wait_turn(timeout_ms)
        with self.thread_mutex:
            try:
                self.take(timeout_ms)
                yield
            finally:
                try:
                    self.give_back()
                except BaseException:
                    self.give_back()
                    raise

    def give_up(self) -> None:
        """Give the lock back after a put that kept it, because another process asks for it.

        A timeout or a shut lock raises nothing: the put is stored. The thread that uses the lock
        then, or that has shut it, gives it back.
        """
        with suppress(WriteLockTimeoutError, StoreClosedError), self.held():
            pass

    def _take(self, limit_ms: int) -> None:
        start = time.monotonic()
        gap = start - self._released_at
        if gap > _QUICK_GAP or gap > 2 * self._held_for + _MAKING_A_BATCH:
            self._quick = 0
        else:
            self._quick += 1
        if gap > _LEFT_FREE:
            self._rest_of_turn = 0.0
        lets_go_first = self._lets_go_first and self._has_not_come(gap)
        self._lets_go_first = False
        if self._contended_time > _MOST_CONTENDED_TIME:
            self._contended_time = 0.0
            if not lets_go_first:
                time.sleep(max(0.0, _LEFT_FREE - gap))
        if not lets_go_first and self.lock_file.try_lock(WRITE_LOCK_BYTE):
            self._taken = True
            self._taken_at = time.monotonic()
        else:
            self._wait(start, limit_ms, lets_go_first=lets_go_first)
            self._taken = True
            self._taken_at = self._asked_at = time.monotonic()
            self._contended_time = 0.0
            self._note_requests()
            turn = self._rest_of_turn or (_TURN if self._quick >= _QUICK_FOR_TURN else 0.0)
            if turn and self.may_bias and self._words is not None:
                self._bias(self._taken_at + turn)
        self._rest_of_turn = 0.0
        if self._words is not None:
            self._words[Word.HOLDER_PID] = self._pid

    def _has_not_come(self, gap: float) -> bool:
        """Whether the process that was woken at the last release, ``gap`` seconds ago, has not
        taken the lock so far, and may be about to."""
        words = self._words
        return gap < _LEFT_FREE and words is not None and words[Word.LINE_SERVED] == self._served

    def _wait(self, start: float, limit_ms: int, *, lets_go_first: bool) -> None:
        """Wait for the write lock; first for the process that was woken when this one released it,
        if it ``lets_go_first``.

        The limit counts from the last sign of progress of other holders.
        """
        line = self._line or line_of_unmapped(self._root)
        sleeps = line is not None and line.sleeps
        once = self._quick < _QUICK_FOR_TURN
        limit = limit_ms / 1000
        deadline, last = start + limit, start + _MOST_LIMITS * limit
        next_check = start + limit / _CHECKS_A_LIMIT
        pause = _LEFT_FREE if lets_go_first else LONGEST_PAUSE if once else _IN_LINE
        if not sleeps:
            pause = _FIRST_PAUSE
        progress: WriteLockProgress | None = None
        hurries = False
        while True:
            word = self._word_to_sleep_on(once=once)
            seen = line.seen(word) if line is not None and sleeps else None
            self._ask(line, once=once)
            if seen is None or line is None:
                time.sleep(pause)
            elif not lets_go_first and self.lock_file.try_lock(WRITE_LOCK_BYTE):
                return
            else:
                line.sleep(word, seen, pause)
                lets_go_first = False
            if self.lock_file.try_lock(WRITE_LOCK_BYTE):
                return
            now = time.monotonic()
            if self._ends < deadline and not hurries:
                hurries = True
                deadline = min(deadline, max(self._ends, now + _LAST_LOOK))
                limit = deadline - now
                next_check = now + limit / _CHECKS_A_LIMIT
            if now >= next_check:
                if progress is None:
                    from .write_lock_progress import WriteLockProgress  # only a long wait needs it

                    progress = WriteLockProgress(self._root, self.lock_file.path, WRITE_LOCK_BYTE)
                made = progress.is_made()
                checked = time.monotonic()
                # The time of the check itself does not count: it grows with the processes.
                deadline = min(checked + limit if made else deadline + checked - now, last)
                next_check = checked + limit / _CHECKS_A_LIMIT
            if now >= deadline:
                waited_ms = round((now - start) * 1000)
                raise WriteLockTimeoutError(self._root, waited_ms, self._describe_holder())
            # A process that opens a store may come a little later. A hundred of them that try each
            # 2 ms would take the processor from the one that holds the write lock.
            opens = self._words is None and now - start > _OPENERS_HURRY
            if line is None and opens:  # the store may be new, and have its shared state only now
                line = line_of_unmapped(self._root)
                sleeps = line is not None and line.sleeps
            longest = _OPENER_PAUSE * (0.5 + now % 1) if opens else LONGEST_PAUSE
            if sleeps:  # it is woken in its turn, unless a process that should do so has died
                longest = max(longest, min(_LONGEST_SLEEP, (now - start) * _SLEEP_SHARE))
            once = once or now - start > (_LONG_WAIT if sleeps else _TURN)
            if sleeps:
                pause = min(longest if once else _IN_LINE, max(0.0, deadline - now))
            else:
                pause = min(pause * 1.5, longest)

    def _word_to_sleep_on(self, *, once: bool) -> int:
        if once:
            return Word.LINE_ONCE
        return Word.LINE_INTERRUPTED if self._rest_of_turn > 0 else Word.LINE_TURNS

    def _ask(self, line: WaitingLine | None, *, once: bool) -> None:
        if line is not None:
            number = line.request(once=once)
            if once:
                self._request_once = number
            return
        if once:
            change_unmapped(self._root, Word.LOCK_WANTED_ONCE)
        change_unmapped(self._root, Word.LOCK_WANTED)

    def _note_requests(self) -> None:
        """After a wait: the requests for turns have been heard, since each release wakes the next
        process of the line. One to use the lock once is answered after the first put."""
        words = self._words
        if words is None:
            return
        self._may_wait = True
        words[Word.LINE_SERVED] = (words[Word.LINE_SERVED] + 1) & _COUNT
        wanted, once = words[Word.LOCK_WANTED], words[Word.LOCK_WANTED_ONCE]
        if once == self._request_once:
            words[Word.LOCK_HEARD_ONCE] = once
        if once == words[Word.LOCK_HEARD_ONCE]:
            self.heard = wanted

    def _release_or_keep(self) -> None:
        now = time.monotonic()
        words = self._words
        is_wanted_once = False
        if words is not None and words[Word.LOCK_WANTED] != self.heard:
            self.heard = words[Word.LOCK_WANTED]
            once = words[Word.LOCK_WANTED_ONCE]
            is_wanted_once = once != words[Word.LOCK_HEARD_ONCE]
            words[Word.LOCK_HEARD_ONCE] = once
            self._contended_time += now - max(self._taken_at, self._asked_at)
            self._asked_at = now
            self._may_wait = True
        if self._kept or (self.holding and now < self._turn_end and not is_wanted_once):
            return
        if self.holding:
            self._rest_of_turn = max(0.0, self._turn_end - now)
            self._release(now, is_wanted_once=is_wanted_once)
            return
        self._held_for = now - self._taken_at
        if (
            self._quick >= _QUICK_FOR_BIAS
            and self._held_for < _SHORT_PUT
            and now - self._asked_at >= _QUIET
            and self.may_bias
            and words is not None
        ):
            self._bias(now)
        else:
            self._release(now, is_wanted_once=is_wanted_once)

    def _bias(self, turn_end: float) -> None:
        if self._watch.begin():
            self._turn_end = turn_end
            self._seen_end = -1
            self.holding = True

    def _release(self, now: float, *, is_wanted_once: bool = False) -> None:
        line, words = self._line, self._words
        if words is not None:
            words[Word.HOLDER_PID] = 0
            self._served = words[Word.LINE_SERVED]
        self.holding = self._taken = False
        self._released_at = now
        pauses = self._closing or self._contended_time > _MOST_CONTENDED_TIME
        never = pauses or not HAS_LOCKS_OF_DESCRIPTORS  # else compiled code takes the lock
        self.uncontended_after = float("inf") if never else now + self._lone_after
        self._unlock()
        if self._may_wait and line is not None:
            self._may_wait = line.wake_next(is_wanted_once=is_wanted_once)
            self._lets_go_first = self._may_wait and self.may_bias
            if self._may_wait:
                self._contended_time = 0.0  # it is their turn now

    def _unlock(self) -> None:
        if self.lock_file.fd >= 0:
            self.lock_file.unlock(WRITE_LOCK_BYTE)

    def _release_if_idle(self) -> bool:
        """Release the lock if nothing was put since the last check; whether it is still kept."""
        if not self.thread_mutex.acquire(False):
            return True  # it is being used
        try:
            return self._release_when_idle()
        finally:
            self.thread_mutex.release()

    def _release_when_idle(self) -> bool:
        if not self.holding or self._kept:
            return False
        end = self._words[Word.LOG_END]
        if end != self._seen_end:
            self._seen_end = end
            return True
        self._quick = 0
        self._release(time.monotonic())
        return False

    def _describe_holder(self) -> str:
        from .lock_owners import describe_holder

        # The shared state's word is stale when its writer died and another process is opening the
        # store.
        known = 0 if self._words is None else int(self._words[Word.HOLDER_PID])
        return describe_holder(self.lock_file.path, WRITE_LOCK_BYTE, known)

    # -- byte 0 -------------------------------------------------------------------------------

    def share(self) -> None:
        """Take the shared lock that keeps Java out. Raises StoreInUseError if Java is in, and
        StoreNotWritableError if the store was replaced (restored) during the wait."""
        if not self._is_in_place():
            raise StoreNotWritableError(self._root, "it was replaced just now; try again")
        while not self.lock_file.try_lock(JAVA_BYTE, exclusive=False):
            holder: LockOwner | None = self.lock_file.holder(JAVA_BYTE)
            if holder is not None and holder.pid is not None:
                who = f"a Java broker (pid {holder.pid})" if holder.pid else "a Java broker"
                raise StoreInUseError(self._root, who)
            # An OFD lock (a closer's, about to go) or nothing any more: try again.

    def _is_in_place(self) -> bool:
        """Whether the locked file is the store's lock file, and not that of a folder moved
        aside."""
        try:
            return os.path.samestat(os.fstat(self.lock_file.fd), self.lock_file.path.stat())
        except FileNotFoundError:
            return False

    def try_alone(self) -> bool:
        """Whether no other process shares byte 0; if so the lock is exclusive now."""
        return self.lock_file.try_lock(JAVA_BYTE, exclusive=True)

    def share_again(self) -> None:
        """Turn the exclusive lock back into the shared one; cannot fail."""
        self.lock_file.try_lock(JAVA_BYTE, exclusive=False)

    def unshare(self) -> None:
        """Release byte 0."""
        self.lock_file.unlock(JAVA_BYTE)

    def close(self) -> None:
        """Close the descriptor: all locks go, in one step.

        Waits for the thread that uses the lock, as long as for the write lock: it may be about to
        unlock, and the descriptor's number may belong to another file by then.
        """
        self.shut()
        has_turn = False
        try:
            has_turn = self.thread_mutex.acquire(timeout=waitable(self._timeout_ms / 1000))
        finally:
            self.lock_file.close()
            if has_turn:
                self.thread_mutex.release()
