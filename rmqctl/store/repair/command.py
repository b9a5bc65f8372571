"""``rmqctl store repair``: repairs a damaged store by a plan."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rmqctl.admin.store.repair_rows import RepairRow
from rmqctl.cli.context import context_of, prints
from rmqctl.cli.marks import Changes, changes
from storage.counted import counted

if TYPE_CHECKING:
    from storage.tools.fsck import Report


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
    from rmqctl.admin import store
    from rmqctl.cli.change_steps import begin_java_check, run_change, will_execute
    from rmqctl.cli.opening import view_of
    from rmqctl.parse.lists import parse_parts
    from rmqctl.store.phases import Phases

    from .plan_files import compare_with, write_plan

    cli = context_of(ctx)
    parts = None if only is None else cli.parsed("--only", parse_parts, only)

    def checked(report: "Report") -> None:
        phase.clear()
        if report.warnings:
            words = counted(report.warnings, "warning is", "warnings are")
            cli.warn(f"{words} left; 'rmqctl store fsck' lists what is left")
        else:
            cli.say("checked again: no findings are left")

    with view_of(cli) as view, Phases(cli) as phase:
        java_check = begin_java_check(cli, view.root)
        if will_execute(cli):
            store.refuse_writers(view.root)
        change = store.repair(
            view,
            parts=parts,
            jobs=jobs,
            now_ms=cli.now_ms,
            java_check=java_check,
            phase=phase,
            checked=checked,
        )
        phase.clear()
        if expect is not None:
            compare_with(Path(expect), change.plan)
        if export is not None:
            write_plan(Path(export), change.plan)
        run_change(cli, change, shows_refused=True)
