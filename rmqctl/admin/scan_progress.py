"""How far a scan of the log is, for those who wait for it."""

from collections.abc import Callable

OnProgress = Callable[[int, int], object]
"""Called with the scanned bytes and the total of a scan: first with 0, last with the total.

A function that scans several times begins again with 0. What the callback raises ends the scan.
"""


def no_progress(_: int, __: int) -> None:
    """Take progress and do nothing."""
