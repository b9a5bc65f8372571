"""The change journal: moves of offsets and changes of settings, in append-only files.

``<store>/rmqctl/journal/00000001.jsonl`` and so on, each line an entry with a checksum
(checksummed_json). Readers skip a line that a death or a full disk left torn; the next writer
begins a new line after it. Its writers number the entries from 1 without gaps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from storage.coordination.locks import ProcessLock
from storage.errors import StoreNotWritableError
from storage.files.bounded import read_bounded
from storage.files.fs import FileSystem
from storage.format.names import OURS
from storage.format.shapes import (
    MAX_COUNT,
    MAX_INT,
    MAX_TIME,
    Shape,
    anything,
    items,
    maybe,
    members,
    rows,
    table,
    text,
    whole,
)

from .checksummed_json import seal, unseal

JOURNAL_FOLDER: Final = "journal"
JOURNAL_LOCK: Final = "journal.lock"
MAX_FILE_SIZE: Final = 4 << 20
"""Bytes; a file that has reached this length is followed by a new one."""

CHANGE_ID: Final = "change_id"
AT_TIMESTAMP: Final = "at_timestamp"
MOVES: Final = "moves"
PREVIOUS: Final = "previous"
UNDO_OF: Final = "undo_of"

ACK: Final = "ack"
"""``what`` of an entry of a user's marks of dead letters: ``new`` were set, or ``old`` removed."""
REDRIVE: Final = "redrive"
"""``what`` of an entry of a run that redrives dead letters."""
SETTLE: Final = "settle"
"""``what`` of an entry of marks that are set late, of what a killed redrive had sent."""

_MOVE: Final = members(
    {
        "group": text,
        "topic": text,
        "queue_id": whole(0, MAX_INT),
        "old": maybe(whole()),
        "new": maybe(whole()),
    },
    {"generation": whole(0)},
)
_RANGES: Final = table(rows(items(whole(0), whole(0))), ids=True)
_MARKED: Final = maybe(members({"handled": _RANGES}))
_SETTLED: Final = members({"run": text, "handled": _RANGES})
_MARKS: Final = {
    ACK: members({"old": _MARKED, "new": _MARKED}),
    SETTLE: members({"new": _SETTLED}),
}
_ENTRY: Final = members(
    {CHANGE_ID: whole(1, MAX_COUNT), AT_TIMESTAMP: whole(0, MAX_TIME)},
    {
        "command": maybe(text),
        "user": maybe(text),
        "host": maybe(text),
        "reason": maybe(text),
        "group": maybe(text),
        "topic": maybe(text),
        "what": maybe(text),
        "old": anything,
        "new": anything,
        "undo_of": maybe(whole(1)),
        "previous": maybe(whole(1)),
        "moves": rows(_MOVE),
    },
)


def _entry_shape(value: Any, place: str) -> None:
    _ENTRY(value, place)
    if value.get("what") in _MARKS:
        _MARKS[value["what"]](value, place)


JOURNAL_ENTRY: Final[Shape] = _entry_shape
"""The shape of every line of the journal; rmqctl.admin.journal_entry explains the members."""


def is_topic_deletion(entry: Mapping[str, Any]) -> bool:
    """Whether an entry is that of the deletion of a topic, by whatever command."""
    is_of_settings = entry.get("what") is None and not entry.get(MOVES)
    return (
        is_of_settings
        and entry.get("topic") is not None
        and "new" in entry
        and entry["new"] is None
    )


class Journal:
    """The journal of one store. Safe for threads and processes; holds no descriptor open."""

    def __init__(self, root: Path, fs: FileSystem | None = None) -> None:
        self.path = root / OURS / JOURNAL_FOLDER
        self._fs = fs or FileSystem()
        self._lock = ProcessLock(root / OURS / JOURNAL_LOCK)
        self._named: Path | None = None
        """The file whose name was synced here; guarded by the lock."""

    def append(self, change: dict[str, Any], now_ms: int) -> int:
        """Write one entry: ``change`` with its ``change_id`` and ``at_timestamp``; gives the id.

        On the device when this returns. Blocks for other writers. Raises StoreNotWritableError;
        a torn line may be left then, which no reader takes for an entry.
        """
        return self.append_all([change], now_ms)

    def append_all(self, changes: Sequence[dict[str, Any]], now_ms: int) -> int:
        """Write entries with one sync, else as ``append``; gives the id of the last one.

        Raises StoreNotWritableError; some of them may be left then, as after a death.
        """
        try:
            self._fs.make_dirs(self.path)
            with self._lock.held():
                files = self.files()
                change_id = self._last_id(files)
                if change_id > MAX_COUNT - len(changes):
                    raise StoreNotWritableError(
                        self.path,
                        f"its last entry has change_id {change_id}, after which there is none; "
                        "move the files of this folder away to begin a new journal",
                    )
                lines = []
                for change in changes:
                    change_id += 1
                    entry = {CHANGE_ID: change_id, AT_TIMESTAMP: now_ms, **change}
                    lines.append(seal(entry) + b"\n")
                self._append(files, b"".join(lines))
        except OSError as error:
            raise StoreNotWritableError(self.path, error.strerror or str(error)) from error
        return change_id

    def entries(self) -> Iterator[dict[str, Any]]:
        """Read all entries, oldest first; damaged lines are left out. Nothing if there is none."""
        for path in self.files():
            try:
                data = read_bounded(path)
            except FileNotFoundError:
                continue
            for line in data.split(b"\n"):
                entry = unseal(line, JOURNAL_ENTRY)
                if entry is not None:
                    yield entry

    def files(self) -> list[Path]:
        """List the journal's files, oldest first."""
        return sorted(path for path in self.path.glob("*.jsonl") if path.stem.isdigit())

    def _append(self, files: list[Path], lines: bytes) -> None:
        path = files[-1] if files else self._file(1)
        if files and path.stat().st_size >= MAX_FILE_SIZE:
            path = self._file(int(path.stem) + 1)
        fd = self._fs.open(path, writable=True, create=True)
        try:
            size = self._fs.size(fd)
            if size and self._fs.read(fd, 1, size - 1) != b"\n":
                lines = b"\n" + lines
            self._fs.write(fd, lines, size)
            self._fs.sync(fd)
        finally:
            self._fs.close(fd)
        if not size or path != self._named:  # the process that made it may have died before this
            self._fs.sync_dir(self.path.parent)
            self._fs.sync_dir(self.path)
            self._named = path

    def _last_id(self, files: list[Path]) -> int:
        """Find the newest readable entry; entries are short compared with a file, so few are
        read."""
        for path in reversed(files):
            for line in reversed(read_bounded(path).split(b"\n")):
                entry = unseal(line, JOURNAL_ENTRY)
                if entry is not None:
                    return int(entry[CHANGE_ID])
        return 0

    def _file(self, number: int) -> Path:
        return self.path / f"{number:08d}.jsonl"
