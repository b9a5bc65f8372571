"""``rmqctl lag check``: is it fine? For monitoring systems."""

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from rmqctl.cli.context import Cli, context_of, fails_with, prints
from rmqctl.cli.gc_tuning import no_search_for_cycles
from rmqctl.cli.opening import open_for_reading
from rmqctl.errors import CliError, UsageProblem
from rmqctl.lag.options import Groups, IncludeRetry, MoreGroups, Topics, named

from .rows import CheckResult, Verdict

if TYPE_CHECKING:
    from .check import Limit, Limits


class CheckFormat(StrEnum):
    """For whom ``lag check`` speaks."""

    NAGIOS = "nagios"
    PROMETHEUS = "prometheus"
    JSON = "json"
    HELP = "help"


@fails_with(Verdict.UNKNOWN.code)
@prints(CheckResult)
def check(
    ctx: typer.Context,
    groups: Groups = None,
    group: MoreGroups = None,
    topic: Topics = None,
    warn_lag: Annotated[
        str | None, typer.Option("--warn-lag", metavar="N", help="Warn of more messages than this")
    ] = None,
    crit_lag: Annotated[
        str | None, typer.Option("--crit-lag", metavar="N", help="More than this are critical")
    ] = None,
    warn_age: Annotated[
        str | None,
        typer.Option("--warn-age", metavar="DUR", help="Warn if the oldest unread is older"),
    ] = None,
    crit_age: Annotated[
        str | None, typer.Option("--crit-age", metavar="DUR", help="Older than this is critical")
    ] = None,
    warn_dlq: Annotated[
        str | None, typer.Option("--warn-dlq", metavar="N", help="Warn of more dead letters")
    ] = None,
    crit_dlq: Annotated[
        str | None, typer.Option("--crit-dlq", metavar="N", help="More than this are critical")
    ] = None,
    warn_risk: Annotated[
        str | None,
        typer.Option("--warn-risk", metavar="DUR", help="Warn if unread is deleted within this"),
    ] = None,
    crit_risk: Annotated[
        str | None,
        typer.Option("--crit-risk", metavar="DUR", help="Within this it is critical"),
    ] = None,
    include_retry: IncludeRetry = False,
    output: Annotated[
        CheckFormat | None, typer.Option("--output", "-o", help="For whom; default: nagios")
    ] = None,
) -> int:
    """Say whether groups are fine, for monitoring.

    The exit code is 0 ok, 1 warning, 2 critical, 3 unknown, which is whatever goes wrong, too.
    Limits judge what they name. Without any, the status of lag show does: STALL and STOP are
    critical, WARN and REWIND a warning. Where a limit is about what is not known (a queue without
    progress or with progress beyond its end, offsets read from a .bak), the verdict is UNKNOWN
    unless what is known is critical; gauges that are not known are left out.

    As a plug-in:              rmqctl lag check readers --warn-lag 1000 --crit-age 10m
    For a textfile collector:  rmqctl lag check -o prometheus > rmqctl.prom
    """
    cli = context_of(ctx)
    form = _format(cli, output)
    if form is CheckFormat.HELP:
        cli.given["output"] = form.value
        cli.explain_fields(ctx.command)
    # A verdict that leaves out groups would be trusted as one about all of them.
    cli.check_not_given(
        ("where", "limit", "sort"),
        "is for rows, and lag check judges all of them; choose groups or topics with -g or -t",
    )
    from rmqctl.parse.durations import parse_duration
    from storage.errors import RocketMQError

    from .check import Limits

    limits = Limits(
        _limit(cli, "lag", _count, warn_lag, crit_lag),
        _limit(cli, "age", parse_duration, warn_age, crit_age),
        _limit(cli, "dlq", _count, warn_dlq, crit_dlq),
        _limit(cli, "risk", parse_duration, warn_risk, crit_risk),
    )
    from . import monitoring

    try:
        result = _check(cli, named(groups, group), topic, limits, include_retry)
    except (CliError, RocketMQError, OSError) as error:
        if form is CheckFormat.NAGIOS:
            cli.out.write(monitoring.unknown(error))
        raise
    match form:
        case CheckFormat.NAGIOS:
            cli.out.write(monitoring.nagios(result, limits))
        case CheckFormat.PROMETHEUS:
            cli.out.write(monitoring.prometheus(result))
        case _:
            from rmqctl.output.render import render_one
            from rmqctl.output.view import Format

            render_one(CheckResult, result, cli.view._replace(format=Format.JSON), cli.out)
    return result.code


def _check(
    cli: Cli, groups: list[str], topic: list[str] | None, limits: "Limits", include_retry: bool
) -> CheckResult:
    with no_search_for_cycles(), open_for_reading(cli) as broker:
        from analytics.lag.selection import Choice
        from rmqctl.lag import tables
        from rmqctl.lag.snapshot import look
        from rmqctl.lag.unknown import unknown_of

        from .check import check as check_rows

        seen = look(broker, cli.now_ms, Choice(groups, topic, include_retry))
        rows = tables.group_rows(seen)
        return check_rows(rows, limits, seen.as_of, unknown_of(seen), seen.doubt)


def _limit(
    cli: Cli, name: str, parse: Callable[[str], int], warn: str | None, crit: str | None
) -> "Limit":
    from .check import Limit

    return Limit(
        None if warn is None else cli.parsed(f"--warn-{name}", parse, warn),
        None if crit is None else cli.parsed(f"--crit-{name}", parse, crit),
    )


def _format(cli: Cli, given: CheckFormat | None) -> CheckFormat:
    """The format of the option after the command, or before it."""
    text = str(cli.given.get("output", CheckFormat.NAGIOS))
    try:
        return given or CheckFormat(text)
    except ValueError:
        known = ", ".join(CheckFormat)
        raise UsageProblem(f"--output: {text!r} is not one of {known}") from None


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text!r} is not a number from 0 on")
    return int(text)
