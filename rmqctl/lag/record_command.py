"""``rmqctl lag record``: the lag of a moment as a line of a file, once or at intervals."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rmqctl.cli.context import Cli, context_of
from rmqctl.cli.marks import Changes, changes
from rmqctl.cli.opening import open_for_reading
from rmqctl.cli.paths import expanded
from rmqctl.errors import UsageProblem
from storage.counted import counted

from .options import Groups, Topics

if TYPE_CHECKING:
    from rmqctl.admin.lag.rows import LagRow

_LEAST_INTERVAL_MS = 100


@changes(Changes.PLANS)
def record(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to append to")],
    groups: Groups = None,
    topic: Topics = None,
    interval: Annotated[
        str | None,
        typer.Option("--interval", "-i", metavar="DUR", help="Go on, with a record so often"),
    ] = None,
) -> None:
    """Record the lag of groups in a file, for 'lag show --compare'.

    Reads the store only, so it can run beside a live Java broker. FILE lies outside the store. Each
    record is a line of JSON that is appended; a file of another form is refused. With --interval it
    ends by a signal or --timeout. A record of offsets that are from a .bak says so: 'lag show
    --compare' has null for it.

    One record:                rmqctl lag record /var/lib/lag.jsonl
    In cron, each 5 minutes:   */5 * * * * rmqctl -S /data/store lag record /var/lib/lag.jsonl
    As a service:              rmqctl lag record /var/lib/lag.jsonl --interval 1m
    An hour ago and now:       rmqctl lag show --compare -1h --recorded /var/lib/lag.jsonl
    """
    cli = context_of(ctx)
    _check_file(file)
    pause_ms = None if interval is None else _interval(cli, interval)
    with open_for_reading(cli) as broker:
        from analytics.lag.selection import Choice
        from rmqctl.admin import lag
        from rmqctl.admin.lag.recording import record as append
        from rmqctl.lag.commands import tell_unknown
        from storage.clock import now_ms

        if expanded(file).resolve().is_relative_to(broker.view.root.resolve()):
            raise UsageProblem(
                f"{file} lies in the store, and nothing is written there; name another"
            )
        choice = Choice(groups or [], topic)
        watcher = None  # one look remembers nothing
        if pause_ms is not None:
            watcher = lag.Watcher(broker.view, broker, choice, now_ms(), cli.warn)
        while True:
            at = now_ms()
            rows: Iterable[LagRow]
            if watcher is None:
                seen = lag.look(broker.view, broker, at, choice)
                tell_unknown(cli, seen, broker.topics())
                rows = lag.group_rows(seen)
            else:  # what has not changed is not read again
                seen = watcher.look(at)
                rows = watcher.group_rows(seen)
            if cli.flag("dry_run"):
                count = sum(1 for _ in rows)
                cli.say(f"dry run: would record the lag of {_groups(count)} in {file}")
                return
            count = append(expanded(file), rows, at, seen.doubt)
            told = f"recorded the lag of {_groups(count)} in {file}"
            (cli.say if sys.stderr.isatty() else cli.detail)(told)
            if pause_ms is None:
                return
            _pause(pause_ms)


def _check_file(file: Path) -> None:
    from rmqctl.admin.lag.recording import check_appendable

    if str(file) == "-":
        raise UsageProblem(
            "records are appended to a file, and - is none; 'rmqctl lag show -o json' prints lag"
        )
    try:
        check_appendable(expanded(file))
    except ValueError as error:
        raise UsageProblem(str(error)) from None


def _interval(cli: Cli, text: str) -> int:
    from storage.parse.durations import parse_duration

    pause_ms = cli.parsed("--interval", parse_duration, text)
    if pause_ms < _LEAST_INTERVAL_MS:
        raise UsageProblem(f"--interval: {text!r} is less than {_LEAST_INTERVAL_MS}ms")
    return pause_ms


def _pause(milliseconds: int) -> None:
    from threading import Event

    from storage.deadlines import waitable

    Event().wait(waitable(milliseconds / 1000))


def _groups(count: int) -> str:
    return counted(count, "group in a topic", "groups in their topics")
