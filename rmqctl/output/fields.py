"""The columns of a row type, from the annotations of its NamedTuple."""

import types
from enum import StrEnum
from typing import Annotated, Any, Final, NamedTuple, Union, get_args, get_origin, get_type_hints


class Wide(NamedTuple):
    """Annotation of a field that ``table``, ``plain`` and ``md`` do not show."""

    help: str


class OmitNull(NamedTuple):
    """Annotation of a field that tables leave out if it is null; other formats have every field."""

    help: str


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
_cache: dict[type, tuple[Field, ...]] = {}


def fields_of(row_type: type) -> tuple[Field, ...]:
    """The columns of a row type, in order."""
    found = _cache.get(row_type)
    if found is None:
        hints = get_type_hints(row_type, include_extras=True)
        names: tuple[str, ...] = getattr(row_type, "_fields", tuple(hints))
        found = _cache[row_type] = tuple(_field(name, hints[name]) for name in names)
    return found


def _field(name: str, hint: Any) -> Field:
    text, wide, omit_null = "", False, False
    if get_origin(hint) is Annotated:
        hint, note = get_args(hint)[:2]
        wide, omit_null = isinstance(note, Wide), isinstance(note, OmitNull)
        text = note.help if isinstance(note, (Wide, OmitNull)) else str(note)
    nullable = False
    if get_origin(hint) in (Union, types.UnionType):
        members = [member for member in get_args(hint) if member is not type(None)]
        nullable = len(members) < len(get_args(hint))
        hint = members[0]
    return Field(name, _kind(name, hint), nullable, wide, text, omit_null)


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
