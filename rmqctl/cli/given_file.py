"""Reading a file that the user named, as a whole, up to a limit."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rmqctl.errors import CliError
from rmqctl.exit_codes import DAMAGED

if TYPE_CHECKING:
    from rmqctl.cli.context import Cli

MAX_GIVEN: Final = 64 << 20
"""Most bytes of a plan, or of a file of offsets, topics, rules or settings."""
STDIN: Final = "-"


def read_given(path: Path | str, *, stdin: bool = False) -> bytes:
    """Read a file, or a pipe; with ``stdin`` ``-`` is standard input.

    CliError (4) for more than MAX_GIVEN bytes; OSError is passed on.
    """
    if stdin and str(path) == STDIN:
        data = sys.stdin.buffer.read(MAX_GIVEN + 1)
    else:
        with Path(path).open("rb") as file:
            data = file.read(MAX_GIVEN + 1)
    if len(data) > MAX_GIVEN:
        name = "standard input" if stdin and str(path) == STDIN else path
        raise CliError(f"{name} exceeds the limit of {MAX_GIVEN} bytes for such a file", DAMAGED)
    return data


def tell_if_typed(cli: "Cli", path: Path | str) -> None:
    """Say that a command waits for the terminal, if ``path`` is ``-`` and that is one."""
    if str(path) == STDIN and sys.stdin.isatty():
        cli.say("reading from the terminal; Ctrl-D ends")
