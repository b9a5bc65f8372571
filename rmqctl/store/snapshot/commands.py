"""``rmqctl store snapshot`` and ``store restore``: copying a store while it is in use, and back."""

from typing import Annotated

import typer

from rmqctl.admin.store.rows import RestoreRow
from rmqctl.admin.store.snapshot_rows import SnapshotRow
from rmqctl.cli.context import context_of, prints
from rmqctl.cli.marks import Changes, changes
from rmqctl.cli.paths import expanded
from rmqctl.errors import UsageProblem


@prints(SnapshotRow)
@changes(Changes.PLANS)
def snapshot(
    ctx: typer.Context,
    save: Annotated[
        str | None,
        typer.Option("--save", metavar="DIR|FILE", help="Target folder, or a file *.tar[.gz]"),
    ] = None,
    verify: Annotated[
        str | None,
        typer.Option(
            "--verify", metavar="SNAPSHOT", help="Verify the checksums of a snapshot instead"
        ),
    ] = None,
    copy: Annotated[
        bool, typer.Option("--copy", help="Copy all data: no clones, no links")
    ] = False,
) -> None:
    """Take a snapshot: a copy of the store at one moment, while other processes write to it.

    Changes nothing in the store, takes no lock, works beside writers and Java brokers. It contains
    all messages acknowledged before it began, and the progress of groups. Full files are cloned or
    linked if the file system supports it, so a folder on the same file system takes little time
    and space. It has a checksum of each file, and can be read like a store (-S).

    To a folder:               rmqctl store snapshot --save /backup/monday
    To a file:                 rmqctl store snapshot --save /backup/monday.tar.gz
    Verify it:                 rmqctl store snapshot --verify /backup/monday
    """
    from rmqctl.admin import store
    from rmqctl.cli.opening import view_of
    from rmqctl.store.phases import Phases

    cli = context_of(ctx)
    if (save is None) == (verify is None):
        raise UsageProblem("give either --save DIR|FILE or --verify SNAPSHOT")
    if verify is not None:
        with Phases(cli) as phase:
            row = store.verify_snapshot(expanded(verify).absolute(), phase=phase)
        cli.one(row)
        return
    target = expanded(str(save)).absolute()
    if cli.flag("dry_run"):
        store.check_target(cli.store.path, target)
        with view_of(cli):  # raises as the snapshot does
            pass
        cli.say(f"would take a snapshot of {cli.store.path} to {target}")
        return
    with Phases(cli) as phase:
        row = store.take_snapshot(
            cli.store.path,
            target,
            copies_only=copy,
            now_ms=cli.now_ms,
            warn=cli.warn,
            phase=phase,
        )
    cli.one(row)


@prints(RestoreRow)
@changes(Changes.ASKS)
def restore(
    ctx: typer.Context,
    snapshot: Annotated[
        str, typer.Argument(metavar="SNAPSHOT", help="The snapshot: a folder or a file")
    ],
    confirm: Annotated[
        str | None,
        typer.Option("--confirm", metavar="NAME", help="The target's name, if it is not empty"),
    ] = None,
) -> None:
    """Create a store from a snapshot. It shows the plan and asks first.

    All checksums are verified first. The store appears as a whole or not at all; after a kill, the
    same command starts again. The old content of the folder is moved to a folder beside it.
    Refused while a Java broker or another process has the store open for writing.

    Preview:                   rmqctl store restore /backup/monday -S ./store -n
    Restore:                   rmqctl store restore /backup/monday -S ./store
    Replace a store:           rmqctl store restore SNAPSHOT -S ./store --confirm store
    """
    from rmqctl.admin import store
    from rmqctl.cli.change_steps import run_change, will_execute
    from rmqctl.store.phases import Phases

    cli = context_of(ctx)
    if not cli.store.named:
        raise UsageProblem("name the store to create with -S")
    with Phases(cli) as phase:
        change = store.restore(
            expanded(snapshot).absolute(),
            cli.store.path,
            now_ms=cli.now_ms,
            warn=cli.warn,
            phase=phase,
        )
        if will_execute(cli):
            change.check()
        else:
            change.verify(phase)
            phase.clear()
        summary = []
        if change.occupied and confirm is None:
            target, name = cli.store.path.resolve(), change.confirm_name
            summary.append(f"{target} is not empty: replacing it needs --confirm {name}")
        run_change(cli, change, summary=summary, confirmed=confirm)
