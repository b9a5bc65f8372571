"""``rmqctl store diff``: the differences between two stores."""

from typing import Annotated

import typer

from rmqctl.admin.store.snapshot_rows import StoreDiffRow
from rmqctl.cli.context import context_of, prints
from rmqctl.cli.opening import warn_of_doubt
from rmqctl.cli.paths import expanded
from rmqctl.errors import UsageProblem


@prints(StoreDiffRow)
def diff(
    ctx: typer.Context,
    first: Annotated[str, typer.Argument(metavar="A", help="Folder of a store or snapshot")],
    second: Annotated[str, typer.Argument(metavar="B", help="Folder to compare it with")],
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", "-t", metavar="TOPIC", help="Only this topic; repeatable"),
    ] = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Compare whole messages, not only sizes and tags")
    ] = False,
) -> None:
    """Compare two stores, or a store and a snapshot. Prints a row for each difference.

    Compares log, settings, topics, groups, bounds of queues, messages and progress of groups. For a
    queue with differing messages the first one is shown. Log positions and store times are
    ignored, so stores of two brokers can be compared. The exit code is 0 with and without
    differences.

    A store and its snapshot:  rmqctl store diff /backup/monday ./store
    Each message:              rmqctl store diff ./old ./new -t orders --deep
    """
    from rmqctl.admin import store
    from storage.readonly import StoreView

    cli = context_of(ctx)
    paths = [expanded(text).absolute() for text in (first, second)]
    for path in paths:
        if path.is_file():
            raise UsageProblem(f"{path} is a file; unpack it first ('tar xf')")
    with (
        StoreView.open(paths[0]) as a,
        StoreView.open(paths[1]) as b,
        cli.progress("comparing", "messages") as progress,
    ):
        warn_of_doubt(cli, a, b)
        rows = store.diff(a, b, topics=topic or (), deep=deep, tick=progress.advance)
        cli.rows(StoreDiffRow, rows)
