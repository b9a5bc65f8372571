"""One ``config/*.json`` file: read with its ``.bak``, replaced in one step.

RocketMQ's ConfigManager and MixAll.string2File. What differs: the broker of 4.9 deletes the file
before it renames the new one into place and syncs nothing; here the file is there at every moment
and its content is on the device when ``save`` returns. The result is the same set of files with the
same bytes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

from storage.errors import CorruptFileError, StoreNotWritableError
from storage.files.bounded import read_with_status
from storage.files.fs import FileSystem
from storage.format.fastjson import dumps, loads

BAK_SUFFIX: Final = ".bak"
MAX_CONFIG_SIZE: Final = 64 << 20
"""Bytes; a larger file is taken for damage instead of being read into memory."""

JsonObject = dict[str, Any]


class ConfigSource(StrEnum):
    """Where the content of a configuration came from."""

    FILE = "FILE"
    BAK = "BAK"
    NONE = "NONE"
    """Neither file has content: RocketMQ goes on with its defaults."""


class FileIdent(NamedTuple):
    """The values that change when a file is replaced; good for caching, not for deciding what to
    write."""

    mtime_ns: int
    size: int
    inode: int


class LoadedConfig(NamedTuple):
    """A parsed file. ``ident`` is that of the main file when it was read, None if it is missing.
    ``made``: what the file's ``check`` gave."""

    document: JsonObject
    source: ConfigSource
    ident: FileIdent | None
    made: Any = None


class ConfigFile:
    """A JSON file that RocketMQ's ConfigManager owns. Holds no state but its path.

    Replacing it needs a lock of the caller (the write lock, or the lock of progress): two writers
    at once would lose one of their changes.
    """

    def __init__(
        self,
        path: Path,
        fs: FileSystem | None = None,
        check: Callable[[JsonObject], object] | None = None,
    ) -> None:
        """Name the file; ``check`` raises ValueError for a document that Java could not read."""
        self.path = path
        self._name = str(path)  # used once a message
        self._check = check
        self._fs = fs or FileSystem()

    @property
    def bak_path(self) -> Path:
        """Where the content before the last change is kept."""
        return self.path.with_name(self.path.name + BAK_SUFFIX)

    def ident(self) -> FileIdent | None:
        """Give the main file's identity, None if there is none."""
        return ident_of(self._name)

    def load(self) -> LoadedConfig:
        """Read the file; if it is missing, empty or does not parse, its ``.bak``.

        Both missing or empty gives an empty document (ConfigManager.load). Content that does not
        parse and has no readable ``.bak`` raises CorruptFileError: RocketMQ would go on with
        its defaults and write them over what can perhaps be saved.
        """
        text, ident = _read(self.path)
        parsed = self._parse(text)
        if parsed is not None:
            return LoadedConfig(parsed[0], ConfigSource.FILE, ident, parsed[1])
        bak_text, _ = _read(self.bak_path)
        parsed = self._parse(bak_text)
        if parsed is not None:
            return LoadedConfig(parsed[0], ConfigSource.BAK, ident, parsed[1])
        for path, content in ((self.path, text), (self.bak_path, bak_text)):
            if content.strip():
                raise CorruptFileError(path, 0, "its content is not the JSON that RocketMQ writes")
        return LoadedConfig({}, ConfigSource.NONE, ident)

    def save(self, document: JsonObject) -> bool:
        """Replace the file, keeping what it held as ``.bak``; False if it holds exactly that
        already.

        Order: temporary file, sync; ``.bak`` likewise; rename; sync of the folder. A death in
        between leaves the old file. A main file that does not parse never becomes the ``.bak``.
        Raises StoreNotWritableError, and nothing has changed then, unless only the sync of
        the folder that failed.
        """
        data = encoded(document)
        text, _ = _read(self.path)
        old = text.encode("utf-8", "surrogateescape")
        if data == old:
            return False
        try:
            self._fs.make_dirs(self.path.parent)
            staged = write_synced(self._fs, self.path, data)
            try:
                if self._parse(text) is not None:
                    replace_file(self._fs, self.bak_path, old)
                self._fs.rename(staged, self.path)
            except BaseException:
                give_up(self._fs, staged)
                raise
            self._fs.sync_dir(self.path.parent)
        except OSError as error:
            raise StoreNotWritableError(self.path, error.strerror or str(error)) from error
        return True

    def _parse(self, text: str) -> tuple[JsonObject, Any] | None:
        """Parse text that RocketMQ could parse, and check it; None for everything else."""
        if not text.strip():
            return None
        try:
            document = loads(text)
            if not isinstance(document, dict):
                return None
            made = None if self._check is None else self._check(document)
        except (ValueError, TypeError, OverflowError, RecursionError):
            return None
        return document, made


def encoded(document: JsonObject) -> bytes:
    """Give the bytes of a document as RocketMQ writes them."""
    return dumps(document).encode("utf-8", "surrogateescape")


def ident_of(path: Path | str) -> FileIdent | None:
    """Give a file's identity, None if there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 - a third of the time, once a message
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:  # circular links: the reader reports it
            return None
        raise
    return FileIdent(status.st_mtime_ns, status.st_size, status.st_ino)


def write_synced(fs: FileSystem, target: Path, data: bytes) -> Path:
    """Put ``data`` on the device in a file beside ``target``; gives the path to rename from, which
    the caller removes if it is not renamed (:func:`give_up`)."""
    fd, staged = _stage(fs, target, data)
    fs.close(fd)
    return staged


def replace_file(fs: FileSystem, target: Path, data: bytes) -> None:
    """Set the content of ``target`` to ``data``, in one step. The folder must still be synced."""
    fd, staged = _stage(fs, target, data)
    try:
        fs.rename(staged, target)
    except BaseException:
        give_up(fs, staged)
        raise
    finally:
        fs.close(fd)  # only now: a file that is open is not taken for one that was left


def _stage(fs: FileSystem, target: Path, data: bytes) -> tuple[int, Path]:
    """Put ``data`` on the device in a file beside ``target``; gives the open file and its path."""
    fd, staged = fs.create_beside(target)
    try:
        fs.write(fd, data, 0)
        fs.sync(fd)
    except BaseException:
        give_up(fs, staged)
        fs.close(fd)
        raise
    return fd, staged


def give_up(fs: FileSystem, staged: Path) -> None:
    """Remove a file that does not get its name; a file that cannot be removed is left."""
    with suppress(OSError):
        fs.unlink(staged)


def _read(path: Path) -> tuple[str, FileIdent | None]:
    """Read a file that may be missing; the identity is that of the bytes that were read."""
    try:
        data, status = read_with_status(path, MAX_CONFIG_SIZE)
    except (FileNotFoundError, NotADirectoryError):
        return "", None
    # A 4.9 broker writes in the platform's charset: bytes that are not UTF-8 must survive.
    text = data.decode("utf-8", "surrogateescape")
    return text, FileIdent(status.st_mtime_ns, status.st_size, status.st_ino)
