"""``rmqctl store``: making a store, looking into it, checking it."""

from pathlib import Path
from typing import Annotated

import typer

from rmqctl.context import context_of, prints
from rmqctl.errors import UsageProblem
from rmqctl.exit_codes import DAMAGED, DONE
from rmqctl.opening import open_for_reading
from rmqctl.rows.store import FindingRow, FsckReport, StoreInfoRow, StoreMadeRow


@prints(StoreMadeRow)
def init(
    ctx: typer.Context,
    folder: Annotated[
        str | None, typer.Argument(metavar="[DIR]", help="Where (default: --store)")
    ] = None,
    small: Annotated[bool, typer.Option("--small", help="16 MiB log files, a small index")] = False,
) -> None:
    """Make an empty store in a folder that is missing or empty.

    As a Java broker makes it:          rmqctl store init ./store
    With small files, to play:          rmqctl store init ./store --small
    """
    from storage.config import SMALL_STORE, StoreConfig
    from storage.store import MessageStore

    cli = context_of(ctx)
    root = Path(folder).expanduser().absolute() if folder is not None else cli.store.path
    config = SMALL_STORE if small else StoreConfig()
    MessageStore.create(root, config)
    cli.one(
        StoreMadeRow(
            str(root),
            small,
            config.mapped_file_size_commit_log,
            config.mapped_file_size_consume_queue,
            config.index_file_size,
            [],
        )
    )


@prints(StoreInfoRow)
def info(ctx: typer.Context) -> None:
    """Show what the store is and holds, and who has it open. Takes no lock, changes nothing."""
    from storage.info import store_info

    cli = context_of(ctx)
    with open_for_reading(cli) as broker:
        cli.one(StoreInfoRow(**store_info(broker.view).as_dict()))


@prints(FindingRow)
def fsck(ctx: typer.Context) -> int:
    """Check the store: log, queues, index, offsets, settings. Changes nothing."""
    from storage.verify import fsck as check

    cli = context_of(ctx)
    with open_for_reading(cli) as broker:
        report = check(broker.view)
    cli.rows(FindingRow, [FindingRow(*finding) for finding in report.findings])
    return DONE if report.ok else DAMAGED
