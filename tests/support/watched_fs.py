"""A file system that sees every instant at which a writer can die.

An instant lies before each store to a map, each word of the shared state and each call that changes
files; stores and writes of more than a word have one in their middle, too (a torn store).
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from storage.coordination.shared_state import SLOTS, WORD_NAMES
from storage.files.fs import FileSystem


class Instant(NamedTuple):
    """What is about to happen: ``kind`` is "word", "map", "torn map" or a call's name."""

    number: int
    kind: str
    what: str
    value: int = 0


class WatchedMap(mmap.mmap):
    """A map that reports each store."""

    watcher: WatchedFileSystem
    name: str

    def __setitem__(self, index: Any, value: Any) -> None:
        watcher = self.watcher
        watcher.at("map", self.name)
        if isinstance(index, slice) and len(value) > 8:
            start = index.start or 0
            middle = len(value) // 2
            super().__setitem__(slice(start, start + middle), value[:middle])
            watcher.at("torn map", self.name)
            super().__setitem__(slice(start + middle, start + len(value)), value[middle:])
            return
        super().__setitem__(index, value)


class WatchedWords:
    """The words of the shared state; reports each store. One word is never torn."""

    def __init__(self, watcher: WatchedFileSystem, words: memoryview) -> None:
        self._watcher = watcher
        self._words = words

    def __getitem__(self, index: int) -> int:
        return int(self._words[index])

    def __setitem__(self, index: int, value: int) -> None:
        name = WORD_NAMES.get(index, f"{index}")
        if index >= SLOTS // 8:
            name = "next offset" if index % 2 == 0 else "synced offset"
        self._watcher.at("word", name, value)
        self._words[index] = value


class WatchedFileSystem(FileSystem):
    """Calls ``watch`` with each instant; ``watch`` may kill, copy or raise OSError."""

    def __init__(self, watch: Callable[[Instant], None]) -> None:
        self._watch = watch
        self.count = 0

    def at(self, kind: str, what: str | Path, value: int = 0) -> None:
        self.count += 1
        self._watch(Instant(self.count, kind, str(what), value))

    def map(self, fd: int, length: int, *, writable: bool) -> mmap.mmap:
        if not writable:
            return super().map(fd, length, writable=False)
        found = WatchedMap(fd, length, access=mmap.ACCESS_WRITE)
        found.watcher = self
        found.name = name_of(fd)
        return found

    def words(self, mapped: mmap.mmap) -> Any:
        return WatchedWords(self, super().words(mapped))

    def write(self, fd: int, data: bytes | bytearray | memoryview, offset: int) -> None:
        self.at("write", name_of(fd), offset)
        middle = len(data) // 2 if len(data) > 8 else 0
        if middle:
            super().write(fd, memoryview(data)[:middle], offset)
            self.at("torn write", name_of(fd), offset + middle)
        super().write(fd, memoryview(data)[middle:], offset + middle)

    def open(self, path: Path, *, writable: bool, create: bool = False) -> int:
        if create:
            self.at("create", path)
        return super().open(path, writable=writable, create=create)

    def create_beside(self, path: Path, folder: Path | None = None) -> tuple[int, Path]:
        self.at("create", path)
        return super().create_beside(path, folder)

    def open_nameless(self, folder: Path) -> int:
        self.at("create", folder / "nameless")
        return super().open_nameless(folder)

    def give_name(self, fd: int, path: Path) -> None:
        self.at("link", path)
        super().give_name(fd, path)

    def set_length(self, fd: int, length: int) -> None:
        self.at("set_length", name_of(fd), length)
        super().set_length(fd, length)

    def reserve(self, fd: int, offset: int, length: int) -> None:
        self.at("reserve", name_of(fd), offset)
        super().reserve(fd, offset, length)

    def sync(self, fd: int) -> None:
        self.at("sync", name_of(fd))
        super().sync(fd)

    def sync_dir(self, path: Path) -> None:
        self.at("sync_dir", path)
        super().sync_dir(path)

    def sync_all(self, path: Path) -> None:
        self.at("sync_all", path)
        super().sync_all(path)

    def rename(self, source: Path, target: Path) -> None:
        self.at("rename", target)
        super().rename(source, target)

    def unlink(self, path: Path) -> None:
        self.at("unlink", path)
        super().unlink(path)

    def link(self, source: Path, name: Path) -> None:
        self.at("link", name)
        super().link(source, name)

    def make_dirs(self, path: Path) -> None:
        self.at("make_dirs", path)
        super().make_dirs(path)

    def touch(self, path: Path) -> None:
        self.at("touch", path)
        super().touch(path)

    def set_modified(self, path: Path, timestamp_ms: int) -> None:
        self.at("set_modified", path)
        super().set_modified(path, timestamp_ms)


def name_of(fd: int) -> str:
    """Path of an open file, as the kernel names it."""
    return str(Path(f"/proc/self/fd/{fd}").readlink())
