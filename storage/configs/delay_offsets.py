"""delayOffset.json: how far the delivery of delayed messages is (ScheduleMessageService of 4.9).

{"offsetTable":{level: next offset of queue level - 1 of SCHEDULE_TOPIC_XXXX, ...}}
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from storage.errors import StoreNotWritableError
from storage.files.fs import FileSystem
from storage.format.java_numbers import java_int, java_long
from storage.format.names import CONFIG
from storage.platform.syncing import sync_whole

from .config_file import ConfigFile, FileIdent, JsonObject, encoded, ident_of, write_synced

DELAY_OFFSET_FILE: Final = "delayOffset.json"


def delay_offset_file(root: Path, fs: FileSystem | None = None) -> ConfigFile:
    """Give the file of the store at ``root``."""
    return ConfigFile(root / CONFIG / DELAY_OFFSET_FILE, fs, check=decode_delay_offsets)


def load_delay_offsets(root: Path) -> dict[int, int]:
    """Read the next offset to deliver of each delay level (1-based); absent means 0.

    Java clamps them to the queue's bounds when it loads them. Raises CorruptFileError.
    """
    return decode_delay_offsets(delay_offset_file(root).load().document)


def save_delay_offsets(
    root: Path, offsets: Mapping[int, int], fs: FileSystem | None = None
) -> bool:
    """Replace the offsets in the file; False if it holds them already. One writer at a time.

    On the device when this returns. Members that only other versions know stay. Raises
    CorruptFileError and StoreNotWritableError.
    """
    file = delay_offset_file(root, fs)
    document = file.load().document
    return file.save({**document, "offsetTable": dict(sorted(offsets.items()))})


def decode_delay_offsets(document: JsonObject) -> dict[int, int]:
    """Take the offsets out of a document; ValueError or TypeError for what Java could not read."""
    table = document.get("offsetTable") or {}
    if not isinstance(table, dict):
        raise ValueError("offsetTable is no object")
    return {java_int(level): java_long(offset) for level, offset in table.items()}


def _table_alone(table: Mapping[int, int]) -> bytes:
    """What ``encoded`` gives for a document of the table, in a twentieth of the time."""
    entries = ",".join([f"{level}:{offset}" for level, offset in table.items()])
    return f'{{\n\t"offsetTable":{{{entries}\n\t}}\n}}'.encode()


class DelayOffsetFile:
    """The file for its one writer, which writes it often. Safe for threads.

    While a table takes as many bytes as the one before, it is written over that in one call, and
    synced when ``sync`` is called: a process that reads it, or a power loss, gets the old numbers
    or the new ones. Any other change replaces the file, and is on the device at once.
    """

    def __init__(self, root: Path, fs: FileSystem | None = None) -> None:
        self._root = root
        self._fs = fs or FileSystem()
        self._path = root / CONFIG / DELAY_OFFSET_FILE
        self._lock = threading.Lock()  # guards all below
        self._document: JsonObject = {}
        self._text = b""
        self._ident: tuple[int, int] | None = None  # inode and size of what is open
        self._fd: int | None = None
        self._is_synced = True

    def load(self) -> dict[int, int]:
        """Read the offsets; see load_delay_offsets."""
        return load_delay_offsets(self._root)

    def write(self, offsets: Mapping[int, int]) -> None:
        """Write the offsets. Raises CorruptFileError and StoreNotWritableError."""
        with self._lock:
            if self._fd is not None and self._is_there(ident_of(self._path)):
                text = self._encoded(offsets)
                if len(text) == len(self._text):
                    self._write_over(text)
                    return
            self._close()
            save_delay_offsets(self._root, offsets, self._fs)
            self._open()

    def sync(self) -> None:
        """Sync what was written to the device, and a copy of it in the ``.bak``.

        Raises StoreNotWritableError.
        """
        fd = None
        try:
            with self._lock:
                if self._fd is None or self._is_synced:
                    return
                fd, text = os.dup(self._fd), self._text
                self._is_synced = True
            sync_whole(fd)
            bak = delay_offset_file(self._root).bak_path
            self._fs.rename(write_synced(self._fs, bak, text), bak)
        except OSError as error:
            self._is_synced = False
            raise StoreNotWritableError(self._path, error.strerror or str(error)) from error
        finally:
            if fd is not None:
                os.close(fd)

    def close(self) -> None:
        """Release the file. Twice is fine; a later write opens it again."""
        with self._lock:
            self._close()

    def _is_there(self, ident: FileIdent | None) -> bool:
        return ident is not None and (ident.inode, ident.size) == self._ident

    def _encoded(self, offsets: Mapping[int, int]) -> bytes:
        """Give the file's bytes; quickly where it has only the offsets."""
        table = dict(sorted(offsets.items()))
        if len(self._document) == 1:
            return _table_alone(table)
        return encoded({**self._document, "offsetTable": table})

    def _write_over(self, text: bytes) -> None:
        assert self._fd is not None
        try:
            os.pwrite(self._fd, text, 0)
        except OSError as error:
            raise StoreNotWritableError(self._path, error.strerror or str(error)) from error
        self._text, self._is_synced = text, False

    def _open(self) -> None:
        """Keep the file that was just written open. Where that fails, each write replaces the
        file."""
        with suppress(OSError):
            fd = os.open(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                self._text = os.pread(fd, 1 << 20, 0)
                status = os.fstat(fd)
                document = delay_offset_file(self._root).load().document
                known = decode_delay_offsets(document)
                self._document = document
                if encoded(document) == self._text == self._encoded(known):
                    self._document, self._ident = document, (status.st_ino, status.st_size)
                    self._fd, fd = fd, -1
            finally:
                if fd >= 0:
                    os.close(fd)

    def _close(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            with suppress(OSError):
                os.close(fd)
