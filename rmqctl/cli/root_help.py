"""The help of the program and of nouns. It needs the table of commands only, not Typer."""

import os
import sys
from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Final

from .tree import ABOUT, MOST_COLUMNS, SECTIONS, TREE, CommandGroup, CommandRef

EXAMPLES: Final = """\
  Send a message:                  echo hello | rmqctl produce greetings
  Read all messages, then stop:    rmqctl consume greetings -e
  Consume as a member of a group:  rmqctl consume greetings -g readers -e"""
_MORE: Final = "More: rmqctl COMMAND --help; --help --all; rmqctl cheat; rmqctl explain TERM"
_LEAST_COLUMNS: Final = 50
_INDENT: Final = "  "
_WIDEST_NAME: Final = 26
"""Columns of an option's names; the help of longer ones begins on the next line."""


def text() -> str:
    """The help of the program as ``rmqctl --help`` prints it."""
    width = max(min(_columns(), MOST_COLUMNS) - 2, _LEAST_COLUMNS)
    lines = ["Usage: rmqctl [OPTIONS] COMMAND ...", *first_lines(ABOUT, TREE, width)]
    lines += ["", more_line("rmqctl", is_root=True)]
    return "".join(f"{line}\n" for line in lines)


def first_lines(
    about: str, table: Mapping[str, CommandRef | CommandGroup], width: int, *, whole: bool = False
) -> list[str]:
    """What it is about, on the root examples, and the commands of a table."""
    is_root = table is TREE
    if is_root and not whole:
        about = about.partition("\n")[0]
    lines = ["", *wrapped(about, width)]
    if is_root:
        lines += ["", "Examples:", *EXAMPLES.splitlines()]
    for title, names in _sections(table):
        rows = [(name, table[name].help) for name in names]
        lines += ["", f"{title}:", *definitions(rows, width)]
    return lines


def more_line(command_path: str, *, is_root: bool) -> str:
    """The line that names further help."""
    return _MORE if is_root else f"More: {command_path} COMMAND --help"


def _sections(
    table: Mapping[str, CommandRef | CommandGroup],
) -> Sequence[tuple[str, Sequence[str]]]:
    if table is not TREE:
        return [("Commands", list(table))]
    return [
        (title, present)
        for title, names in SECTIONS.items()
        if (present := [name for name in names if name in table])
    ]


def _columns() -> int:
    """The columns of the terminal, as shutil.get_terminal_size finds them: it loads much."""
    try:
        columns = int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        columns = 0
    if columns <= 0:
        stdout = sys.__stdout__
        try:
            columns = os.get_terminal_size(stdout.fileno()).columns if stdout else 0
        except (ValueError, OSError):
            columns = 0
    return columns or 80


def wrapped(text: str, width: int) -> list[str]:
    """A paragraph in lines of a width: as written if they fit, else filled again."""
    lines = text.splitlines()
    if all(len(line) + len(_INDENT) <= width for line in lines):
        return [_INDENT + line for line in lines]
    return filled(" ".join(text.split()), width, _INDENT)


def filled(text: str, width: int, first: str, rest: str = _INDENT) -> list[str]:
    """A text in lines; ``first`` and ``rest`` are what they begin with."""
    return wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def definitions(rows: Sequence[tuple[str, str]], width: int) -> list[str]:
    """Names with their help in a second column."""
    column = max((len(name) for name, _ in rows if len(name) <= _WIDEST_NAME), default=8) + 4
    lines = []
    for name, text in rows:
        head = _INDENT + name
        if len(head) + 2 > column:
            lines.append(head)
            head = ""
        lines += filled(text, width, f"{head:{column}}", " " * column) if text else [head]
    return lines
