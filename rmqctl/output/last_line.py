"""Standard error: every message of the program goes through here, as a sentence or as JSON.

On a terminal its last line shows a progress bar, which is cleared before other output.
"""

import os
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, TextIO

_WIPE: Final = "\r\x1b[K"
PROGRAM: Final = "rmqctl"
"""The logger of what the program itself says."""


def nothing_drawn() -> None:
    """Clear nothing: no table is drawn in place."""


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
        self.writes_json: Callable[[], bool] = bool
        """Whether a message is an object of JSON, asked for each."""
        self.fields: Callable[[], Mapping[str, Any]] = dict
        """What is known of the call; members of each object."""
        self.clear_drawn: Callable[[], object] = nothing_drawn
        """Clears what is drawn in place on the terminal; called before each message."""

    def show(self, text: str, bar: str = "") -> None:
        """Draw a text with a bar before it, replacing the present one; none beside messages that
        are JSON.

        Both take one line: without room there is no bar, and less text.
        """
        if self.writes_json():
            return
        with self._lock:
            if not self._has_text:
                most = self._columns() - 1  # in the last column some terminals begin a line
                line = bar + text
                self._write(_WIPE + (line if len(line) <= most else text[:most]))
                self._has_bar = True

    def clear(self) -> None:
        """Clear the bar, if there is one."""
        with self._lock:
            if self._has_bar:
                self._write(_WIPE)
                self._has_bar = False

    def print(
        self,
        text: str,
        *,
        prefix: str = "",
        dim: bool = False,
        level: str = "info",
        logger: str = PROGRAM,
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        """Print a sentence on a line of its own.

        It may contain a name or a value of a user or a store, so its control characters are
        escaped. ``prefix`` is for sentences; ``level``, ``logger`` and ``fields`` are for JSON.
        """
        if self.writes_json():
            self._print_json(level, logger, text, fields or {})
            return
        text = prefix + text
        shown = f"\x1b[2m{_shown(text)}\x1b[0m" if dim else _shown(text)
        self._message(lambda: self._write(shown + "\n"), ends_line=True)

    def ask(self, question: str) -> None:
        """Print a question; the answer is typed after it."""
        if self.writes_json():
            self._print_json("info", PROGRAM, question, {"question": True})
            return
        shown = _shown(question)
        self._message(lambda: self._write(shown), ends_line=False)

    def pass_on(self, words: bytes, logger: str) -> None:
        """Print what another program wrote on its standard error: as it is, or each line as JSON.

        ``logger`` names that program.
        """
        if self.writes_json():
            for line in words.decode("utf-8", "replace").splitlines():
                self._print_json("info", logger, line, {})
            return
        self._message(lambda: self._write_bytes(words), ends_line=words.endswith(b"\n"))

    def beside(self, write: Callable[[], object], *, ends_line: bool) -> None:
        """Call ``write`` to print to the terminal, with the bar cleared.

        ``ends_line``: whether the output ends with a line end.
        """
        with self._lock:
            self.clear()
            self._has_text = not ends_line
            write()

    def _print_json(self, level: str, logger: str, text: str, fields: Mapping[str, Any]) -> None:
        from rmqctl.output.json_messages import json_message  # lazy: few calls write JSON

        line = json_message(level, logger, text, {**self.fields(), **fields})
        self._message(lambda: self._write(line + "\n"), ends_line=True)

    def _message(self, write: Callable[[], object], *, ends_line: bool) -> None:
        with self._lock:
            self.clear_drawn()
            self.beside(write, ends_line=ends_line)

    def _columns(self) -> int:
        """The columns of the terminal; no limit where it is none, or does not know."""
        try:
            columns = os.get_terminal_size((self._out or sys.stderr).fileno()).columns
        except (OSError, ValueError):
            columns = 0
        return columns or sys.maxsize

    def _write(self, text: str) -> None:
        """Write text. That standard error takes nothing more is no failure of the work."""
        out = self._out or sys.stderr
        if out is not None:  # None if the parent process closed it
            with suppress(OSError):
                out.write(text)
                out.flush()

    def _write_bytes(self, data: bytes) -> None:
        """See :meth:`_write`."""
        out = self._out or sys.stderr
        if out is not None:
            with suppress(OSError):
                out.buffer.write(data)
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
