r"""Regular expressions of users: RE2, whose time is linear in the text.

Python's own engine backtracks: ``(x+x+)+y`` takes exponential time on 30 x, and
``(?:(?:a?){100000}){100000}`` all memory. Bodies in a store are arbitrary texts, and a search runs
in worker processes and threads where nothing can interrupt it. RE2 has no back references and no
lookaround; its error says so.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

_MOST_BYTES: Final = 16 << 20
"""Most memory of one expression."""
LONGEST: Final = 10_000
"""Most bytes of an expression."""


def search_bytes(pattern: str) -> Callable[[bytes], bool]:
    """A function that returns whether a text has a match. Each byte of the text is a character.

    ValueError for an invalid regular expression.
    """
    return _search(pattern.encode("utf-8", "surrogateescape"), pattern, latin1=True)


def search_text(pattern: str) -> Callable[[str], bool]:
    """A function that returns whether a text has a match. ValueError as above."""
    search = _search(pattern.encode("utf-8", "surrogateescape"), pattern, latin1=False)
    return lambda text: search(text.encode("utf-8", "surrogateescape"))


@lru_cache
def match_text(pattern: str) -> Callable[[str], bool]:
    """A function that returns whether the whole of a text matches. ValueError as above."""
    match = _compiled(pattern.encode("utf-8", "surrogateescape"), pattern, latin1=False).fullmatch
    return lambda text: match(text.encode("utf-8", "surrogateescape")) is not None


def _search(encoded: bytes, pattern: str, *, latin1: bool) -> Callable[[bytes], bool]:
    search = _compiled(encoded, pattern, latin1=latin1).search
    return lambda text: search(text) is not None


def _compiled(encoded: bytes, pattern: str, *, latin1: bool) -> Any:
    if len(encoded) > LONGEST:
        raise ValueError(
            f"a regular expression of {len(encoded)} bytes is too long ({LONGEST} at most)"
        )
    re2 = _engine()
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = _MOST_BYTES
    if latin1:
        options.encoding = re2.Options.Encoding.LATIN1
    try:
        return re2.compile(encoded, options)
    except re2.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {_reason(error)}") from None


def _engine() -> Any:
    try:
        import re2
    except ImportError:
        raise ValueError(
            "regular expressions need the package google-re2: 'pip install google-re2'"
        ) from None
    return re2


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else ""
    text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
    if text.startswith(("invalid perl operator: (?", "invalid escape sequence: ")):
        text += " (RE2 syntax: no back references, no lookaround)"
    return text
