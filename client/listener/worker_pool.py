"""Threads that run listeners (the ThreadPoolExecutor of RocketMQ's consume services).

A fixed number of threads and an unbounded queue of work. The difference from an executor is the
cost of small work: a *job* is many calls of a listener, and each idle thread helps with the oldest
job until no part of it is left to begin. So a pull of 32 messages is one entry in the queue and one
wake-up, and still each message has a thread of its own if listeners block.

Waking: a caller that adds a job wakes one idle thread, or starts one. A thread that was woken and
finds work for more than itself wakes the next before it begins. So threads start as fast as
listeners block, and none starts if one thread is quick enough to do everything.

Under a flow of small jobs a thread would fall asleep and be woken for each of them. So one that
slept less than 2 ms ago lingers: it checks for new jobs half a millisecond later; only one thread
does so at a time.

A thread that pulls job after job should not be disturbed either: an awake thread that waits for the
interpreter lock costs as much as a pull. So a caller that announces more jobs (``submit``) leaves
jobs for the lingering thread, until there are many or it calls ``hand_over``. With 16 jobs, or 512
messages, it stands back until a thread has run out of work: the two take turns. If that takes 2 ms,
listeners are not that quick: it wakes the next thread, goes on, and does not stand back until a
thread runs out of work.

Waking takes longer than most jobs. So a caller with a single job, which would wait for its end
anyway, may do it itself if all threads sleep and the last job was quick. It *borrows* one of them,
with its name, which sleeps on until then: there are never more listeners at a time than threads.

An idle thread registers in ``_idle``, then checks for work once more, then sleeps. A caller adds
work before it reads ``_idle``: one of the two sees the other. ``_lingering`` works the same way.
Operations on a deque are atomic in CPython, so no lock is taken for a message.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from client.starting import start_among

logger = logging.getLogger("rmqctl.client.consume")

_BUSY_S: Final = 0.002
_LINGER_S: Final = 0.0005
_LINGER_IN_A_FLOW_S: Final = 0.002
_CROWDED: Final = 16  # jobs
_CROWDED_MESSAGES: Final = 512
_GIVE_WAY_S: Final = 0.00003
"""How long a caller that has nothing more to add leaves the interpreter to the thread that it woke.
It would go on for longer than a wake-up takes, and the message would wait for that."""
_STAND_BACK_S: Final = 0.002
_QUICK_S: Final = 0.001


class Job(Protocol):
    """Work for several threads at once."""

    @property
    def size(self) -> int:
        """Its number of messages."""
        ...

    def work(self) -> None:
        """Do parts of the job until none is left to begin. Called by many threads.

        After an error it is called again, for the parts that are left.
        """
        ...

    def has_more(self) -> bool:
        """Whether another thread would find something to do, besides the calling one."""
        ...


class WorkerPool:
    """A fixed number of daemon threads, started when they are needed. Safe for threads."""

    def __init__(
        self, name: str, core_pool_size: int, rest: Callable[[], object] = lambda: None
    ) -> None:
        """Run jobs in ``core_pool_size`` threads; each calls ``rest`` when it runs out of work."""
        self._name = name
        self._rest = rest
        self._jobs: deque[Job] = deque()
        self._idle: deque[threading.Lock] = deque()  # a held lock each; released to wake it
        self._lingering: deque[threading.Lock] = deque()  # of the lingering thread, at most one
        self._lingers = threading.Lock()  # held by the lingering thread
        self._more_follows = False
        self._standing_back: deque[threading.Lock] = deque()  # of callers that stand back
        self._quick = True  # a thread has run out of work since standing back last failed
        self._watched = False  # the waker of a thread wakes the next one if needed
        self._was_quick = False  # the last job that ended
        self._sleep_on: dict[threading.Lock, threading.Thread] = {}  # each thread has one
        self._borrowed: dict[threading.Thread, threading.Thread] = {}  # by the borrower
        self._lock = threading.Lock()  # guards the two below
        self._threads: list[threading.Thread] = []
        self._core_pool_size = core_pool_size
        self._closed = False  # takes no jobs
        self.stopped = False
        """Whether jobs have to end where they are."""

    @property
    def core_pool_size(self) -> int:
        """How many threads there may be."""
        return self._core_pool_size

    @property
    def threads(self) -> int:
        """How many threads there are."""
        return len(self._threads)

    @property
    def waiting(self) -> bool:
        """Whether there are jobs in the queue, those in work among them."""
        return bool(self._jobs)

    def update_core_pool_size(self, size: int) -> None:
        """Allow more threads, or fewer: surplus ones end when they have nothing to do."""
        if size < 1:
            raise ValueError(f"a pool needs a thread or more, not {size}")
        with self._lock:
            self._core_pool_size = size
        self._wake_one()

    def submit(self, job: Job, *, more_follows: bool = False) -> bool:
        """Add a job; False after ``shutdown``.

        ``more_follows``: the caller submits the next job, or calls ``hand_over``. Raises
        RuntimeError if there is no thread and the system gives none: the job is done as soon as
        there is one, which the next ``submit`` or ``hand_over`` tries.
        """
        if self._closed:
            return False
        self._jobs.append(job)
        crowded = self._is_crowded() if len(self._jobs) > 1 else job.size >= _CROWDED_MESSAGES
        left_lying = self._more_follows and not more_follows
        self._more_follows = more_follows
        stands_back = crowded and more_follows and self._quick
        if crowded or left_lying or not self._lingering:
            self._watched = stands_back
            self._wake_one()
            if not more_follows:
                time.sleep(_GIVE_WAY_S)
        if stands_back:
            self._stand_back()
        return True

    def lend(self, job: Job) -> BorrowedWorker | None:
        """Let the caller do a job that is for one thread, or leave it; None: submit it.

        The caller should not go on before the job is done, which is likely within a millisecond: no
        thread works on another job, and the last one was done as quickly.
        """
        if not self._was_quick or len(self._idle) < len(self._threads) or self._jobs:
            return None
        if self._more_follows or self._closed or job.has_more():
            return None
        try:
            parked = self._idle.pop()
        except IndexError:
            return None
        self._jobs.append(job)
        return BorrowedWorker(self, job, parked)

    def work_for(self, job: Job, parked: threading.Lock) -> None:
        """Do a borrowed job, in place of the thread that sleeps on ``parked``."""
        guest, borrowed = threading.current_thread(), self._sleep_on[parked]
        self._borrowed[guest] = borrowed
        name, guest.name = guest.name, borrowed.name
        try:
            self._do(job)
            self._come_to_rest()
        finally:
            guest.name = name
            del self._borrowed[guest]
            self._idle.append(parked)
            if self._jobs:
                self._wake_one()
            if self._closed:
                self._wake_all()

    def _is_crowded(self) -> bool:
        try:
            jobs = tuple(self._jobs)
        except RuntimeError:  # threads take them out at this moment
            return True
        return len(jobs) >= _CROWDED or sum(job.size for job in jobs) >= _CROWDED_MESSAGES

    def _stand_back(self) -> None:
        """Wait until a thread has run out of work: pulling would run ahead, and pause for 50 ms."""
        rested = threading.Lock()
        rested.acquire()
        self._standing_back.append(rested)
        if not rested.acquire(timeout=_STAND_BACK_S):
            self._quick = self._watched = False
            if self._jobs:
                self._wake_one()

    def hand_over(self) -> None:
        """Report that no more follows: waiting jobs are begun now."""
        self._more_follows = False
        if self._jobs and (self._lingering or not self._threads):  # no threads: starting one failed
            self._wake_one()

    def shutdown(self, await_ms: int) -> bool:
        """Accept no more jobs; after ``await_ms`` discard what is left. False if something still
        runs.

        May be called from a job, whose thread is not joined then.
        """
        self._closed = True
        deadline = time.monotonic() + await_ms / 1000
        if await_ms <= 0:
            self._stop()
        self._wake_all()
        with self._lock:
            threads = list(self._threads)
        own = threading.current_thread()
        for thread in threads:
            if thread is not own and thread is not self._borrowed.get(own):
                thread.join(max(0.0, deadline - time.monotonic()))
        self._stop()
        return not any(thread.is_alive() for thread in threads)

    def _stop(self) -> None:
        self.stopped = True
        self._jobs.clear()

    def _wake_all(self) -> None:
        while self._wake(self._lingering) or self._wake(self._idle):
            pass

    def _wake_one(self) -> None:
        if (self._lingering and self._wake(self._lingering)) or self._wake(self._idle):
            return
        if len(self._threads) < self._core_pool_size:
            self._start_one()

    def _wake(self, sleepers: deque[threading.Lock]) -> bool:
        if not sleepers:
            return False
        try:
            sleepers.pop().release()
        except IndexError:  # another thread has woken it
            return False
        return True

    def _start_one(self) -> None:
        with self._lock:
            if self.stopped or len(self._threads) >= self._core_pool_size:
                return
            name = f"{self._name}_{len(self._threads) + 1}"
            try:
                start_among(self._threads, self._lock, self._run, name)
            except RuntimeError:  # the system gives no more
                if not self._threads:
                    raise

    def _run(self) -> None:
        parked = threading.Lock()
        parked.acquire()
        self._sleep_on[parked] = threading.current_thread()
        try:
            self._work_and_sleep(parked)
        finally:
            del self._sleep_on[parked]

    def _work_and_sleep(self, parked: threading.Lock) -> None:
        woken = True
        woken_at = 0.0
        while not self.stopped:
            job = self._oldest()
            if job is None:
                self._come_to_rest()
                busy = time.monotonic() - woken_at <= _BUSY_S
                if not (busy and self._linger(parked)) and not self._park(parked):
                    return
                woken_at = time.monotonic()
                woken = True
                continue
            if woken:
                woken = False
                if self._watched:
                    self._watched = False
                elif len(self._jobs) > 1 or job.has_more():
                    self._wake_one()
            self._do(job)

    def _do(self, job: Job) -> None:
        began = time.monotonic()
        failures = 0
        while True:
            try:
                job.work()
                break
            except (Exception, SystemExit):  # a hook's sys.exit() ends no thread
                logger.exception("a job failed: %r", job)
                failures += 1
                if failures > job.size:
                    break  # it fails before any part begins
        self._was_quick = time.monotonic() - began < _QUICK_S
        self._finish(job)

    def _oldest(self) -> Job | None:
        try:
            return self._jobs[0]
        except IndexError:
            return None

    def _finish(self, job: Job) -> None:
        try:
            self._jobs.remove(job)
        except ValueError:
            return  # another thread has found nothing to begin either

    def _come_to_rest(self) -> None:
        try:
            self._rest()
        except (Exception, SystemExit):
            logger.exception("a thread could not come to rest: %s", self._name)
        self._quick = True
        while self._wake(self._standing_back):
            pass

    def _linger(self, parked: threading.Lock) -> bool:
        """Wait for jobs for a moment; callers that add jobs rely on it. False if none came."""
        if not self._lingers.acquire(blocking=False):
            return False
        timeout_s = _LINGER_IN_A_FLOW_S if self._more_follows else _LINGER_S
        self._sleep(parked, self._lingering, timeout_s)
        self._lingers.release()
        return bool(self._jobs)

    def _park(self, parked: threading.Lock) -> bool:
        """Sleep until there is work; False if the thread must end."""
        with self._lock:
            if len(self._threads) > self._core_pool_size:
                self._threads.remove(threading.current_thread())
                return False
        self._sleep(parked, self._idle, -1)
        return bool(self._jobs) or not self._closed

    def _sleep(
        self, parked: threading.Lock, sleepers: deque[threading.Lock], timeout_s: float
    ) -> None:
        """Sleep until woken, in ``sleepers``; -1: without a limit."""
        sleepers.append(parked)
        if self._closed or self._jobs or not parked.acquire(timeout=timeout_s):
            try:
                sleepers.remove(parked)
            except ValueError:
                parked.acquire()  # another thread is waking this one now


class BorrowedWorker(NamedTuple):
    """A job to do in place of a sleeping thread, or to leave to it. One of the two methods is
    called, once. Calling neither is an error: the thread is lost then."""

    pool: WorkerPool
    job: Job
    parked: threading.Lock

    def work(self) -> None:
        """Do the job in this thread."""
        self.pool.work_for(self.job, self.parked)

    def leave(self) -> None:
        """Wake the thread to do the job."""
        self.parked.release()
