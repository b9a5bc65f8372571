"""``rmqctl lag histogram`` and ``risk``: the composition of a backlog, and messages at risk."""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from rmqctl.admin.lag.backlog_rows import HistogramRow, RiskRow
from rmqctl.cli.context import Cli, context_of, prints
from rmqctl.cli.opening import open_for_reading
from rmqctl.errors import PartlyDone, UsageProblem
from rmqctl.lag.options import Groups, IncludeRetry, Topics
from storage.counted import counted

if TYPE_CHECKING:
    from analytics.lag.histogram import Ages
    from analytics.lag.lag_snapshot import LagSnapshot
    from storage.format.message import MessageExt

_MOST_NAMES = 20


class Of(StrEnum):
    """The property that buckets count."""

    AGE = "age"
    SIZE = "size"
    TAG = "tag"
    KEY = "key"
    HOST = "host"


@prints(HistogramRow)
def histogram(
    ctx: typer.Context,
    group: Annotated[str, typer.Argument(metavar="GROUP", help="The consumer group")],
    topic: Topics = None,
    of: Annotated[
        Of, typer.Option("--of", help="age, size (of the record), tag, key or host (of the sender)")
    ] = Of.AGE,
    buckets: Annotated[
        str | None,
        typer.Option(
            "--buckets",
            metavar="LIST|N",
            help="Bucket edges (10s,1m,1h or 1K,64K); for names, their number",
        ),
    ] = None,
    include_retry: IncludeRetry = False,
) -> None:
    """Show the distribution of a group's unread messages. All are counted, none are sampled.

    Unreadable messages are in no row: their number is printed, and the exit code is 8. The number
    of those that were deleted unread is printed, too.

    By age:                    rmqctl lag histogram readers
    By tag:                    rmqctl lag histogram readers --of tag
    By size, own edges:        rmqctl lag histogram readers --of size --buckets 1K,10K,100K
    """
    cli = context_of(ctx)
    edges = _edges(cli, of, buckets)
    with open_for_reading(cli) as broker:
        from analytics.lag.histogram import Ages, by_size
        from analytics.lag.selection import Choice
        from rmqctl.admin import lag
        from rmqctl.lag.commands import tell_unknown

        seen = lag.look(broker.view, broker, cli.now_ms, Choice([group], topic, include_retry))
        parts = lag.parts_of(seen.group_lags)
        match of:
            case Of.AGE:
                ages = Ages(broker.view, parts, seen.as_of)
                found = ages.buckets(edges)
                rows = lag.bucket_rows(found, lag.age_label)
                read = sum(row.messages for row in rows)
                _tell_ages(cli, ages)
            case Of.SIZE:
                found = by_size(broker.view, parts, edges)
                rows = lag.bucket_rows(found, lag.size_label)
                read = sum(row.messages for row in rows)
            case _:
                total = sum(part.unread.lag or 0 for part in parts)
                with cli.progress("reading", "messages", total) as progress:
                    rows, read = lag.name_rows(
                        broker.view,
                        parts,
                        _NAMES[of],
                        edges[0],
                        lambda count: progress.advance(count, count),
                    )
        if tell_unknown(cli, seen, broker.topics()):  # then it is not known that nothing is unread
            cli.view = cli.view._replace(nothing=None)
        _tell_lost(cli, seen)
        cli.rows(HistogramRow, rows)
    unread = sum(part.messages for part in parts)
    if read < unread:
        raise PartlyDone(
            f"{unread - read} of {unread} unread messages cannot be read and are in no row; "
            "'rmqctl store fsck' shows why"
        )


def _tell_lost(cli: Cli, seen: "LagSnapshot") -> None:
    """Warn of unread messages that were deleted: they are in no row."""
    lost = sum(queue.unread.lost or 0 for one in seen.group_lags for queue in one.queues)
    if lost:
        cli.view = cli.view._replace(nothing=None)
        of = counted(lost, "unread message was", "unread messages were")
        cli.warn(f"{of} deleted before the group read them, and are in no row")


