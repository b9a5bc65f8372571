"""``rmqctl doctor``: checks of the environment."""

import typer

from rmqctl.cli.context import Cli, context_of, prints
from rmqctl.exit_codes import DONE, FAILURE

from .rows import CheckRow


@prints(CheckRow)
def doctor(ctx: typer.Context) -> int:
    """Check the environment: interpreter, libraries, store, file system, terminal.

    Changes nothing. Exit code 1 if a problem prevents rmqctl from working. Linux is supported,
    macOS with one writing process, Windows with WSL.

    With another store:        rmqctl doctor -S /data/store
    Problems only:             rmqctl doctor --where 'status != ok' -o plain
    """
    from .doctor import ERROR, checks

    cli = context_of(ctx)
    rows = list(checks(cli))
    if cli.setting("output") is None and not cli.view.where and not cli.view.columns:
        _tell(cli, rows)
    else:
        cli.rows(CheckRow, rows)
    return FAILURE if any(row.status == ERROR for row in rows) else DONE


def _tell(cli: Cli, rows: list[CheckRow]) -> None:
    """One line per check, not truncated, with the advice below it."""
    from rmqctl.output.values import escape_controls

    widest = max(len(row.check) for row in rows)
    for row in rows:
        found, advice = escape_controls(row.found), escape_controls(row.advice)
        cli.out.write(f"{row.status:<8} {row.check:<{widest}}  {found}\n")
        if advice:
            cli.out.write(f"{'':<8} {'':<{widest}}  {advice}\n")
