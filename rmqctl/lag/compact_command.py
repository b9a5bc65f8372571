"""``rmqctl lag compact``: joins the small files of kept reports."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rmqctl.admin.lag.compaction_rows import CompactedRow, CompactPlanRow
from rmqctl.cli.context import context_of, prints
from rmqctl.cli.marks import Changes, changes, uses_no_store
from rmqctl.cli.paths import expanded


class Period(StrEnum):
    """What one joined file is of."""

    MONTH = "month"
    DAY = "day"


@prints(CompactedRow, CompactPlanRow)
@changes(Changes.ASKS)
@uses_no_store
def compact(
    ctx: typer.Context,
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder of 'lag report -o parquet --save'")
    ],
    by: Annotated[
        Period, typer.Option("--by", help="Make one file for each table and month, or day")
    ] = Period.MONTH,
) -> None:
    """Join the small files of kept lag reports. It shows the plan and asks first.

    Each run of 'lag report -o parquet' writes a file for each table and store. This joins those of
    the months (or days) before this one, in UTC. No row is changed. Reports may be kept and read
    meanwhile, and a kill at any moment leaves each row once.

    What would be joined:      rmqctl lag compact history -n
    In cron, each night:       rmqctl lag compact history --by day -y
    Whole months:              rmqctl lag compact history
    """
    from rmqctl.admin import lag
    from rmqctl.cli.change_steps import run_change

    cli = context_of(ctx)
    change = lag.compact(
        expanded(folder), by_day=by is Period.DAY, now_ms=cli.now_ms, warn=cli.warn
    )
    run_change(cli, change)
