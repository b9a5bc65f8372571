"""The text of rmqctl/completion/parameter_table.py, made of the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer.core import TyperOption

from rmqctl.cli import lazy
from rmqctl.cli.global_options import global_options, is_everywhere
from rmqctl.cli.names_both_ways import NameOption
from rmqctl.cli.tree import TREE, CommandGroup, CommandRef
from rmqctl.completion.parameter import Parameter

_HEAD = '''\
"""The parameters of all commands, as :class:`.parameter.Parameter` takes them.

Written by `make completions`. A number is the place of a global option.
"""

# ruff: noqa: E501
# fmt: off
from typing import Any, Final

'''


def parameter_of(parameter: Any) -> Parameter:
    """What completion has to know of a parameter of Typer."""
    is_option = isinstance(parameter, TyperOption)
    names = (*parameter.opts, *parameter.secondary_opts) if is_option else ()
    argument = parameter.argument.name if isinstance(parameter, NameOption) else None
    return Parameter(
        str(parameter.name),
        names,
        getattr(parameter, "help", None) or "",
        bool(is_option and parameter.is_flag),
        bool(is_option and parameter.multiple),
        parameter.nargs,
        bool(is_option and parameter.hidden),
        tuple(map(str, getattr(parameter.type, "choices", ()))),
        is_everywhere(parameter),
        argument,
    )


def commands() -> Iterator[tuple[str, CommandRef]]:
    """All commands, by their words."""
    for name, entry in TREE.items():
        if isinstance(entry, CommandGroup):
            yield from ((f"{name} {verb}", one) for verb, one in entry.verbs.items())
        else:
            yield name, entry


def row_type_of(command: Any) -> str | None:
    """Module and name of what a command prints."""
    for row_type in getattr(command, "row_types", ()):
        return f"{row_type.__module__}:{row_type.__qualname__}"
    return None


def text() -> str:
    """The module."""
    everywhere = [parameter_of(option) for option in global_options()]
    lines = [_HEAD, "EVERYWHERE: Final[Any] = (\n"]
    lines += [f"    {_short(one)},\n" for one in everywhere]
    lines += [")\n", "COMMANDS: Final[Any] = {\n"]
    for name, entry in commands():
        command = lazy.build(name, entry)
        parameters = [
            str(everywhere.index(one)) if one in everywhere else _short(one)
            for one in map(parameter_of, command.params)
        ]
        lines.append(f"    {name!r}: ({row_type_of(command)!r}, ({', '.join(parameters)},)),\n")
    return "".join([*lines, "}\n"])


def _short(parameter: Parameter) -> str:
    """A parameter without the values at its end that are the usual ones."""
    values: list[Any] = list(parameter)
    usual = Parameter("", ())
    while len(values) > 2 and values[-1] == usual[len(values) - 1]:
        values.pop()
    return f"({', '.join(map(repr, values))})"