def _tell_ages(cli: Cli, ages: "Ages") -> None:
    from storage.parse.durations import format_duration

    found = ages.quantiles((0.5, 0.9, 1.0))
    if None not in found:
        half, most, all_of_them = (format_duration(age or 0) for age in found)
        cli.say(f"ages: median {half}, 90th percentile {most}, maximum {all_of_them}")


def _tags(message: "MessageExt") -> Iterable[str]:
    return () if message.tags is None else (message.tags,)


def _keys(message: "MessageExt") -> Iterable[str]:
    return message.keys


def _hosts(message: "MessageExt") -> Iterable[str]:
    return (message.born_host.rpartition(":")[0],)


_NAMES: dict[Of, "Callable[[MessageExt], Iterable[str]]"] = {
    Of.TAG: _tags,
    Of.KEY: _keys,
    Of.HOST: _hosts,
}


def _edges(cli: Cli, of: Of, text: str | None) -> list[int]:
    """Edges of numeric buckets; for names, their number."""
    from analytics.lag.histogram import AGE_EDGES, SIZE_EDGES
    from storage.parse.durations import parse_duration, parse_size

    if of not in (Of.AGE, Of.SIZE):
        return [_MOST_NAMES if text is None else cli.parsed("--buckets", _count, text)]
    if text is None:
        return list(AGE_EDGES if of is Of.AGE else SIZE_EDGES)
    parse = parse_duration if of is Of.AGE else parse_size
    edges = [cli.parsed("--buckets", parse, part) for part in text.split(",")]
    if edges != sorted(set(edges)) or not edges[0]:
        raise UsageProblem(f"--buckets: {text!r} is not an ascending list of values above 0")
    return edges


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise ValueError(f"{text!r} is not a number of names (1 or more)")
    return int(text)


@prints(RiskRow)
def risk(
    ctx: typer.Context,
    groups: Groups = None,
    topic: Topics = None,
    within: Annotated[
        str, typer.Option("--within", metavar="DUR", help="How far to look ahead")
    ] = "24h",
    file_reserved_time: Annotated[
        str | None,
        typer.Option(
            "--file-reserved-time",
            metavar="DUR",
            help="The broker's fileReservedTime, if it is not 72h",
        ),
    ] = None,
    include_retry: IncludeRetry = False,
) -> None:
    """Show which groups lost unread messages, and which may lose some soon.

    A group of which that is unknown has a row, too.

    RocketMQ deletes log files by age or because the disk is full, whether their messages were read
    or not. A copy of a store has new file times, so its ages count from the copy.

    Within a day:              rmqctl lag risk
    Within a week:             rmqctl lag risk --within 7d
    """
    cli = context_of(ctx)
    from storage.parse.durations import format_duration, parse_duration

    within_ms = cli.parsed("--within", parse_duration, within)
    reserved_ms = None
    if file_reserved_time is not None:
        reserved_ms = cli.parsed("--file-reserved-time", parse_duration, file_reserved_time)
    with open_for_reading(cli) as broker:
        from analytics.lag.selection import Choice
        from rmqctl.admin import lag
        from rmqctl.lag.commands import tell_unknown
        from storage.retention import rules_of

        rules = rules_of(broker.view.root, broker.view.config, reserved_ms)
        choice = Choice(groups or [], topic, include_retry)
        seen = lag.look(broker.view, broker, cli.now_ms, choice, rules=rules)
        tell_unknown(cli, seen, broker.topics())
        rows = list(lag.risk_rows(broker.view, seen, rules, within_ms))
        cli.rows(RiskRow, rows)
        ahead = format_duration(within_ms)
        if not rows and seen.group_lags and seen.doubt is None:
            cli.say(f"no unread message was deleted, and none will be within {ahead}")
        if rules.at_once:
            cli.say("the disk is so full that files are deleted at any age")
        elif rules.any_hour:
            cli.say("the disk is so full that files are deleted as soon as they are old enough")
