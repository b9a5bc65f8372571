"""The meaning of a term as paragraphs of a width."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .terms import Term

_INDENT: Final = "    "
_LEAST_ROOM: Final = 24
"""Columns that a meaning needs beside its example."""


def paragraphs(term: "Term", width: int) -> str:
    """The term, its forms, its text, its other names, and the commands to look at."""
    from textwrap import fill

    lines = [*_forms(term.forms, width), *term.text.splitlines()]
    if term.also:
        lines.append("Also: " + ", ".join(term.also))
    if term.see:
        lines.append("See: " + ", ".join(f"rmqctl {name}" for name in term.see))
    text = "\n".join(
        line
        if line.startswith(_INDENT)
        else fill(
            line,
            width,
            initial_indent=_INDENT,
            subsequent_indent=_INDENT,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in lines
    )
    return f"{term.term} ({term.kind})\n{text}\n"


def _forms(forms: "Iterable[tuple[str, str]]", width: int) -> list[str]:
    """The forms as a table of two columns; on a narrow terminal the second is below the first."""
    from textwrap import wrap

    left = max((len(example) for example, _ in forms), default=0) + 2
    room = width - len(_INDENT) - left
    is_narrow = room < _LEAST_ROOM
    if is_narrow:
        left = len(_INDENT)
        room = max(width - 2 * left, _LEAST_ROOM)
    lines = []
    for example, meaning in forms:
        first, *rest = wrap(meaning, room, break_long_words=False)
        if is_narrow:
            lines.append(_INDENT + example)
            rest = [first, *rest]
        else:
            lines.append(f"{_INDENT}{example:{left}}{first}")
        lines += [f"{_INDENT}{'':{left}}{part}" for part in rest]
    return lines
