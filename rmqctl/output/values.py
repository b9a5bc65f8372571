"""Formatting of one value: for tables, for tab-separated lines, for JSON."""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import tzinfo
from typing import TYPE_CHECKING, Any, Final

from rmqctl.output.fields import Kind
from storage.parse.durations import format_duration, format_size
from storage.parse.times import format_time

if TYPE_CHECKING:
    from rmqctl.output.headings import Times

# Besides control characters: bidirectional overrides, and line ends of some readers.
_TURNS: Final = "\u2028\u2029\u202a-\u202e\u2066-\u2069"
# Patterns are text here: most values are printable and need no compiled pattern.
_CONTROLS: Final = f"[\x00-\x1f\x7f-\x9f{_TURNS}\ud800-\udfff]"
_NOT_IN_JSON: Final = f"[\x7f-\x9f{_TURNS}\ud800-\udfff]"
_NOT_IN_YAML: Final = "[\ufeff\ufffe\uffff]"
_NOT_IN_BODIES: Final = f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_TURNS}\ud800-\udfff]"
_MARKDOWN: Final = r"[\\|*`\[<&]"
_ESCAPES: Final = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


PIECE: Final = 1 << 16
"""Characters of a long text that are worked on at once."""
LONG: Final = 1 << 20
"""Characters of a value that is written in parts."""
LONGEST_CELL: Final = 1 << 16
"""Characters of a value in a table; formats for programs have all of it."""

_PLAIN: Final = frozenset({str, int, float, bool, type(None)})


def as_json(value: Any, indent: int | None = None) -> str:
    """JSON, compact or over several lines; text is not ``\\u``-escaped.

    Except for control characters of terminals, line ends of some readers, and characters that
    UTF-8 cannot encode.
    """
    import json

    separators = (",", ":") if indent is None else None
    return safe_json(
        json.dumps(plain(value), ensure_ascii=False, indent=indent, separators=separators)
    )


def safe_json(text: str) -> str:
    """The same JSON, with the characters escaped that :func:`as_json` escapes."""
    if text.isascii() and "\x7f" not in text:
        return text
    return _replaced(_NOT_IN_JSON, lambda found: f"\\u{ord(found.group()):04x}", text)


def json_string(text: str) -> str:
    """A text as in a JSON string, without its quotes."""
    import json

    return safe_json(json.dumps(text, ensure_ascii=False))[1:-1]


def yaml_string(text: str) -> str:
    """A text as in YAML's double quotes, which take all escapes of JSON."""
    return _replaced(_NOT_IN_YAML, lambda found: f"\\u{ord(found.group()):04x}", json_string(text))


def plain(value: Any) -> Any:
    """The value as dict, list, str, int, float, bool and None; rows become objects."""
    if type(value) in _PLAIN:  # the common case; called for every field of every row
        return value
    if hasattr(value, "_fields"):
        return {name: plain(member) for name, member in zip(value._fields, value, strict=True)}
    if isinstance(value, Mapping):
        return {str(name): plain(member) for name, member in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(member) for member in value]
    if isinstance(value, str) and type(value) is not str:
        return str(value)
    return value


def exact(value: Any) -> str:
    """The value for csv: numbers as they are, arrays joined by a space, null empty."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        if all(isinstance(member, str) for member in value):
            return " ".join(value)
        return as_json(value)
    return as_json(value)


def for_people(value: Any, kind: Kind, times: "Times", *, raw: bool) -> str:
    """The value for table, wide and md: formatted times, durations and sizes; null is ``-``.

    Fractions are rounded for reading. ``times`` has the zone of the heading.
    """
    if value is None:
        return "-"
    if isinstance(value, float) and not raw:
        return _rounded(value)
    if not raw and isinstance(value, int):
        match kind:
            case Kind.TIMESTAMP:
                return times.text(value)
            case Kind.DURATION:
                return format_duration(value)
            case Kind.SIZE:
                return format_size(value)
    text = exact(value)
    if len(text) > LONGEST_CELL:
        rest = len(text) - LONGEST_CELL
        return f"{escape_controls(text[:LONGEST_CELL])}... ({rest} more; -o json has them)"
    return escape_controls(text)


def _rounded(value: float) -> str:
    """Two decimals, fewer for large numbers, more for small ones."""
    if abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.2f}" if abs(value) >= 0.1 or not value else f"{value:.2g}"


def for_lines(value: Any, kind: Kind, zone: tzinfo | None, *, raw: bool) -> str:
    """The value for plain and tsv: exact except for times, which are RFC 3339; null is ``-``."""
    if value is None:
        return "-"
    if not raw and kind is Kind.TIMESTAMP and isinstance(value, int):
        return format_time(value, zone, iso=True)
    return escape_tabs(exact(value))


def escape_tabs(text: str) -> str:
    r"""Tab, newline and backslash as ``\t \n \\``, so that a line stays a line."""
    if "\\" in text:
        text = text.replace("\\", "\\\\")
    return text.replace("\t", "\\t").replace("\n", "\\n")


def escape_controls(text: str) -> str:
    r"""Control characters as ``\n`` or ``\x1b``, so that a message cannot control the terminal."""
    if text.isprintable():  # the common case; no character below is printable
        return text
    return _replaced(_CONTROLS, lambda found: _escape(found.group()), text)


def for_terminal(text: str) -> str:
    """Text for a terminal: lines and tabs stay, other control characters are escaped."""
    if text.isprintable():
        return text
    return _replaced(_NOT_IN_BODIES, lambda found: _escape(found.group()), text)


def bytes_for_terminal(data: bytes) -> bytes:
    """The same for bytes; bytes that are not UTF-8 are escaped, too."""
    return for_terminal(data.decode("utf-8", "surrogateescape")).encode()


def escape_markdown(text: str) -> str:
    """Escape characters that would end a table cell, or start HTML or emphasis."""
    return _replaced(_MARKDOWN, lambda found: "\\" + found.group(), text)


def _replaced(pattern: str, by: Callable[[re.Match[str]], str], text: str) -> str:
    """Replace single characters, piece by piece: re.sub keeps an object for each."""
    if len(text) <= PIECE:
        return re.sub(pattern, by, text)
    return "".join([re.sub(pattern, by, piece) for piece in pieces_of(text)])


def pieces_of(text: str) -> Iterator[str]:
    """Parts of a long text, none longer than ``PIECE``."""
    for start in range(0, len(text), PIECE):
        yield text[start : start + PIECE]


def _escape(character: str) -> str:
    code = ord(character)
    if 0xFF < code < 0xD800:
        return f"\\u{code:04x}"
    return _ESCAPES.get(character) or f"\\x{code & 0xFF:02x}"  # also a byte that is not UTF-8
