"""Progress on stderr: one updated line on a terminal, plain lines elsewhere.

Work of less than half a second prints nothing.
"""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from rmqctl.output.last_line import LAST_LINE, LastLine

_SILENT_S: Final = 0.5
_BAR_EVERY_S: Final = 0.1
_PLAIN_EVERY_S: Final = 5.0
_WIDTH: Final = 24


class Progress:
    """Counts work and shows it; ``style`` is ``bar``, ``plain`` or ``none``.

    ``total`` is in the unit of ``share`` of :meth:`advance` (bytes of a file, say), None if
    unknown. Use it in a ``with`` block: leaving the block clears the line.
    """

    def __init__(
        self,
        label: str,
        unit: str,
        style: str,
        total: int | None = None,
        line: LastLine = LAST_LINE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.label = label
        self.unit = unit
        self.total = total
        self.count = 0
        self._share = 0
        self.style = style
        self._line = line
        self._clock = clock
        self._started = clock()
        self._next = self._started + (_PLAIN_EVERY_S if style == "plain" else _SILENT_S)

    def advance(self, count: int, share: int = 0) -> None:
        """Add ``count`` items, and ``share`` of the total; prints from time to time."""
        self.count += count
        self._share += share
        if self.style != "none":
            now = self._clock()
            if now >= self._next:
                self._show(now)

    def elapsed_ms(self) -> int:
        """Milliseconds since the work began."""
        return round((self._clock() - self._started) * 1000)

    def _show(self, now: float) -> None:
        self._next = now + (_PLAIN_EVERY_S if self.style == "plain" else _BAR_EVERY_S)
        seconds = max(now - self._started, 1e-9)
        text = f"{self.label}: {self.count:,} {self.unit}, {self.count / seconds:,.0f}/s"
        bar = ""
        if self.total:
            from storage.parse.durations import format_duration

            done = min(self._share / self.total, 1.0)
            left = format_duration(round(seconds * (1 - done) / done * 1000)) if done else "?"
            text = f"{text}, {done:4.0%}, {left} left"
            filled = round(done * _WIDTH)
            bar = f"[{'#' * filled}{'.' * (_WIDTH - filled)}] "
        if self.style == "bar":
            self._line.show(text, bar)
        else:
            self._line.print(text, fields={"done": self.count, "unit": self.unit})

    def clear(self) -> None:
        """Clear the line, because the work pauses."""
        self._line.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.clear()
