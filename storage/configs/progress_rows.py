"""Reading the table of a log of progress again: only rows that differ are parsed.

A row is one ``topic@group``; a file of 50,000 positions takes 0.1 s to parse and check, and between
two readings few of its rows change. The text is cut between rows, and a piece of the same bytes
as before has the same value. Each other piece is parsed and checked as an object of one member, so
the whole is an object of these members. Where a file is not of the usual form, it is read as a
whole by the caller, which also says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import compress
from operator import ne
from typing import TYPE_CHECKING, Any, Final

from storage.format.errors import FormatError, JsonError
from storage.format.shapes import ShapeError, check
from storage.format.strict_json import loads_strict

from .checksummed_json import ENTRY_START, body_of
from .progress_log import TABLE
from .progress_table import (
    VERSION,
    CheckedRows,
    ProgressTable,
    QueueProgress,
    exported_in,
    exported_of,
    rows_in,
    rows_of,
)

if TYPE_CHECKING:
    from storage.errors import CorruptFileError

    from .consumer_offsets import OffsetTable

Rows = dict[str, dict[int, QueueProgress]]

_QUEUES: Final = b'"queues":{"'
_EXPORTED: Final = b'}},"exported":{'
_EXPORTED_HEAD: Final = b'{"exported":'
_END: Final = b"}}"
_BETWEEN: Final = b'},"'
_AT_ONCE: Final = 1_000
"""Rows that are parsed before another thread may run."""
_HEAD: Final = frozenset({"n", "after", "version", "lock_mtime_ns", "change_id"})


class KnownRows:
    """The rows of the last reading. Not safe for threads."""

    def __init__(self) -> None:
        self._queues = _Section()

    def read(
        self, line: bytes, damage: Callable[[int, str], CorruptFileError]
    ) -> tuple[dict[str, Any], ProgressTable] | None:
        """The entry of the first line, without its rows, and the table; None where it is not of
        the usual form. ``damage`` makes the error of a byte of the line: what Java's file had is
        parsed when it is asked for."""
        body = body_of(line)
        begin = -1 if body is None else body.find(_QUEUES)
        middle = -1 if body is None else body.find(_EXPORTED)
        if body is None or begin < 0 or middle < begin or not body.endswith(_END):
            return None
        queues = body[begin + len(_QUEUES) : middle].split(_BETWEEN)
        exported = _EXPORTED_HEAD + b"{" + body[middle + len(_EXPORTED) :]
        try:
            head = loads_strict(body[:begin] + b'"queues":0}')
            del head["queues"]
            if head.keys() != _HEAD or head["version"] != VERSION:
                return None
            check(head, TABLE)
            new = self._queues.new(queues)
            table = ProgressTable.from_entry({**head, "queues": CheckedRows(), "exported": {}})
            table.queues = self._queues.take(queues, new)
            table.exported_later(lambda: _exported_in(exported, damage))
        except (FormatError, TypeError, ValueError):
            self._queues = _Section()
            return None
        return head, table


class _Section:
    """The rows of a table, in their order."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._keys: list[str] = []
        self._rows: Rows = {}
        self._others_now: list[int] | None = None

    def new(self, pieces: list[bytes]) -> Rows:
        """The rows whose text is not as before, parsed; all if there are other rows.

        Raises ValueError and FormatError for a text that is no table, or has a name twice.
        """
        others = self._others(pieces)
        self._others_now = others
        if others is not None:
            if not others:
                return {}
            new = _parsed([pieces[number] for number in others])
            if len(new) == len(others) and new.keys() == {self._keys[n] for n in others}:
                for number, key in zip(others, new, strict=True):
                    self._keys[number] = key
                return new
            self._others_now = None
        rows = _parsed(pieces)
        if len(rows) != len(pieces):
            raise ValueError("a piece is no row")
        self._keys = list(rows)
        return rows

    def take(self, pieces: list[bytes], checked: Rows) -> Rows:
        """All rows: those of before, and the new ones."""
        rows = checked if self._others_now is None else {**self._rows, **checked}
        self._pieces, self._rows = pieces, rows
        return rows.copy()

    def _others(self, pieces: list[bytes]) -> list[int] | None:
        """The places of texts that differ; None where rows came or went, or most differ."""
        if len(pieces) != len(self._pieces):
            return None
        found = [*compress(range(len(pieces)), map(ne, pieces, self._pieces))]
        return None if len(found) > len(pieces) // 2 else found


def _parsed(pieces: list[bytes]) -> Rows:
    """The rows of texts; of a name that comes twice only one."""
    rows: Rows = {}
    for start in range(0, len(pieces), _AT_ONCE):
        text = b'{"' + _BETWEEN.join(pieces[start : start + _AT_ONCE]) + b"}}"
        found = rows_in(text, 0)
        if found is not None and found[1] == len(text):
            rows.update(found[0])
        else:
            rows.update(rows_of({"queues": loads_strict(text, escaped_bytes=True)}))
    return rows


def _exported_in(text: bytes, damage: Callable[[int, str], CorruptFileError]) -> OffsetTable:
    """What the text of a member says that Java's file had. Raises what ``damage`` makes."""
    found = exported_in(text, len(_EXPORTED_HEAD))
    if found is not None and text[found[1] :] == b"}":
        return found[0]
    try:
        return exported_of(loads_strict(text, escaped_bytes=True))
    except JsonError as error:
        raise damage(ENTRY_START, f"exported is not JSON: {error.reason}") from None
    except ShapeError as error:
        raise damage(ENTRY_START, str(error)) from None
