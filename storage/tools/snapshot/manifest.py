"""The description of a snapshot: ``manifest.json``, beside the files of the store.

One line of JSON with a check sum (sealed_json): the version, the moment, the cut, the ends of the
queues, and each file with length, CRC-32 and modification time. FORMAT.md, chapter 9, has an
example. A folder with this file in it is a snapshot: it can be read like any store, but not be
opened for writing, because the file's entries would be wrong then.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from storage.config import FIXED_FIELDS, StoreConfig
from storage.configs.checksummed_json import SealError, examine, seal
from storage.errors import DamagedSnapshotError, StoreVersionError
from storage.format.errors import FormatError
from storage.format.index_file import index_file_size
from storage.format.names import SNAPSHOT_MANIFEST
from storage.format.shapes import MAX_INT, check, flag, items, members, rows, text, whole
from storage.format.versions import FORMATS

VERSION: Final = FORMATS["snapshot"]
MAX_MANIFEST: Final = 64 << 20
"""Bytes; a larger manifest is not read."""
_MAX_FILE: Final = 1 << 44
"""Bytes of the largest file that usual file systems can hold."""
_LONGEST_NAME: Final = 255
_LEAST_ROW: Final = 12
"""Bytes of the shortest row of a manifest."""
_MOST_ROWS: Final = 1 << 21
"""Files and queues of the largest snapshot that is read: about as many as MAX_MANIFEST holds."""
_IN_ROW: Final = 4
"""Values in a row."""
_BESIDE_ROWS: Final = 1_000
"""More values than a manifest has beside its rows."""
_PIECE: Final = 64 << 10
_VERSIONED: Final = members({"version": whole(1, 1_000)})
_SIZES: Final = members(
    {name: flag if name == "message_index_enable" else whole(1, MAX_INT) for name in FIXED_FIELDS}
)
_SHAPE: Final = members(
    {
        "at_timestamp": whole(),
        "source": text,
        "log_min": whole(0),
        "log_end": whole(0),
        "whole": flag,
        "sizes": _SIZES,
        "queues": rows(items(text, whole(0, MAX_INT), whole(0), whole(0))),
        "files": rows(items(text, whole(0, _MAX_FILE), whole(0, (1 << 32) - 1), whole(0))),
    }
)


class SnapshotFile(NamedTuple):
    """One file: its path below the store, bytes, CRC-32 (zlib's), modification time in ns."""

    path: str
    length: int
    crc32: int
    modified_ns: int

    @property
    def part(self) -> str:
        """The folder of the store that holds it, or its own name."""
        return self.path.partition("/")[0]


class SnapshotQueue(NamedTuple):
    """Where a queue ends in the snapshot; its messages are at min_offset .. max_offset - 1."""

    topic: str
    queue_id: int
    min_offset: int
    max_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The data of a snapshot. Times are ms, offsets commit log bytes."""

    at_timestamp: int
    """Time of its beginning."""
    source: str
    """The folder of the store that it was taken from."""
    log_min: int
    """First offset of the log."""
    log_end: int
    """The cut: all records before it are in the snapshot, none after it."""
    whole: bool
    """Whether the log can be walked up to the cut; False for a copy of a damaged store."""
    sizes: dict[str, Any]
    """Lengths of the files, by the names of StoreConfig."""
    queues: tuple[SnapshotQueue, ...]
    files: tuple[SnapshotFile, ...]

    @property
    def messages(self) -> int:
        """How many messages the queues hold."""
        return sum(queue.max_offset - queue.min_offset for queue in self.queues)

    @property
    def size_bytes(self) -> int:
        """Lengths of all files together, holes included."""
        return sum(file.length for file in self.files)

    @property
    def longest_file(self) -> int:
        """Bytes of the longest file that a store of these sizes makes; larger holes are not its
        own."""
        config = StoreConfig(**self.sizes)
        return max(
            config.mapped_file_size_commit_log,
            config.mapped_file_size_consume_queue,
            index_file_size(config.max_hash_slot_num, config.max_index_num),
        )

    def pack(self) -> bytes:
        """The content of the file."""
        entry = {"version": VERSION, **asdict(self)}
        entry["files"] = [list(file) for file in self.files]
        entry["queues"] = [list(queue) for queue in self.queues]
        return seal(entry) + b"\n"

    @classmethod
    def unpack(cls, data: bytes, path: Path) -> Self:
        """Read what :meth:`pack` wrote; ``path`` is for error messages.

        Raises DamagedSnapshotError and StoreVersionError.
        """
        if len(data) > MAX_MANIFEST:
            raise too_large(path, len(data))
        if not _may_be_manifest(data):
            raise DamagedSnapshotError(path, 0, "its manifest has other rows than a snapshot's")
        try:
            entry = examine(data, _VERSIONED)
            if entry["version"] > VERSION:
                raise StoreVersionError(path, entry["version"], VERSION)
            check(entry, _SHAPE)
            sizes = {name: entry["sizes"][name] for name in FIXED_FIELDS}
            StoreConfig(**sizes)
        except (SealError, FormatError, ValueError) as error:
            reason = f"its manifest is none: {error}"
            raise DamagedSnapshotError(path, 0, reason) from None
        files = tuple(SnapshotFile(*file) for file in entry.pop("files"))
        queues = tuple(SnapshotQueue(*queue) for queue in entry.pop("queues"))
        _check_places(files, path)
        known = {name: entry[name] for name in cls.__slots__ if name in entry}
        return cls(**{**known, "sizes": sizes, "files": files, "queues": queues})


def _may_be_manifest(data: bytes) -> bool:
    """Whether a text has as many lists, objects and values as a manifest of its length may have.

    Small values take twenty times the memory of their text, so they are counted first.
    """
    brackets = data.count(b"[") + data.count(b"{")
    if brackets > len(data) // _LEAST_ROW + 8:
        return False
    most = _IN_ROW * min(brackets, _MOST_ROWS + _BESIDE_ROWS) + _BESIDE_ROWS
    rows = values = 0
    within = False  # a text: what is in a name counts for nothing
    rest = b""
    for start in range(0, len(data), _PIECE):
        piece = rest + data[start : start + _PIECE]
        ending = len(piece) - len(piece.rstrip(b"\\"))
        rest = piece[len(piece) - ending :]  # the next piece has what they escape
        piece = piece[: len(piece) - ending].replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = piece.split(b'"')
        for outside in parts[within::2]:
            rows += outside.count(b"[") + outside.count(b"{")
            values += outside.count(b",") + outside.count(b":")
        within ^= len(parts) % 2 == 0
        if values > most or rows > _MOST_ROWS + _BESIDE_ROWS or len(rest) > _PIECE:
            return False
    return values <= _IN_ROW * rows + _BESIDE_ROWS


def too_large(path: Path, size: int) -> DamagedSnapshotError:
    """The error for a manifest of so many bytes."""
    reason = f"its manifest has {size} bytes, more than the {MAX_MANIFEST} that are read"
    return DamagedSnapshotError(path, 0, reason)


def _check_places(files: tuple[SnapshotFile, ...], manifest: Path) -> None:
    """Raise DamagedSnapshotError unless each file has a unique place within a store."""
    folders: set[str] = set()
    names: set[str] = set()
    for file in files:
        parts = file.path.split("/")
        try:
            lengths = [len(os.fsencode(part)) for part in parts]
        except UnicodeEncodeError:
            lengths = [0]
        if (
            not all(0 < length <= _LONGEST_NAME for length in lengths)
            or not {".", ".."}.isdisjoint(parts)
            or "\0" in file.path
            or file.path in names
            or file.path == SNAPSHOT_MANIFEST
        ):
            reason = f"{file.path!r} is no place of a file within a store"
            raise DamagedSnapshotError(manifest, 0, reason)
        names.add(file.path)
        at = file.path.rfind("/")
        while at > 0 and file.path[:at] not in folders:
            folders.add(file.path[:at])
            at = file.path.rfind("/", 0, at)
    both = names & folders
    if both:
        reason = f"{min(both)!r} is a file and a folder"
        raise DamagedSnapshotError(manifest, 0, reason)


def is_snapshot(root: Path) -> bool:
    """Whether the folder is a snapshot."""
    return (root / SNAPSHOT_MANIFEST).is_file()
