"""Files that users have us write: there as a whole, or as they were."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from storage.files.creating import replacing


@contextmanager
def saved_file(path: Path) -> Iterator[BinaryIO]:
    """A file that is there, on the device, once the block is left without an error; not before.

    Behind a symbolic link the file that it leads to is replaced; a file that was there keeps its
    mode. Devices and pipes are written as they are: whoever reads them sees all as it comes.
    Raises OSError; of ``path`` nothing has changed then.
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
