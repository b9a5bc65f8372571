"""What a folder has on the disk: each file and folder below it once, by ``lstat``."""

import os
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISDIR
from typing import Final

BLOCK: Final = 512
"""The unit of ``st_blocks``, whatever the file system's block size is."""

_Entry = tuple[str, os.stat_result]
"""A file or folder by its name in its folder."""


def walk(root: Path, unreadable: list[Path]) -> Iterator[tuple[tuple[str, ...], list[_Entry]]]:
    """The root and each folder below it, by its names, with what is in it: each file and folder of
    all once.

    Folders that cannot be read are added to ``unreadable``.
    """
    seen: set[tuple[int, int]] = set()
    folders: list[tuple[tuple[str, ...], str]] = [((), str(root))]
    while folders:
        names, folder = folders.pop()
        try:
            with os.scandir(folder) as listed:
                entries = list(listed)
        except (FileNotFoundError, NotADirectoryError):  # deleted meanwhile
            continue
        except PermissionError:
            unreadable.append(Path(folder))
            continue
        found: list[_Entry] = []
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            except PermissionError:  # a folder that may be listed, but not entered
                unreadable.append(Path(folder))
                break
            if status.st_nlink > 1:
                inode = (status.st_dev, status.st_ino)
                if inode in seen:
                    continue
                seen.add(inode)
            found.append((entry.name, status))
            if S_ISDIR(status.st_mode):
                folders.append(((*names, entry.name), entry.path))
        yield names, found
