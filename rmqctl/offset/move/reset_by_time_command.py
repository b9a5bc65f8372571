"""``rmqctl resetOffsetByTime``: mqadmin's own command, on the files."""

from typing import Annotated

import typer

from rmqctl.cli.context import context_of, prints
from rmqctl.cli.opening import open_for_reading

from .rows import ResetByTimeRow


@prints(ResetByTimeRow)
def reset_offset_by_time(
    ctx: typer.Context,
    group: Annotated[str, typer.Option("--group", "-g", metavar="GROUP", help="Whose progress")],
    topic: Annotated[str, typer.Option("--topic", "-t", metavar="TOPIC", help="In which topic")],
    timestamp: Annotated[
        str,
        typer.Option(
            "--timestamp", "-s", metavar="T", help="Go to what was stored then; now: to the end"
        ),
    ],
    queue: Annotated[
        str | None,
        typer.Option("--queue", "-Q", metavar="LIST", help="Only these queues, such as 0,2-4"),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force/--no-force", help="Forward too, or only back")
    ] = True,
    boundary: Annotated[
        str,
        typer.Option(
            "--boundary",
            metavar="RULE",
            help="nearest49: the message nearest to the time, as RocketMQ 4.9 does; lower: the "
            "first one at or after it; upper: the last one at or before it",
        ),
    ] = "nearest49",
) -> None:
    """Move a group to a time, as mqadmin's command of this name does.

    It takes RocketMQ 4.9's own answer for every queue, one that the group never committed
    included. Notes say where the first message at or after the time is another one.
    It shows what it would do and asks; 'rmqctl offset reset' can do more, and previews more.

    Look first:      rmqctl resetOffsetByTime -g readers -t orders -s '2026-01-31 14:00' --dry-run
    Without asking:  rmqctl resetOffsetByTime -g readers -t orders -s -15m --yes
    To the end:      rmqctl resetOffsetByTime -g readers -t orders -s now
    """
    cli = context_of(ctx)
    from .by_time import ResetByTime

    wanted = ResetByTime.parse(cli, group, topic, timestamp, queue, boundary, force=force)
    with open_for_reading(cli) as broker:
        wanted.carry_out(cli, broker)
