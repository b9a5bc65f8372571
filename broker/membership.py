"""Being a group's only member, proved by a lock that the kernel releases with the process.

``<store>/rmqctl/members/<group>.sole`` is locked by whoever consumes in the group; its content
tells people who that is. Nothing is decided by the content, and the file stays when all are gone.
"""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Final, Self

from storage.errors import StoreNotWritableError
from storage.format.names import OURS
from storage.sharing.locks import LockFile

from .errors import GroupInUseError
from .validation import check_group

MEMBERS_FOLDER: Final = "members"
_SUFFIX: Final = ".sole"
_LONGEST_NAME: Final = 200
_CONTENT_SIZE: Final = 512


class SoleMember:
    """A group that nobody else may consume in, until :meth:`leave`. A context manager."""

    def __init__(self, root: Path, group: str, now_ms: int) -> None:
        """Join the group. Raises GroupInUseError, InvalidNameError, StoreNotWritableError."""
        check_group(group)
        self.group = group
        path = member_path(root, group)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = LockFile(path)
        except OSError as error:
            raise StoreNotWritableError(path, error.strerror or str(error)) from error
        if not self._file.try_lock(0):
            holder = _described(self._file)
            self._file.close()
            raise GroupInUseError(group, holder)
        content = {"pid": os.getpid(), "host": os.uname().nodename, "since": now_ms}
        os.ftruncate(self._file.fd, 0)
        os.pwrite(self._file.fd, json.dumps(content).encode(), 0)

    def leave(self) -> None:
        """Let others in. Leaving twice is fine."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()


def member_path(root: Path, group: str) -> Path:
    """Name the file of a group's member; a group's name may be longer than a file's."""
    name = group
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]}-{zlib.crc32(group.encode()):08x}"
    return root / OURS / MEMBERS_FOLDER / (name + _SUFFIX)


def _described(file: LockFile) -> str:
    try:
        content = json.loads(os.pread(file.fd, _CONTENT_SIZE, 0))
        return f"process {content['pid']} on {content['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
