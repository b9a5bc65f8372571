"""rmqctl's table of the progress of groups: offsets with generations. Pure.

A generation counts the deliberate moves of a queue's progress (reset, deletion, a change by Java).
A committer says which generation its offset belongs to:

    offered      in the table    result
    older        newer           the table's value stays: the progress was moved meanwhile
    same         same            the larger offset: progress never goes back by itself
    newer        older           the offered value: the table was lost and began anew

Generations are kept for ever, also those of deleted offsets, so a late commit cannot bring one
back. This is rmqctl's own rule; a Java broker accepts every commit (ConsumerOffsetManager).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, Self

from storage import native
from storage.format.shapes import MAX_LONG, ShapeError, are_ids, is_id, shown
from storage.format.versions import FORMATS

from .consumer_offsets import OffsetTable
from .number_tables import number_table

VERSION: Final = FORMATS["offsets.log"]
"""1 was a file of one table, offsets.json; 2 is a log of changes, offsets.log."""

# A file's time may be any second of 64 bits: in nanoseconds, these are more than 64.
_MAX_FILE_TIME_NS: Final = (MAX_LONG + 1) * 1_000_000_000


class QueueProgress(NamedTuple):
    """Progress of one group in one queue: the next offset to consume, None if there is none."""

    generation: int = 0
    offset: int | None = None


NO_PROGRESS = QueueProgress()
_NO_ROW: Final[Mapping[int, QueueProgress]] = {}
_new: Final = tuple.__new__
_progress_of: Final = partial(tuple.__new__, QueueProgress)


class CheckedRows(dict[str, dict[int, QueueProgress]]):
    """Rows by ``topic@group``, read by compiled code, which takes only what ``rows_of`` takes."""


def merge(known: QueueProgress, offered: QueueProgress) -> QueueProgress:
    """Give what holds once an offset that was consumed up to is merged: one of both."""
    generation, offset = known
    if offered.offset is None or offered.generation < generation:
        return known
    if offered.generation == generation and offset is not None and offset >= offered.offset:
        return known
    return offered


class ProgressTable:
    """The progress of all groups. Not safe for threads.

    ``exported`` is the last content written to Java's file; ``lock_mtime_ns`` the modification time
    of Java's lock file then: Java writes that file at each start, so another time means that Java
    has run since. ``change_id`` is the journal's number of the last completed move: later entries
    of the journal were noted, but not done. ``changed`` says whether the table differs from the
    file.

    A copy shares its rows with the original, and a row is copied before its first change: to change
    a row in place would change tables that readers have.
    """

    def __init__(self, lock_mtime_ns: int | None = None) -> None:
        self.queues: dict[str, dict[int, QueueProgress]] = {}
        self.lock_mtime_ns = lock_mtime_ns
        self.change_id: int | None = None
        self.changed = False
        self.doubt: str | None = None
        """Why this may not be the last progress of groups: Java's file is empty, or its .bak was
        read."""
        self.is_of_bak = False
        """Whether that .bak was read."""
        self._exported: OffsetTable | Callable[[], OffsetTable] = {}
        self._before: dict[str, Mapping[int, QueueProgress]] | None = None
        """Rows that have changed since Java's file was written, as they were then; it has the
        others as they are here. None: ``_exported`` holds."""
        self._own: set[str] = set()
        """Keys of rows that no other table has."""

    def get(self, key: str, queue_id: int) -> QueueProgress:
        """Read the progress of ``topic@group`` in a queue."""
        row = self.queues.get(key)
        return NO_PROGRESS if row is None else row.get(queue_id, NO_PROGRESS)

    def commit(self, key: str, queue_id: int, offered: QueueProgress) -> QueueProgress:
        """Merge an offset that was consumed up to; gives the result."""
        known = self.get(key, queue_id)
        result = merge(known, offered)
        if result is not known:
            self.put(key, queue_id, result)
        return result

    def move(self, key: str, queue_id: int, offset: int | None) -> QueueProgress:
        """Set the progress, forward or back, or forget it (None): a new generation.

        After the last one they begin anew, as those of a table that was lost. Where consumers
        may go on that have the last one, ``is_movable`` is to be asked before.
        """
        known = self.get(key, queue_id)
        generation = known.generation + 1 if self.is_movable(key, queue_id) else 1
        moved = QueueProgress(generation, offset)
        self.put(key, queue_id, moved)
        return moved

    def is_movable(self, key: str, queue_id: int) -> bool:
        """Whether there is a generation after that of a queue."""
        return self.get(key, queue_id).generation < MAX_LONG

    def adopt(self, java: OffsetTable) -> None:
        """Take over what Java changed since the last export, as moves.

        Java went on from ``exported``. Java has not touched an offset that still equals it, so ours
        stays, which may be newer if we were killed before the export. A missing one was deleted by
        Java, unless it was never exported.
        """
        before = self.exported
        if not (self.queues or self._before or before):
            self._begin_with(java)
            return
        for key, offsets in java.items():
            self.queues.setdefault(key, {})
            exported = before.get(key, {})
            for queue_id, offset in offsets.items():
                known = self.get(key, queue_id)
                if known == NO_PROGRESS:
                    self.put(key, queue_id, QueueProgress(0, offset))
                elif exported.get(queue_id) != offset and known.offset != offset:
                    self.move(key, queue_id, offset)
        for key, exported in before.items():
            for queue_id in exported:
                gone = queue_id not in java.get(key, {})
                if gone and self.get(key, queue_id).offset is not None:
                    self.move(key, queue_id, None)
        self.set_exported(java)

    def _begin_with(self, java: OffsetTable) -> None:
        """The same of a table without any progress, in few steps: there may be 50,000 rows."""
        self.queues = {
            key: {queue_id: _new(QueueProgress, (0, offset)) for queue_id, offset in row.items()}
            for key, row in java.items()
        }
        self._own = set(java)
        self.changed = self.changed or any(java.values())
        self.set_exported(java)

    @property
    def exported(self) -> OffsetTable:
        """The content of Java's file when it was written last.

        Raises CorruptFileError where it is read only now (``exported_later``).
        """
        if self._before is None:
            return self.read_exported()
        table = self.offsets()
        for key, before in self._before.items():
            offsets = {q: offset for q, (_, offset) in before.items() if offset is not None}
            if offsets:
                table[key] = offsets
            else:
                table.pop(key, None)
        return table

    @exported.setter
    def exported(self, offsets: OffsetTable) -> None:
        self._exported, self._before = offsets, None

    def read_exported(self) -> OffsetTable:
        """Read the content that ``exported_later`` names now. Raises CorruptFileError."""
        if callable(self._exported):
            self._exported = self._exported()
        return self._exported

    @property
    def is_exported(self) -> bool:
        """Whether Java's file had all offsets of this table when it was written last."""
        if self._before is None:
            return self.exported == self.offsets()
        return all(
            before.get(queue_id, NO_PROGRESS).offset == offset
            for key, before in self._before.items()
            for queue_id, (_, offset) in self.queues[key].items()
        )

    def set_exported(self, offsets: OffsetTable) -> None:
        """Note the content of Java's file."""
        if self.exported != offsets:
            self.exported = offsets
            self.changed = True

    def exported_later(self, read: Callable[[], OffsetTable]) -> None:
        """Have the content of Java's file read when it is asked for: only those who write need
        it."""
        self._exported, self._before = read, None

    def note_exported(self) -> None:
        """Note that Java's file has the offsets of this table."""
        if not self.is_exported:
            self.changed = True
        self._before = {}

    def copy(self) -> Self:
        """Give a table of its own with the same content."""
        other = type(self)(self.lock_mtime_ns)
        other.queues = self.queues.copy()
        other.change_id, other.changed, other.doubt = self.change_id, self.changed, self.doubt
        other.is_of_bak = self.is_of_bak
        other._exported = self._exported
        if self._before is not None:
            other._before = {**self._before}
        self._own = set()
        return other

    def keep_rows_of(self, before: ProgressTable) -> None:
        """Take rows that are equal in a table of before, so that a reader sees which changed."""
        known = before.queues
        others = [key for key, row in self.queues.items() if known.get(key) is not row]
        for key in others:
            if known.get(key) == self.queues[key]:
                self.queues[key] = known[key]
                self._own.discard(key)

    def offsets(self) -> OffsetTable:
        """Give the committed offsets, for Java's file."""
        table: OffsetTable = {}
        for key, queues in self.queues.items():
            offsets = {q: offset for q, (_, offset) in queues.items() if offset is not None}
            if offsets or not queues:
                table[key] = offsets
        return table

    def known_offsets(self) -> OffsetTable:
        """Give the committed offsets that are progress.

        Offsets below 0 in Java's file are none: ConsumerOffsetManager writes whatever it gets.
        """
        return {
            key: queues
            if min(queues.values(), default=0) >= 0
            else {queue_id: offset for queue_id, offset in queues.items() if offset >= 0}
            for key, queues in self.offsets().items()
        }

    def entry(self) -> dict[str, Any]:
        """Give the table as JSON: the first line of a log."""
        return {
            "version": VERSION,
            "lock_mtime_ns": self.lock_mtime_ns,
            "change_id": self.change_id,
            "queues": self.queues,
            "exported": self.exported,
        }

    @classmethod
    def from_entry(cls, entry: dict[str, Any]) -> Self:
        """Read what ``entry`` wrote, after JSON made text of the queue ids.

        Raises ShapeError for content that it never writes.
        """
        table = cls(_number_or_none(entry, "lock_mtime_ns", _MAX_FILE_TIME_NS))
        table.change_id = change_id_of(entry)
        table.queues = rows_of(entry)
        table.exported = exported_of(entry)
        return table

    def put(self, key: str, queue_id: int, progress: QueueProgress) -> None:
        """Set the progress of a queue as it is: by the rules, or read from a file."""
        self.put_rows({key: {queue_id: progress}})

    def put_rows(self, rows: Mapping[str, Mapping[int, QueueProgress]]) -> None:
        """Set the progress of some queues of each row. One loop: each look of a console has that of
        all groups that go on."""
        queues, before, own = self.queues, self._before, self._own
        for key, progress in rows.items():
            row = queues.get(key, _NO_ROW)
            if before is not None and key not in before:
                before[key] = row  # which is not changed any more
            elif key in own:
                queues[key].update(progress)
                continue
            queues[key] = {**row, **progress}
            own.add(key)
        self.changed = self.changed or bool(rows)


