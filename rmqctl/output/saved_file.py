"""Files that users have us write: there as a whole, or as they were."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


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
    target = Path(os.path.realpath(path))
    staged = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    fd = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(fd, "wb") as file:
            if mode is not None:  # before the first byte is in it
                os.fchmod(fd, stat.S_IMODE(mode))
            yield file
            file.flush()
            os.fsync(fd)
        staged.replace(target)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise
