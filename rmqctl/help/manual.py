"""Manual pages from the command tree: the texts of ``--help``, and the printed fields."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from typer.core import TyperOption

from rmqctl.cli import lazy, root_help
from rmqctl.cli.global_options import SPECS, is_everywhere
from rmqctl.cli.tree import ABOUT, SECTIONS, TREE, CommandGroup, CommandRef


class Text(NamedTuple):
    """A paragraph."""

    text: str


class Lines(NamedTuple):
    """Lines that are not wrapped."""

    lines: tuple[str, ...]


class Items(NamedTuple):
    """Names with their meanings."""

    items: tuple[tuple[str, str], ...]


Block = Text | Lines | Items


class Page(NamedTuple):
    """A manual page of section 1."""

    name: str
    """``rmqctl-topic-list``"""
    sections: tuple[tuple[str, tuple[Block, ...]], ...]


def pages() -> Iterator[Page]:
    """All pages: one for the program, for each noun and for each command."""
    yield page_of([])
    for name, entry in TREE.items():
        yield page_of([name])
        if isinstance(entry, CommandGroup):
            for verb in entry.verbs:
                yield page_of([name, verb])


def page_of(words: list[str]) -> Page:
    """The page of a command or a noun, which must exist; of the program without words."""
    if not words:
        return _program()
    entry = TREE[words[0]]
    if isinstance(entry, CommandGroup) and len(words) == 1:
        return _noun(words[0], entry)
    leaf = entry.verbs[words[1]] if isinstance(entry, CommandGroup) else entry
    return _command(words, leaf, entry.verbs if isinstance(entry, CommandGroup) else {})


def _program() -> Page:
    from rmqctl.cli.settings import COLORS, HOME_FILES, KEYS, PROJECT_FILES, VARIABLES
    from rmqctl.parse import condition_forms as forms
    from rmqctl.parse.meanings import meanings
    from storage.parse.time_forms import RULES, TITLE, form_lines

    commands = [
        (title, (Items(tuple((f"rmqctl {name}", TREE[name].help) for name in names)),))
        for title, names in SECTIONS.items()
    ]
    options = Items(tuple((_names(spec.names, spec.metavar), spec.help) for spec in SPECS))
    codes = Items(tuple((code.value, code.text) for code in meanings("rmqctl.exit_codes")))
    own = {**KEYS, **VARIABLES}
    variables = Items(
        (
            *((f"RMQCTL_{name.upper()}", f"{meaning}.") for name, (_, meaning) in own.items()),
            *((name, f"as RMQCTL_COLOR={when}, but weaker.") for name, when in COLORS.items()),
        )
    )
    names = ", ".join(HOME_FILES)
    files = Items(
        (
            (
                ", ".join(PROJECT_FILES),
                "Settings of a project, in the working folder or above it.",
            ),
            (f"~/.config/rmqctl/{names}", "Settings of a user."),
            (f"/etc/xdg/rmqctl/{names}", "Settings of the system."),
            ("~/.local/share/rmqctl/store", "The default store."),
        )
    )
    return Page(
        "rmqctl",
        (
            ("Name", (Text("rmqctl - a RocketMQ store without a broker process"),)),
            ("Synopsis", (Lines(("rmqctl [OPTIONS] COMMAND ...",)),)),
            ("Description", (Text(" ".join(ABOUT.split())),)),
            *commands,
            ("Global options", (options,)),
            ("Times", (Text(TITLE), Items(form_lines()), *map(Text, RULES))),
            (
                "Conditions of --where",
                (Text(forms.WHERE_TITLE), Items(forms.WHERE_FORMS), *map(Text, forms.WHERE_RULES)),
            ),
            (
                "Conditions of --json-path",
                (Text(forms.JSON_TITLE), Items(forms.JSON_FORMS), *map(Text, forms.JSON_RULES)),
            ),
            ("Exit status", (codes,)),
            ("Environment", (variables,)),
            ("Files", (files,)),
            ("Examples", (Lines(tuple(line.strip() for line in root_help.EXAMPLES.splitlines())),)),
        ),
    )


def _noun(name: str, entry: CommandGroup) -> Page:
    verbs = Items(tuple((f"rmqctl {name} {verb}", leaf.help) for verb, leaf in entry.verbs.items()))
    return Page(
        f"rmqctl-{name}",
        (
            ("Name", (Text(f"rmqctl-{name} - {_small(entry.help)}"),)),
            ("Synopsis", (Lines((f"rmqctl {name} COMMAND ...",)),)),
            ("Commands", (verbs,)),
            (
                "See also",
                (Text(_see(["rmqctl", *(f"rmqctl-{name}-{verb}" for verb in entry.verbs)])),),
            ),
        ),
    )


def _command(words: list[str], leaf: CommandRef, siblings: Mapping[str, CommandRef]) -> Page:
    command: Any = lazy.build(words[-1], leaf)
    name = "-".join(["rmqctl", *words])
    described, examples = _parts(command.help or "")
    arguments, options = _parameters(command)
    usage = " ".join(["rmqctl", *words, "[OPTIONS]", *(_metavar(p) for p in _arguments(command))])
    others = [f"rmqctl-{words[0]}-{verb}" for verb in siblings if verb != words[-1]]
    sections: list[tuple[str, tuple[Block, ...]]] = [
        ("Name", (Text(f"{name} - {_small(leaf.help)}"),)),
        ("Synopsis", (Lines((usage,)),)),
        ("Description", tuple(map(Text, described))),
    ]
    if arguments:
        sections.append(("Arguments", (Items(arguments),)))
    everywhere = Text("The global options are described in rmqctl(1).")
    sections.append(("Options", (*([Items(options)] if options else []), everywhere)))
    if command.row_types:
        sections.append(("Fields", (Items(_fields(command.row_types[0])),)))
    if examples:
        sections.append(("Examples", (Lines(examples),)))
    sections.append(("See also", (Text(_see(["rmqctl", *others])),)))
    return Page(name, tuple(sections))


def _parts(text: str) -> tuple[list[str], tuple[str, ...]]:
    """Paragraphs of a docstring, and its example lines."""
    paragraphs, examples = [], []
    for part in text.split("\n\n"):
        lines = part.strip("\n").splitlines()
        if any(re.search(r"(^|:)\s+rmqctl |^\s*rmqctl ", line) for line in lines):
            examples += [line.rstrip() for line in lines]
        elif lines:
            paragraphs.append(" ".join(" ".join(lines).split()))
    return paragraphs, tuple(examples)


def _arguments(command: Any) -> list[Any]:
    return [p for p in command.params if not isinstance(p, TyperOption)]


def _metavar(parameter: Any) -> str:
    shown = str(parameter.metavar or parameter.name.upper())
    return shown if parameter.required or shown.startswith("[") else f"[{shown}]"


def _parameters(
    command: Any,
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """Arguments and the command's own options, with their help."""
    arguments, options = [], []
    for parameter in command.params:
        if is_everywhere(parameter) or getattr(parameter, "hidden", False):
            continue
        text = _sentence(getattr(parameter, "help", None) or "")
        if isinstance(parameter, TyperOption):
            names = (*parameter.opts, *parameter.secondary_opts)
            options.append((_names(names, "" if parameter.is_flag else _value(parameter)), text))
        else:
            arguments.append((_metavar(parameter).strip("[]"), text))
    return tuple(arguments), tuple(options)


def _value(parameter: Any) -> str:
    return str(parameter.metavar or parameter.type.name.upper())


def _names(names: tuple[str, ...], metavar: str) -> str:
    return ", ".join(names) + (f" {metavar}" if metavar else "")


def _fields(row_type: type) -> tuple[tuple[str, str], ...]:
    from rmqctl.output.fields import fields_of

    return tuple(
        (
            f"{field.name} ({field.json_type}{f', {field.unit}' if field.unit else ''})",
            _sentence(field.help) + (" Not in narrow tables." if field.wide else ""),
        )
        for field in fields_of(row_type)
    )


def _sentence(text: str) -> str:
    text = text.rstrip(".")
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _small(text: str) -> str:
    """A help line as the second half of a NAME line."""
    return text[:1].lower() + text[1:].rstrip(".")


def _see(names: list[str]) -> str:
    return ", ".join(f"{name}(1)" for name in names)
