"""``rmqctl lag check``: lag against limits, for monitoring systems."""

from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from rmqctl.admin.lag.check_rows import CheckResult, Verdict
from rmqctl.cli.context import Cli, context_of, fails_with, prints
from rmqctl.cli.gc_tuning import no_search_for_cycles
from rmqctl.cli.marks import most_used, refuses
from rmqctl.cli.opening import open_for_reading
from rmqctl.errors import CliError, UsageProblem
from rmqctl.lag.options import Groups, IncludeRetry, Topics

if TYPE_CHECKING:
    from rmqctl.admin.lag.limits import Limit, Limits


class CheckFormat(StrEnum):
    """Output format of ``lag check``."""

    NAGIOS = "nagios"
    PROMETHEUS = "prometheus"
    JSON = "json"
    HELP = "help"


@fails_with(Verdict.UNKNOWN.code)
@prints(CheckResult)
@refuses(  # a verdict about some groups would be taken for one about all of them
    *("where", "limit", "sort"),
    because="is for rows, and lag check judges all of them; select groups or topics with -g or -t; "
    "--crit-lag and --crit-age are limits",
)
@most_used("--topic", "--warn-lag", "--crit-lag", "--warn-age", "--crit-age", "--output")
def check(
    ctx: typer.Context,
    groups: Groups = None,
    topic: Topics = None,
    warn_lag: Annotated[
        str | None, typer.Option("--warn-lag", metavar="N", help="Warning above this lag")
    ] = None,
    crit_lag: Annotated[
        str | None, typer.Option("--crit-lag", metavar="N", help="Critical above this number")
    ] = None,
    warn_age: Annotated[
        str | None,
        typer.Option(
            "--warn-age", metavar="DUR", help="Warning above this age of the oldest unread message"
        ),
    ] = None,
    crit_age: Annotated[
        str | None, typer.Option("--crit-age", metavar="DUR", help="Critical above this age")
    ] = None,
    warn_dlq: Annotated[
        str | None,
        typer.Option("--warn-dlq", metavar="N", help="Warning above this number of dead letters"),
    ] = None,
    crit_dlq: Annotated[
        str | None, typer.Option("--crit-dlq", metavar="N", help="Critical above this number")
    ] = None,
    warn_risk: Annotated[
        str | None,
        typer.Option(
            "--warn-risk",
            metavar="DUR",
            help="Warning if unread messages are deleted within this time, or were already",
        ),
    ] = None,
    crit_risk: Annotated[
        str | None,
        typer.Option("--crit-risk", metavar="DUR", help="Critical within this time"),
    ] = None,
    include_retry: IncludeRetry = False,
    output: Annotated[
        CheckFormat | None, typer.Option("--output", "-o", help="Format (default: nagios)")
    ] = None,
) -> int:
    """Check the lag of groups, for monitoring systems.

    Exit codes: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN, also for any failure. Without limits, the
    status of 'lag show' decides: STALL and STOP are critical, WARN and REWIND a warning. If a
    limit concerns an unknown value (a queue without progress or with progress beyond its end,
    offsets read from a .bak), the verdict is UNKNOWN, unless the known values are critical.
    Unknown gauges are left out. A failure gives JSON with no groups and the reason as summary, and
    Prometheus rmqctl_check_failed 1; the reason is on stderr, too.

    As a Nagios plug-in:       rmqctl lag check readers --warn-lag 1000 --crit-age 10m
    For a textfile collector:  rmqctl lag check -o prometheus > rmqctl.prom
    """
    cli = context_of(ctx)
    form = _format(cli, output)
    if form is CheckFormat.HELP:
        cli.given["output"] = form.value
        cli.explain_fields(ctx)
    if form is CheckFormat.JSON:
        cli.check_view(CheckResult)
    else:
        cli.check_not_given(
            ("columns",), f"is for the object of -o json, and -o {form} has no fields"
        )
    from broker.errors import InvalidNameError
    from rmqctl.admin.lag.limits import Limits
    from storage.errors import RocketMQError
    from storage.parse.durations import parse_duration

    limits = Limits(
        _limit(cli, "lag", _count, warn_lag, crit_lag),
        _limit(cli, "age", parse_duration, warn_age, crit_age),
        _limit(cli, "dlq", _count, warn_dlq, crit_dlq),
        _limit(cli, "risk", parse_duration, warn_risk, crit_risk),
    )
    from . import monitoring

    try:
        result = _check(cli, groups or [], topic, limits, include_retry)
    except InvalidNameError:  # a wrong command line, as the others
        raise
    except (CliError, RocketMQError, OSError) as error:
        sentence = _sentence(cli, error)
        if form is not CheckFormat.NAGIOS:
            failed = CheckResult(cli.now_ms, Verdict.UNKNOWN, Verdict.UNKNOWN.code, sentence, [])
            _write(cli, form, failed, limits, failed=True)
            raise
        # A plug-in's text is read from stdout. On stderr too, cron would mail it twice.
        if cli.flag("debug"):
            raise
        cli.out.write(monitoring.unknown(sentence))
        return Verdict.UNKNOWN.code
    _write(cli, form, result, limits)
    return result.code


