"""The kinds of damage that a store can have: done to a folder, with what fsck must say of each.

``damage(root, kind)`` damages a store that no process has open (a golden one, or one of a test)
and returns what it did. It changes files in place and keeps what they held: ``undo`` restores it,
file times included. A store that a kind does not fit raises NotHere with a reason from Lack, which
tests check against the files.

What must be said are causes: one line for one damage. A unit or a key of a message that a damaged
place of the log has lost is not reported again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from storage.tools.fsck import Code
from tests.support.anatomy import Anatomy


class Said(NamedTuple):
    """One finding; ``position`` None where the finding is about the whole file."""

    code: Code
    file: str
    position: int | None


class Lack(StrEnum):
    """Why a kind of damage does not fit a store."""

    ONE_LOG_FILE = "the log has fewer files than the damage needs"
    NO_PLAIN_RECORD = "no ordinary record stands in sound surroundings with a sound unit"
    NO_QUEUE = "no queue is whole and long enough"
    NO_QUEUE_FILES = "no whole queue has as many files as the damage needs"
    NO_INDEX = "the index has no file with enough keys"
    ONE_INDEX_FILE = "the index has fewer files than the damage needs"
    NO_CHECKPOINT = "there is no checkpoint"
    NO_CONFIG = "there is no such file of settings, or it holds nothing"
    NOT_CLOSED = "the store was not closed cleanly: its checkpoint may be old"
    NO_PROGRESS = "no group has progress in a queue of the store"
    NO_DELETED = "no queue with progress begins above 0"
    TAIL_DAMAGED = "the end of the log is damaged already"


class NotHere(Exception):
    """A store has nothing that this kind could damage."""

    def __init__(self, lack: Lack) -> None:
        super().__init__(lack.value)
        self.lack = lack


@dataclass
class Damaged:
    """What was done to a store.

    ``says``: the findings that fsck adds to those of the undamaged store, none if nothing can see
    it (``why_unseen``); ``follows``: codes that may come, too, because they are facts of its
    own: progress of groups that the queues do not reach any more. ``lost``: log offsets of the
    records that are not whole any more, or lie where their queue is not known.
    """

    kind: str
    says: frozenset[Said] = frozenset()
    lost: frozenset[int] = frozenset()
    follows: frozenset[Code] = frozenset()
    why_unseen: str = ""
    undo: Callable[[], None] = field(default=lambda: None, repr=False)


class Knife:
    """Changes files of a store and can put everything back."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._undo: list[Callable[[], None]] = []

    def patch(self, path: Path, position: int, data: bytes) -> None:
        """Overwrite bytes of a file."""
        self._keep_times(path)
        with path.open("r+b") as file:
            file.seek(position)
            before = file.read(len(data))
            file.seek(position)
            file.write(data)
        if len(before) < len(data):
            length = position + len(before)
            self._undo.append(lambda: os.truncate(path, length))
        self._undo.append(lambda: _write(path, position, before))

    def flip(self, path: Path, position: int, bit: int) -> None:
        """Change one bit of a byte."""
        with path.open("rb") as file:
            file.seek(position)
            value = file.read(1)[0]
        self.patch(path, position, bytes((value ^ 1 << bit,)))

    def resize(self, path: Path, length: int) -> None:
        """Cut a file, or lengthen it by zeros."""
        self._keep_times(path)
        before = path.stat().st_size
        with path.open("rb") as file:
            file.seek(length)
            rest = file.read(max(0, min(before, length + (8 << 20)) - length))
        rest = rest.rstrip(b"\0")
        os.truncate(path, length)
        self._undo.append(lambda: _write(path, length, rest))
        self._undo.append(lambda: os.truncate(path, before))

    def remove(self, path: Path) -> None:
        """Take a file away."""
        aside = self._aside()
        path.rename(aside)

        def put_back() -> None:
            aside.rename(path)

        self._undo.append(put_back)

    def replace(self, path: Path, data: bytes) -> None:
        """Give a file, which may not be there yet, another content."""
        if path.exists():
            self.remove(path)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        self._undo.append(path.unlink)

    def swap(self, one: Path, other: Path) -> None:
        """Let two files change their names."""
        aside = self._aside()

        def turn() -> None:
            one.rename(aside)
            other.rename(one)
            aside.rename(other)

        turn()
        self._undo.append(turn)

    def undo(self) -> None:
        """Put everything back, in reverse."""
        while self._undo:
            self._undo.pop()()

    def _keep_times(self, path: Path) -> None:
        info = path.stat()
        self._undo.append(lambda: os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns)))

    def _aside(self) -> Path:
        """A name beside the store, on the same file system."""
        return self._root.with_name(f"{self._root.name}.aside-{len(self._undo)}")


Kind = Callable[[Anatomy, Knife], Damaged]
"""Damages a store with a knife; raises NotHere before it has changed anything."""


def _write(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def kinds() -> dict[str, Kind]:
    """All kinds of damage by name."""
    from tests.support import damages_index, damages_log, damages_queues, damages_rest

    return damages_log.KINDS | damages_queues.KINDS | damages_index.KINDS | damages_rest.KINDS


def damage(root: Path, kind: str) -> Damaged:
    """Do one kind of damage to the store in ``root``; NotHere if the store has nothing for it."""
    knife = Knife(root)
    done = kinds()[kind](Anatomy(root), knife)
    done.kind = kind
    if kind.startswith(("log:", "queue:")):
        done.follows |= {Code.OFFSET_BEHIND_END, Code.OFFSET_BELOW_START}
    done.undo = knife.undo
    return done
