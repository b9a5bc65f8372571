"""The folders of queues, ``consumequeue/<topic>/<queue id>``: listed again where they changed."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final, NamedTuple

from storage.format.names import CONSUMEQUEUE

from .read_files import leads_to_folder

_SETTLED_NS: Final = 3_000_000_000
"""A folder that changed within so long before it was listed may have changed once more since with
the same time: that of some file systems has whole seconds, or two."""


class _Listed(NamedTuple):
    """The queues of a topic, and the folder when they were listed."""

    inode: int
    modified_ns: int
    queue_ids: list[int]


class QueueFolders:
    """The queues that have a folder. A topic's folder that is as it was is not listed again: for
    thousands of topics that takes a tenth of the time. Threads that ask at once list more."""

    def __init__(self, root: str) -> None:
        """``root`` is the folder ``consumequeue``."""
        self._root = root
        self._known: dict[str, _Listed] = {}

    def now(self) -> list[tuple[str, int]]:
        """All (topic, queue id), sorted; folders of other names are left out."""
        before, self._known = self._known, {}
        found: list[tuple[str, int]] = []
        for topic in sorted(_folders_in(self._root)[0]):
            path = f"{self._root}/{topic}"
            queue_ids = self._queue_ids(topic, path, before.get(topic))
            found += [(topic, queue_id) for queue_id in queue_ids]
        return found

    def _queue_ids(self, topic: str, path: str, known: _Listed | None) -> list[int]:
        asked_at = time.time_ns()
        try:
            status = os.stat(path)  # noqa: PTH116 - asked often
        except (FileNotFoundError, NotADirectoryError):
            return []
        ident = status.st_ino, status.st_mtime_ns
        if known is None or known[:2] != ident:
            names, has_links = _folders_in(path)
            queue_ids = sorted(int(name) for name in names if is_queue_number(name))
            if has_links:  # where they lead may change while the folder stays as it is
                return queue_ids
            known = _Listed(*ident, queue_ids)
        if known.modified_ns < asked_at - _SETTLED_NS:
            self._known[topic] = known
        return known.queue_ids


def queue_ids_of(root: Path, topic: str) -> list[int]:
    """List the queues of one topic that have a folder in the store at ``root``; none for a name
    that no folder has."""
    if "/" in topic or "\0" in topic:
        return []
    try:
        names, _ = _folders_in(f"{root}/{CONSUMEQUEUE}/{topic}")
    except OSError:  # a name that is too long
        return []
    return [int(name) for name in names if is_queue_number(name)]


def _folders_in(path: str) -> tuple[list[str], bool]:
    """The names of folders in a folder, and of links to folders, none where there is no folder;
    and whether there are any links."""
    try:
        with os.scandir(path) as found:
            entries = list(found)
    except (FileNotFoundError, NotADirectoryError):
        return [], False
    names = [entry.name for entry in entries if leads_to_folder(entry)]
    return names, any(entry.is_symlink() for entry in entries)


def is_queue_number(name: str) -> bool:
    """Tell whether a folder below a topic's can be a queue's: a number as Java writes it."""
    return name.isascii() and name.isdigit() and str(int(name)) == name and int(name) < 1 << 31
