"""The last line of a terminal: a bar stands there, and whoever prints something wipes it first."""

import sys
import threading
from collections.abc import Callable
from typing import Final, TextIO

_WIPE: Final = "\r\x1b[K"


class LastLine:
    """Shares a terminal among a bar and all that is printed beside it. Safe for threads.

    Text that does not end its line is left alone: no bar stands behind it, or in its place.
    """

    def __init__(self, out: TextIO | None = None) -> None:
        """A terminal that ``out`` writes to; None is standard error, whatever that is by then."""
        self._out = out
        self._lock = threading.RLock()  # guards the fields below, and the terminal
        self._has_bar = False
        self._has_text = False

    def show(self, bar: str) -> None:
        """Have a bar stand there, in place of the one that does."""
        with self._lock:
            if not self._has_text:
                self._write(_WIPE + bar)
                self._has_bar = True

    def clear(self) -> None:
        """Wipe the bar, if there is one."""
        with self._lock:
            if self._has_bar:
                self._write(_WIPE)
                self._has_bar = False

    def print(self, text: str) -> None:
        """Print a sentence on a line of its own.

        It may hold a name or a value that a user or a store chose, so no control character of it
        reaches the terminal.
        """
        shown = _shown(text)
        self.beside(lambda: self._write(shown + "\n"), ends_line=True)

    def ask(self, question: str) -> None:
        """Print a question, behind which the answer is typed."""
        shown = _shown(question)
        self.beside(lambda: self._write(shown), ends_line=False)

    def beside(self, write: Callable[[], object], *, ends_line: bool) -> None:
        """Have ``write`` put something on the terminal, with no bar in its way.

        ``ends_line``: whether what it puts there ends with a line's end.
        """
        with self._lock:
            self.clear()
            self._has_text = not ends_line
            write()

    def _write(self, text: str) -> None:
        out = self._out or sys.stderr
        if out is not None:  # which the caller of this process closed
            out.write(text)
            out.flush()


def _shown(text: str) -> str:
    if text.isprintable():
        return text
    from rmqctl.output.values import for_terminal  # which a short command does not need otherwise

    return for_terminal(text)


LAST_LINE: Final = LastLine()
"""The terminal of this process."""
