"""Putting joined files into the place of the small ones, in one step.

The joined file is made in ``FOLDER/.compacting``, synced, and takes the place of the small ones in
one step: the whole folder of the table and month is exchanged (renameat2). So the folder has each
row once at any moment, also after a kill. A program may have opened the old folder and not yet
listed it, so its names stay for ``LISTING_S``: see :class:`OldFolders`. If it then opens a small
file by its path, that is gone: it gets "file not found" and has to list again, but misses no rows
silently.

Where the file system cannot exchange folders, the joined file is put beside the small ones, which
are then removed: rmqctl reads each row once there, too, as a run's own file counts before a joined
one; other programs may see a row twice until the next compaction has removed what is left.

What another process puts into the old folder meanwhile gets a second name in the new one right
after the exchange. A process that has found the old folder before may put a file there later still:
that one is taken over when the next join begins, and when the old folder is removed.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from storage.files.creating import TEMPORARY_SUFFIX, is_temporary, sync_folder
from storage.platform.cloning import exchange

from .reading import UNREADABLE, runs_in
from .tables import JOINED, Kept, kept_at

STAGING: Final = ".compacting"
LISTING_S: Final = 1.0
"""How long a program may take between opening a folder and reading the last of its names (s)."""
_TRIES: Final = 100


class Join(NamedTuple):
    """The files of a table and month that are to be joined."""

    folder: str
    table: str
    month: str
    periods: Mapping[str, Sequence[Path]]
    """By the day or month that the joined file will be of."""

    @property
    def files(self) -> list[Path]:
        """All of them."""
        return [path for files in self.periods.values() for path in files]

    @property
    def live(self) -> Path:
        """The folder in which programs read them."""
        return Path(self.folder, self.table, f"month={self.month}")

    @property
    def staged(self) -> Path:
        """The folder in which they are joined."""
        return Path(self.folder, STAGING, self.table, f"month={self.month}")


class _Exchanged(NamedTuple):
    staged: Path
    live: Path
    known: dict[Path, int]
    """The files that are joined or stay, by their paths in ``live``, with their inodes."""
    at: float
    """When it was exchanged, by the monotonic clock (s)."""


class OldFolders:
    """Folders that were exchanged, to be removed when no program lists them any more.

    After a kill or an error the next compaction removes them.
    """

    def __init__(self, folder: str, listing_s: float) -> None:
        self._folder, self._listing_s = folder, listing_s
        self._left: list[_Exchanged] = []

    def add(self, staged: Path, live: Path, known: dict[Path, int]) -> None:
        """Take a folder that has just been exchanged; see ``_settle`` for ``known``.

        What came into it until then is in ``live`` after this. Raises OSError.
        """
        one = _Exchanged(staged, live, known, time.monotonic())
        self._left.append(one)
        _take_over(self._folder, one)

    def settle_due(self) -> None:
        """Remove those that were exchanged long enough ago; one that cannot be removed stays."""
        for one in self._left.copy():
            with suppress(OSError):
                self._settle_if_due(one)

    def settle_all(self) -> None:
        """Wait until all are due, and remove them. Raises OSError."""
        self.settle_due()
        while self._left:
            one = self._left[0]
            time.sleep(max(one.at + self._listing_s - time.monotonic(), 0))
            self._settle_if_due(one)

    def _settle_if_due(self, one: _Exchanged) -> None:
        if one.at + self._listing_s > time.monotonic():
            _take_over(self._folder, one)
        else:
            _settle(self._folder, one.staged, one.live, one.known)
            self._left.remove(one)


def swap(one: Join, made: Sequence[Path], sources: Mapping[Path, int], old: OldFolders) -> None:
    """Put the joined files into the place of their sources."""
    staged, live = one.staged, one.live
    if not live.exists():
        sync_folder(staged)
        staged.rename(live)
        sync_folder(live.parent)
        return
    linked = _link_rest(staged, live, sources)
    if linked is not None:
        staged.chmod(stat.S_IMODE(live.stat().st_mode))
        sync_folder(staged)
        if exchange(staged, live):
            old.add(staged, live, {**sources, **linked})
            sync_folder(live.parent)
            return
    for path in made:
        path.rename(live / path.name)
    sync_folder(live)
    for path, inode in sources.items():
        if path.parent == live and inode_of(path) == inode:
            path.unlink(missing_ok=True)
    shutil.rmtree(staged)


def _link_rest(staged: Path, live: Path, sources: Mapping[Path, int]) -> dict[Path, int] | None:
    """Give the files that stay a second name in the new folder; None if that cannot be.

    Gives them by their paths, with their inodes.
    """
    linked = {}
    for path in live.iterdir():
        if path not in sources:
            name = staged / path.name
            try:
                name.hardlink_to(path)
            except FileNotFoundError:
                continue
            except OSError:
                return None
            linked[path] = name.stat().st_ino
    return linked


def _take_over(folder: str, one: _Exchanged) -> None:
    """Give the new folder what came into the old one after its files were linked; it stays there,
    too, for programs that list the old one. Raises OSError."""
    came = False
    for path in list(one.staged.iterdir()):
        with suppress(FileNotFoundError):
            if not _is_done(folder, path, one.live, one.known, {}):
                _link_over(path, one)
                came = True
    if came:
        sync_folder(one.live)


def _link_over(path: Path, one: _Exchanged) -> None:
    """Give a file of the old folder a second name in the new one, in place of an older file."""
    same = one.live / path.name
    # _is_done lets it be removed if it is left after a kill.
    second = one.staged / f".joined-.{os.urandom(8).hex()}{TEMPORARY_SUFFIX}"
    try:
        second.hardlink_to(path)
    except FileNotFoundError:
        raise
    except OSError:  # a file system without links
        path.rename(same)
        return
    inode = second.stat().st_ino
    second.rename(same)
    one.known[same] = inode


def _settle(folder: str, old: Path, live: Path, known: Mapping[Path, int]) -> None:
    """Remove the old folder, which was exchanged; what came into it meanwhile goes to the new one.

    ``known`` are the files that are joined or stay, by their paths, with their inodes. They are
    unknown after a kill (empty), and then the runs of the new folder say what is joined.
    """
    runs = {} if known else _times_of_runs(folder, live)
    for _ in range(_TRIES):
        for path in old.iterdir():
            with suppress(FileNotFoundError):
                if _is_done(folder, path, live, known, runs):
                    path.unlink()
                else:
                    path.rename(live / path.name)
        try:
            old.rmdir()
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                raise
        else:
            return


def _times_of_runs(folder: str, live: Path) -> dict[Kept, int]:
    """The runs in a folder, with the times (ns) of their files; of several the last one."""
    runs: dict[Kept, int] = {}
    for path in live.iterdir():
        with suppress(*UNREADABLE):
            modified = path.stat().st_mtime_ns
            for kept in _runs_of_file(folder, path):
                runs[kept] = max(runs.get(kept, 0), modified)
    return runs


def _runs_of_file(folder: str, path: Path) -> set[Kept]:
    if JOINED.fullmatch(path.name):
        return runs_in(path, folder)
    kept = kept_at(folder, path)
    return set() if kept is None else {kept}


def _is_done(
    folder: str, path: Path, live: Path, known: Mapping[Path, int], runs: Mapping[Kept, int]
) -> bool:
    """Whether all that a file of the old folder has is in the new one."""
    if is_temporary(path.name) and path.name.startswith(".joined-"):
        return True  # a killed compaction has not finished it
    info = path.stat()
    same = live / path.name
    if known.get(same) == info.st_ino:
        return True
    with suppress(FileNotFoundError):
        there = same.stat()
        return there.st_ino == info.st_ino or there.st_mtime_ns >= info.st_mtime_ns
    if known:
        return False
    try:
        mine = _runs_of_file(folder, path)
    except UNREADABLE:
        return False
    if JOINED.fullmatch(path.name):
        return mine <= runs.keys()
    return bool(mine) and all(info.st_mtime_ns <= runs.get(kept, -1) for kept in mine)


def finish_killed(folder: str) -> None:
    """Remove the staging of a killed compaction; what only it has is put back."""
    for staged in Path(folder, STAGING).glob("*/month=*"):
        live = Path(folder, staged.parent.name, staged.name)
        if live.exists():
            _settle(folder, staged, live, {})
        else:  # it had not been put into place: the rows are in files of version 1
            shutil.rmtree(staged)


def remove_1(one: Join, sources: Mapping[Path, int]) -> None:
    """Remove the files of version 1 that are joined, and their folders with the last of them."""
    for path, inode in sources.items():
        if path.parent == one.live or inode_of(path) != inode:
            continue
        path.unlink(missing_ok=True)
        for folder in (path.parent, path.parent.parent):
            with suppress(OSError):
                folder.rmdir()


def inode_of(path: Path) -> int | None:
    """The inode of a file; None if there is no such file."""
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None
