"""Output files of users: replaced as a whole, or not at all."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from storage.files.creating import replacing


@contextmanager
def saved_file(path: Path) -> Iterator[BinaryIO]:
    """A file that appears, on the device, once the block ends without an error.

    The target of a symbolic link is replaced; an existing file keeps its mode. Devices and pipes
    are written directly, so a reader sees the data as it comes. Raises OSError; ``path`` is
    unchanged then.
    """
    try:
        mode: int | None = path.stat().st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        with path.open("wb") as device:
            yield device
        return
    with replacing(Path(os.path.realpath(path))) as file:
        yield file
