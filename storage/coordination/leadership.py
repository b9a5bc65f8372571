"""Electing the one process that does a kind of work, and its successor when it dies.

Each kind of work has a byte of ``<store>/rmqctl/services.lock``. A candidate waits in the kernel
for the lock of that byte, so the next one takes over at once and no process polls.

    byte 0    the store's own services (TimedServices), tried at each sync of a writer
    byte 1    the broker's delivery of delayed messages
    byte 2    the broker's questions about half messages
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from storage.errors import RocketMQError, StoreBrokenError, StoreClosedError
from storage.format.names import OURS

from .locks import LockFile

SERVICES_LOCK: Final = "services.lock"
STORE_SERVICES: Final = 0
BROKER_SERVICES: Final = 1
TRANSACTION_CHECKS: Final = 2
Clock = Callable[[], float]


class Leadership:
    """One thread's claim to one kind of work."""

    def __init__(self, root: Path, byte: int) -> None:
        self._byte = byte
        self._lock = threading.Lock()  # guards the two flags below
        self._file = LockFile(root / OURS / SERVICES_LOCK)
        self._elected = False
        self._closed = False

    @property
    def elected(self) -> bool:
        """Whether this process is the one now."""
        return self._elected

    def wait(self) -> bool:
        """Wait until this process is the one; False if :meth:`close` came first.

        Cannot be interrupted: after ``close`` it may stay in the kernel until the other process
        releases the lock, and then releases it at once.
        """
        try:
            self._file.lock(self._byte)
        except (OSError, ValueError):  # closed before it began
            return False
        with self._lock:
            self._elected = not self._closed
            return self._elected

    def close(self) -> None:
        """Let another process take over. Twice is fine."""
        with self._lock:
            self._closed = True
            self._elected = False
            # A wait that is still in the kernel keeps the file, and drops it when it comes back.
            self._file.close()


class _Service:
    __slots__ = ("due", "failure", "interval", "run")

    def __init__(self, run: Callable[[], object], interval: float, due: float) -> None:
        self.run = run
        self.interval = interval
        self.due = due
        self.failure = ""
        """What the last round raised, which is logged once; empty after one that went well."""


class TimedServices:
    """Timed services of a store: one process at a time runs them. Driven by one thread's ticks.

    A long-lived writer tries to be elected with each of its regular syncs. RocketMQ runs the same
    work in threads of the broker (cleaning).

    ``check`` raises StoreBrokenError if the store refuses writes. Then, or if a service raises that
    or StoreClosedError, another process takes over, and this one does not come back.
    """

    def __init__(
        self,
        root: Path,
        *,
        monotonic: Clock = time.monotonic,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._path = root / OURS / SERVICES_LOCK
        self._monotonic = monotonic
        self._check = check
        self._ended = False
        self._services: list[_Service] = []
        self._lock: LockFile | None = None
        self._elected = False
        self.failures: list[tuple[float, Exception]] = []
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
        """Try to be elected; run what is due. A failing service stops neither the others nor the
        thread: what it raises is logged, and it runs again when it is due."""
        if not self._services or self._ended:
            return
        try:
            self._check()
        except (StoreBrokenError, StoreClosedError):
            self.end()
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
                    service.failure = ""
                except Exception as error:  # noqa: BLE001 - the thread also syncs the log
                    self.failures = [*self.failures[-9:], (now, error)]
                    _log_once(service, error)
                    if isinstance(error, (StoreBrokenError, StoreClosedError)):
                        self.end()
                        return

    def end(self) -> None:
        """Let another process take over, for good."""
        self._ended = True
        self.close()

    def close(self) -> None:
        """Let another process take over."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        self._elected = False


def _log_once(service: _Service, error: Exception) -> None:
    """Log what a service raised, unless its round before raised the same."""
    import logging

    failure = f"{type(error).__name__}: {error}"
    if failure != service.failure:
        service.failure = failure
        expected = isinstance(error, (RocketMQError, OSError))
        logging.getLogger("rmqctl.storage").warning(
            "timed work of the store failed, and is tried again: error=%s",
            failure,
            exc_info=None if expected else error,
        )
