"""Parsing a command line as the program does, without running it."""

from collections.abc import Sequence
from contextlib import redirect_stdout
from io import BytesIO, TextIOWrapper
from typing import Any

from rmqctl.cli import lazy
from rmqctl.cli.context import Cli


def parsed(words: Sequence[str], cli: Cli | None = None) -> list[str]:
    """The names of the command that a line (without the program's name) is for.

    ``cli`` learns the options of all commands. Raises what the program would end with: an unknown
    command or option, a missing value.
    """
    command: Any = lazy.root()
    names: list[str] = []
    ctx: Any = command.make_context("rmqctl", list(words), obj=cli or Cli())
    while isinstance(command, lazy.LazyGroup):
        name, command, rest = command.resolve_command(ctx, [*ctx._protected_args, *ctx.args])
        names.append(name)
        try:
            with redirect_stdout(TextIOWrapper(BytesIO())):
                ctx = command.make_context(name, rest, parent=ctx)
        except SystemExit as ended:  # -o help and --version are answered while parsing
            if ended.code:
                raise
            break
    return names
