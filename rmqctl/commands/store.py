"""``rmqctl store``: making a store, looking into it, checking it."""

from pathlib import Path
from typing import Annotated

import typer

from rmqctl.context import context_of, prints
from rmqctl.errors import UsageProblem
from rmqctl.exit_codes import DAMAGED, DONE
from rmqctl.opening import open_for_reading
from rmqctl.output.view import Format
from rmqctl.rows.stores import (
    FindingRow,
    InitRow,
    StoreInfoRow,
    fsck_row,
    init_row,
)


@prints(InitRow)
def init(
    ctx: typer.Context,
    folder: Annotated[
        str | None, typer.Argument(metavar="[DIR]", help="Where (default: --store)")
    ] = None,
    small: Annotated[bool, typer.Option("--small", help="16 MiB log files, a small index")] = False,
) -> None:
    """Make an empty store in a folder that is missing or empty.

    With files as long as a Java broker's:   rmqctl store init ./store
    With short ones, to play:                rmqctl store init ./store --small
    """
    from storage.config import SMALL_STORE, StoreConfig
    from storage.store import MessageStore

    cli = context_of(ctx)
    root = cli.store.path
    if folder is not None:
        if cli.given.get("store"):
            raise UsageProblem("DIR and --store both say where")
        root = Path(folder).expanduser().absolute()
    config = SMALL_STORE if small else StoreConfig()
    MessageStore.create(root, config)
    cli.one(init_row(str(root), config))


@prints(StoreInfoRow)
def info(ctx: typer.Context) -> None:
    """Show what the store is and holds, and who has it open. Takes no lock, changes nothing."""
    from storage.info import store_info

    cli = context_of(ctx)
    with open_for_reading(cli) as broker:
        cli.one(StoreInfoRow(**store_info(broker.view).as_dict()))
        for part in broker.view.not_covered():
            cli.warn(part)


@prints(FindingRow)
def fsck(ctx: typer.Context) -> int:
    """Check log, queues, index, offsets and settings against one another. Changes nothing."""
    from storage.verify import fsck as check

    cli = context_of(ctx)
    with open_for_reading(cli) as broker:
        report = check(broker.view)
    if cli.view.format in (Format.JSON, Format.YAML):
        cli.one(fsck_row(report))
    else:
        cli.rows(FindingRow, [FindingRow(*finding) for finding in report.findings])
    return DONE if report.ok else DAMAGED
