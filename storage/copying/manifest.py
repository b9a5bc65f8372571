"""What a snapshot says of itself: ``manifest.json``, beside the files of the store.

One line of JSON with a check sum (sealed_json): the version, the moment, the cut, the ends of the
queues, and each file with length, CRC-32 and modification time. FORMAT.md, chapter 9, has an
example. A folder with this file in it is a snapshot: it can be read like any store, but not be
opened for writing, because what it says of its files would be wrong then.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple, Self

from storage.configs.sealed_json import seal, unseal
from storage.errors import DamagedSnapshotError, StoreVersionError
from storage.format.names import SNAPSHOT_MANIFEST

VERSION: Final = 1


class SnapshotFile(NamedTuple):
    """One file: its path below the store, bytes, CRC-32 (zlib's), modification time in ns."""

    path: str
    length: int
    crc32: int
    modified_ns: int

    @property
    def part(self) -> str:
        """The folder of the store that it belongs to, or its own name."""
        return self.path.partition("/")[0]


class SnapshotQueue(NamedTuple):
    """Where a queue ends in the snapshot; its messages are at min_offset .. max_offset - 1."""

    topic: str
    queue_id: int
    min_offset: int
    max_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """All that is known of a snapshot. Times are ms, offsets commit log bytes."""

    at_timestamp: int
    """When it was begun."""
    source: str
    """The folder of the store that it was taken from."""
    log_min: int
    """First offset of the log."""
    log_end: int
    """The cut: all records before it are in the snapshot, none behind it."""
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

    def pack(self) -> bytes:
        """The content of the file."""
        entry = {"version": VERSION, **asdict(self)}
        entry["files"] = [list(file) for file in self.files]
        entry["queues"] = [list(queue) for queue in self.queues]
        return seal(entry) + b"\n"

    @classmethod
    def unpack(cls, data: bytes, path: Path) -> Self:
        """Read what :meth:`pack` wrote; ``path`` is for the sentence of an error.

        Raises DamagedSnapshotError and StoreVersionError.
        """
        entry = unseal(data)
        if entry is None:
            raise DamagedSnapshotError(path, 0, "the check sum of the manifest is wrong")
        if entry["version"] > VERSION:
            raise StoreVersionError(path, entry["version"], VERSION)
        files = tuple(SnapshotFile(*file) for file in entry.pop("files"))
        queues = tuple(SnapshotQueue(*queue) for queue in entry.pop("queues"))
        for file in files:
            parts = PurePosixPath(file.path).parts
            if not parts or ".." in parts or parts[0] == "/" or "\0" in file.path:
                raise DamagedSnapshotError(path, 0, f"{file.path!r} is no place within a store")
        known = {name: entry[name] for name in cls.__slots__ if name in entry}
        return cls(**{**known, "files": files, "queues": queues})


def is_snapshot(root: Path) -> bool:
    """Whether the folder is a snapshot."""
    return (root / SNAPSHOT_MANIFEST).is_file()
