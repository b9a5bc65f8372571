"""``rmqctl audit``: who changed what."""

from typing import Annotated

import typer

from rmqctl.admin.audit.rows import ChangeDetails, ChangeRow
from rmqctl.cli.context import context_of, prints
from rmqctl.cli.opening import open_for_reading


@prints(ChangeRow)
def list_changes(
    ctx: typer.Context,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="Only changes since this time, such as -7d"),
    ] = None,
) -> None:
    """List all changes of progress and settings, oldest first, with a row for each queue.

    The last week:             rmqctl audit list --since -7d
    Changes by one user:       rmqctl audit list --where 'user = ann'
    """
    cli = context_of(ctx)
    start = None if since is None else cli.time("--since", since)
    if start is not None:
        cli.warn_of_future("--since", start, "no change is that recent")
    with open_for_reading(cli) as broker:
        from rmqctl.admin import audit

        cli.rows(ChangeRow, audit.list_changes(broker.view, start))


@prints(ChangeDetails)
def show(
    ctx: typer.Context,
    change_id: Annotated[int, typer.Argument(metavar="CHANGE-ID", help="Number of the change")],
) -> None:
    """Show everything that the journal has about one change.

    As JSON:                   rmqctl audit show 17 -o json
    """
    cli = context_of(ctx)
    with open_for_reading(cli) as broker:
        from rmqctl.admin import audit

        cli.one(audit.describe(broker.view, change_id))
