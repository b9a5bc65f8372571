"""Reading offsets.json again after a change: only rows that differ are parsed.

A row is one ``topic@group``; a file of 50,000 positions takes 0.1 s to parse and check, and between
two looks few of its rows change. The text is cut between rows, and a piece that is the same bytes
as before has the same value. Each other piece is parsed and checked as an object of one member, so
the whole is an object of these members. Where a file is not of the usual form, it is read as a
whole by the caller, which also says what is wrong with it.
"""

from __future__ import annotations

from typing import Any, Final

from storage.format.errors import FormatError
from storage.format.strict_json import loads_strict

from .checksummed_json import body_of
from .progress_table import VERSION, ProgressTable

_QUEUES: Final = b'"queues":{"'
_EXPORTED: Final = b'}},"exported":{"'
_END: Final = b"}}}"
_BETWEEN: Final = b'},"'
_HEAD: Final = frozenset({"version", "lock_mtime_ns", "change_id"})

_Rows = dict[bytes, tuple[str, Any]]
"""The text of a row to its key and its value."""


class KnownRows:
    """The rows of the last reading. Not safe for threads."""

    def __init__(self) -> None:
        self._queues: _Rows = {}
        self._exported: _Rows = {}

    def read(self, data: bytes) -> ProgressTable | None:
        """The table in a file's bytes; None where they are not of the usual form."""
        body = body_of(data)
        begin = -1 if body is None else body.find(_QUEUES)
        middle = -1 if body is None else body.find(_EXPORTED)
        if body is None or begin < 0 or middle < begin or not body.endswith(_END):
            return None
        queues = body[begin + len(_QUEUES) : middle].split(_BETWEEN)
        exported = body[middle + len(_EXPORTED) : -len(_END)].split(_BETWEEN)
        try:
            head = loads_strict(body[:begin] + b'"queues":0}')
            del head["queues"]
            if head.keys() != _HEAD or head["version"] != VERSION:
                return None
            new_queues = _parsed(queues, self._queues)
            new_exported = _parsed(exported, self._exported)
            table = ProgressTable.from_entry(
                {
                    **head,
                    "queues": dict(new_queues.values()),
                    "exported": dict(new_exported.values()),
                }
            )
        except (FormatError, TypeError, ValueError):
            return None
        self._queues = _joined(queues, self._queues, new_queues, table.queues)
        self._exported = _joined(exported, self._exported, new_exported, table.exported)
        table.queues = dict(self._queues.values())
        table.exported = dict(self._exported.values())
        if len(table.queues) != len(queues) or len(table.exported) != len(exported):
            self._queues, self._exported = {}, {}
            return None  # a name comes twice
        return table


def _parsed(pieces: list[bytes], known: _Rows) -> _Rows:
    """The pieces that are not known, parsed."""
    found: _Rows = {}
    for piece in pieces:
        if piece not in known:
            value = loads_strict(b'{"' + piece + b"}}")
            ((found[piece]),) = value.items()
    return found


def _joined(pieces: list[bytes], known: _Rows, new: _Rows, checked: dict[str, Any]) -> _Rows:
    """All pieces in their order; the new ones with the value of the checked table."""
    found: _Rows = {}
    for piece in pieces:
        row = known.get(piece)
        if row is None:
            key = new[piece][0]
            row = key, checked[key]
        found[piece] = row
    return found
