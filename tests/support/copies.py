"""Copies of stores: their files are long and mostly holes, which a plain copy would fill."""

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path


def copy_store(
    source: Path, target: Path, ignore: Callable[[str, list[str]], Iterable[str]] | None = None
) -> Path:
    """Copy a folder with the times and the holes of its files; gives ``target``.

    A file of 1 GiB that holds a few KiB takes a few KiB, and no second to copy.
    """
    shutil.copytree(source, target, ignore=ignore, copy_function=copy_file)
    return target


def restore_copy(kept: Path, place: Path, copy: Callable[[str, str], object] | None = None) -> None:
    """Make ``place``, a copy of the folder ``kept``, as it was; only what differs is copied.

    The content of each file is compared: a write to mapped memory may leave the times as they are.
    That takes longer than a copy where files are large and mostly holes.
    """
    _remove_others(kept, place)
    for folder, folders, files in os.walk(kept):
        target = place / Path(folder).relative_to(kept)
        for name in folders:
            (target / name).mkdir(exist_ok=True)
        for name in files:
            source, copied = f"{folder}/{name}", f"{target}/{name}"
            if not _is_alike(source, copied):
                Path(copied).unlink(missing_ok=True)
                (copy or copy_file)(source, copied)


def _remove_others(kept: Path, place: Path) -> None:
    """Remove what a copy has and its source has not."""
    for folder, folders, files in os.walk(place):
        source = kept / Path(folder).relative_to(place)
        for name in [name for name in folders if not (source / name).is_dir()]:
            folders.remove(name)
            path = Path(folder) / name
            path.unlink() if path.is_symlink() else shutil.rmtree(path)
        for name in files:
            if not (source / name).is_file():
                (Path(folder) / name).unlink()


def _is_alike(source: str, copied: str) -> bool:
    """Whether a file is there with the mode, the time and the content of another one."""
    if not os.path.isfile(copied):  # noqa: PTH113 - thousands of files
        return False
    one, other = os.stat(source), os.stat(copied)  # noqa: PTH116
    if (one.st_mode, one.st_size, one.st_mtime_ns) != (
        other.st_mode,
        other.st_size,
        other.st_mtime_ns,
    ):
        return False
    with open(source, "rb") as first, open(copied, "rb") as second:  # noqa: PTH123
        return first.read() == second.read()


def new_folder(prefix: str) -> Path:
    """Make a folder in memory where there is a file system for that, else in /tmp: hundreds of
    commands that sync wait for a device longer than they run.

    Its path has as many characters here as there, as tables show paths.
    """
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        return Path(tempfile.mkdtemp(prefix=prefix, dir="/tmp"))
    longer = len(f"{memory}") - len("/tmp")
    return Path(tempfile.mkdtemp(prefix=prefix[: len(prefix) - longer], dir=memory))


def folder_on_disk(prefix: str) -> Path:
    """Make a folder for files whose sizes on disk are compared: where files lie in memory, a hole
    that is read takes a page from then on."""
    return Path(tempfile.mkdtemp(prefix=prefix, dir="/var/tmp"))


def copy_file(source: str, target: str) -> None:
    """Copy the data of a file, its length, its mode and its times; holes stay holes."""
    read = os.open(source, os.O_RDONLY)
    try:
        end = os.fstat(read).st_size
        write = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.ftruncate(write, end)
            at = 0
            while (start := _next_data(read, at)) is not None:
                at = os.lseek(read, start, os.SEEK_HOLE)
                _copy_range(read, write, start, at)
        finally:
            os.close(write)
    finally:
        os.close(read)
    shutil.copystat(source, target)


def _next_data(file: int, at: int) -> int | None:
    try:
        return os.lseek(file, at, os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:  # nothing but a hole follows
            return None
        raise


def _copy_range(read: int, write: int, start: int, end: int) -> None:
    while start < end:
        piece = os.pread(read, min(1 << 20, end - start), start)
        assert piece, "the file became shorter"
        for at in range(0, len(piece), 4096):
            page = piece[at : at + 4096]
            if page.strip(b"\0"):
                os.pwrite(write, page, start + at)
        start += len(piece)


def age_files(folder: Path) -> None:
    """Date files back by an hour: before a change, a store that was written just now is watched
    for a second, as a broker on another machine may write to it."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            found = path.stat()
            os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns - 3600 * 10**9))
