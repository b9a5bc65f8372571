"""``rmqctl offset``: how far groups are."""

from typing import Annotated

import typer

from rmqctl.context import context_of, prints
from rmqctl.opening import open_for_reading
from rmqctl.rows.offsets import OffsetRow


@prints(OffsetRow)
def list_offsets(
    ctx: typer.Context,
    group: Annotated[
        list[str] | None,
        typer.Option("--group", "-g", metavar="GROUP", help="Only this group; repeatable"),
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", "-t", metavar="TOPIC", help="Only this topic; repeatable"),
    ] = None,
) -> None:
    """List the progress of all groups, queue by queue.

    Who is behind:             rmqctl offset list --where 'state = BEHIND'
    One group, as JSON:        rmqctl offset list -g readers -o json
    """
    cli = context_of(ctx)
    with open_for_reading(cli) as broker:
        from rmqctl.looking.offsets import offset_rows

        cli.rows(OffsetRow, offset_rows(broker, group, topic))
