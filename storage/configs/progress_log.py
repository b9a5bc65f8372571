"""The log of progress, ``<store>/rmqctl/offsets.log``: its lines, and what they add up to.

The first line is a table of all groups, and each line after it a change, in the form of
``checksummed_json``. Lines have consecutive numbers ``n``; those of a table are the number of the
last change that is in it.

    {"n":7,"after":"1b2c9f03","version":2,"lock_mtime_ns":...,"change_id":...,"queues":{...},
     "exported":{...}}                                                 the table (progress_table)
    {"n":8,"queues":{"T@g":{"0":[0,5]}}}                               a commit
    {"n":9,"exporting":true}                                           Java's file is written now
    {"n":10,"exported":true}                                           it has this table's offsets
    {"n":11,"queues":{...},"change_id":5,"next_java":"<SHA-256>"}      a move that is under way
    {"n":12,"settled":true,"exported":true}                            it was done

A change has the resulting generation and offset of each of its queues, so a change that is applied
twice does no harm. A move counts from the moment at which Java's file has the SHA-256 that it
names; ``settled`` says how it ended. A writer that finds ``exporting`` in the last line looks
whether Java's file was written, before it adds a change. ``after`` is the sum of the line that the
table was made after, so a process that has applied that line has the table already.

**The end of the log.** A change is acknowledged once it is synced, and a sync covers all bytes
before it. So a kill or a power loss leaves, after the last acknowledged line, a line that is cut
short or has lost sectors. Such an end is no damage: readers pass over it, the next writer cuts it
off. A wrong line before that is damage. A line says how far the log was synced for sure before it:
``synced``, by default the line before it. A process that goes on after another one's line does not
know that that line is synced, and says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from json.encoder import encode_basestring as _quoted
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from storage.errors import CorruptFileError, StoreVersionError
from storage.format.errors import FormatError, JsonError
from storage.format.shapes import MAX_COUNT, ShapeError, check, flag, maybe, members, text, whole
from storage.format.strict_json import loads_strict

from .checksummed_json import ENTRY_START, MAX_VERSION, SealError, body_of, examine, seal, seal_json
from .progress_table import (
    VERSION,
    ProgressTable,
    QueueProgress,
    change_id_of,
    rows_in,
    rows_of,
)

if TYPE_CHECKING:
    from .progress_rows import KnownRows

REMEDY: Final = (
    "'rmqctl store recover-offsets' puts it together again; or remove offsets.log and offsets.json "
    "to go on from Java's config/consumerOffset.json"
)
N: Final = "n"
AFTER: Final = "after"
SYNCED: Final = "synced"
QUEUES: Final = "queues"
EXPORTING: Final = "exporting"
EXPORTED: Final = "exported"
CHANGE: Final = "change_id"
NEXT_JAVA: Final = "next_java"
SETTLED: Final = "settled"

_NUMBER: Final = whole(0, MAX_COUNT)
_VERSIONED: Final = members({"version": whole(2, MAX_VERSION)})
TABLE: Final = members({N: _NUMBER, AFTER: maybe(text)})
"""The shape of a table's members that are not the table's."""
_CHANGE: Final = members(
    {N: _NUMBER},
    {SYNCED: _NUMBER, EXPORTING: flag, EXPORTED: flag, NEXT_JAVA: text, SETTLED: flag},
)
_LARGE: Final = 32 << 10
"""Bytes of a table from which on only its rows are parsed, as what Java's file had last is half of
it; and they are kept for the next reading."""
_SECTOR: Final = 512
"""What a device writes whole or not at all: a lost one begins there, or with the line."""
_LEAST_LOG: Final = 64 << 10
"""Bytes of changes from which on a table takes their place, if they are more than the table."""

Changes = Mapping[str, Mapping[int, QueueProgress]]
"""``topic@group`` to queue id to its progress."""


class Move(NamedTuple):
    """A move that is under way."""

    rows: Changes
    change_id: int | None
    next_java: str


class Ending(NamedTuple):
    """The last whole line of a log: what a writer goes on after."""

    end: int
    """The byte after it: where the next one begins."""
    n: int
    synced: int
    """Number of the last line that is on the device for sure."""
    start: int
    """Its first byte."""
    line: bytes
    """The line, at most :data:`MOST_KNOWN` bytes of it."""
    crc: str


class Place(NamedTuple):
    """Which line of which file."""

    inode: int
    end: int
    crc: str


MOST_KNOWN: Final = 4_096
_MOST_LINES: Final = 8
"""Lines that one change may write, and more."""


class ProgressLog:
    """The content of a log as far as it was read. Not safe for threads.

    ``table`` is what all lines but a move under way add up to. Change it with ``apply`` alone.
    """

    def __init__(
        self, path: Path, data: bytes, inode: int, known_rows: Callable[[], KnownRows]
    ) -> None:
        """Read a whole log. ``known_rows`` gives those of the last reading, for a large table.

        Raises CorruptFileError and StoreVersionError.
        """
        self.path = path
        self.inode = inode
        self.size = len(data)
        """Bytes of the file when it was read last, with what is not whole at its end."""
        first, separator, _ = data.partition(b"\n")
        entry, self.table = self._read_table(first, known_rows)
        if not separator:
            raise self.damage(len(first), "its first line does not end")
        self.table.changed = False
        self.move: Move | None = None
        self.is_exporting = False
        """Whether Java's file was about to get the offsets of ``table`` when the last line was
        written."""
        self.table_size = len(first) + 1
        self.table_crc = _crc_of(first)
        n = entry[N]
        self.ending = Ending(self.table_size, n, n, 0, first[:MOST_KNOWN], self.table_crc)
        self._add(data, self.table_size)

    @classmethod
    def n_of_table(cls, data: bytes) -> tuple[int, str | None] | None:
        """Number and ``after`` of the table in a log's bytes, whose sum is not checked; None where
        its beginning has another form."""
        begin = data.find(_AT_VERSION, ENTRY_START, ENTRY_START + 100)
        if begin < 0:
            return None
        try:
            head = loads_strict(data[ENTRY_START:begin] + b"}")
            check(head, TABLE)
        except FormatError:
            return None
        return head[N], head[AFTER]

    def goes_on_in(self, data: bytes, inode: int) -> bool:
        """Take over a log whose table is what was read here already; False if it is not."""
        known = self.ending
        if self.move is not None or self.n_of_table(data) != (known.n, known.crc):
            return False
        first, separator, _ = data.partition(b"\n")
        if not separator or body_of(first) is None:
            return False
        self.inode, self.size, self.table_size = inode, len(data), len(first) + 1
        self.table_crc = _crc_of(first)
        self.ending = Ending(
            self.table_size, known.n, known.n, 0, first[:MOST_KNOWN], self.table_crc
        )
        self._add(data, self.table_size)
        return True

    def follow(self, fd: int) -> bool:
        """Read what was added to an open log since; False if it is to be read as a whole.

        Raises OSError.
        """
        known = self.ending
        status = os.fstat(fd)
        if status.st_ino != self.inode or status.st_size < known.end:
            return False
        self.size = status.st_size
        start = known.start
        if known.end - start > MOST_KNOWN:  # a table: its first bytes are compared
            if os.pread(fd, MOST_KNOWN, start) != known.line:
                return False
            start = known.end - 1
            data = os.pread(fd, self.size - start, start)
            if data[:1] != b"\n":
                return False
        else:
            data = os.pread(fd, self.size - start, start)
            if not data.startswith(known.line + b"\n"):
                return False  # it was cut off, and another one has its place
        if len(data) > known.end - start:
            try:
                self._add(data, known.end - start)
            except (CorruptFileError, StoreVersionError):
                return False  # perhaps it was cut meanwhile; a whole reading decides
        return True

    @property
    def is_long(self) -> bool:
        """Whether a table is to take the place of the changes."""
        return self.ending.end - self.table_size > max(_LEAST_LOG, self.table_size)

    @property
    def has_numbers(self) -> bool:
        """Whether there are numbers for the lines of a change after the last one; else a table is
        to take the place of the log, and they begin anew."""
        return self.ending.n <= MAX_COUNT - _MOST_LINES

    # -- lines to write ---------------------------------------------------------------------------

    def line_of(self, change: Mapping[str, Any]) -> bytes:
        """The line of a change, to be written at the end."""
        _, n, synced = self.ending[:3]
        if synced == n:
            return seal({N: n + 1, **change}) + b"\n"
        return seal({N: n + 1, SYNCED: synced, **change}) + b"\n"

    def commit_line(self, rows: Changes) -> bytes:
        """The line of a commit, as ``line_of`` writes it, but for this form alone: each message of
        an orderly consumer may take one."""
        _, n, synced = self.ending[:3]
        texts = []
        for key, row in rows.items():
            queues = ",".join(
                [f'"{q}":[{progress[0]},{progress[1]}]' for q, progress in row.items()]
            )
            texts.append(f"{_quoted(key)}:{{{queues}}}")
        head = f'{{"n":{n + 1}' if synced == n else f'{{"n":{n + 1},"synced":{synced}'
        body = f'{head},"queues":{{{",".join(texts)}}}}}'
        return seal_json(body) + b"\n"

    def note_written(self, line: bytes, rows: Changes | None = None) -> None:
        """Take in a line of ``line_of`` that was written and synced; ``rows``: of a commit."""
        known = self.ending
        if rows is None:
            self._add(line, 0)
            self.ending = self.ending._replace(synced=self.ending.n)
            return
        # Wherever this is broken off the line is read once more, which does no harm.
        self._put(rows, self.table.change_id)
        self.table.changed = self.is_exporting = False
        end = known.end + len(line)
        n = known.n + 1
        self.ending = Ending(end, n, n, known.end, line[:-1][:MOST_KNOWN], _crc_of(line))

    def place_of(self, line: bytes, end: int) -> Place:
        """The place of a line of ``line_of`` that was written at ``end``."""
        return Place(self.inode, end + len(line), _crc_of(line))

    def note_synced(self, place: Place | None) -> None:
        """Take in that the line of that place is synced; nothing if it is not the last one."""
        last = self.ending
        if place == (self.inode, last.end, last.crc) and last.synced != last.n:
            self.ending = last._replace(synced=last.n)

    # -- reading ----------------------------------------------------------------------------------

    def damage(self, position: int, what: str) -> CorruptFileError:
        """The error of a damaged log."""
        return CorruptFileError(self.path, position, f"{what} ({REMEDY})")

    def _read_table(
        self, line: bytes, known_rows: Callable[[], KnownRows]
    ) -> tuple[dict[str, Any], ProgressTable]:
        found = known_rows().read(line, self.damage) if len(line) >= _LARGE else None
        if found is not None:
            return found
        try:
            entry = examine(line, _VERSIONED)
            if entry["version"] > VERSION:  # its shape differs
                raise StoreVersionError(self.path, entry["version"], VERSION)
            check(entry, TABLE)
            return entry, ProgressTable.from_entry(entry)
        except SealError as error:
            raise self.damage(error.position, error.reason) from None
        except ShapeError as error:
            raise self.damage(ENTRY_START, str(error)) from None

    def _add(self, data: bytes, start: int) -> None:
        """Take in the lines of ``data`` from ``start`` on, where the known ones end.

        Raises CorruptFileError; the lines before the damage are taken in then.
        """
        position = self.ending.end
        lines = data[start:].split(b"\n")
        rest = lines.pop()
        for number, (line, entry) in enumerate(zip(lines, _entries(lines), strict=True)):
            if isinstance(entry, SealError):
                self._judge(lines[number:], position, entry)
                return
            self._take(line, entry, position)
            position += len(line) + 1
        if rest and body_of(rest[:-1]) is not None:
            raise self.damage(position + len(rest) - 1, "a line does not end")

    def _judge(self, lines: list[bytes], position: int, wrong: SealError) -> None:
        """Pass over the end of a log from a wrong line on, or raise for damage."""
        n = self.ending.n + 1
        zeros = lines[0].find(b"\0")
        lost_sectors = zeros == 0 or (zeros > 0 and (position + zeros) % _SECTOR == 0)
        for entry in _entries(lines[1:]) if lost_sectors else ():
            if not isinstance(entry, SealError):
                number = entry.get(N)
                lost_sectors &= type(number) is int and entry.get(SYNCED, number - 1) < n
        if not lost_sectors:
            raise self.damage(position + wrong.position, wrong.reason)

    def _take(self, line: bytes, entry: dict[str, Any], position: int) -> None:
        known = self.ending
        try:
            check(entry, _CHANGE)
            if entry[N] != known.n + 1:
                raise ShapeError(N, f"is {entry[N]}, not {known.n + 1}")
            rows = rows_of(entry) if QUEUES in entry else {}
            change_id = change_id_of(entry)
            if (SETTLED in entry) is (self.move is None):
                raise ShapeError("", "ends no move" if SETTLED in entry else "is amid a move")
        except ShapeError as error:
            raise self.damage(position + ENTRY_START, str(error)) from None
        if NEXT_JAVA in entry:
            self.move = Move(rows, change_id, entry[NEXT_JAVA])
        else:
            move, self.move = self.move, None
            if move is not None and entry[SETTLED]:
                self._put(move.rows, move.change_id)
            self._put(rows, change_id if CHANGE in entry else self.table.change_id)
            if entry.get(EXPORTED):
                self.table.note_exported()
            self.table.changed = False
        self.is_exporting = bool(entry.get(EXPORTING))
        self.ending = Ending(
            position + len(line) + 1,
            known.n + 1,
            max(known.synced, min(entry.get(SYNCED, known.n), known.n)),
            position,
            line[:MOST_KNOWN],
            _crc_of(line),
        )

    def _put(self, rows: Changes, change_id: int | None) -> None:
        self.table.put_rows(rows)
        self.table.change_id = change_id

    def moved(self) -> ProgressTable:
        """The table with the move that is under way."""
        table = self.table.copy()
        if self.move is not None:
            for key, row in self.move.rows.items():
                for queue_id, progress in row.items():
                    table.put(key, queue_id, progress)
            table.change_id = self.move.change_id
            table.note_exported()
        table.changed = True
        return table


_AT_VERSION: Final = b',"version":'


def table_line(table: ProgressTable, n: int, after: str | None) -> bytes:
    """The first line of a log."""
    return seal({N: n, AFTER: after, **table.entry()}) + b"\n"


def rows_of_changes(rows: Mapping[tuple[str, int], QueueProgress]) -> Changes:
    """Progress by key and queue as a line has it."""
    found: dict[str, dict[int, QueueProgress]] = {}
    for (key, queue_id), progress in rows.items():
        found.setdefault(key, {})[queue_id] = progress
    return found


def _crc_of(line: bytes) -> str:
    return line[8:16].decode("ascii", "replace")


_COMMIT_BEGIN: Final = b'{"n":'
_COMMIT_SYNCED: Final = b',"synced":'
_COMMIT_ROWS: Final = b',"queues":'
_MOST_DIGITS: Final = 15
_LONGEST_HEAD: Final = 60


def _commit_in(body: bytes) -> dict[str, Any] | None:
    """The entry of a commit as ``commit_line`` writes it; None for others, and where nothing is
    compiled."""
    begin, rows = len(_COMMIT_BEGIN), body.find(_COMMIT_ROWS, 0, _LONGEST_HEAD)
    if rows < 0 or not body.startswith(_COMMIT_BEGIN):
        return None
    n, has_synced, synced = body[begin:rows].partition(_COMMIT_SYNCED)
    if not _is_number(n) or (has_synced and not _is_number(synced)):
        return None
    found = rows_in(body, rows + len(_COMMIT_ROWS))
    if found is None or body[found[1] :] != b"}":
        return None
    if not has_synced:
        return {N: int(n), QUEUES: found[0]}
    return {N: int(n), SYNCED: int(synced), QUEUES: found[0]}


def _is_number(text: bytes) -> bool:
    return text.isdigit() and len(text) <= _MOST_DIGITS and (text[0] != ord("0") or text == b"0")


def _entries(lines: list[bytes]) -> Iterator[dict[str, Any] | SealError]:
    """The entries of lines, in one pass of the parser where all are whole."""
    bodies = [body_of(line) for line in lines]
    if None not in bodies:
        whole_ones = [body for body in bodies if body is not None]
        commits = [_commit_in(body) for body in whole_ones]
        rest = [body for body, one in zip(whole_ones, commits, strict=True) if one is None]
        try:
            joined = b"[%s]" % b",".join(rest)
            found = loads_strict(joined, max_depth=1 << 30, escaped_bytes=True) if rest else []
        except JsonError:
            found = []
        if len(found) == len(rest) and all(type(entry) is dict for entry in found):
            others = iter(found)
            yield from (next(others) if one is None else one for one in commits)
            return
    for line in lines:
        try:
            yield examine(line)
        except SealError as error:
            yield error
