"""Timed services of a store: one process at a time runs them, another takes over when it dies.

The elected process holds a lock on byte 0 of ``rmqctl/services.lock`` that the kernel releases. A
long-lived writer tries to get it with each of its regular syncs. RocketMQ runs the same work in
threads of the broker (cleaning). The broker's own services: leadership.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from storage.errors import RocketMQError
from storage.format.names import OURS

from .leadership import SERVICES_LOCK, STORE_SERVICES
from .locks import LockFile

Clock = Callable[[], float]


class _Service:
    __slots__ = ("due", "interval", "run")

    def __init__(self, run: Callable[[], object], interval: float, due: float) -> None:
        self.run = run
        self.interval = interval
        self.due = due


class TimedServices:
    """A set of services and the lock that elects their process. Driven by one thread's ticks."""

    def __init__(self, root: Path, *, monotonic: Clock = time.monotonic) -> None:
        self._path = root / OURS / SERVICES_LOCK
        self._monotonic = monotonic
        self._services: list[_Service] = []
        self._lock: LockFile | None = None
        self._elected = False
        self.failures: list[tuple[float, RocketMQError | OSError]] = []
        """What the last failing rounds raised, newest last, at most 10: for status displays."""

    def add(self, run: Callable[[], object], *, interval_ms: int, first_ms: int) -> None:
        """Call ``run`` every ``interval_ms`` while this process is the elected one."""
        due = self._monotonic() + first_ms / 1000
        self._services.append(_Service(run, interval_ms / 1000, due))

    @property
    def elected(self) -> bool:
        """Whether this process runs the services now."""
        return self._elected

    def tick(self) -> None:
        """Try to be elected; run what is due. A failing service does not stop the others."""
        if not self._services:
            return
        if self._lock is None:
            self._lock = LockFile(self._path)
        if not self._elected:
            self._elected = self._lock.try_lock(STORE_SERVICES)
        if not self._elected:
            return
        now = self._monotonic()
        for service in self._services:
            if now >= service.due:
                service.due = now + service.interval
                try:
                    service.run()
                except (RocketMQError, OSError) as error:
                    self.failures = [*self.failures[-9:], (now, error)]

    def close(self) -> None:
        """Let another process take over."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        self._elected = False
