"""A disk that can lose its power: what a file system may forget without a sync.

The store works in a real folder. Beside it this seam remembers what the device is *sure* to have:
the bytes of a file as of its last sync, the entries of a folder as of its last sync_dir. Created,
renamed and removed names count from the sync of their folder on; a rename is there in both
folders or in neither, as journals do it. :meth:`DurableFileSystem.image` builds the folder that a
power loss at this moment would leave, with more or fewer of the unsynced sectors in it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

from storage.files.fs import FileSystem
from tests.support.watched_fs import name_of

SECTOR = 512
"""What a device writes whole or not at all."""


class _Node:
    """A file or folder as the device has it. Held open, so that its number is not given away."""

    def __init__(self, path: Path) -> None:
        self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.is_folder = path.is_dir()
        self.content = b""
        self.entries: dict[str, int] = {}

    def recent(self) -> bytes:
        """The file's bytes as processes see them."""
        return os.pread(self.fd, os.fstat(self.fd).st_size, 0)


class DurableFileSystem(FileSystem):
    """Calls ``at_sync`` before and after each sync of a file or folder."""

    def __init__(self, root: Path, at_sync: Callable[[str], None] | None = None) -> None:
        self._root = root
        self._at_sync = at_sync or (lambda what: None)
        self._device: dict[int, _Node] = {}
        self._take_all(root)

    def _take_all(self, folder: Path) -> None:
        """What is there at the start is on the device."""
        for path in folder.iterdir():
            if path.is_dir():
                self._take_all(path)
            else:
                node = self._node(path)
                node.content = node.recent()
        self._node(folder).entries = self._entries(folder)

    def _node(self, path: Path) -> _Node:
        number = path.stat().st_ino
        if number not in self._device:
            self._device[number] = _Node(path)
        return self._device[number]

    def _entries(self, folder: Path) -> dict[str, int]:
        return {
            path.name: os.fstat(self._node(path).fd).st_ino
            for path in folder.iterdir()
            if not path.is_socket()
        }

    def holds(self, fd: int) -> bool:
        """Whether a descriptor is one of those that keep a file's number from being given away."""
        return any(node.fd == fd for node in self._device.values())

    def forget(self) -> None:
        """Let go of the files."""
        for node in self._device.values():
            os.close(node.fd)
        self._device.clear()

    # -- what makes durable -------------------------------------------------------------------

    def sync(self, fd: int) -> None:
        path = Path(name_of(fd))
        self._at_sync(f"before sync {path.name}")
        super().sync(fd)
        if not os.fstat(fd).st_nlink:  # it may get a name yet
            path = Path(f"/proc/self/fd/{fd}")
        if path.exists():
            node = self._node(path)
            node.content = node.recent()
        self._at_sync(f"after sync {path.name}")

    def sync_dir(self, path: Path) -> None:
        self._at_sync(f"before sync_dir {path.name}")
        super().sync_dir(path)
        entries = self._entries(path)
        folder = self._node(path)
        for node in self._device.values():  # renamed from another folder: gone there
            if node is not folder and not set(node.entries.values()).isdisjoint(entries.values()):
                node.entries = {
                    name: number
                    for name, number in node.entries.items()
                    if number not in entries.values()
                }
        folder.entries = entries
        self._at_sync(f"after sync_dir {path.name}")

    # -- power loss ---------------------------------------------------------------------------

    def buffer(self, target: Path, chance: random.Random | None = None, share: float = 0) -> Path:
        """The folder after a power loss now. Of the unsynced sectors, ``share`` are there."""
        self._build(target, self._root.stat().st_ino, chance, share)
        return target

    def _build(self, target: Path, number: int, chance: random.Random | None, share: float) -> None:
        target.mkdir()
        for name, child in self._device[number].entries.items():
            node = self._device[child]
            if node.is_folder:
                self._build(target / name, child, chance, share)
                continue
            content = bytearray(node.content)
            if chance is not None:
                recent = node.recent()
                content.extend(bytes(max(0, len(recent) - len(content))))
                for at in range(0, len(recent), SECTOR):
                    if chance.random() < share:
                        content[at : at + SECTOR] = recent[at : at + SECTOR]
            (target / name).write_bytes(content)