def change_id_of(entry: dict[str, Any]) -> int | None:
    """The change that an entry names as the last one that was done. Raises ShapeError."""
    return _number_or_none(entry, "change_id", MAX_LONG)


def rows_of(entry: dict[str, Any]) -> dict[str, dict[int, QueueProgress]]:
    """The rows of an entry, after JSON made text of the queue ids. Raises ShapeError."""
    queues = entry.get("queues")
    if isinstance(queues, CheckedRows):
        return queues
    # Not by a shape: a table may have 100,000 queues.
    rows: dict[str, dict[int, QueueProgress]] = {}
    for key, queues in _member(entry, "queues").items():
        items = _row(queues, f"queues.{key}")
        values = [known for _, known in items]
        if _are_usual(values):
            ids = [queue_id for queue_id, _ in items]
            rows[key] = dict(zip(ids, map(_progress_of, values), strict=True))
            continue
        row = rows[key] = {}
        for queue_id, known in items:
            if not isinstance(known, (list, tuple)) or len(known) != 2:
                raise _wrong(f"queues.{key}.{queue_id}", known, "a generation and an offset")
            generation, offset = known
            if (
                type(generation) is not int
                or not 0 <= generation <= MAX_LONG
                or (offset is not None and not _is_long(offset))
            ):
                raise _wrong(f"queues.{key}.{queue_id}", known, "a generation and an offset")
            row[queue_id] = QueueProgress(generation, offset)
    return rows


