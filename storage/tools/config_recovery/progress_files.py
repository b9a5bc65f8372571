"""Contents of the files of progress: consumerOffset.json, its ``.bak``, and rmqctl's own.

Ours is rmqctl/offsets.log; in a store of an older rmqctl it is rmqctl/offsets.json.

Each file is read by itself: nothing here falls back from one to the other.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from enum import StrEnum
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, NamedTuple

from storage.configs.checksummed_json import unseal
from storage.configs.consumer_offsets import OffsetTable, consumer_offset_file, decode_offsets
from storage.configs.progress_log import NEXT_JAVA, SETTLED, ProgressLog
from storage.configs.progress_reader import (
    OFFSETS_FILE,
    OFFSETS_MARK,
    TABLE_VERSION,
    version_of_mark,
)
from storage.configs.progress_rows import KnownRows
from storage.configs.progress_table import VERSION, ProgressTable
from storage.errors import CorruptFileError, StoreVersionError
from storage.files.bounded import read_with_status
from storage.format.names import OURS
from storage.format.partial_json import loads_torn
from storage.format.shapes import MAX_INT, MAX_LONG, ShapeError

_DIGITS: Final = len(str(MAX_LONG))


class FileState(StrEnum):
    """State of a file."""

    WHOLE = "WHOLE"
    CUT = "CUT"
    """It ends too early, or turns into something else."""
    EMPTY = "EMPTY"
    """No bytes, or blanks and zeros alone."""
    MISSING = "MISSING"


class SavedOffsets(NamedTuple):
    """The whole offsets of one file."""

    path: Path
    state: FileState
    offsets: OffsetTable
    cut_at: int | None
    """The number of the character from which on nothing could be parsed."""
    written_timestamp: int | None
    """When the file was written (ms), by the file system."""

    @property
    def lost(self) -> bool:
        """Whether some of its content may be lost."""
        return self.state is not FileState.WHOLE


class ProgressFiles(NamedTuple):
    """The three files of a store."""

    java: SavedOffsets
    bak: SavedOffsets
    ours: SavedOffsets

    @property
    def lost(self) -> bool:
        """Whether no file has the progress of all groups."""
        return self.java.lost and self.ours.lost


def read_progress_files(root: Path) -> ProgressFiles:
    """Read the files of the store at ``root``; no damage is an error."""
    file = consumer_offset_file(root)
    return ProgressFiles(_read(file.path), _read(file.bak_path), _read_ours(root))


def own_progress_files(root: Path) -> list[str]:
    """Our files, in the order in which they may be put away: the log is missed until the mark has
    gone, and from then on Java's file is the progress."""
    names = [f"{OURS}/{name}" for name in (OFFSETS_FILE, OFFSETS_MARK)]
    return [name for name in names if os.path.lexists(root / name)]


def _content(path: Path) -> SavedOffsets | tuple[bytes, os.stat_result]:
    """The bytes of a file that has some; else what that says of it."""
    try:
        data, status = read_with_status(path)
    except (FileNotFoundError, NotADirectoryError):
        return SavedOffsets(path, FileState.MISSING, {}, None, None)
    except CorruptFileError:
        return SavedOffsets(path, FileState.CUT, {}, 0, None)
    if not data.strip(b"\0 \t\r\n"):
        return SavedOffsets(path, FileState.EMPTY, {}, None, _written(status))
    return data, status


def _written(status: os.stat_result) -> int:
    return status.st_mtime_ns // 1_000_000


def _read(path: Path, *, sealed: bool = False) -> SavedOffsets:
    found = _content(path)
    if isinstance(found, SavedOffsets):
        return found
    data, status = found
    written = _written(status)
    torn = loads_torn(data.decode("utf-8", "surrogateescape"))
    cut_at = torn.cut_at
    document: dict[Any, Any] = torn.document
    if sealed:
        if cut_at is None and not _is_whole(data):  # something in it was changed
            return SavedOffsets(path, FileState.CUT, {}, 0, written)
        offsets = _of_sealed(document)
    else:
        offsets = _of_java(document)
    state = FileState.WHOLE if cut_at is None else FileState.CUT
    return SavedOffsets(path, state, offsets, cut_at, written)


