"""``rmqctl lag report``: the lag of all groups over one or many stores."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmqctl.cli.context import Cli, context_of, prints, takes_many_stores
from rmqctl.cli.marks import Changes, changes, most_used, uses_no_store
from rmqctl.errors import PartlyDone, UsageProblem
from rmqctl.lag.options import Groups, IncludeRetry, Topics

from .rows import (
    LagReport,
    ReportGroupRow,
    ReportHourRow,
    ReportMinuteRow,
    ReportQueueRow,
    ReportTagRow,
    ReportTopicRow,
    WarmupRow,
)

if TYPE_CHECKING:
    from analytics.history.tables import Kept
    from analytics.report.partial import PartialReport
    from analytics.report.report import Report
    from rmqctl.output.stdout import Out
    from rmqctl.output.view import View

    from .previous import Previous


class EngineName(StrEnum):
    """The counting engine."""

    SPARK = "spark"
    LOCAL = "local"
    AUTO = "auto"


class By(StrEnum):
    """The subject of a row."""

    GROUP = "group"
    TOPIC = "topic"
    QUEUE = "queue"
    TAG = "tag"
    MINUTE = "minute"
    HOUR = "hour"


class ReportFormat(StrEnum):
    """The formats of all commands, and two for a whole report."""

    TABLE = "table"
    WIDE = "wide"
    PLAIN = "plain"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"
    CSV = "csv"
    TSV = "tsv"
    MD = "md"
    HTML = "html"
    PARQUET = "parquet"
    HELP = "help"


_ROWS: Mapping[By, type[Any]] = {
    By.GROUP: ReportGroupRow,
    By.TOPIC: ReportTopicRow,
    By.QUEUE: ReportQueueRow,
    By.TAG: ReportTagRow,
    By.MINUTE: ReportMinuteRow,
    By.HOUR: ReportHourRow,
}
_ENDINGS: Mapping[str, ReportFormat] = {
    ".json": ReportFormat.JSON,
    ".jsonl": ReportFormat.JSONL,
    ".ndjson": ReportFormat.JSONL,
    ".yaml": ReportFormat.YAML,
    ".yml": ReportFormat.YAML,
    ".csv": ReportFormat.CSV,
    ".tsv": ReportFormat.TSV,
    ".md": ReportFormat.MD,
    ".html": ReportFormat.HTML,
    ".parquet": ReportFormat.PARQUET,
}
"""The formats of files by their endings; others are as the settings say."""
_OF_ROWS = ("columns", "where", "sort", "limit", "no_headers")


@takes_many_stores
@prints(LagReport)
@changes(Changes.PLANS)
@most_used("--by", "--engine", "--save", "--output")
def report(
    ctx: typer.Context,
    groups: Groups = None,
    topic: Topics = None,
    by: Annotated[
        By | None, typer.Option("--by", help="Print one row per this (default: group)")
    ] = None,
    engine: Annotated[
        EngineName, typer.Option("--engine", help="Engine that counts")
    ] = EngineName.SPARK,
    master: Annotated[
        str | None, typer.Option("--master", metavar="URL", help="Spark's master; default local[*]")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="T", help="Only minutes and hours that end after this time"
        ),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option("--window", metavar="DUR", help="The same, as a duration before the report"),
    ] = None,
    as_of: Annotated[
        str | None, typer.Option("--as-of", metavar="T", help="Compute ages at this time")
    ] = None,
    compare: Annotated[
        str | None,
        typer.Option(
            "--compare",
            metavar="T|FILE|DIR",
            help="An earlier report: saved as JSON, or the newest kept one of a folder",
        ),
    ] = None,
    recorded: Annotated[
        str | None,
        typer.Option(
            "--recorded", metavar="DIR", help="Take the time of --compare from kept reports"
        ),
    ] = None,
    top: Annotated[
        int | None, typer.Option("--top", min=1, metavar="N", help="Only the N largest backlogs")
    ] = None,
    save: Annotated[
        str | None,
        typer.Option(
            "--save", metavar="FILE", help="Write there, in the form of -o or of the ending"
        ),
    ] = None,
    output: Annotated[
        ReportFormat | None,
        typer.Option("--output", "-o", help="Also html (one page with charts) and parquet (files)"),
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Read each record: for clock steps and equal tag hashes")
    ] = False,
    from_partials: Annotated[
        list[str] | None,
        typer.Option(
            "--from-partials", metavar="DIR", help="Read files of -o parquet instead of stores"
        ),
    ] = None,
    include_retry: IncludeRetry = False,
) -> None:
    """Report the lag of groups by group, topic, queue, tag, minute and hour, over many stores.

    Reads files only: of stores in use, of copies and of disks of dead brokers. --store is
    repeatable and takes patterns and YAML files that map broker names to folders. HTML and Parquet
    have the whole report, as have JSON and YAML without --by. Otherwise rows are printed, the same
    in every format.

    Without Spark:             rmqctl lag report --engine local
    All brokers of a cluster:  rmqctl lag report -S '/disks/*/store' -o json --save now.json
    Changes since a report:    rmqctl lag report --compare now.json
    Changes since yesterday:   rmqctl lag report --compare -1d --recorded history
    As a page with charts:     rmqctl lag report -o html --save lag.html
    Keep a history:            rmqctl lag report -o parquet --save history
    Combine kept reports:      rmqctl lag report --from-partials history
    By tag:                    rmqctl lag report readers --by tag
    """
    cli = context_of(ctx)
    began = time.monotonic()
    form = _format(cli, output, save)  # an invalid one fails before counting starts
    if form is ReportFormat.HELP:
        cli.explain_fields(ctx)
    _check_options(cli, form, by, save, compare, recorded, from_partials)
    whole = by is None and form in {ReportFormat.JSON, ReportFormat.YAML}
    about = by or By.GROUP
    if form not in {ReportFormat.HTML, ReportFormat.PARQUET}:
        cli.check_view(LagReport if whole else _ROWS[about])
    from analytics.history.gathering import find_kept, later_ones
    from analytics.lag.selection import Choice
    from rmqctl.cli.gc_tuning import no_search_for_cycles
    from rmqctl.output.render import render_one, render_rows
    from storage.parse.durations import parse_duration
    from storage.parse.times import check_order

    from . import report as reporting
    from .previous import compared, gone, previous_of

    until = None if as_of is None else cli.time("--as-of", as_of)
    kept: list[Kept] | None = None
    later: list[Kept] = []
    if from_partials:
        kept = find_kept(from_partials, until, now_ms=cli.now_ms, later=later)
    moment = reporting.moment_of(kept) if until is None else until
    if form is ReportFormat.PARQUET:
        _check_date(moment)
    begin = None if since is None else cli.time("--since", since)
    if begin is not None:
        cli.warn_of_future("--since", begin, "no message is that recent")
        cli.parsed("--since", lambda _: check_order(begin, until, ("it", "--as-of")), "")
    if window is not None:
        begin = max(begin or 0, moment - cli.parsed("--window", parse_duration, window))
    choice = Choice(groups, topic, include_retry)
    previous = None if compare is None else previous_of(cli, compare, recorded, choice)
    if kept is not None and previous is not None and previous.as_of > moment:
        cli.warn("the report of --compare is later than this one: its lag is not an earlier one")
    refs = reporting.stores_of(cli) if kept is None else ()
    reporting.check_some_are_there(refs, master)
    number = len(refs) if kept is None else len(kept)
    asked = reporting.Asked(refs, choice, moment, exact, kept)
    with no_search_for_cycles():
        with reporting.engine_of(cli, engine, master, number) as who:
            made = reporting.made_report(cli, who, asked)
            name = who.name
        lost = gone(previous, made.report.groups, choice)
        more = [*later_ones(later, cli.now_ms), *lost]
        found = reporting.with_warnings(made.report, more)
        shown = reporting.largest(compared(found.groups, previous), top)
        elapsed_ms = round((time.monotonic() - began) * 1000)
        for warning in found.warnings:
            cli.warn(warning)
        cli.say(reporting.summary(found, name, elapsed_ms, topic))
        if form is ReportFormat.PARQUET and cli.flag("dry_run"):
            cli.say(f"dry run: would write to {save}")
        elif form is ReportFormat.PARQUET:
            _keep(cli, made.shares, moment, Path(save or ""), shown, begin)
        else:
            with _output(cli, save) as out:
                if form is ReportFormat.HTML:
                    page = _whole(found, name, elapsed_ms, shown, begin)
                    history = from_partials or _history_of(previous)
                    out.write(
                        reporting.page_of(
                            cli, page, previous, history, choice, begin=begin, top=top
                        )
                    )
                elif whole:
                    page = _whole(found, name, elapsed_ms, shown, begin)
                    render_one(LagReport, page, _view(cli, save), out)
                else:
                    row_type = _ROWS[about]
                    rows = _rows(found, about, shown, begin)
                    made_rows = (row_type(**row) for row in rows)
                    render_rows(row_type, made_rows, _view(cli, save), out)
    if made.unreadable:
        raise PartlyDone(f"{len(made.unreadable)} of {number} stores could not be read")
    if made.is_damaged:
        raise PartlyDone(
            "queues are damaged and were counted as far as they are readable; "
            "'rmqctl store fsck' shows where"
        )


def _history_of(previous: "Previous | None") -> list[str]:
    return [] if previous is None or previous.history is None else [previous.history]


def _keep(
    cli: Cli,
    shares: "Sequence[PartialReport]",
    as_of: int,
    folder: Path,
    shown: list[dict[str, Any]],
    begin: int | None,
) -> None:
    from analytics.history.keeping import has_version_1, keep

    places = [(row["group"], row["topic"]) for row in shown]
    files = keep(shares, as_of, folder, places, begin)
    cli.say(f"wrote {files} {'file' if files == 1 else 'files'} below {folder}")
    if has_version_1(folder):
        cli.warn(
            f"{folder} also has files of an earlier rmqctl, which lie elsewhere; other programs "
            f"cannot read both together until 'rmqctl lag compact {folder}' has joined them"
        )


def _format(cli: Cli, given: ReportFormat | None, save: str | None) -> ReportFormat:
    """The format of the option, after the command or before it, else of the file's ending, else of
    the settings."""
    if given is None and "output" in cli.given:
        text = str(cli.given["output"])
        if text in {ReportFormat.HTML, ReportFormat.PARQUET}:
            return ReportFormat(text)
    else:
        given = given or _ENDINGS.get(Path(save or "").suffix.lower())
    if given in {ReportFormat.HTML, ReportFormat.PARQUET}:
        return given
    if given is not None:
        cli.remember("output", given.value)
    return ReportFormat(cli.view.format.value)


def _check_options(
    cli: Cli,
    form: ReportFormat,
    by: By | None,
    save: str | None,
    compare: str | None,
    recorded: str | None,
    from_partials: list[str] | None,
) -> None:
    if form in {ReportFormat.HTML, ReportFormat.PARQUET}:
        if by is not None:
            raise UsageProblem(f"--by is for rows; -o {form} has the whole report")
        cli.check_not_given(_OF_ROWS, f"is for rows; -o {form} has the whole report")
    if recorded is not None and compare is None:
        raise UsageProblem("--recorded needs --compare with a time")
    if form is ReportFormat.PARQUET:
        if compare is not None:
            raise UsageProblem("--compare: not with Parquet; compare runs in a query")
        if from_partials:
            raise UsageProblem(
                "--from-partials: not with -o parquet, which would date reports of earlier moments "
                "as one of now; copy their files to hand them on"
            )
        if save is None:
            raise UsageProblem("-o parquet writes files: name a folder with --save")
        from analytics.history.tables import arrow

        arrow()  # fails before counting starts if it is not installed
        if Path(save).exists() and not Path(save).is_dir():
            raise UsageProblem(f"--save: {save} is a file; Parquet needs a folder")


def _check_date(moment: int) -> None:
    from analytics.history.tables import can_be_kept

    if not can_be_kept(moment):
        raise UsageProblem(f"--as-of: {moment} ms is not a calendar date")


def _view(cli: Cli, save: str | None) -> "View":
    """How the report is printed; in a file it does not depend on the terminal."""
    if save is None:
        return cli.view
    from rmqctl.output.view import Format

    view = cli.view._replace(terminal=False, color=False)
    return view if cli.setting("output") is not None else view._replace(format=Format.PLAIN)


@contextmanager
def _output(cli: Cli, save: str | None) -> "Iterator[Out]":
    """Where the report is printed; a file appears once it is whole."""
    if save is None:
        yield cli.out
        return
    from rmqctl.message.exchange.formats import saved_to
    from rmqctl.output.saved_file import FileOut

    dry = cli.flag("dry_run")
    with saved_to(Path(save), dry_run=dry) as file:
        yield FileOut(file)
    cli.say(f"dry run: would write to {save}" if dry else f"wrote {save}")


def _whole(
    found: "Report", engine: str, elapsed_ms: int, shown: list[dict[str, Any]], begin: int | None
) -> LagReport:
    from .report import only, since

    fields = dict(vars(found))
    minutes = since(found.minutes, "minute_timestamp", begin)
    hours = since(found.hours, "hour_timestamp", begin)
    fields.update(
        groups=shown,
        queues=only(found.queues, shown),
        tags=only(found.tags, shown),
        minutes=only(minutes, shown),
        hours=only(hours, shown),
        ages=only(found.ages, shown),
    )
    return LagReport(engine=engine, elapsed_ms=elapsed_ms, **fields)


def _rows(
    found: "Report", by: By, shown: list[dict[str, Any]], begin: int | None
) -> Iterable[dict[str, Any]]:
    from .report import only, since, topic_rows

    match by:
        case By.GROUP:
            return shown
        case By.TOPIC:
            return topic_rows(shown)
        case By.QUEUE:
            return only(found.queues, shown)
        case By.TAG:
            return only(found.tags, shown)
        case By.MINUTE:
            return only(since(found.minutes, "minute_timestamp", begin), shown)
        case By.HOUR:
            return only(since(found.hours, "hour_timestamp", begin), shown)


@prints(WarmupRow)
@changes(Changes.RUNS)
@uses_no_store
def warmup(ctx: typer.Context) -> None:
    """Build an archive of Spark's classes, with which Spark starts faster; takes half a minute.

    The archive is in the user's cache folder (XDG_CACHE_HOME), takes up to 200 MB, and is valid for
    this Java and this PySpark only. It is optional.

    Use it:                    rmqctl lag report
    """
    cli = context_of(ctx)
    if cli.flag("dry_run"):
        raise UsageProblem("lag warmup only writes a cache; it has no dry run")
    from analytics.spark.warmup import warm_up

    cli.say("starting Spark to record the classes that it loads; this takes half a minute")
    made = warm_up(cli.detail)
    for path in made.removed:
        cli.say(f"removed {path}, which is no longer used")
    cli.one(WarmupRow(str(made.path), made.size, made.java))
