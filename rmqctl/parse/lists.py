"""Lists on the command line: queues (``0,2-4``), names (``a,b``), properties (``N=V``)."""

import re
from collections.abc import Iterable
from typing import Final

MAX_QUEUE_ID: Final = 65_535
"""Guards against a typing error such as ``0-4000000000``; RocketMQ's tools allow 16 bits."""


def parse_queues(text: str) -> tuple[int, ...]:
    """Queue numbers of ``0``, ``0,2-4``; ascending and without duplicates."""
    numbers: set[int] = set()
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part, re.ASCII)
        if not found:
            raise ValueError(f"{text!r} is not a list of queues (such as 0,2-4)")
        first = int(found[1])
        last = int(found[2]) if found[2] else first
        if last < first:
            raise ValueError(f"{text!r} is not a list of queues: {part.strip()} counts down")
        if last > MAX_QUEUE_ID:
            raise ValueError(f"{text!r} is not a list of queues: {last} is above {MAX_QUEUE_ID}")
        numbers.update(range(first, last + 1))
    return tuple(sorted(numbers))


def parse_names(text: str) -> tuple[str, ...]:
    """Names of ``a,b``, without blanks around them and without empty names."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def parse_parts(text: str) -> tuple[str, ...]:
    """Parts of a store that can be checked and repaired separately: ``log,queue``."""
    known = ("log", "queue", "index", "offset", "config")
    names = parse_names(text)
    for name in names:
        if name not in known:
            raise ValueError(f"{name!r} is not one of {', '.join(known)}")
    if not names:
        raise ValueError("it names nothing")
    return names


def parse_property(text: str) -> tuple[str, str]:
    """Name and value of ``NAME=VALUE``; the value may hold further ``=`` and may be empty."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError(f"{text!r} is not a property (such as NAME=VALUE)")
    return name, value


def parse_properties(texts: Iterable[str]) -> dict[str, str]:
    """Several properties. ValueError also for a name that is given twice with different values."""
    found: dict[str, str] = {}
    for name, value in map(parse_property, texts):
        if found.setdefault(name, value) != value:
            raise ValueError(f"property {name} is given twice: {found[name]!r} and {value!r}")
    return found


def parse_delimiter(text: str) -> bytes:
    r"""The bytes of a delimiter, with escapes ``\n \t \r \0 \\ \xNN``.

    The empty text means no delimiter: a whole file is one record.
    """
    return unescape(text)


_ESCAPES: Final = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}
_ESCAPE: Final = re.compile(r"\\(x[0-9A-Fa-f]{2}|.)", re.DOTALL)


def unescape(text: str) -> bytes:
    r"""UTF-8 bytes of ``text`` with ``\n \t \r \0 \\ \xNN`` resolved."""
    out = bytearray()
    position = 0
    for found in _ESCAPE.finditer(text):
        out += text[position : found.start()].encode("utf-8", "surrogateescape")
        code = found[1]
        if len(code) == 3:
            out.append(int(code[1:], 16))
        elif code in _ESCAPES:
            out += _ESCAPES[code]
        else:
            raise ValueError(rf"unknown escape \{code} in {text!r} (known: \n \t \r \0 \\ \xNN)")
        position = found.end()
    out += text[position:].encode("utf-8", "surrogateescape")
    return bytes(out)
