"""``rmqctl message stats``: counts and sizes of messages."""

from contextlib import suppress
from typing import Annotated

import typer

from rmqctl.admin.messages.stats_rows import MessageStats, StatsRow, TimeStatsRow, TimeValueStatsRow
from rmqctl.cli.context import context_of, prints, prints_instead
from rmqctl.cli.filter_options import filters_messages
from rmqctl.cli.marks import most_used
from rmqctl.cli.opening import view_of
from rmqctl.cli.scan_display import ScanDisplay


def _prints_by(ctx: typer.Context, by: str | None) -> str | None:
    """Make ``--by tag -o help`` explain the selected rows."""
    if by is not None:
        from rmqctl.admin.messages import stats_row_type

        with suppress(ValueError):  # the command refuses an unknown name
            prints_instead(ctx, stats_row_type(by))
    return by


@prints(MessageStats, StatsRow, TimeStatsRow, TimeValueStatsRow)
@filters_messages
@most_used("--by", "--from", "--to", "--tag", "--json-path")
def stats(
    ctx: typer.Context,
    topics: Annotated[
        list[str] | None, typer.Argument(metavar="[TOPIC...]", help="Only these (default: all)")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="WHAT",
            help="Count by topic, queue, tag, key, host, attempts, minute, hour, day, json.PATH, "
            "property.NAME; 'hour,WHAT' by both",
            is_eager=True,
            callback=_prints_by,
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Processes (default: one per processor)")
    ] = None,
) -> None:
    """Count messages: their sizes, times, and most frequent topics, tags, keys and hosts.

    Without TOPIC: all topics except the broker's internal ones. --by prints a row for each topic,
    tag, key, host, time span, field of a JSON body or property.

    All messages:             rmqctl message stats
    By tag, in one topic:     rmqctl message stats -t orders --by tag
    By hour, last day:        rmqctl message stats -t orders --by hour --from -1d
    The most frequent keys:   rmqctl message stats -t orders --by key --limit 20
    Keys that came twice:     rmqctl message stats orders --by key --where 'messages > 1'
    By a JSON field an hour:  rmqctl message stats orders --by hour,json.country
    """
    from rmqctl.admin import messages

    cli = context_of(ctx)
    row_type = (
        messages.stats_row_type(None)
        if by is None
        else cli.parsed("--by", messages.stats_row_type, by)
    )
    with view_of(cli) as view, ScanDisplay(cli, "count") as shown:
        from rmqctl.message.search.query import build_query

        query = build_query(cli, view, None, topics or None, "body", needs_filter=False)
        counted = messages.stats(view, query, by, zone=cli.zone, jobs=jobs, on_progress=shown)
        if counted.damaged:
            cli.left_out(
                f"{counted.damaged} damaged records are not counted; 'rmqctl store fsck' shows them"
            )
        if by is None:
            cli.one(counted.summary())
        else:
            cli.rows(row_type, counted.rows())
