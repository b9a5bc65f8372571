"""States in the life of a producer, a consumer or a client instance."""

from __future__ import annotations

from enum import StrEnum


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
