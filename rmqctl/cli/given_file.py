"""Reading a file that the user named, as a whole, up to a limit."""

import sys
from pathlib import Path
from typing import Final

from rmqctl.errors import CliError
from rmqctl.exit_codes import DAMAGED

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
        raise CliError(f"{path} exceeds the limit of {MAX_GIVEN} bytes for such a file", DAMAGED)
    return data