def offsets_in(row: Mapping[int, QueueProgress]) -> dict[int, int]:
    """The offsets of a row, in the order of queues; what Java's file may have below 0, too."""
    found = _offsets_in(row)  # mostly: there may be 50,000 of them
    if found is not None:
        return found
    return {queue_id: at for queue_id, (_, at) in sorted(row.items()) if at is not None}


_OffsetsIn = Callable[[Mapping[int, QueueProgress]], dict[int, int] | None]
_offsets_in: Final[_OffsetsIn] = native.form("offsets_in", native.nothing)
"""The same of a row in the order of queues that has nothing below 0; else None."""


def rows_in(text: bytes, start: int) -> tuple[CheckedRows, int] | None:
    """The rows that begin at a byte of a text of JSON, and the byte after them; None where they are
    not of the usual form, and where nothing is compiled."""
    found = number_table(text, start, _progress_of)
    return None if found is None else (CheckedRows(found[0]), found[1])


def exported_in(text: bytes, start: int) -> tuple[OffsetTable, int] | None:
    """What Java's file had, as it begins at a byte of a text of JSON, and the byte after it; None
    where it is not of the usual form, and where nothing is compiled."""
    found = number_table(text, start, None)
    if found is None or any(None in row.values() for row in found[0].values()):
        return None
    return found


