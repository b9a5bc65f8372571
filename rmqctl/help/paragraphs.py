"""The meaning of a term as paragraphs of a width."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .terms import Term

_INDENT: Final = "    "


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
    """The forms as a table of two columns, wrapped to the width."""
    from textwrap import wrap

    left = max((len(example) for example, _ in forms), default=0) + 2
    lines = []
    for example, meaning in forms:
        parts = wrap(meaning, width - len(_INDENT) - left, break_long_words=False)
        first, *rest = parts
        lines.append(f"{_INDENT}{example:{left}}{first}")
        lines += [f"{_INDENT}{'':{left}}{part}" for part in rest]
    return lines
