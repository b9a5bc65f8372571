"""``--compare``: an earlier report, in a file or among the kept ones of a folder."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from rmqctl import exit_codes
from rmqctl.cli.paths import expanded
from rmqctl.errors import CliError, NotFound, UsageProblem
from storage.errors import CorruptFileError
from storage.files.bounded import read_bounded
from storage.format.shapes import MAX_TIME, check, maybe, members, rows as rows_of, text, whole
from storage.format.strict_json import loads_strict

if TYPE_CHECKING:
    from analytics.history.tables import Kept
    from analytics.lag.selection import Choice
    from analytics.report.amounts import Row
    from rmqctl.cli.context import Cli

_REPORT: Final = members(
    {
        "as_of": whole(0, MAX_TIME),
        "groups": rows_of(
            members(
                {"group": text, "topic": text, "lag": maybe(whole(0))},
                {"unknown_queues": whole(0)},
            )
        ),
    }
)


class Previous(NamedTuple):
    """An earlier report to compare with."""

    as_of: int
    lags: dict[tuple[str, str], int | None]
    """By group and topic; None where a part of it was unknown."""
    name: str
    """What was read: a file, or a folder of kept reports."""
    history: str | None = None
    """The folder of kept reports that it is from."""


def previous_of(cli: "Cli", text: str, recorded: str | None, choice: "Choice") -> Previous:
    """The report of ``--compare``: a file, the newest one of a folder of kept reports, or with
    ``--recorded`` the last one of that folder at a time.

    NotFound without it, UsageProblem for what is none of these.
    """
    if recorded is not None:
        moment = cli.time("--compare", text)
        if not expanded(recorded).is_dir():
            raise UsageProblem(f"--recorded: {recorded} is no folder of kept reports (-o parquet)")
        return _kept(cli, recorded, moment, choice)
    path = expanded(text)
    if path.is_dir():
        return _kept(cli, text, None, choice)
    if not path.exists() and _is_time(cli, text):
        raise UsageProblem(
            f"--compare: {text!r} is a time, which needs a folder of kept reports (-o parquet): "
            "name it with --recorded DIR"
        )
    return read_previous(text)


def _is_time(cli: "Cli", text: str) -> bool:
    try:
        cli.time("--compare", text)
    except UsageProblem:
        return False
    return True


def _kept(cli: "Cli", folder: str, moment: int | None, choice: "Choice") -> Previous:
    from analytics.engines.local import LocalEngine
    from analytics.history.gathering import find_kept, gathered_report, later_ones, old_ones
    from analytics.history.logs import same_names
    from storage.parse.times import format_time

    later: list[Kept] = []
    folders = [str(expanded(folder))]
    found = find_kept(folders, moment, "--compare", now_ms=cli.now_ms, later=later)
    made = gathered_report(LocalEngine(), found, choice, only_figures=True)
    if made.unreadable:  # its lag would be missing in the sums
        first = made.unreadable[0]
        raise CliError(f"--compare: {first.ref.path}: {first.reason}")
    as_of = made.report.as_of
    warnings = (*same_names(found), *old_ones(found, as_of), *later_ones(later, cli.now_ms))
    for sentence in warnings:
        cli.warn(f"--compare: {sentence}")
    cli.say(f"compared with the kept report of {format_time(as_of, cli.zone, iso=True)}")
    lags = _lags(made.report.groups)
    return Previous(as_of, lags, folder, str(expanded(folder)))


def read_previous(path: str) -> Previous:
    """Read a report that was saved as JSON. NotFound without the file, UsageProblem for another
    file."""
    try:
        document = loads_strict(read_bounded(Path(path)))
        check(document, _REPORT)
        return Previous(document["as_of"], _lags(document["groups"]), path)
    except FileNotFoundError:
        raise NotFound(f"--compare: there is no file {path}") from None
    except OSError as error:
        reason = error.strerror or error
        raise CliError(
            f"--compare: {path} cannot be read: {reason}", exit_codes.NOT_WRITABLE
        ) from error
    except (ValueError, CorruptFileError) as error:
        raise UsageProblem(
            f"--compare: {path} is not a report; 'rmqctl lag report -o json --save FILE' writes one"
        ) from error


def _lags(groups: Iterable["Row"]) -> dict[tuple[str, str], int | None]:
    return {(row["group"], row["topic"]): _whole_lag(row) for row in groups}


def _whole_lag(row: "Row") -> int | None:
    """The lag of a row; None where a part of it is unknown, as no change of that is known."""
    from rmqctl.admin.lag.comparison import earlier_lag

    return earlier_lag(row["lag"], None, row.get("unknown_queues", 0)).lag


def gone(previous: Previous | None, groups: Iterable["Row"], choice: "Choice") -> list[str]:
    """A sentence for each group and topic of the earlier report that is missing in this one."""
    if previous is None:
        return []
    now = {(row["group"], row["topic"]) for row in groups}
    return [
        f"group {group} in {topic} is in {previous.name}, but has no progress now"
        for group, topic in previous.lags
        if (group, topic) not in now and choice.takes(group, topic)
    ]


def compared(groups: Iterable["Row"], previous: Previous | None) -> list["Row"]:
    """Group rows with the lag of an earlier report and its change."""
    rows = []
    for row in groups:
        before = None if previous is None else previous.lags.get((row["group"], row["topic"]))
        now = _whole_lag(row)
        change = None if before is None or now is None else now - before
        rows.append({**row, "lag_before": before, "lag_change": change})
    return rows
