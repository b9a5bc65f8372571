"""``rmqctl resetOffsetByTime``: mqadmin's own command, on the files."""

from typing import Annotated

import typer

from rmqctl.admin.offsets.rows import ResetByTimeRow
from rmqctl.cli.context import context_of, prints
from rmqctl.cli.marks import Changes, changes, most_used
from rmqctl.cli.opening import open_for_reading
from rmqctl.group.options import NewGroup


@prints(ResetByTimeRow)
@changes(Changes.ASKS)
@most_used("--topic", "--timestamp", "--queue")
def reset_offset_by_time(
    ctx: typer.Context,
    group: Annotated[str, typer.Argument(metavar="GROUP", help="Whose progress")],
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
    new_group: NewGroup = False,
) -> None:
    """Move a group to a time, as mqadmin's command of this name does.

    It takes RocketMQ 4.9's own answer for every queue, one that the group never committed
    included. A group of which the store has no trace is refused: mqadmin takes a misspelt name
    for a new group. Notes say where the first message at or after the time is another one.
    It shows what it would do and asks; 'rmqctl offset reset' can do more, and previews more.

    Look first:      rmqctl resetOffsetByTime -g readers -t orders -s '2026-01-31 14:00' --dry-run
    Without asking:  rmqctl resetOffsetByTime -g readers -t orders -s -15m --yes
    To the end:      rmqctl resetOffsetByTime -g readers -t orders -s now
    """
    cli = context_of(ctx)
    from broker.validation import check_group
    from rmqctl.parse.lists import parse_queues
    from storage.parse.times import is_now

    from .boundaries import parse_boundary, warn_of_future

    check_group(group)
    queues = None if queue is None else cli.parsed("--queue", parse_queues, queue)
    rule = cli.parsed("--boundary", parse_boundary, boundary)
    at_end = is_now(timestamp) or timestamp.strip() == "-1"  # mqadmin's words for each queue's end
    moment = None if at_end else cli.time("--timestamp", timestamp, changes=True)
    if moment is None:
        cli.say(f"--timestamp {timestamp.strip()!r} is the end of each queue")
    else:
        warn_of_future(cli, "--timestamp", moment, rule)
    with open_for_reading(cli) as broker:
        from rmqctl.admin.offsets.time_reset import reset_by_time
        from rmqctl.cli.change_steps import begin_java_check, run_change

        java_check = begin_java_check(cli, broker.view.root)
        change = reset_by_time(
            broker.view,
            broker,
            group,
            topic,
            moment,
            queues=queues,
            boundary=rule,
            force=force,
            new_groups=new_group,
            now_ms=cli.now_ms,
            warn=cli.warn,
            java_check=java_check,
        )
        run_change(cli, change)
