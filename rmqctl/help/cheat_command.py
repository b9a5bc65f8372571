"""``rmqctl cheat``: example commands."""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated

import typer

from rmqctl.cli.context import context_of, prints
from rmqctl.cli.marks import uses_no_store
from rmqctl.errors import NotFound

from .rows import CheatRow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .cheats import Sheet


@prints(CheatRow)
@uses_no_store
def cheat(
    ctx: typer.Context,
    sheet: Annotated[
        str | None, typer.Argument(metavar="[TOPIC]", help="The sheet (default: list all)")
    ] = None,
) -> None:
    """Show example commands, sheet by sheet.

    All sheets:                rmqctl cheat
    Moving progress:           rmqctl cheat reset
    Commands with redrive:     rmqctl cheat -o tsv --where 'command ~ redrive'
    """
    from .cheats import SHEETS

    cli = context_of(ctx)
    if sheet is not None and sheet not in SHEETS:
        near = get_close_matches(sheet, SHEETS, 1, 0.5)
        hint = f", did you mean {near[0]!r}?" if near else ""
        raise NotFound(f"there is no sheet {sheet!r}{hint} (sheets: {', '.join(SHEETS)})")
    chosen = SHEETS if sheet is None else {sheet: SHEETS[sheet]}
    if cli.setting("output") is not None or cli.view.is_shaped:
        cli.rows(CheatRow, _rows(chosen))
    elif sheet is None:
        width = max(map(len, SHEETS))
        for name, known in SHEETS.items():
            cli.out.write(f"rmqctl cheat {name:<{width}}  {known.about}\n")
    else:
        for task, command in SHEETS[sheet].lines.items():
            cli.out.write(f"# {task}\n{command}\n")


def _rows(sheets: "Mapping[str, Sheet]") -> Iterator[CheatRow]:
    for name, known in sheets.items():
        for task, command in known.lines.items():
            yield CheatRow(name, task, command)