def exported_of(entry: dict[str, Any]) -> OffsetTable:
    """What an entry says of Java's file. Raises ShapeError."""
    exported: OffsetTable = {}
    for key, offsets in _member(entry, "exported").items():
        given = exported[key] = {}
        for queue_id, offset in _row(offsets, f"exported.{key}"):
            if not _is_long(offset):
                raise _wrong(f"exported.{key}.{queue_id}", offset, "an offset")
            given[queue_id] = offset
    return exported


def _member(entry: dict[str, Any], name: str) -> dict[str, Any]:
    found = entry.get(name)
    if type(found) is not dict:
        raise _wrong(name, found, "an object")
    return found


def _are_usual(values: list[Any]) -> bool:
    """Whether all are a generation and an offset, as JSON has them. Few steps of Python: a table of
    100,000 queues is read with each commit."""
    if not values or set(map(type, values)) != {list} or set(map(len, values)) != {2}:
        return False
    generations, offsets = zip(*values, strict=True)
    if {*map(type, generations), *map(type, offsets)} != {int}:
        return False
    least, most = min(generations), max(*generations, *offsets)
    return bool(least >= 0 and min(offsets) >= -MAX_LONG - 1 and most <= MAX_LONG)


def _row(queues: Any, place: str) -> list[tuple[int, Any]]:
    """Give the members of an object whose names are queue ids."""
    if type(queues) is not dict:
        raise _wrong(place, queues, "an object")
    names = [name for name in queues if type(name) is not int]  # ints: it was not written yet
    if not are_ids(names):
        wrong = next(name for name in names if not is_id(name))
        raise _wrong(f"{place}: a name", wrong, "the number of a queue")
    return [(int(name), value) for name, value in queues.items()]


def _number_or_none(entry: dict[str, Any], name: str, most: int) -> int | None:
    value = entry.get(name)
    if value is not None and not (type(value) is int and -most <= value <= most):
        raise _wrong(name, value, "a whole number")
    number: int | None = value
    return number


def _is_long(value: Any) -> bool:
    return type(value) is int and -MAX_LONG - 1 <= value <= MAX_LONG


def _wrong(place: str, value: Any, wanted: str) -> ShapeError:
    return ShapeError(place, f"is {shown(value)}, not {wanted}")
