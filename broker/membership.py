"""Being a group's only member, proved by a lock that the kernel releases with the process.

``<store>/rmqctl/members/<group>.sole`` is locked exclusively by who consumes alone in the group,
and shared by processes with members that divide it (broker.members), so that the two kinds refuse
each other. Its content tells people who was alone there last. Nothing is decided by the content,
and the file stays when all are gone.
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
from storage.sharing.stations import MEMBERS_FOLDER

from .errors import GroupInUseError
from .validation import check_group

_SUFFIX: Final = ".sole"
_LONGEST_NAME: Final = 200
_CONTENT_SIZE: Final = 512


class SoleMember:
    """A group that nobody else may consume in, until :meth:`leave`. A context manager."""

    def __init__(self, root: Path, group: str, now_ms: int) -> None:
        """Join the group. Raises GroupInUseError, InvalidNameError, StoreNotWritableError."""
        self.group = group
        self._file = _locked(root, group, exclusive=True)
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


def join_shared(root: Path, group: str) -> LockFile:
    """Keep out whoever wants a group alone, until the file is closed.

    Raises GroupInUseError, InvalidNameError, StoreNotWritableError.
    """
    return _locked(root, group, exclusive=False)


def _locked(root: Path, group: str, *, exclusive: bool) -> LockFile:
    check_group(group)
    path = member_path(root, group)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = LockFile(path)
    except OSError as error:
        raise StoreNotWritableError(path, error.strerror or str(error)) from error
    if not file.try_lock(0, exclusive=exclusive):
        # Exclusive is in the way of both; shared ones have no content.
        alone = file.holder(0, exclusive=False) is not None
        holder = _described(file) if alone else "processes that share it"
        file.close()
        raise GroupInUseError(group, holder)
    return file


def member_path(root: Path, group: str) -> Path:
    """Name the file of a group's only member."""
    return root / OURS / MEMBERS_FOLDER / (file_name(group) + _SUFFIX)


def file_name(group: str) -> str:
    """Name a group's files; a group's name may be longer than a file's."""
    if len(group) <= _LONGEST_NAME:
        return group
    return f"{group[:_LONGEST_NAME]}-{zlib.crc32(group.encode()):08x}"


def _described(file: LockFile) -> str:
    try:
        content = json.loads(os.pread(file.fd, _CONTENT_SIZE, 0))
        return f"process {content['pid']} on {content['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
