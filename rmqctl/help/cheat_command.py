"""``rmqctl cheat``: lines to copy."""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated

import typer

from rmqctl.cli.context import context_of, prints
from rmqctl.errors import NotFound

from .rows import CheatRow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .cheats import Sheet


@prints(CheatRow)
def cheat(
    ctx: typer.Context,
    sheet: Annotated[
        str | None, typer.Argument(metavar="[TOPIC]", help="A sheet (default: list them)")
    ] = None,
) -> None:
    """Show lines to copy, sheet by sheet.

    All sheets:                rmqctl cheat
    Moving a group:            rmqctl cheat reset
    Every line that redrives:  rmqctl cheat -o tsv --where 'command ~ redrive'
    """
    from .cheats import SHEETS

    cli = context_of(ctx)
    if sheet is not None and sheet not in SHEETS:
        near = get_close_matches(sheet, SHEETS, 1, 0.5)
        hint = f", did you mean {near[0]!r}?" if near else ""
        raise NotFound(f"there is no sheet {sheet!r}{hint} (there are {', '.join(SHEETS)})")
    chosen = SHEETS if sheet is None else {sheet: SHEETS[sheet]}
    if cli.setting("output") is not None or cli.view.where or cli.view.columns:
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
