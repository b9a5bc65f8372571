"""The broker's own timed work in a long-lived process: one thread for all of it.

Each service says after a tick when its next one is due, so the thread sleeps until then. Only the
process that is elected (storage.sharing.services) does the work; the others' threads sleep until
they are.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from storage.sharing.services import TimedServices

logger = logging.getLogger("rmqctl.broker")

AFTER_FAILURE_MS: Final = 10_000
LONGEST_SLEEP_MS: Final = 60_000
_LOOK_FOR_ELECTION_MS: Final = 1_000


class TimedService(Protocol):
    """Work that is due now and then."""

    def tick(self, now_ms: int) -> int:
        """Do what is due; give when to call again, ms since the epoch."""
        ...


class TimedServiceThread:
    """Runs services while this process is elected. ``now`` is the store's clock, ms."""

    def __init__(
        self,
        election: TimedServices,
        services: Sequence[TimedService],
        *,
        now: Callable[[], int],
    ) -> None:
        self._election = election
        self._services = services
        self._now = now
        self._due = [0] * len(services)
        self._stopped = False
        self._idle = True
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="timed-services", daemon=True)

    def start(self) -> None:
        """Begin. Wakes at once when this process is elected."""
        self._election.add(self._elected, interval_ms=_LOOK_FOR_ELECTION_MS, first_ms=0)
        self._thread.start()

    def stop(self) -> None:
        """End the thread and wait for it; a tick that runs is finished first."""
        self._stopped = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def run_due(self) -> int:
        """Give each service its turn that is due; gives when the next one is, ms.

        What a service raises is logged, and it is tried again 10 s later.
        """
        for number, service in enumerate(self._services):
            now = self._now()
            if not now < self._due[number] <= now + LONGEST_SLEEP_MS:
                try:
                    self._due[number] = service.tick(now)
                except Exception:
                    logger.exception("%s", type(service).__name__)
                    self._due[number] = now + AFTER_FAILURE_MS
        return min(self._due)

    def _elected(self) -> None:
        if self._idle:
            self._wake.set()

    def _run(self) -> None:
        while not self._stopped:
            self._idle = not self._election.elected
            pause: float | None = None
            if not self._idle:
                pause_ms = min(self.run_due() - self._now(), LONGEST_SLEEP_MS)
                pause = max(0, pause_ms) / 1000
            self._wake.wait(pause)
            self._wake.clear()
