"""What the console shows at 80x24: `python -m tests.support.console_screen 'rmqctl console' ...`.

The first argument is the command. Of the others, `=TEXT` waits until a text is on the screen, a
name of ``KEYS`` is that key, and anything else is typed. Then the lines of the screen are printed,
and the console is killed.
"""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from rmqctl.console.terminal import MODES
from tests.support.console import Terminal

KEYS = {"ENTER": "\r", "ESC": "\x1b", "TAB": "\t", "SPACE": " ", "DOWN": "j", "^U": "\x15"}
HOME = "/home/ann"
"""What is shown for the folder of the call."""
_QUIET_S = 0.4


def walk(command: str, steps: Sequence[str], size: tuple[int, int] = (24, 80)) -> Terminal:
    """A console that shows what it shows after these steps; the caller closes it."""
    console = Terminal(None, program=shlex.split(command), size=size)
    console.until(lambda: MODES[0][0].encode() in console.raw)
    for step in steps:
        if step.startswith("="):
            console.until(step[1:])
        else:
            console.send(KEYS.get(step, step))
    while console.pump(_QUIET_S):  # until it writes nothing more
        pass
    return console


def main(command: str, *steps: str) -> None:
    """Print a screen."""
    console = walk(command, steps)
    sys.stdout.writelines(f"{at_home(line)}\n" for line in console.text().splitlines())
    console.child.close(force=True)


def at_home(line: str, folder: str | None = None) -> str:
    """A line with ``HOME`` for the folder; what stands at its end stays at its column."""
    folder = folder or str(Path.cwd())
    if folder not in line:
        return line
    before, after = line.split(folder, 1)
    word, blanks, rest = after.partition("   ")
    return before + HOME + word + " " * (len(folder) - len(HOME)) + blanks + rest


if __name__ == "__main__":
    main(*sys.argv[1:])
