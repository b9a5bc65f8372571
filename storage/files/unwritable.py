"""Files of a store that its owner, or this user, cannot write: sends to them are refused.

Another user's program has left them without changing their owner: a broker that root has started
once, a copy without ``--preserve``.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .ownership import Owner, owner, shut_out


class UnwritableFile(NamedTuple):
    """A file or folder of a store that its owner, or this user, cannot write."""

    path: Path
    owner: Owner
    mode: int
    by_owner: bool
    """The owner of the store cannot; else this user."""

    def what(self, store: Owner) -> str:
        """A sentence about the problem."""
        kind = "the folder" if stat.S_ISDIR(self.mode) else "the file"
        who = (
            f"the store's owner (user id {store.uid})"
            if self.by_owner
            else f"this user (user id {os.geteuid()})"
        )
        mode = f"{stat.S_IMODE(self.mode):04o}"
        return f"{kind} of user id {self.owner.uid}, mode {mode}, cannot be written by {who}"


def unwritable(root: Path) -> Iterator[UnwritableFile]:
    """Each file and folder of a store that its owner cannot write, or this user cannot although the
    store's folder is open to them. Unreadable folders are left out."""
    wanted = owner(root.stat())
    is_writer = os.access(root, os.W_OK | os.X_OK, effective_ids=True)
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            try:
                info = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if stat.S_ISLNK(info.st_mode):
                continue
            is_folder = stat.S_ISDIR(info.st_mode)
            if is_folder:
                folders.append(Path(entry.path))
            right = os.W_OK | os.X_OK if is_folder else os.W_OK
            by_owner = shut_out(wanted, info)
            if by_owner or (is_writer and not os.access(entry.path, right, effective_ids=True)):
                if not os.path.lexists(entry.path):  # deleted meanwhile
                    continue
                yield UnwritableFile(Path(entry.path), owner(info), info.st_mode, by_owner)
