"""Progress of long work of a store on stderr."""

from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rmqctl.admin.progress import Tick
    from rmqctl.cli.context import Cli
    from rmqctl.cli.progress import Progress


class Phases:
    """Shows the parts of long work one after the other: a rmqctl.admin.progress.Phase.

    Use it in a ``with`` block: leaving the block clears the line.
    """

    def __init__(self, cli: "Cli") -> None:
        self._cli = cli
        self._shown: Progress | None = None

    def __call__(self, label: str, total: int | None) -> "Tick":
        """Begin a part."""
        self.clear()
        progress = self._shown = self._cli.progress(label, "bytes", total)
        done = 0

        def tick(count: int) -> None:
            nonlocal done
            done += count
            progress.advance(count, count)
            if done == total:
                progress.clear()

        return tick

    def clear(self) -> None:
        """Clear the line, because the work pauses."""
        if self._shown is not None:
            self._shown.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.clear()
