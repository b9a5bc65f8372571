"""A parameter of a command as completion needs it: from a table, as Typer takes long to load."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple


class Parameter(NamedTuple):
    """An option or an argument of a command."""

    name: str
    opts: tuple[str, ...]
    """The names of an option; none: it is an argument."""
    help: str = ""
    is_flag: bool = False
    multiple: bool = False
    nargs: int = 1
    hidden: bool = False
    choices: tuple[str, ...] = ()
    everywhere: bool = False
    """Whether it is a global option, and not a command's own option of the same name."""
    argument: str | None = None
    """The argument whose value the option gives."""


class Parameters(NamedTuple):
    """The parameters of a command, and what it prints."""

    of: Sequence[Parameter]
    row_type: str | None = None
    """Module and name of its first row type."""


Row = tuple[Any, ...]
"""A Parameter as the table has it."""
_EMPTY: Final[tuple[str | None, tuple[Row | int, ...]]] = (None, ())


def parameters_of(command: str, *, is_group: bool) -> Parameters:
    """The parameters of a command, by its words; of the program or a noun: the global options."""
    from .parameter_table import COMMANDS, EVERYWHERE

    everywhere: Sequence[Row] = EVERYWHERE
    if is_group:
        return Parameters([Parameter(*row) for row in everywhere])
    table: Mapping[str, tuple[str | None, tuple[Row | int, ...]]] = COMMANDS
    row_type, rows = table.get(command, _EMPTY)
    found = [Parameter(*(everywhere[row] if isinstance(row, int) else row)) for row in rows]
    return Parameters(found, row_type)
