"""The columns of a row type, from the annotations of its NamedTuple."""

import types
from enum import IntEnum, StrEnum
from typing import Annotated, Any, Final, NamedTuple, Union, get_args, get_origin, get_type_hints


class Wide(NamedTuple):
    """Annotation of a field that ``table``, ``plain`` and ``md`` do not show."""

    help: str


class OmitNull(NamedTuple):
    """Annotation of a field that tables leave out if no row has a value, or no list an item; other
    formats have every field."""

    help: str


class Rank(IntEnum):
    """Importance of a column; an annotation after the meaning.

    A table that is too wide for its terminal leaves out columns of the highest rank first, and of
    one rank the rightmost first.
    """

    KEY = 0
    """Names the row, or is what the row is for: left out last."""
    MAIN = 1
    USUAL = 2
    EXTRA = 3


class Fit(StrEnum):
    """How a table shortens the values of a column; an annotation after the meaning."""

    WHOLE = "whole"
    """Not at all: a part of a number, a time, a name or a state would be another value."""
    MIDDLE = "middle"
    """In the middle: the ends of an id or a path tell it from others."""
    END = "end"
    """At the end."""
    WRAP = "wrap"
    """Not at all: sentences continue on the next line of the column."""


class Null(StrEnum):
    """What null means where it is not that there is no such value; an annotation after the
    meaning."""

    UNKNOWN = "unknown"
    """The value could not be found out."""


class Kind(StrEnum):
    """The kind of a column, as named by ``-o help``."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    ARRAY = "array"
    OBJECT = "object"
    TIMESTAMP = "timestamp"
    DURATION = "duration"
    SIZE = "size"


_UNITS: Final = {
    Kind.TIMESTAMP: "ms since 1970-01-01 UTC",
    Kind.DURATION: "ms",
    Kind.SIZE: "bytes",
}
_JSON_TYPES: Final = {
    Kind.TIMESTAMP: "integer",
    Kind.DURATION: "integer",
    Kind.SIZE: "integer",
}


class Field(NamedTuple):
    """One column."""

    name: str
    kind: Kind
    nullable: bool
    wide: bool
    help: str
    omit_null: bool = False
    rank: Rank = Rank.USUAL
    fit: Fit = Fit.WHOLE
    unknown_if_null: bool = False
    """Whether null is a value that could not be found out, in each row."""

    @property
    def unit(self) -> str:
        """The unit of the number, or an empty text."""
        return _UNITS.get(self.kind, "")

    @property
    def json_type(self) -> str:
        """The JSON type of the value."""
        return _JSON_TYPES.get(self.kind, self.kind.value)

    @property
    def numeric(self) -> bool:
        """Whether tables align it to the right."""
        return self.kind in _NUMERIC


_NUMERIC: Final = frozenset({Kind.INTEGER, Kind.NUMBER, Kind.DURATION, Kind.SIZE})
_RANKS: Final = {
    Rank.KEY: (
        *("group", "topic", "queue_id", "queue_offset", "lag", "status", "state", "event", "body"),
        *("code", "severity", "setting", "value", "part", "position", "step", "action"),
        *("change_id", "applied"),
    ),
    Rank.MAIN: (
        *("keys", "tags", "reason", "note", "old_offset", "new_offset", "old", "new", "command"),
        *("store_timestamp", "at_timestamp", "dead_timestamp", "due_timestamp", "problem", "what"),
        *("oldest_unread_age_ms", "committed_offset", "messages", "origin_topic", "fix"),
    ),
    Rank.EXTRA: (
        *("broker", "born_timestamp", "lag_bytes", "oldest_unread_timestamp", "user", "host"),
        *("undone_by", "consume_type", "client_host"),
    ),
}
"""The rank of a name in all rows, unless its annotation has another one."""
_rank_of: Final = {name: rank for rank, names in _RANKS.items() for name in names}
_MIDDLE: Final = ("_id", "host", "path", "file", "client", "store", "source", "example")
_END: Final = (
    "body",
    "body_base64",
    "reason",
    "tags",
    "tag",
    "bucket",
    "preview",
    "value",
    "old",
    "new",
)
_SENTENCES: Final = frozenset(
    {
        *("what", "effect", "fix", "meaning", "advice", "found", "task", "why", "why_not", "cost"),
        *("evidence", "command", "here", "note"),
    }
)
_cache: dict[type, tuple[Field, ...]] = {}


def fields_of(row_type: type) -> tuple[Field, ...]:
    """The columns of a row type, in order."""
    found = _cache.get(row_type)
    if found is None:
        hints = get_type_hints(row_type, include_extras=True)
        names: tuple[str, ...] = getattr(row_type, "_fields", tuple(hints))
        found = _cache[row_type] = tuple(_field(name, hints[name]) for name in names)
    return found


def kind_of_member(name: str) -> Kind | None:
    """The kind that the name of an object's member gives its number; None if it says none."""
    if name.endswith("_timestamp"):
        return Kind.TIMESTAMP
    if name.endswith("_ms"):
        return Kind.DURATION
    return Kind.SIZE if name.endswith("_bytes") or name == "bytes" else None


def _field(name: str, hint: Any) -> Field:
    text, wide, omit_null = "", False, False
    notes: list[Any] = []
    if get_origin(hint) is Annotated:
        hint, note, *notes = get_args(hint)
        wide, omit_null = isinstance(note, Wide), isinstance(note, OmitNull)
        text = note.help if isinstance(note, (Wide, OmitNull)) else str(note)
    nullable = False
    if get_origin(hint) in (Union, types.UnionType):
        members = [member for member in get_args(hint) if member is not type(None)]
        nullable = len(members) < len(get_args(hint))
        hint = members[0]
    kind = _kind(name, hint)
    ranks = [note for note in notes if isinstance(note, Rank)]
    fits = [note for note in notes if isinstance(note, Fit)]
    rank = ranks[0] if ranks else _rank_of.get(name, Rank.USUAL)
    fit = fits[0] if fits else _fit(name, kind)
    unknown = Null.UNKNOWN in notes
    return Field(name, kind, nullable, wide, text, omit_null, rank, fit, unknown)


def _fit(name: str, kind: Kind) -> Fit:
    if kind in (Kind.ARRAY, Kind.OBJECT) or (kind is Kind.STRING and name in _END):
        return Fit.END
    if kind is not Kind.STRING:
        return Fit.WHOLE
    if name in _SENTENCES:
        return Fit.WRAP
    return Fit.MIDDLE if name.endswith(_MIDDLE) else Fit.WHOLE


def _kind(name: str, hint: Any) -> Kind:
    base = get_origin(hint) or hint
    if base is bool:
        return Kind.BOOLEAN
    if base in (int, float):
        if name.endswith("_timestamp") or name == "as_of":
            return Kind.TIMESTAMP
        if name.endswith("_ms"):
            return Kind.DURATION
        if name.endswith(("_bytes", "_size")) or name in ("bytes", "freed_next"):
            return Kind.SIZE
        return Kind.INTEGER if base is int else Kind.NUMBER
    if isinstance(base, type) and issubclass(base, str):
        return Kind.STRING
    if isinstance(base, type) and issubclass(base, (list, tuple)) and not hasattr(base, "_fields"):
        return Kind.ARRAY
    return Kind.OBJECT
