"""``rmqctl lag check``: is it fine? For monitoring systems."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from rmqctl.bulk import no_search_for_cycles
from rmqctl.context import Cli, context_of, fails_with, prints
from rmqctl.errors import CliError, UsageProblem
from rmqctl.lag.options import Groups, IncludeRetry, MoreGroups, Topics, named
from rmqctl.opening import open_for_reading
from rmqctl.rows.checks import CheckResult, Verdict

if TYPE_CHECKING:
    from rmqctl.lag.checking import Limits

T = TypeVar("T")


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
    include_retry: IncludeRetry = False,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FMT", help="nagios (default), prometheus or json"),
    ] = None,
) -> int:
    """Say whether groups are fine, for monitoring.

    The exit code is 0 ok, 1 warning, 2 critical, 3 unknown, which is whatever goes wrong, too.
    Limits judge what they name. Without any, the status of lag show does: STALL and STOP are
    critical, WARN and REWIND a warning.

    As a plug-in:              rmqctl lag check readers --warn-lag 1000 --crit-age 10m
    For a textfile collector:  rmqctl lag check -o prometheus > rmqctl.prom
    """
    cli = context_of(ctx)
    form = output or str(cli.given.get("output", "nagios"))
    if form not in {"nagios", "prometheus", "json", "help"}:
        raise UsageProblem(f"--output: {form!r} is not one of nagios, prometheus, json")
    if form == "help":
        cli.given["output"] = form
        cli.explain_fields(ctx.command)
    from rmqctl.lag.checking import Limit, Limits
    from rmqctl.text.durations import parse_duration
    from storage.errors import RocketMQError

    limits = Limits(
        Limit(
            _parsed(cli, "warn-lag", _count, warn_lag), _parsed(cli, "crit-lag", _count, crit_lag)
        ),
        Limit(
            _parsed(cli, "warn-age", parse_duration, warn_age),
            _parsed(cli, "crit-age", parse_duration, crit_age),
        ),
        Limit(
            _parsed(cli, "warn-dlq", _count, warn_dlq), _parsed(cli, "crit-dlq", _count, crit_dlq)
        ),
    )
    try:
        result = _check(cli, named(groups, group), topic, limits, include_retry)
    except (CliError, RocketMQError, OSError) as error:
        if form == "nagios":
            cli.out.write(f"LAG {Verdict.UNKNOWN} - {' '.join(str(error).split())}\n")
        raise
    from rmqctl.lag import monitoring

    match form:
        case "nagios":
            cli.out.write(monitoring.nagios(result, limits))
        case "prometheus":
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
        from rmqctl.lag import tables
        from rmqctl.lag.checking import check as check_rows
        from rmqctl.lag.choosing import Choice
        from rmqctl.lag.looking import look

        seen = look(broker, cli.now_ms, Choice(groups, topic, include_retry))
        return check_rows(tables.group_rows(seen), limits, seen.as_of)


def _parsed(cli: Cli, option: str, parse: Callable[[str], T], text: str | None) -> T | None:
    return None if text is None else cli.parsed(f"--{option}", parse, text)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text!r} is not a number from 0 on")
    return int(text)
