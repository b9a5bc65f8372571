"""A pool of threads with a bounded queue, where Java would use a ThreadPoolExecutor."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from client.starting import start_among
from storage.coordination.locks import ForkAware, at_fork
from storage.deadlines import MAX_CLOSE_S, ends_within

logger = logging.getLogger("rmqctl.client")

_LOOK_EVERY_S: Final = 0.05
_GIVE_UP_S: Final = 0.1


class _Task(NamedTuple):
    run: Callable[[], object]
    give_up: Callable[[], object]


class BoundedExecutor(ForkAware):
    """Runs tasks in daemon threads, which start when they are needed and end with ``shutdown``.

    At most ``queue_size`` tasks wait. A task's error is logged, SystemExit too: it ends no thread.
    Safe for threads. A forked child has none of them.
    """

    def __init__(self, name: str, threads: int, queue_size: int) -> None:
        self._name = name
        self._threads = threads
        self._queue_size = queue_size
        self._lock = threading.Condition()  # guards everything below
        self._tasks: deque[_Task] = deque()
        self._numbers = itertools.count(1)
        self._idle = 0
        self._stopped = False
        self._ended = 0
        self._workers: list[threading.Thread] = []
        self._left: list[_Task] = []  # of the process that forked this one
        at_fork(self)

    def submit(
        self, task: Callable[[], object], give_up: Callable[[], object] = lambda: None
    ) -> bool:
        """Run a task; False if too many wait, or after ``shutdown``: then it never runs.

        It never runs with RuntimeError either: there is no thread, and the system gives none.
        ``shutdown`` calls ``give_up`` of an accepted task that no thread will ever begin.
        """
        with self._lock:
            if self._stopped or len(self._tasks) >= self._queue_size:
                return False
            self._tasks.append(_Task(task, give_up))
            if self._idle:
                self._idle -= 1  # for the next submit, before the woken one can run
                self._lock.notify()
            elif len(self._workers) < self._threads:
                self._start()
        return True

    @property
    def waiting(self) -> int:
        """How many tasks wait for a thread."""
        return len(self._tasks)

    def shutdown(
        self, timeout_ms: int | None = None, *, stuck_after_s: float = MAX_CLOSE_S
    ) -> bool:
        """Accept no more tasks, run those that wait, and wait for them; calling twice is fine.

        False if some still run after ``timeout_ms`` (None: no limit), or none has ended for
        ``stuck_after_s``, because a task blocks: tasks that have not begun are given up then. False
        at once if a task calls this.
        """
        with self._lock:
            self._stopped = True
            self._lock.notify_all()
            workers = list(self._workers)
        if threading.current_thread() in workers:
            return False
        limit_s = float("inf") if timeout_ms is None else timeout_ms / 1000
        running = self._wait_for(workers, limit_s, stuck_after_s)
        left = self._take_left()
        if running:
            logger.warning(
                "%s: %d task(s) have not ended and are left to their threads, %d that had not begun"
                " are given up",
                self._name,
                running,
                len(left),
            )

        def give_up() -> None:
            while left:
                _call(left.popleft().give_up)

        if not running:
            give_up()
        while left and not ends_within(_GIVE_UP_S, give_up, f"{self._name}_giving_up"):
            pass  # one of them blocks: another thread goes on with the others
        return not running

    def _wait_for(self, workers: list[threading.Thread], limit_s: float, stuck_s: float) -> int:
        """Wait until the workers have ended; gives how many have not."""
        started = since = time.monotonic()
        ended = self._ended
        while alive := [worker for worker in workers if worker.is_alive()]:
            now = time.monotonic()
            if self._ended != ended:
                ended, since = self._ended, now
            left = min(started + limit_s, since + stuck_s) - now
            if left <= 0:
                break
            alive[0].join(min(left, _LOOK_EVERY_S))
        return len(alive)

    def after_fork(self) -> None:
        """Restart in the child: waiting tasks belong to the parent, with threads of its own."""
        self._lock = threading.Condition()
        self._left, self._tasks = list(self._tasks), deque()
        self._workers, self._idle = [], 0

    def _take_left(self) -> deque[_Task]:
        with self._lock:
            tasks = deque([*self._left, *self._tasks])
            self._left.clear()
            self._tasks.clear()
        return tasks

    def _start(self) -> None:
        name = f"{self._name}_{next(self._numbers)}"
        try:
            start_among(self._workers, self._lock, self._run, name)
        except BaseException as error:
            if isinstance(error, RuntimeError) and self._workers:
                return  # the system gives no more: existing ones do it
            self._tasks.pop()  # ``submit`` raises
            raise

    def _run(self) -> None:
        while (task := self._next()) is not None:
            _call(task.run)
            self._ended += 1  # a lost update does not matter: only a change counts

    def _next(self) -> _Task | None:
        with self._lock:
            while not self._tasks:
                if self._stopped:
                    return None
                self._idle += 1
                self._lock.wait()
            return self._tasks.popleft()


def _call(task: Callable[[], object]) -> None:
    try:
        task()
    except BaseException:  # sys.exit() is for the main thread; elsewhere it ends only its thread
        logger.exception("a task failed: task=%r", task)
