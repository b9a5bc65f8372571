"""The one thread that divides queues for all consumers of an instance (RebalanceService of 4.9)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from client.starting import start_among
from storage.deadlines import waitable

logger = logging.getLogger("rmqctl.client.rebalance")
_SHUTDOWN_WAIT_S: Final = 0.5


class RebalanceService:
    """Runs ``do_rebalance`` each ``interval_ms``, and at once after ``wakeup``.

    Wake-ups while a round runs lead to one more round, however many they were.
    """

    def __init__(self, name: str, interval_ms: int, do_rebalance: Callable[[], None]) -> None:
        self._name = name
        self.interval_ms: Final = interval_ms
        self._do_rebalance = do_rebalance
        self._wanted = threading.Event()
        self._starting = threading.Lock()
        self._threads: list[threading.Thread] = []  # one at most
        self._stopped = False

    def wakeup(self) -> None:
        """Start a round soon; does not wait for it. May be called from anywhere."""
        self._wanted.set()

    @property
    def wanted(self) -> bool:
        """Whether a round is requested that has not begun."""
        return self._wanted.is_set()

    def run_once(self) -> None:
        """Do one round; the thread does the same. An error is logged, SystemExit too."""
        self._wanted.clear()
        try:
            self._do_rebalance()
        except (Exception, SystemExit):
            logger.exception("a rebalance failed")

    def start(self) -> None:
        """Start the thread. Twice is fine, and after RuntimeError: the system gave no thread."""
        with self._starting:
            if not self._threads:
                start_among(self._threads, self._starting, self._run, self._name)

    def shutdown(self) -> None:
        """Do no more rounds; waits a moment for one that runs. Twice is fine."""
        self._stopped = True
        self._wanted.set()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(_SHUTDOWN_WAIT_S)

    def _run(self) -> None:
        while True:
            self._wanted.wait(waitable(self.interval_ms / 1000))
            if self._stopped:
                return
            self.run_once()
