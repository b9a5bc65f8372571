r"""Regular expressions that a user gives: RE2, whose time grows with the text and never explodes.

Python's own engine goes back: ``(x+x+)+y`` takes it longer than the universe has, beside 30 x, and
``(?:(?:a?){100000}){100000}`` all memory. A store's bodies are anyone's texts, and a search runs in
worker processes and threads where nothing can stop it. RE2 knows no back references and no looking
around; it says so.
"""

from collections.abc import Callable
from typing import Any, Final

_MOST_BYTES: Final = 16 << 20
"""Memory that one expression may take."""
LONGEST: Final = 10_000
"""Characters of an expression."""


def search_bytes(pattern: str) -> Callable[[bytes], bool]:
    """A function that says whether a text has a match. Each byte of the text is a character.

    ValueError for what is no regular expression.
    """
    return _search(pattern.encode("utf-8", "surrogateescape"), pattern, latin1=True)


def search_text(pattern: str) -> Callable[[str], bool]:
    """A function that says whether a text has a match. ValueError as above."""
    search = _search(pattern.encode("utf-8", "surrogateescape"), pattern, latin1=False)
    return lambda text: search(text.encode("utf-8", "surrogateescape"))


def _search(encoded: bytes, pattern: str, *, latin1: bool) -> Callable[[bytes], bool]:
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
        search = re2.compile(encoded, options).search
    except re2.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {_reason(error)}") from None
    return lambda text: search(text) is not None


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
        text += " (RE2 syntax: no back references and no looking around)"
    return text
