"""``rmqctl console``: the store on one screen."""

import sys
from typing import Annotated

import typer

from rmqctl.cli.context import context_of, takes_many_stores
from rmqctl.cli.marks import refuses, takes_row_options
from rmqctl.errors import Refused, UsageProblem


@takes_many_stores
@refuses("limit", because="is for rows that are printed; a list of the console has all of them")
@takes_row_options
def console(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SCREEN [NAME]]", help="Where to begin (default: overview)"),
    ] = None,
    every: Annotated[
        str, typer.Option("--every", metavar="DUR", help="Time between two looks")
    ] = "2s",
    theme: Annotated[
        str | None,
        typer.Option(
            "--theme",
            metavar="NAME",
            help="dark, light or high-contrast (default: what COLORFGBG says, else dark)",
        ),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Turn changes on; each is shown as a plan first")
    ] = False,
    ascii_only: Annotated[
        bool, typer.Option("--ascii", help="Draw rules, bars and marks in ASCII")
    ] = False,
    no_mouse: Annotated[bool, typer.Option("--no-mouse", help="Leave the mouse alone")] = False,
) -> int:
    """Show the store on a full screen, live. It opens read only.

    A first look:              rmqctl console
    One group:                 rmqctl console group billing
    The dead letters of one:   rmqctl console dlq billing
    """
    from rmqctl.console.guard import guarded
    from rmqctl.console.plans.allowed import forbidden
    from rmqctl.console.screens.table import place_named
    from rmqctl.console.terminal import check_terminal
    from rmqctl.console.themes import NAMES, Theme, depth_of, theme_for
    from storage.parse.durations import parse_duration

    cli = context_of(ctx)
    try:
        place = place_named(words or ["overview"])
    except ValueError as error:
        raise UsageProblem(str(error)) from None
    pause_ms = cli.parsed("--every", parse_duration, every)
    if not pause_ms:
        raise UsageProblem("--every needs a time above 0, such as 5s")
    theme = theme or theme_for(cli.environ)
    if theme not in NAMES:
        raise UsageProblem(f"--theme: {theme!r} is not one of {', '.join(NAMES)}")
    if write and (reason := forbidden(cli)) is not None:
        raise Refused(f"--write: {reason}")
    check_terminal()
    look = Theme(theme, color=cli.colored(sys.stdout), depth=depth_of(cli.environ))
    with guarded() as guard:
        from rmqctl.console.program.running import run_console

        return run_console(
            cli,
            place,
            pause_ms / 1000,
            look,
            guard,
            mouse=not no_mouse,
            in_ascii=ascii_only,
            write=write,
        )
