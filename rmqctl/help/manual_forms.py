"""A manual page as roff, for ``man``, and as plain text."""

import re
from collections.abc import Iterator
from textwrap import wrap
from typing import Final

from rmqctl import __version__

from .manual import Block, Items, Lines, Page, Text

_INDENT: Final = 4
_NEXT: Final = 8


def as_roff(page: Page) -> str:
    """The page in the man macros."""
    lines = [
        f'.TH {_quoted(page.name.upper())} 1 "" "rmqctl {__version__}" "rmqctl"',
        ".nh",
        ".ad l",
    ]
    for title, blocks in page.sections:
        lines.append(f".SH {_quoted(title.upper())}")
        for place, block in enumerate(blocks):
            lines += _roff(block, first=place == 0)
    return "\n".join(lines) + "\n"


def _roff(block: Block, *, first: bool) -> Iterator[str]:
    match block:
        case Text(text):
            if not first:
                yield ".PP"
            yield _escaped(text)
        case Lines(lines):
            yield ".nf"
            yield from map(_escaped, lines)
            yield ".fi"
        case Items(items):
            for name, text in items:
                yield ".TP"
                yield ".B " + _escaped(name)
                yield _escaped(text) if text else r"\&"


def _escaped(text: str) -> str:
    text = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq")
    text = text.replace("`", r"\(ga").replace("^", r"\(ha").replace("~", r"\(ti")
    return rf"\&{text}" if text.startswith((".", r"\(aq")) else text


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"' if " " in text else _escaped(text)


def as_markdown(page: Page) -> str:
    """The page in Markdown, for the site of the documents."""
    lines = [f"# {page.name if page.name == 'rmqctl' else page.name.replace('-', ' ', 2)}"]
    for title, blocks in page.sections:
        lines += ["", f"## {title}"]
        for block in blocks:
            lines += ["", *_markdown(block)]
    return "\n".join(lines) + "\n"


def _markdown(block: Block) -> Iterator[str]:
    match block:
        case Text(text):
            yield _plain(text)
        case Lines(lines):
            yield "```text"
            yield from lines
            yield "```"
        case Items(items):
            for name, text in items:
                ticks = "``" if "`" in name else "`"
                yield f"* {ticks}{name}{ticks}" + (f": {_plain(text)}" if text else "")


def _plain(text: str) -> str:
    """A text in which no character means something to Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>#|~])", r"\\\1", text).replace("\n", "  \n")


def as_text(page: Page, width: int) -> str:
    """The page as text of a given width."""
    lines: list[str] = []
    for title, blocks in page.sections:
        lines.append(title.upper())
        for place, block in enumerate(blocks):
            lines += ([""] if place else []) + list(_text(block, width))
        lines.append("")
    return "\n".join(lines)


def _text(block: Block, width: int) -> Iterator[str]:
    match block:
        case Text(text):
            yield from _wrapped(text, width, _INDENT)
        case Lines(lines):
            yield from (" " * _INDENT + line if line else "" for line in lines)
        case Items(items):
            for name, text in items:
                yield " " * _INDENT + name
                yield from _wrapped(text, width, _NEXT)


def _wrapped(text: str, width: int, indent: int) -> list[str]:
    blanks = " " * indent
    return wrap(
        text,
        width,
        initial_indent=blanks,
        subsequent_indent=blanks,
        break_long_words=False,
        break_on_hyphens=False,
    )
