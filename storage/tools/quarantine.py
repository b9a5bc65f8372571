"""Keeping what a repair removes: nothing is ever deleted.

``<store>/rmqctl/quarantine/<run>/``, where a run is the UTC time and the id of the repairing
process, ``20261121T205900Z-4711``. Inside are the store's own relative paths: whole files as they
were (moved there, or copied where the original stays), and pieces of files as
``<path>@<position>``. ``manifest.jsonl`` has a line of JSON for each:

    path       in the store, with "/"
    position   of the first byte in that file; null for a whole file
    length     in bytes
    crc32      of those bytes (zlib, 8 hex digits)
    why        code of the finding, or what was done
    kept       path below the run's folder
    kind       "moved", "copied" or "bytes"

A piece and its line are on the device before the original changes.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from storage.configs.checksummed_json import json_bytes
from storage.errors import CorruptFileError
from storage.files.bounded import read_bounded
from storage.files.checksum import Checksum, checksum_of, data_of
from storage.files.fs import FileSystem
from storage.format.names import OURS
from storage.format.shapes import check, maybe, members, text, whole
from storage.format.strict_json import loads_strict

QUARANTINE: Final = "quarantine"
MANIFEST: Final = "manifest.jsonl"
_PIECE: Final = members(
    {"kept": text, "why": text, "kind": text},
    {"path": text, "position": maybe(whole(0)), "length": whole(0), "crc32": text},
)


class Quarantine:
    """One run's folder; it is made with the first piece. Needs the right to change the store.

    Paths are relative to the store. Errors are OSError; the store is then as it was.
    """

    def __init__(self, root: Path, now_ms: int, fs: FileSystem | None = None) -> None:
        self._root = root
        self._fs = fs or FileSystem()
        when = datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
        self.run = f"{when}-{os.getpid()}"
        self.folder = root / OURS / QUARANTINE / self.run
        """The folder of this run; made with the first piece."""

    def keep_bytes(self, path: str, position: int, length: int, why: str) -> Path:
        """Copy a piece of a file that is about to be overwritten; gives where it is kept."""
        fs = self._fs
        target = self._place(f"{path}@{position}")
        source = fs.open(self._root / path, writable=False)
        try:
            length = max(0, min(length, fs.size(source) - position))
            crc = self._copy(source, position, length, target)
        finally:
            fs.close(source)
        self._note(path, position, length, crc, why, target, "bytes")
        return target

    def keep_copy(self, path: str, why: str) -> Path:
        """Copy a whole file that is about to be replaced; gives where it is kept."""
        fs = self._fs
        target = self._place(path)
        source = fs.open(self._root / path, writable=False)
        try:
            length = fs.size(source)
            crc = self._copy(source, 0, length, target)
        finally:
            fs.close(source)
        self._note(path, None, length, crc, why, target, "copied")
        return target

    def keep(self, path: str, why: str, *, leave_empty: bool = False) -> Path | None:
        """Keep what is about to be replaced; None if there is nothing.

        A file is copied and stays. What is no file, or only a link to one, is moved: it has no
        bytes to copy, and a file cannot replace a folder. With ``leave_empty`` an empty file takes
        the place of what was moved, where a missing file would mean something else than a damaged
        one.
        """
        original = self._root / path
        if original.is_file() and not original.is_symlink():
            return self.keep_copy(path, why)
        if not os.path.lexists(original):
            return None
        target = self.move(path, why)
        if leave_empty:
            self._fs.touch(original)
        return target

    def move(self, path: str, why: str) -> Path:
        """Move a whole file out of the store, by renaming; gives where it is kept.

        An object that is no file, such as a folder or a dangling link, counts no bytes. A caller
        that moves queue files first calls storage.coordination.exclusive.distrust_shared_state.
        """
        fs = self._fs
        original = self._root / path
        target = self._place(path)
        found = checksum_of(fs, original) if original.is_file() else Checksum()
        self._note(path, None, found.length, found.value, why, target, "moved")
        fs.rename(original, target)
        fs.sync_dir(target.parent)
        fs.sync_dir(original.parent)
        return target

    # -- inside -------------------------------------------------------------------------------

    def _place(self, name: str) -> Path:
        """A free name below the run's folder; its folders exist and are on the device."""
        target = self.folder / name
        folder = target.parent
        missing = []
        while not folder.exists():
            missing.append(folder)
            folder = folder.parent
        if missing:
            self._fs.make_dirs(target.parent)
            for made in missing:
                self._fs.sync_dir(made.parent)
        number = 0
        while target.is_symlink() or target.exists():
            number += 1
            target = self.folder / f"{name}.{number}"
        return target

    def _copy(self, source: int, position: int, length: int, target: Path) -> int:
        """Copy bytes and sync them; holes are not read and stay holes. Gives their CRC."""
        fs = self._fs
        fd = fs.open(target, writable=True, create=True)
        try:
            fs.set_length(fd, length)
            found = Checksum()
            for place, block in data_of(fs, source, position, position + length):
                at = place - position
                found.add_zeros(at - found.length)
                found.add(block)
                if block.count(0) < len(block):
                    fs.write(fd, block, at)
            found.add_zeros(length - found.length)
            fs.sync(fd)
        finally:
            fs.close(fd)
        fs.sync_dir(target.parent)
        return found.value

    def _note(
        self,
        path: str,
        position: int | None,
        length: int,
        crc: int,
        why: str,
        kept: Path,
        kind: str,
    ) -> None:
        fields = {
            "path": path,
            "position": position,
            "length": length,
            "crc32": f"{crc:08x}",
            "why": why,
            "kept": str(kept.relative_to(self.folder)),
            "kind": kind,
        }
        line = json_bytes(json.dumps(fields, ensure_ascii=False)) + b"\n"
        fs = self._fs
        fd = fs.open(self.folder / MANIFEST, writable=True, create=True)
        try:
            end = fs.size(fd)
            fs.write(fd, line, end)
            fs.sync(fd)
        finally:
            fs.close(fd)
        if not end:
            fs.sync_dir(self.folder)


def read_manifest(folder: Path) -> list[dict[str, object]]:
    """The contents of a run's folder; an incomplete line is left out."""
    pieces = []
    try:
        lines = read_bounded(folder / MANIFEST).splitlines()
    except (FileNotFoundError, NotADirectoryError, CorruptFileError):
        return []
    for line in lines:
        try:
            piece = loads_strict(line, escaped_bytes=True)
            check(piece, _PIECE)
        except ValueError:
            continue
        pieces.append(piece)
    return pieces
