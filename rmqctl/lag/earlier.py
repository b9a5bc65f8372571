"""``--compare``: the lag at the time, or in the file, that the option names."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rmqctl.cli.paths import expanded
from rmqctl.errors import UsageProblem

if TYPE_CHECKING:
    from analytics.lag.selection import Choice
    from rmqctl.admin.lag.comparison import Earlier
    from rmqctl.admin.lag.comparison_rows import LagComparisonRow
    from rmqctl.cli.context import Cli

_HOW = (
    "consumers with a group and 'rmqctl broker start' record progress while they run; "
    "'rmqctl lag record FILE' does so for any store"
)

_NAMED = 5
"""Groups and topics that are named as gone."""


def earlier_lags(
    cli: "Cli", text: str, recorded: Path | None, choice: "Choice", as_of: int | None
) -> "Earlier":
    """The earlier lag. UsageProblem for what is neither a time nor a file of lag, and for a time
    after ``as_of``, that of ``--as-of``."""
    from rmqctl.admin.lag.comparison import Earlier

    try:
        moment = cli.time("--compare", text)
    except UsageProblem as error:
        path = expanded(text)
        if not path.is_file():
            raise UsageProblem(f"{error}; there is no file of this name, either") from None
        if recorded is not None:
            raise UsageProblem("--recorded needs a time in --compare, not a file") from None
        found = _in_file(path, None)
        if found is None:
            raise UsageProblem(f"--compare: {path} has no record") from None
    else:
        if moment > cli.now_ms:
            raise UsageProblem(f"--compare: {text!r} lies in the future")
        from storage.parse.times import check_order

        cli.parsed("--compare", lambda _: check_order(moment, as_of, ("it", "--as-of")), "")
        if recorded is None:
            return _in_store(cli, moment, choice)
        found = _in_file(recorded, moment)
        if found is None:
            cli.warn(f"{recorded} has no record that is as old as --compare {text}")
            return Earlier(moment, {})
    if found.as_of is not None:
        from storage.parse.times import format_time

        cli.say(f"compared with the record of {format_time(found.as_of, cli.zone, iso=True)}")
        if as_of is not None and found.as_of > as_of:
            cli.warn("the record is later than --as-of: its lag is not an earlier one")
    if found.doubt is not None:
        cli.warn(f"the record has no reliable progress: {found.doubt}")
    return found


def _in_file(path: Path, until_ms: int | None) -> "Earlier | None":
    from rmqctl.admin.lag.recording import read_recorded

    try:
        return read_recorded(path, until_ms)
    except ValueError as error:
        raise UsageProblem(str(error)) from None


def _in_store(cli: "Cli", moment: int, choice: "Choice") -> "Earlier":
    from rmqctl.admin import lag
    from rmqctl.admin.lag.comparison import earlier_of
    from rmqctl.cli.as_of import broker_then, progress_then

    then = progress_then(cli, moment)
    known = {group for group, _ in then.progress}
    groups = None if choice.groups is None else [name for name in choice.groups if name in known]
    with broker_then(cli, moment, then) as broker:
        chosen = choice._replace(groups=groups)
        seen = lag.look(broker.view, broker, moment, chosen, now=False)
        return earlier_of(lag.group_rows(seen), moment)


def warn_of_unknown(cli: "Cli", rows: "Iterable[LagComparisonRow]") -> None:
    """Say for how many rows the earlier lag is unknown, and what records it."""
    rows = list(rows)
    unknown = sum(row.lag_then is None for row in rows)
    if unknown:
        cli.warn(
            f"the earlier lag is unknown for {unknown} of {len(rows)} groups and topics; {_HOW}"
        )


def warn_of_gone(
    cli: "Cli", earlier: "Earlier", rows: "Iterable[LagComparisonRow]", choice: "Choice"
) -> None:
    """Name groups and topics of the earlier time that have no row now; the rest as a number."""
    now = {(row.group, row.topic) for row in rows}
    gone = [place for place in earlier.lags if place not in now and choice.takes(*place)]
    for group, topic in gone[:_NAMED]:
        cli.warn(f"group {group} in {topic} had progress at the earlier time, and has none now")
    if len(gone) > _NAMED:
        cli.warn(f"{len(gone) - _NAMED} more groups and topics had progress, and have none now")