def _write(
    cli: Cli, form: CheckFormat, result: CheckResult, limits: "Limits", *, failed: bool = False
) -> None:
    from . import monitoring

    match form:
        case CheckFormat.NAGIOS:
            cli.out.write(monitoring.nagios(result, limits))
        case CheckFormat.PROMETHEUS:
            cli.out.write(monitoring.prometheus(result, failed=failed))
        case _:
            from rmqctl.output.render import render_one
            from rmqctl.output.view import Format

            render_one(CheckResult, result, cli.view._replace(format=Format.JSON), cli.out)


def _sentence(cli: Cli, error: Exception) -> str:
    """The error as the program prints it, with a similar group or topic that exists."""
    if isinstance(error, OSError):
        reason = error.strerror or type(error).__name__
        return f"{error.filename}: {reason}" if error.filename else reason
    from rmqctl.completion.suggest import thing_meant

    text = str(error)
    with suppress(Exception):  # an error is being reported
        text += thing_meant(cli, text)
    return text


def _check(
    cli: Cli, groups: list[str], topic: list[str] | None, limits: "Limits", include_retry: bool
) -> CheckResult:
    with no_search_for_cycles(), open_for_reading(cli) as broker:
        from analytics.lag.selection import Choice
        from rmqctl.admin import lag
        from rmqctl.admin.lag.not_read import not_read_queues, not_read_sentences

        seen = lag.look(broker.view, broker, cli.now_ms, Choice(groups, topic, include_retry))
        for sentence in not_read_sentences(list(not_read_queues(seen, broker.topics()))):
            cli.warn(sentence)
        rows = lag.group_rows(seen)
        return lag.check(rows, limits, seen.as_of, lag.unknown_of(seen), seen.doubt)


def _limit(
    cli: Cli, name: str, parse: Callable[[str], int], warn: str | None, crit: str | None
) -> "Limit":
    """A limit by its two options. UsageProblem where no value would be a warning only: the other
    order of a time of deletion is wrong, as the nearer one is the worse."""
    from rmqctl.admin.lag.limits import Limit

    limit = Limit(
        None if warn is None else cli.parsed(f"--warn-{name}", parse, warn),
        None if crit is None else cli.parsed(f"--crit-{name}", parse, crit),
    )
    if limit.warn is not None and limit.crit is not None:
        first, last = (limit.crit, limit.warn) if name == "risk" else (limit.warn, limit.crit)
        if first > last:
            side = "below" if name == "risk" else "above"
            raise UsageProblem(
                f"--warn-{name} {warn} lies {side} --crit-{name} {crit}, so nothing would be a "
                "warning"
            )
    return limit


def _format(cli: Cli, given: CheckFormat | None) -> CheckFormat:
    """The format of the option, after the command or before it; else JSON if that is the setting
    for all commands, as the others, such as a table, are no form of a verdict."""
    otherwise = CheckFormat.NAGIOS
    if cli.setting("output") == CheckFormat.JSON:
        otherwise = CheckFormat.JSON
    text = str(cli.given.get("output", otherwise))
    try:
        return given or CheckFormat(text)
    except ValueError:
        known = ", ".join(CheckFormat)
        raise UsageProblem(f"--output: {text!r} is not one of {known}") from None


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text!r} is not a number from 0 on")
    return int(text)
