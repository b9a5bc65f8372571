"""How far a scan of the log or of queues is, for those who wait for it."""

from collections.abc import Callable

OnProgress = Callable[[int, int], object]
"""Called with what was scanned, and the total of the scan: bytes of the log, messages of queues, or
topics.

A function that scans several times begins again with 0. What the callback raises ends the scan.
"""


def no_progress(_: int, __: int) -> None:
    """Take progress and do nothing."""
