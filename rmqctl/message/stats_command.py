"""``rmqctl message stats``: counts and sizes of messages."""

from typing import TYPE_CHECKING, Annotated

import typer

from rmqctl.admin.messages.stats_rows import MessageStats, StatsRow, TimeStatsRow, TimeValueStatsRow
from rmqctl.cli.context import Cli, context_of, prints, prints_instead
from rmqctl.cli.filter_options import filters_messages
from rmqctl.cli.marks import most_used
from rmqctl.cli.opening import view_of

if TYPE_CHECKING:
    from rmqctl.admin.messages.counting import Counter
    from rmqctl.message.search.query import Query
    from storage.readonly import StoreView


def _prints_by(ctx: typer.Context, by: str | None) -> str | None:
    """Make ``--by tag -o help`` explain the selected rows."""
    if by is not None:
        from rmqctl.admin.messages.stats_values import SPANS, check, pair_of

        try:
            check(by)
        except ValueError:
            return by  # the command refuses it
        row = TimeValueStatsRow if pair_of(by) else TimeStatsRow if by in SPANS else StatsRow
        prints_instead(ctx.command, row)
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
    from rmqctl.admin.messages.counting import Counter
    from rmqctl.admin.messages.stats_values import SPANS, check, pair_of

    cli = context_of(ctx)
    if by is not None:
        cli.parsed("--by", check, by)
    names = ("topic", "tag", "key", "host") if by is None else (by,)
    with view_of(cli) as view:
        from rmqctl.message.search.query import build_query

        query = build_query(cli, view, None, topics or None, None, needs_filter=False)
        counter, damaged = _counted(cli, view, query, Counter(names, cli.zone), jobs)
        if damaged:
            cli.left_out(
                f"{damaged} damaged records are not counted; 'rmqctl store fsck' shows them"
            )
        if by is None:
            cli.one(counter.summary(damaged))
            return
        if pair_of(by):
            cli.rows(TimeValueStatsRow, counter.time_value_rows(by))
        elif by in SPANS:
            cli.rows(TimeStatsRow, counter.time_rows(by))
        else:
            cli.rows(StatsRow, counter.rows(by))


def _counted(
    cli: Cli, view: "StoreView", query: "Query", counter: "Counter", jobs: int | None
) -> "tuple[Counter, int]":
    from rmqctl.admin.messages.search.run import SearchRun, usable_cpus

    run = SearchRun(view, query, jobs or usable_cpus())
    with cli.progress("count", "bytes", run.total_bytes) as progress:
        damaged = run.tally(progress, counter)
    return counter, damaged
