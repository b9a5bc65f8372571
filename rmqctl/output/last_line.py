"""The last line of a terminal: it shows a progress bar, which is cleared before other output."""

import sys
import threading
from collections.abc import Callable
from typing import Final, TextIO

_WIPE: Final = "\r\x1b[K"


class LastLine:
    """Shares a terminal between a progress bar and other output. Thread-safe.

    After text without a line end no bar is drawn, so the text is not overwritten.
    """

    def __init__(self, out: TextIO | None = None) -> None:
        """A terminal that ``out`` writes to; None is the current standard error."""
        self._out = out
        self._lock = threading.RLock()  # guards the fields below, and the terminal
        self._has_bar = False
        self._has_text = False

    def show(self, bar: str) -> None:
        """Draw a bar, replacing the present one."""
        with self._lock:
            if not self._has_text:
                self._write(_WIPE + bar)
                self._has_bar = True

    def clear(self) -> None:
        """Clear the bar, if there is one."""
        with self._lock:
            if self._has_bar:
                self._write(_WIPE)
                self._has_bar = False

    def print(self, text: str, *, dim: bool = False) -> None:
        """Print a sentence on a line of its own.

        It may contain a name or a value of a user or a store, so its control characters are
        escaped.
        """
        shown = f"\x1b[2m{_shown(text)}\x1b[0m" if dim else _shown(text)
        self.beside(lambda: self._write(shown + "\n"), ends_line=True)

    def ask(self, question: str) -> None:
        """Print a question; the answer is typed after it."""
        shown = _shown(question)
        self.beside(lambda: self._write(shown), ends_line=False)

    def beside(self, write: Callable[[], object], *, ends_line: bool) -> None:
        """Call ``write`` to print to the terminal, with the bar cleared.

        ``ends_line``: whether the output ends with a line end.
        """
        with self._lock:
            self.clear()
            self._has_text = not ends_line
            write()

    def _write(self, text: str) -> None:
        out = self._out or sys.stderr
        if out is not None:  # None if the parent process closed it
            out.write(text)
            out.flush()


def _shown(text: str) -> str:
    if text.isprintable():
        return text
    from rmqctl.output.values import (
        for_terminal,
    )  # lazy: a short command does not need it otherwise

    return for_terminal(text)


LAST_LINE: Final = LastLine()
"""The terminal of this process."""
