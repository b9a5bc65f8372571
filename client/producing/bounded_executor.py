"""A pool of threads whose queue has an end, where Java would use a ThreadPoolExecutor."""

from __future__ import annotations

import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from client.starting import start_among
from storage.sharing.locks import ForkAware, at_fork

logger = logging.getLogger("rmqctl.client")


class _Task(NamedTuple):
    run: Callable[[], object]
    give_up: Callable[[], object]


class BoundedExecutor(ForkAware):
    """Runs tasks in daemon threads, which start when they are needed and end with ``shutdown``.

    At most ``queue_size`` tasks wait. What a task raises is logged, SystemExit too: it ends no
    thread. Safe for threads. A forked child has none of them.
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
        self._workers: list[threading.Thread] = []
        self._left: list[_Task] = []  # of whoever has forked this process
        at_fork(self)

    def submit(
        self, task: Callable[[], object], give_up: Callable[[], object] = lambda: None
    ) -> bool:
        """Have a task run; False if too many wait, or after ``shutdown``: then it never runs.

        Nor does it with RuntimeError: there is no thread, and the system gives none. ``give_up`` is
        called by ``shutdown`` if it was taken, and there is no thread that would ever begin it.
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

    def shutdown(self, timeout_ms: int | None = None) -> bool:
        """Take no more tasks, run those that wait, and wait for them; twice is fine.

        False if some still run after ``timeout_ms`` (None: no limit), or if a task calls this.
        """
        with self._lock:
            self._stopped = True
            self._lock.notify_all()
            workers = list(self._workers)
        if threading.current_thread() in workers:
            return False
        seconds = None if timeout_ms is None else timeout_ms / 1000
        for worker in workers:
            worker.join(seconds)
        if any(worker.is_alive() for worker in workers):
            return False
        self._give_up()
        return True

    def after_fork(self) -> None:
        """Begin anew in the child: what waits is the parent's to run, with threads of its own."""
        self._lock = threading.Condition()
        self._left, self._tasks = list(self._tasks), deque()
        self._workers, self._idle = [], 0

    def _give_up(self) -> None:
        with self._lock:
            tasks = [*self._left, *self._tasks]
            self._left.clear()
            self._tasks.clear()
        for task in tasks:
            _call(task.give_up)

    def _start(self) -> None:
        name = f"{self._name}_{next(self._numbers)}"
        try:
            start_among(self._workers, self._lock, self._run, name)
        except BaseException as error:
            if isinstance(error, RuntimeError) and self._workers:
                return  # the system gives no more: those that there are do it
            self._tasks.pop()  # whoever submits it is told
            raise

    def _run(self) -> None:
        while (task := self._next()) is not None:
            _call(task.run)

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
    except BaseException:  # sys.exit() is for the main thread, and means its own thread elsewhere
        logger.exception("a task failed: task=%r", task)
