"""The broker's timed work in a long-lived process: one thread for work that one process of a store
does at a time, and one for work that each process does.

Each service returns from a tick when its next one is due, so the thread sleeps until then. A
process that is not elected waits in the kernel for the election (storage.coordination.leadership).
An elected one whose store refuses writes steps down, as if it had ended: the next one takes over.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from storage.errors import RocketMQError, StoreBrokenError, StoreClosedError

if TYPE_CHECKING:
    from storage.coordination.leadership import Leadership

logger = logging.getLogger("rmqctl.broker")

AFTER_FAILURE_MS: Final = 10_000
LONGEST_SLEEP_MS: Final = 60_000
MAX_WAIT_S: Final = 3.0
"""How long closing waits for a running tick."""
_LAST_STEPS_S: Final = 0.1
_LOOK_MS: Final = 1_000
"""How often an elected process looks whether its store takes writes."""
_REFUSALS: Final = (StoreBrokenError, StoreClosedError)


class TimedService(Protocol):
    """Work that is due now and then."""

    def tick(self, now_ms: int) -> int:
        """Do what is due; give when to call again, ms since the epoch."""
        ...


class TimedServiceThread:
    """Runs services in a thread, as soon and as long as ``leadership`` (None: always) allows.

    ``now`` is the store's clock, ms. ``before_handover`` is called when the elected process ends,
    before another one takes over. ``check`` raises StoreBrokenError if the store refuses writes;
    then, or if a service raises that or StoreClosedError, this process gives the work up for good:
    such a store takes writes again only when it is opened anew.
    """

    def __init__(
        self,
        services: Sequence[TimedService],
        leadership: Leadership | None,
        *,
        now: Callable[[], int],
        before_handover: Callable[[], None] = lambda: None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._services = services
        self._leadership = leadership
        self._now = now
        self._before_handover = before_handover
        self._check = check
        self._due = [0] * len(services)
        self._running = "timed work"  # the service whose tick ran last
        self._late = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="timed-services", daemon=True)

    @property
    def elected(self) -> bool:
        """Whether this process does the work."""
        return self._leadership is None or self._leadership.elected

    def start(self) -> None:
        """Begin, once."""
        self._thread.start()

    def end_soon(self) -> None:
        """Begin nothing new; :meth:`stop` waits for a running tick."""
        self._stop.set()

    def stop(self, within_s: float | None = None) -> None:
        """End the work. Then another process takes over.

        A running tick is finished first. One that takes longer than ``within_s`` (3 s) is left to
        its thread, which lets another process take over when it ends. Calling it twice is fine,
        also after a failed ``start``: a thread that comes late does nothing.
        """
        self._stop.set()
        within_s = MAX_WAIT_S if within_s is None else within_s
        try:
            if self.elected:
                if self._thread.is_alive():
                    self._thread.join(within_s)
                self._late = True
                if self._thread.is_alive():
                    self._thread.join(_LAST_STEPS_S)  # it may not have noticed the deadline yet
                self._late = self._thread.is_alive()
                if self._late:
                    logger.warning("%s has not ended within %.1f s", self._running, within_s)
                elif self.elected:  # it has not stepped down meanwhile
                    self._before_handover()
        finally:
            if self._leadership is not None and not self._late:
                self._leadership.close()

    def run_due(self) -> int:
        """Run each service that is due; gives when the next one is, ms.

        An error of a service is logged, and the service runs again 10 s later. Raises
        StoreBrokenError and StoreClosedError of a service of the elected process.
        """
        for number, service in enumerate(self._services):
            now = self._now()
            if not now < self._due[number] <= now + LONGEST_SLEEP_MS:
                self._running = type(service).__name__
                try:
                    self._due[number] = service.tick(now)
                except Exception as error:
                    if self._leadership is not None and isinstance(error, _REFUSALS):
                        raise
                    logger.exception("%s", type(service).__name__)
                    self._due[number] = now + AFTER_FAILURE_MS
        return min(self._due)

    def _run(self) -> None:
        if self._leadership is not None and not self._leadership.wait():
            return
        longest_ms = LONGEST_SLEEP_MS if self._leadership is None else _LOOK_MS
        try:
            while not self._stop.is_set():
                self._check()
                pause_ms = min(self.run_due() - self._now(), longest_ms)
                self._stop.wait(max(0, pause_ms) / 1000)
        except _REFUSALS as error:
            if not self._stop.is_set():
                self._step_down(error)
        if self._late and self._leadership is not None:
            self._leadership.close()

    def _step_down(self, error: Exception) -> None:
        """Let another process take over, although this one goes on."""
        names = ", ".join(type(service).__name__ for service in self._services)
        logger.error(
            "this process no longer runs %s, so that another process can: %s", names, error
        )
        try:
            self._before_handover()
        except (OSError, RocketMQError):
            logger.exception("what %s did last may be done again", names)
        finally:
            if self._leadership is not None:
                self._leadership.close()