def _read_ours(root: Path) -> SavedOffsets:
    path, mark = root / OURS / OFFSETS_FILE, root / OURS / OFFSETS_MARK
    version = version_of_mark(mark)
    if version is not None and version > VERSION:
        return SavedOffsets(mark, FileState.WHOLE, {}, None, None)  # its readers refuse it
    if version == TABLE_VERSION:
        return _read(mark, sealed=True)
    found = _read_log(path)
    if found.state is not FileState.MISSING:
        return found
    if version is not None:  # the log is lost
        return found._replace(state=FileState.CUT, cut_at=0)
    damaged = _read(mark, sealed=True)
    return found if damaged.state is FileState.MISSING else damaged


def _read_log(path: Path) -> SavedOffsets:
    found = _content(path)
    if isinstance(found, SavedOffsets):
        return found
    data, status = found
    written = _written(status)
    try:
        table = ProgressLog(path, data, status.st_ino, KnownRows).table
        table.read_exported()
    except StoreVersionError:
        return SavedOffsets(path, FileState.WHOLE, {}, None, written)
    except CorruptFileError as error:
        return SavedOffsets(path, FileState.CUT, _of_lines(data), error.position, written)
    return SavedOffsets(path, FileState.WHOLE, table.offsets(), None, written)


def _of_lines(data: bytes) -> OffsetTable:
    """The offsets in the whole lines of a log, and in the whole part of its table.

    Lines after damage count, too: each has what was committed then, and a later one is newer.
    """
    first, *lines = data.split(b"\n")
    found: OffsetTable = {}
    torn = loads_torn(first.decode("utf-8", "surrogateescape"))
    if torn.cut_at is not None or unseal(first) is not None:  # else something in it was changed
        found = _of_sealed(torn.document)
    entries = [entry for line in lines if (entry := unseal(line)) is not None]
    for entry, following in zip_longest(entries, entries[1:]):
        if NEXT_JAVA in entry and (following is None or following.get(SETTLED) is not True):
            continue
        for key, offsets in _of_sealed({"entry": entry}).items():
            found.setdefault(key, {}).update(offsets)
        for key, queue_id in _forgotten(entry):
            found.get(key, {}).pop(queue_id, None)
    return found


def _forgotten(entry: dict[str, Any]) -> Iterator[tuple[str, int]]:
    rows = entry.get("queues")
    for key, queues in rows.items() if isinstance(rows, dict) else ():
        for queue_id, progress in queues.items() if isinstance(queues, dict) else ():
            if isinstance(progress, list) and progress[1:] == [None] and _is_queue(queue_id):
                yield key, int(queue_id)


def _is_whole(data: bytes) -> bool:
    """Whether rmqctl's own file is unchanged since it was written, and its content is valid."""
    entry = unseal(data)
    try:
        return entry is not None and bool(ProgressTable.from_entry(entry))
    except ShapeError:
        return False


def _of_java(document: dict[Any, Any]) -> OffsetTable:
    """The offsets of a document that may have invalid ones."""
    whole: dict[str, dict[Any, Any]] = {}
    rows = document.get("offsetTable")
    if isinstance(rows, dict):
        whole["offsetTable"] = {
            key: {
                queue_id: offset
                for queue_id, offset in queues.items()
                if _is_queue(queue_id) and _is_number(offset)
            }
            for key, queues in rows.items()
            if isinstance(queues, dict)
        }
    rows = document.get("lmqOffsetTable")
    if isinstance(rows, dict):
        whole["lmqOffsetTable"] = {key: at for key, at in rows.items() if _is_number(at)}
    return {
        key: {queue_id: offset for queue_id, offset in queues.items() if offset >= 0}
        for key, queues in decode_offsets(whole).items()
    }


def _is_queue(queue_id: Any) -> bool:
    return _is_number(queue_id) and 0 <= int(queue_id) <= MAX_INT


def _is_number(value: object) -> bool:
    if isinstance(value, str):
        return value.isascii() and value.isdigit() and len(value) < _DIGITS
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_LONG


def _of_sealed(document: dict[Any, Any]) -> OffsetTable:
    """The offsets of a line of our own: ``{"entry":{"queues":{key:{queue:[generation,offset]}}}}``.

    A move in progress is left out: Java's file shows whether it was done.
    """
    entry = document.get("entry")
    rows = entry.get("queues") if isinstance(entry, dict) else None
    table: OffsetTable = {}
    for key, queues in rows.items() if isinstance(rows, dict) else ():
        for queue_id, progress in queues.items() if isinstance(queues, dict) else ():
            known = isinstance(progress, list) and len(progress) == 2
            if known and isinstance(progress[1], int) and _is_queue(queue_id):
                table.setdefault(str(key), {})[int(queue_id)] = progress[1]
    return table
