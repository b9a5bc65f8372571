"""How far the scans of a call are, shown on stderr."""

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

    from .context import Cli
    from .progress import Progress


class ScanDisplay:
    """An OnProgress (rmqctl.admin.scan_progress) that shows each scan of a call.

    Use it in a ``with`` block: leaving the block clears the line.
    """

    def __init__(self, cli: "Cli", label: str = "search") -> None:
        self._cli = cli
        self._label = label
        self._shown: Progress | None = None
        self._scanned = 0

    def __call__(self, scanned: int, total: int) -> None:
        """Show that a part of a scan is done; 0 begins a scan."""
        if not scanned or self._shown is None:
            self._clear()
            self._shown = self._cli.progress(self._label, "bytes", total)
            self._scanned = 0
        if scanned > self._scanned:
            self._shown.advance(scanned - self._scanned, scanned - self._scanned)
            self._scanned = scanned
        if scanned == total:
            self._clear()

    def _clear(self) -> None:
        if self._shown is not None:
            self._shown.clear()
            self._shown = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: "type[BaseException] | None",
        error: "BaseException | None",
        trace: "TracebackType | None",
    ) -> None:
        self._clear()
