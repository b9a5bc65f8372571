"""Reading files that a user was given: all of them at once, and no more than such a file has."""

import sys
from pathlib import Path
from typing import Final

from rmqctl.errors import CliError
from rmqctl.exit_codes import DAMAGED

MAX_GIVEN: Final = 64 << 20
"""Bytes of a plan, or of a file of offsets, topics, rules or settings."""
STDIN: Final = "-"


def read_given(path: Path | str, *, stdin: bool = False) -> bytes:
    """Read a file, or a pipe; with ``stdin`` ``-`` is standard input.

    CliError (4) for more than MAX_GIVEN bytes, of which nothing else is read; OSError as it comes.
    """
    if stdin and str(path) == STDIN:
        data = sys.stdin.buffer.read(MAX_GIVEN + 1)
    else:
        with Path(path).open("rb") as file:
            data = file.read(MAX_GIVEN + 1)
    if len(data) > MAX_GIVEN:
        raise CliError(f"{path} is larger than such a file can be ({MAX_GIVEN} bytes)", DAMAGED)
    return data
