"""``rmqctl store repair``: repairs a damaged store by a plan."""

from pathlib import Path
from typing import Annotated

import typer

from rmqctl.cli.context import context_of, prints
from rmqctl.cli.marks import Changes, changes

from .rows import RepairRow


@prints(RepairRow)
@changes(Changes.ASKS)
def repair(
    ctx: typer.Context,
    only: Annotated[
        str | None,
        typer.Option(metavar="PARTS", help="Repair only some of log,queue,index,offset,config"),
    ] = None,
    jobs: Annotated[
        int,
        typer.Option("--jobs", "-j", metavar="N", min=1, help="Processes that share the check"),
    ] = 1,
    export: Annotated[
        str | None, typer.Option("--export", metavar="FILE", help="Save the plan as JSON")
    ] = None,
    expect: Annotated[
        str | None,
        typer.Option("--expect", metavar="FILE", help="Repair only if the plan equals FILE"),
    ] = None,
) -> None:
    """Repair what 'store fsck' finds: show a plan, ask, and carry it out.

    Nothing is deleted: overwritten or removed data is kept in rmqctl/quarantine in the store. A
    damaged record in the middle of the log is replaced by a record of zeros, so that brokers can
    read the records after it; rmqctl skips it, a Java broker delivers the zeros. Queues and index
    are rebuilt from the log. No other process may have the store open for writing.

    Show the plan:             rmqctl store repair -n
    Repair:                    rmqctl store repair
    Only queues and index:     rmqctl store repair --only queue,index
    """
    from rmqctl.cli.opening import view_of
    from rmqctl.parse.lists import parse_parts

    from .run import repair as run_repair

    cli = context_of(ctx)
    with view_of(cli) as view:
        run_repair(
            cli,
            view,
            None if only is None else cli.parsed("--only", parse_parts, only),
            jobs=jobs,
            export=None if export is None else Path(export),
            expect=None if expect is None else Path(expect),
        )
