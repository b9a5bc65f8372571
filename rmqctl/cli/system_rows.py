"""``--all``: lists leave out RocketMQ's own topics and groups, retries and dead letters."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

if TYPE_CHECKING:
    from rmqctl.cli.context import Cli
    from storage.readonly import StoreView

All = Annotated[
    bool,
    typer.Option("--all", help="Include topics and groups of the system, retries, dead letters"),
]
_KIND: Final = re.compile(r"\bkind\b", re.IGNORECASE)


def print_rows(
    cli: "Cli", row_type: type, rows: Iterable[Any], view: "StoreView", *, everything: bool
) -> int:
    """Print the rows of users, or of ``everything``; returns the number of printed rows.

    A ``--where`` that names ``kind`` decides itself. Otherwise a sentence on stderr has the number
    of rows that are left out.
    """
    if everything or _KIND.search(cli.view.where or ""):
        return cli.rows(row_type, rows)
    users = _UsersRows(rows, view)
    count = cli.rows(row_type, users)
    tell_hidden(cli, users.hidden)
    return count


def tell_hidden(cli: "Cli", hidden: int) -> None:
    """Print the number of rows that ``--all`` shows; not beside formats for programs, and not with
    ``--limit``, which stops before all rows are known."""
    view = cli.view
    if hidden and not view.format.for_programs and view.limit is None:
        rows = "system row is" if hidden == 1 else "system rows are"
        cli.remark(f"{hidden} {rows} not shown (--all shows all)")


class _UsersRows:
    """Rows of users' topics and groups; counts the others."""

    def __init__(self, rows: Iterable[Any], view: "StoreView") -> None:
        from rmqctl.admin.kinds import TopicKinds

        self._rows = rows
        self._kinds = TopicKinds(view)
        self.hidden = 0

    def __iter__(self) -> Iterator[Any]:
        for row in self._rows:
            if self._is_users(row):
                yield row
            else:
                self.hidden += 1

    def _is_users(self, row: Any) -> bool:
        from rmqctl.admin.kinds import NORMAL, group_kind

        kind = getattr(row, "kind", None)
        if kind is not None:
            return bool(kind == NORMAL)
        group, topic = getattr(row, "group", None), getattr(row, "topic", None)
        if group is not None and group_kind(group) != NORMAL:
            return False
        return topic is None or self._kinds.of(topic) == NORMAL
