"""Keeping files that a Java broker deletes when it is started beside us, before it fails on our
lock.

RocketMQ takes its lock last. By then such a broker has loaded the store and recovered it as after a
crash, while rmqctl processes went on writing:

* it deletes the index file that takes our keys (IndexService.load) and makes one of its own;
* it deletes the last file of a queue if that begins with a record of a log file that was made after
  the broker had listed them (CommitLog.recoverAbnormally, ConsumeQueue.truncateDirtyLogicFiles).

So while a store is open these files have a second hard link in ``rmqctl/kept/``, made before the
file gets its own name. The name is restored from it. A process that has the file mapped is not
affected.

Where hard links are impossible nothing is kept, and recovery makes a lost index file anew.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from storage.format.names import CONSUMEQUEUE, INDEX, OURS, is_index_file_name, parse_file_name

if TYPE_CHECKING:
    from storage.files.fs import FileSystem

KEPT: Final = "kept"
_SEPARATOR: Final = "@"


class KeptLinks:
    """The files of a store that have a kept link. All methods but ``__init__`` need the write
    lock."""

    def __init__(self, fs: FileSystem, root: Path) -> None:
        self._fs = fs
        self._root = root
        self._folder = root / OURS / KEPT

    def keep(self, file: Path, first_name: Path) -> bool:
        """Give ``file`` a kept link, before it gets its own name or after it has lost it.

        False where that is impossible; the link is only a protection.
        """
        second = self._folder / self._second(first_name)
        try:
            self._fs.unlink(second)
            self._fs.link(file, second)
        except OSError:
            return False
        return True

    def keeps(self, first_name: Path) -> bool:
        """Whether the file has a kept link."""
        return exists(self._folder / self._second(first_name))

    def forget(self, first_name: Path) -> None:
        """Forget a file: it is safe, or deleted on purpose."""
        try:
            self._fs.unlink(self._folder / self._second(first_name))
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:  # such a link cannot be made
                raise

    def forget_topic(self, topic: str) -> None:
        """Forget the files of a topic's queues: they are about to be deleted on purpose."""
        folder = self._root / CONSUMEQUEUE / topic
        for name in self._names():
            first_name = self._first(name)
            if first_name is not None and first_name.parent.parent == folder:
                self._fs.unlink(self._folder / name)

    def forget_all(self) -> None:
        """Forget all files: the store is closed, or their state is unknown."""
        for name in self._names():
            self._fs.unlink(self._folder / name)

    def restore(self, folder: Path | None = None) -> list[Path]:
        """Restore the names of deleted files, of all of them or of those of one folder."""
        restored = []
        for name in self._names():
            first_name = self._first(name)
            if first_name is None or folder not in (None, first_name.parent):
                continue
            if not exists(first_name):
                self._fs.make_dirs(first_name.parent)
                self._fs.link(self._folder / name, first_name)
                restored.append(first_name)
        for parent in {path.parent for path in restored}:
            self._fs.sync_dir(parent)
        return restored

    def _names(self) -> list[str]:
        try:
            return sorted(entry.name for entry in os.scandir(self._folder))
        except FileNotFoundError:
            return []

    def _second(self, first_name: Path) -> str:
        parts = first_name.relative_to(self._root).parts
        return _SEPARATOR.join(parts[1:] if parts[0] == CONSUMEQUEUE else parts)

    def _first(self, second: str) -> Path | None:
        """The name that ``_second`` encoded; a topic may contain the separator."""
        parts = second.rsplit(_SEPARATOR, 2)
        if len(parts) == 3 and parts[1].isdigit() and parse_file_name(parts[2]) is not None:
            return self._root.joinpath(CONSUMEQUEUE, *parts)
        if len(parts) == 2 and parts[0] == INDEX and is_index_file_name(parts[1]):
            return self._root / INDEX / parts[1]
        return None


def exists(path: Path) -> bool:
    """Whether there is a file of that name."""
    try:
        os.stat(path)  # noqa: PTH116 - a third of the time
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return False
        raise
    return True
