"""Contents of the files of progress: consumerOffset.json, its ``.bak``, rmqctl/offsets.json.

Each file is read by itself: nothing here falls back from one to the other.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

from storage.configs.checksummed_json import unseal
from storage.configs.consumer_offsets import OffsetTable, consumer_offset_file, decode_offsets
from storage.configs.progress import OFFSETS_FILE
from storage.configs.progress_table import ProgressTable
from storage.errors import CorruptFileError
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
    return ProgressFiles(
        _read(file.path), _read(file.bak_path), _read(root / OURS / OFFSETS_FILE, sealed=True)
    )


def _read(path: Path, *, sealed: bool = False) -> SavedOffsets:
    try:
        data, status = read_with_status(path)
    except (FileNotFoundError, NotADirectoryError):
        return SavedOffsets(path, FileState.MISSING, {}, None, None)
    except CorruptFileError:
        return SavedOffsets(path, FileState.CUT, {}, 0, None)
    written = status.st_mtime_ns // 1_000_000
    if not data.strip(b"\0 \t\r\n"):
        return SavedOffsets(path, FileState.EMPTY, {}, None, written)
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


def _is_whole(data: bytes) -> bool:
    """Whether rmqctl's own file is unchanged since it was written, and its content is valid."""
    entry = unseal(data)
    try:
        return entry is not None and bool(ProgressTable.from_entry(entry))
    except ShapeError:
        return False


def _of_java(document: dict[Any, Any]) -> OffsetTable:
    """The offsets of a document that may have invalid rows."""
    whole = {
        name: {key: queues for key, queues in rows.items() if _is_row(queues)}
        for name, rows in document.items()
        if isinstance(rows, dict)
    }
    return {
        key: {queue_id: offset for queue_id, offset in queues.items() if offset >= 0}
        for key, queues in decode_offsets(whole).items()
    }


def _is_row(queues: object) -> bool:
    if isinstance(queues, dict):
        return all(
            _is_number(queue_id) and 0 <= int(queue_id) <= MAX_INT and _is_number(offset)
            for queue_id, offset in queues.items()
        )
    return _is_number(queues)


def _is_number(value: object) -> bool:
    if isinstance(value, str):
        return value.isascii() and value.isdigit() and len(value) < _DIGITS
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_LONG


def _of_sealed(document: dict[Any, Any]) -> OffsetTable:
    """The offsets of rmqctl's own file: ``{"entry":{"queues":{key:{queue:[generation,offset]}}}}``.

    A move in progress is left out: Java's file shows whether it was done.
    """
    entry = document.get("entry")
    rows = entry.get("queues") if isinstance(entry, dict) else None
    table: OffsetTable = {}
    for key, queues in rows.items() if isinstance(rows, dict) else ():
        for queue_id, progress in queues.items() if isinstance(queues, dict) else ():
            known = isinstance(progress, list) and len(progress) == 2
            if known and isinstance(progress[1], int) and _is_number(queue_id):
                table.setdefault(str(key), {})[int(queue_id)] = progress[1]
    return table
