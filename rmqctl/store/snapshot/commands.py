"""``rmqctl store snapshot`` and ``store restore``: a copy of a store while it runs, and back."""

from pathlib import Path
from typing import Annotated

import typer

from rmqctl.cli.context import context_of, prints
from rmqctl.errors import UsageProblem

from .rows import RestoreRow, SnapshotRow


@prints(SnapshotRow)
def snapshot(
    ctx: typer.Context,
    save: Annotated[
        str | None, typer.Option("--save", metavar="DIR|FILE", help="Where to; FILE is *.tar[.gz]")
    ] = None,
    verify: Annotated[
        str | None,
        typer.Option("--verify", metavar="SNAPSHOT", help="Compare the check sums of one instead"),
    ] = None,
    copy: Annotated[
        bool, typer.Option("--copy", help="Share no blocks with the store: no clones, no links")
    ] = False,
) -> None:
    """Take a snapshot: a copy of the store as it is at one moment, while others write to it.

    Changes nothing in the store, takes no lock, works beside writers and Java brokers. All that was
    acknowledged before it began is in it, and how far groups were. Full files are cloned or linked
    where the file system has that, so a folder on the same one takes little time and room. It has a
    check sum of each file, and can be read like a store (-S).

    A folder:                  rmqctl store snapshot --save /backup/monday
    One file:                  rmqctl store snapshot --save /backup/monday.tar.gz
    Is it still whole?         rmqctl store snapshot --verify /backup/monday
    """
    from .take import take, verify_snapshot

    cli = context_of(ctx)
    if (save is None) == (verify is None):
        raise UsageProblem("give either --save DIR|FILE or --verify SNAPSHOT")
    if verify is not None:
        cli.one(verify_snapshot(cli, Path(verify).expanduser().absolute()))
        return
    target = Path(str(save)).expanduser().absolute()
    if cli.flag("dry_run"):
        cli.say(f"would take a snapshot of {cli.store.path} to {target}")
        return
    cli.one(take(cli, target, copies_only=copy))


@prints(RestoreRow)
def restore(
    ctx: typer.Context,
    snapshot: Annotated[str, typer.Argument(metavar="SNAPSHOT", help="A folder or a file")],
    confirm: Annotated[
        str | None,
        typer.Option("--confirm", metavar="NAME", help="The target's name, if it is not empty"),
    ] = None,
) -> None:
    """Make a store of a snapshot. Shows what it would do; --execute does it.

    All check sums are compared before anything counts. The store appears as a whole or not at all;
    after a kill, the same command begins anew. What the folder held before is moved aside, beside
    it. Refused while a Java broker or another process has it open for writing.

    What would happen:         rmqctl store restore /backup/monday -S ./store
    Do it:                     rmqctl store restore /backup/monday -S ./store --execute
    Instead of a store:        rmqctl store restore SNAPSHOT -S ./store --execute --confirm store
    """
    from .restore import restore as restore_to

    restore_to(context_of(ctx), Path(snapshot).expanduser().absolute(), confirm)
