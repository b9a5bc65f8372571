"""``rmqctl man``: the manual pages."""

import shlex
import shutil
import sys
from difflib import get_close_matches
from typing import Annotated

import typer

from rmqctl.child_processes import run_on_terminal
from rmqctl.cli.context import Cli, context_of
from rmqctl.cli.marks import uses_no_store
from rmqctl.errors import NotFound

_WIDTH = 100


@uses_no_store
def man(
    ctx: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[COMMAND...]", help="The command (default: rmqctl itself)"),
    ] = None,
    roff: Annotated[bool, typer.Option("--roff", help="Print the roff source")] = False,
) -> None:
    """Show the manual page of a command, with PAGER on a terminal.

    The program:               rmqctl man
    A command:                 rmqctl man offset reset
    A noun:                    rmqctl man dlq
    With the man program:      rmqctl man lag show --roff | man -l -
    """
    from .manual import page_of
    from .manual_forms import as_roff, as_text

    cli = context_of(ctx)
    page = page_of(_known(command or []))
    if roff:
        cli.out.write(as_roff(page))
        return
    width, height = shutil.get_terminal_size()
    text = as_text(page, min(width, _WIDTH))
    if sys.stdout.isatty() and text.count("\n") >= height:
        _page(cli, text)
    else:
        cli.out.write(text)


def _known(words: list[str]) -> list[str]:
    """The words of a command in any form: ``offset reset``, ``rmqctl-offset-reset``."""
    from rmqctl.cli.tree import TREE, CommandGroup

    names = {name: [name] for name in TREE}
    for name, entry in TREE.items():
        if isinstance(entry, CommandGroup):
            names |= {f"{name} {verb}": [name, verb] for verb in entry.verbs}
    wanted = " ".join(words)
    spelled = {name.replace(" ", "-"): known for name, known in names.items()}
    plain = wanted.replace(" ", "-").removeprefix("rmqctl").removeprefix("-")
    if not plain:
        return []
    if plain not in spelled:
        near = get_close_matches(wanted, names, 1, 0.6)
        hint = f", did you mean {near[0]!r}?" if near else ""
        raise NotFound(f"there is no manual page for {wanted!r}{hint}")
    return spelled[plain]


def _page(cli: Cli, text: str) -> None:
    """Show a long text in a pager, if there is one."""
    pager = shlex.split(cli.environ.get("PAGER", "less -FRX"))
    if not pager or shutil.which(pager[0]) is None:
        cli.out.write(text)
        return
    run_on_terminal(pager, given=text.encode())
