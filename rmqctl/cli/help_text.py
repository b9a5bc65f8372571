"""The layout of help: a screen, and the whole with ``--all``. No line ends inside a word."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from typer.core import TyperOption

from .global_options import SPECS, Scope, Spec, is_everywhere
from .marks import Changes
from .names_both_ways import NameOption
from .root_help import definitions, filled, wrapped

_INDENT: Final = "  "
_EXAMPLES: Final = 3
_LABEL: Final = re.compile(r"(\S.*?:)(?:\s{2,}(\S.*)| *)")
_WORD: Final = re.compile(r"""(?:[^\s'"]|'[^']*'|"[^"]*")+|\S+""")


class Example(NamedTuple):
    """An example of a docstring: what it shows, and the lines of its command."""

    label: str
    lines: tuple[str, ...]


Part = str | tuple[Example, ...]
"""A paragraph, with its line ends, or a block of examples."""


def parts_of(text: str) -> list[Part]:
    """The paragraphs and blocks of examples of a docstring."""
    found: list[Part] = []
    for part in text.split("\n\n"):
        lines = part.strip("\n").splitlines()
        if any(re.search(r"(^|:)\s+rmqctl |^\s*rmqctl ", line) for line in lines):
            found.append(tuple(_examples(lines)))
        elif lines:
            found.append("\n".join(line.rstrip() for line in lines))
    return found


def _examples(lines: Iterable[str]) -> Iterator[Example]:
    label, command = "", list[str]()
    for line in lines:
        if not line[:1].isspace():
            if label or command:
                yield Example(label, tuple(command))
            found = _LABEL.fullmatch(line)
            label, command = (found[1], [found[2]] if found[2] else []) if found else ("", [line])
        else:
            command.append(line.strip())
    yield Example(label, tuple(command))


def examples(block: Sequence[Example], width: int) -> list[str]:
    """Examples with their commands in a column; below the label where they are too long."""
    column = max(len(example.label) for example in block)
    column += 3 if column else 0
    lines = []
    for label, command in block:
        if all(len(_INDENT) + column + len(line) <= width for line in command):
            heads = [label, *([""] * (len(command) - 1))]
            for place, (head, line) in enumerate(zip(heads, command, strict=True)):
                lines.append(f"{_INDENT}{head:{column}}{_INDENT * (place > 0)}{line}")
        else:
            lines += [_INDENT + label] if label else []
            for place, line in enumerate(command):
                lines += _command_lines(line, width, _INDENT * (5 if place else 3))
    return lines


def _command_lines(command: str, width: int, indent: str) -> list[str]:
    r"""A command, in lines that end with ``\`` if it is longer than a line."""
    lines, line = [], indent
    for word in _WORD.findall(command):
        if line.strip() and len(line) + 1 + len(word) > width - 2:
            lines.append(line + " \\")
            line = _INDENT * 5
        line += (" " if line.strip() else "") + word
    return [*lines, line]


# -- a command ----------------------------------------------------------------------------------


def screen(ctx: Any, command: Any, width: int) -> list[str]:
    """The help of a command on a screen, without its usage."""
    parts = parts_of(command.help or "")
    texts = [part for part in parts if isinstance(part, str)]
    lines = ["", *filled(" ".join(texts[0].split()), width, _INDENT)] if texts else []
    chosen = _chosen([part for part in parts if not isinstance(part, str)])
    if chosen:
        lines += ["", "Examples:", *examples(chosen, width)]
    rows = [*_with_options(ctx, command), *_records(ctx, _most_used(command))]
    rows = [(name, _SHORT.get(name, text)) for name, text in rows]
    if rows:
        lines += ["", "Options:", *definitions(rows, width)]
    return [*lines, "", f"More: {ctx.command_path} --help --all"]


def whole(ctx: Any, command: Any, width: int) -> list[str]:
    """All of the help of a command, without its usage."""
    lines = []
    for part in parts_of(command.help or ""):
        lines += ["", *(wrapped(part, width) if isinstance(part, str) else examples(part, width))]
    own = [p for p in _options(command) if not is_everywhere(p) and p.name != "help"]
    for title, parameters in (("Arguments", _arguments(command)), ("Options", own)):
        if records := _records(ctx, parameters):
            lines += ["", f"{title}:", *definitions(records, width)]
    names = " ".join("/".join(spec.names) for spec in SPECS if _has_effect(command, spec))
    lines += ["", "Global options (see rmqctl --help --all):"]
    return [*lines, *filled(f"{names} -h/--help", width, _INDENT)]


def _chosen(blocks: Sequence[Sequence[Example]]) -> list[Example]:
    """Three examples: the first of each block, then the second of each, in their order."""
    places = sorted(
        (place, block) for block, found in enumerate(blocks) for place in range(len(found))
    )
    chosen = sorted((block, place) for place, block in places[:_EXAMPLES])
    return [blocks[block][place] for block, place in chosen]


def _arguments(command: Any) -> list[Any]:
    return [p for p in command.params if not isinstance(p, TyperOption)]


def _options(command: Any) -> list[Any]:
    return [p for p in command.params if isinstance(p, TyperOption)]


def _with_options(ctx: Any, command: Any) -> Iterator[tuple[str, str]]:
    """The arguments; one that may be an option, too, with its short name: ``GROUP, -g``."""
    short = {p.argument: p.kind.short for p in _options(command) if isinstance(p, NameOption)}
    for argument in _arguments(command):
        for name, text in _records(ctx, [argument]):
            yield (f"{name}, {short[argument]}" if argument in short else name), text


def _records(ctx: Any, parameters: Iterable[Any]) -> list[tuple[str, str]]:
    records = (parameter.get_help_record(ctx) for parameter in parameters)
    return [record for record in records if record]


_SHORT: Final = {
    "-o, --output FMT": "Format: table, json, csv ...; help lists fields",
    "--from T": "Stored at or after T, such as -1h or 09:30",
    "--json-path EXPR": "With a JSON body such as 'sum > 9 and country = DE'",
}
"""Shorter help for a screen."""
_ALWAYS: Final = {"--store", "--output", "--dry-run", "--yes"}
"""Global options that a screen has where they have an effect."""


def _most_used(command: Any) -> list[Any]:
    """The options of a screen: own ones first, then the global ones."""
    names = command.most_used
    own, everywhere = [], []
    with_effect = {spec.names[-1] for spec in SPECS if _has_effect(command, spec)}
    for option in _options(command):
        long = {name for name in option.opts if name.startswith("--")}
        if is_everywhere(option):
            (name,) = long
            if name in (names or ()) or (name in _ALWAYS and name in with_effect):
                everywhere.append(option)
        elif isinstance(option, NameOption):
            continue  # beside its argument
        elif option.name != "help" and (names is None or long.intersection(names)):
            own.append(option)
    if names is not None:
        own.sort(key=lambda option: min(names.index(n) for n in option.opts if n in names))
    return own + everywhere


def _has_effect(command: Any, spec: Spec) -> bool:
    """Whether a global option has an effect on a command."""
    if command.passes_options:
        return True
    if spec.names[-1].removeprefix("--").replace("-", "_") in command.refused:
        return False
    match spec.scope:
        case Scope.STORE:
            return bool(command.uses_store)
        case Scope.ROWS:
            return bool(command.row_types)
        case Scope.PLAN:
            return command.changes in {Changes.ASKS, Changes.PLANS}
        case Scope.CONSENT:
            return command.changes is Changes.ASKS
    return True
