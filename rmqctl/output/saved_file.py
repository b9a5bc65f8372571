"""Output files of users: replaced as a whole, or not at all."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from rmqctl.output.stdout import encoded
from storage.files.creating import replacing

_PIECE = 1 << 20
"""Characters that are encoded at once."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Reading a store raises none of them."""


class FileOut:
    """A file as output of the renderer."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, text: str, /) -> None:
        """Add text, encoded as on standard output."""
        for start in range(0, len(text), _PIECE):
            self._file.write(encoded(text[start : start + _PIECE]))

    def flush(self) -> None:
        """Make all output so far visible to the reader."""
        self._file.flush()


@contextmanager
def saved_file(path: Path) -> Iterator[BinaryIO]:
    """A file that appears, on the device, once the block ends without an error.

    The target of a symbolic link is replaced; an existing file keeps its mode. Devices and pipes
    are written directly, so a reader sees the data as it comes. Raises OSError; ``path`` is
    unchanged then. The error of a full disk names ``path``.
    """
    try:
        with _written(path) as file:
            yield file
    except OSError as error:
        if error.filename is None and error.errno in _FULL:
            error.filename = str(path)
        raise


@contextmanager
def _written(path: Path) -> Iterator[BinaryIO]:
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
