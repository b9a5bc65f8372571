"""States in the life of a producer, a consumer or a client instance."""

from __future__ import annotations

from enum import StrEnum

from client.errors import ClientStateError


class ServiceState(StrEnum):
    """State of something that is started and shut down (common.ServiceState)."""

    CREATE_JUST = "CREATE_JUST"
    """Made, not started. ``shutdown`` does nothing."""
    RUNNING = "RUNNING"
    """Started, not shut down."""
    SHUTDOWN_ALREADY = "SHUTDOWN_ALREADY"
    """Shut down; it cannot be started again."""
    START_FAILED = "START_FAILED"
    """Being started, or the start failed."""


def not_running(what: str, state: ServiceState) -> ClientStateError:
    """Make the error for a call that needs a running ``what``, such as ``producer shop``."""
    remedy = {
        ServiceState.CREATE_JUST: "call start() first, or use it in a with statement",
        ServiceState.SHUTDOWN_ALREADY: "it was shut down; make another one",
    }.get(state, "its start has not ended, or has failed; if so make another one")
    return ClientStateError(f"{what} is not running: its state is {state}; {remedy}")


def not_startable(what: str, state: ServiceState) -> ClientStateError:
    """Make the error for a start of ``what`` that is not the first one."""
    remedy = {
        ServiceState.RUNNING: "it was started already; call start() once, and not in its own "
        "with statement",
        ServiceState.SHUTDOWN_ALREADY: "it was shut down; make another one",
    }.get(state, "an earlier start has not ended, or has failed; if so make another one")
    return ClientStateError(f"{what} cannot be started: its state is {state}; {remedy}")
