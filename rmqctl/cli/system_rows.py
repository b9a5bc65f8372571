"""``--all``: lists leave out RocketMQ's own topics and groups, retries and dead letters."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmqctl.output.fields import fields_of
from rmqctl.output.shaping import decides_kind

if TYPE_CHECKING:
    from rmqctl.cli.context import Cli
    from storage.readonly import StoreView

All = Annotated[
    bool,
    typer.Option("--all", help="Include topics and groups of the system, retries, dead letters"),
]


def print_rows(
    cli: "Cli", row_type: type, rows: Iterable[Any], view: "StoreView", *, everything: bool
) -> int:
    """Print the rows of users, or of ``everything``; returns the number of printed rows.

    A ``--where`` that names ``kind`` decides itself. Otherwise a sentence on stderr has the number
    of rows that are left out.
    """
    from rmqctl.admin.kinds import UsersRows

    if everything or decides_kind(fields_of(row_type), cli.view):
        return cli.rows(row_type, rows)
    users = UsersRows(rows, view)
    count = cli.rows(row_type, users)
    tell_hidden(cli, users.hidden)
    return count


def tell_no_progress(cli: "Cli") -> None:
    """Warn that no group has progress, in the place of the sentence that there are no rows."""
    from rmqctl.admin.lag.unknown import NO_PROGRESS

    cli.view = cli.view._replace(nothing=None)
    cli.warn(NO_PROGRESS)


def tell_hidden(cli: "Cli", hidden: int) -> None:
    """Print the number of rows that ``--all`` shows; not beside formats for programs, and not with
    ``--limit``, which stops before all rows are known."""
    view = cli.view
    if hidden and not view.format.for_programs and view.limit is None:
        rows = "system row is" if hidden == 1 else "system rows are"
        cli.remark(f"{hidden} {rows} not shown (--all shows all)")
