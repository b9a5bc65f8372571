"""Copying a file into a snapshot of its store: cloned, linked, or copied with its holes.

*Clone* (FICLONE, on btrfs, XFS and others): a file of its own that shares blocks until one of both
is written. *Link*: the same file under one more name, for files that are not written any more:

* a commit log file that the log has left: records are appended only at the end, and deletion
  (retention, a Java broker) removes one name;
* a consume queue file with all its units, and an index file with all its keys, for the same reason.

Only a repair after damage (recovery, ``store repair``) could write to such a file: then the
snapshot's check sum is wrong, and verification reports it. ``--copy`` excludes that.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import Final

from storage.files.checksum import Tick, data_of, no_tick
from storage.files.fs import FileSystem
from storage.platform.cloning import clone

_NOT_HERE: Final = frozenset(
    {errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOSYS}
    | {errno.ENOTTY, errno.EINVAL, errno.ETXTBSY}
)


class CopyMethod(StrEnum):
    """How a file was copied."""

    CLONED = "CLONED"
    LINKED = "LINKED"
    COPIED = "COPIED"


class FileCopier:
    """Copies files; ``copies_only`` never shares blocks with the source. Counts what it did."""

    def __init__(self, fs: FileSystem, *, copies_only: bool = False) -> None:
        self._fs = fs
        self._clones = self._links = not copies_only
        self.counts: Counter[CopyMethod] = Counter()

    def whole(self, source: Path, target: Path, tick: Tick = no_tick) -> CopyMethod:
        """Copy a file that is not written any more, by the cheapest method.

        Raises FileNotFoundError if it is gone, and OSError.
        """
        if self._clones:
            if self._clone(source, target):
                return self._note(CopyMethod.CLONED)
            self._clones = False
        if self._links:
            try:
                self._fs.link(source, target)
            except OSError as error:
                if error.errno not in _NOT_HERE:
                    raise
                self._links = False
            else:
                return self._note(CopyMethod.LINKED)
        return self.part(source, target, tick=tick)

    def part(
        self, source: Path, target: Path, end: int | None = None, tick: Tick = no_tick
    ) -> CopyMethod:
        """Copy a file that others may write: its bytes before ``end``, holes as holes.

        Length and modification time are those of the source. Not synced.
        """
        out = self._fs.open(target, writable=True, create=True)
        try:
            return self.into(source, out, end, tick)
        finally:
            self._fs.close(out)

    def into(
        self, source: Path, out: int, end: int | None = None, tick: Tick = no_tick
    ) -> CopyMethod:
        """The same into a file that is open."""
        fs = self._fs
        fd = fs.open(source, writable=False)
        try:
            info = os.fstat(fd)
            data_end = info.st_size if end is None else min(end, info.st_size)
            for at, data in data_of(fs, fd, 0, data_end):
                fs.write(out, data, at)
                tick(len(data))
            fs.set_length(out, info.st_size)
            set_times(out, info.st_mtime_ns)
        finally:
            fs.close(fd)
        return self._note(CopyMethod.COPIED)

    def _note(self, placed: CopyMethod) -> CopyMethod:
        self.counts[placed] += 1
        return placed

    def _clone(self, source: Path, target: Path) -> bool:
        fs = self._fs
        fd = fs.open(source, writable=False)
        try:
            out = fs.open(target, writable=True, create=True)
            try:
                clone(fd, out)
                set_times(out, os.fstat(fd).st_mtime_ns)
            except OSError as error:
                if error.errno not in _NOT_HERE:
                    raise
                fs.unlink(target)
                return False
            finally:
                fs.close(out)
        finally:
            fs.close(fd)
        return True


def set_times(fd: int, modified_ns: int) -> None:
    """Set the modification time of an open file, to the nanosecond."""
    os.utime(fd, ns=(modified_ns, modified_ns))
