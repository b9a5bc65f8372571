"""What the console asks of the terminal: what it must be, and the modes that are set and reset."""

import os
import sys
from collections.abc import Mapping
from typing import Final

from rmqctl.errors import UsageProblem

LEAST_WIDTH: Final = 60
LEAST_HEIGHT: Final = 15
"""Cells that a screen needs."""
MODES: Final = (
    ("\x1b[?1049h", "\x1b[?1049l"),  # the other screen; the first to set and the last to reset
    ("\x1b[?25l", "\x1b[?25h"),  # no cursor
    ("\x1b[?7l", "\x1b[?7h"),  # no wrapping at the right edge
    ("\x1b[?2004h", "\x1b[?2004l"),  # pasted text is marked
    ("\x1b[>1u", "\x1b[<u"),  # the escape key is told from the sequences that it begins
)
MOUSE: Final = (("\x1b[?1000h", "\x1b[?1000l"), ("\x1b[?1006h", "\x1b[?1006l"))
_MOUSE_OFF: Final = "\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1015l"
"""Modes that the console does not set, but Textual would."""
FRAME_BEGINS: Final = "\x1b[?2026h"
FRAME_ENDS: Final = "\x1b[?2026l"
ASKS_FOR_FRAMES: Final = "\x1b[?2026$p"
"""Asks whether the terminal shows a frame at once that stands between the marks."""


def modes_on(*, mouse: bool) -> str:
    """Sets the modes of the console."""
    modes = MODES + (MOUSE if mouse else ())
    return "".join(on for on, _ in modes)


def modes_off() -> str:
    """Resets every mode that may be set, and ends a frame that was cut off."""
    modes = MODES + MOUSE
    return f"{FRAME_ENDS}\x1b[m{_MOUSE_OFF}" + "".join(off for _, off in reversed(modes))


_NO_CLIPBOARD: Final = ("linux", "vt100", "vt102", "vt220", "ansi", "cons25")
"""Values of TERM: terminals that have none. Of the others it cannot be found out."""


def no_clipboard(environ: Mapping[str, str]) -> str:
    """Why the terminal does not take a text to copy; empty if it may take one."""
    term = environ.get("TERM", "")
    if term.partition("-")[0] in _NO_CLIPBOARD:
        return f"this terminal (TERM={term}) has no clipboard"
    if environ.get("TERM_PROGRAM") == "Apple_Terminal":
        return "macOS Terminal does not take a text to copy"
    if environ.get("STY") and not environ.get("TMUX"):
        return "GNU screen does not take a text to copy"
    return ""


def check_terminal() -> None:
    """Refuse what cannot show a full screen. UsageProblem names what to use instead."""
    problem = None
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        problem = "standard input and output are not both a terminal"
    elif os.environ.get("TERM", "") in ("", "dumb"):
        problem = "this terminal cannot place a cursor (TERM is dumb or not set)"
    if problem:
        raise UsageProblem(
            f"the console needs a terminal: {problem}; 'rmqctl lag watch' prints rows that change"
        )
