"""``rmqctl store init``, ``info`` and ``fsck``."""

from pathlib import Path
from typing import Annotated

import typer

from rmqctl.admin.store.check_rows import FindingRow, FsckRow, StoreInfoRow
from rmqctl.cli.context import context_of, prints
from rmqctl.cli.marks import Changes, changes
from rmqctl.cli.opening import open_for_reading
from rmqctl.cli.paths import expanded
from rmqctl.errors import CliError, Refused, UsageProblem
from rmqctl.exit_codes import DAMAGED, DONE, NOT_WRITABLE
from rmqctl.output.view import Format

from .rows import InitRow, init_row

_OBJECTS = (Format.JSON, Format.YAML)


@prints(InitRow)
@changes(Changes.PLANS)
def init(
    ctx: typer.Context,
    folder: Annotated[
        str | None, typer.Argument(metavar="[DIR]", help="Folder of the store (default: --store)")
    ] = None,
    small: Annotated[
        bool, typer.Option("--small", help="16 MiB log files and a small index")
    ] = False,
) -> None:
    """Create an empty store, and print the lines of broker.conf for a Java broker to open it.

    The folder must not exist or be empty. Files take disk space as they fill.

    With RocketMQ's file sizes:        rmqctl store init ./store
    With small files:                  rmqctl store init ./store --small
    """
    from broker.new_store import create_store
    from storage.config import SMALL_STORE, StoreConfig

    cli = context_of(ctx)
    root = cli.store.path if folder is None else expanded(folder).absolute()
    if folder is not None and cli.given.get("store") and root.resolve() != cli.store.path.resolve():
        raise UsageProblem(f"DIR {folder} and --store {cli.store.path} are two folders; give one")
    config = SMALL_STORE if small else StoreConfig()
    _check_free(root)
    row = init_row(str(root), config)
    if cli.flag("dry_run"):
        cli.say(f"would create the store {root}")
    else:
        create_store(root, config)
        cli.say(f"created the store {root}")
    if cli.setting("output") is None:
        cli.out.write("".join(f"{line}\n" for line in row.broker_conf))
    else:
        cli.one(row)


def _check_free(root: Path) -> None:
    """Refuse a folder that is not empty. A folder without write permission fails later."""
    from rmqctl.admin.store_folder import looks_like_a_store

    if root.exists() and not root.is_dir():
        raise CliError(f"{root} is a file, not a folder", NOT_WRITABLE)
    if not root.exists() or not any(root.iterdir()):
        return
    if looks_like_a_store(root):
        raise Refused(f"{root} is a store already; nothing was changed")
    raise Refused(f"{root} is not empty; name a folder that is empty or does not exist")


@prints(StoreInfoRow)
def info(ctx: typer.Context) -> None:
    """Show facts about the store and the processes that have it open. Read only, takes no lock.

    The store of these settings:  rmqctl store info
    A broker's disk:              rmqctl store info -S /mnt/disk/store
    """
    from rmqctl.admin import store

    cli = context_of(ctx)
    with open_for_reading(cli) as broker:
        facts = store.info(broker.view)
        for part in broker.view.not_covered():
            cli.warn(part)
    cli.one(facts)


@prints(FsckRow, FindingRow)
def fsck(
    ctx: typer.Context,
    only: Annotated[
        str | None,
        typer.Option(metavar="PARTS", help="Check only some of log,queue,index,offset,config"),
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic", "-t", metavar="TOPIC", help="Only queues of this topic; repeatable"
        ),
    ] = None,
    start: Annotated[
        str | None, typer.Option("--from", metavar="T", help="Skip log files from before T")
    ] = None,
    jobs: Annotated[
        int,
        typer.Option("--jobs", "-j", metavar="N", min=1, help="Processes that share the log"),
    ] = 1,
    fast: Annotated[
        bool, typer.Option("--fast", help="Check only files, ends and samples")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted check of all")
    ] = False,
    fail_on: Annotated[
        str,
        typer.Option(metavar="SEVERITY", help="error or warning: least severity for exit code 4"),
    ] = "error",
) -> int:
    """Check log, queues, index, offsets and settings against each other. Changes nothing.

    Works beside writers. Exit code 4: a message is unreadable or wrong. JSON and YAML have the
    result with its findings, other formats a row for each finding.

    The whole store:                   rmqctl store fsck
    As JSON:                           rmqctl store fsck -o json
    Only queues and index:             rmqctl store fsck --only queue,index --fail-on warning
    A quick check of the newest:       rmqctl store fsck --from -1h --fast
    """
    from rmqctl.admin import store
    from rmqctl.parse.lists import parse_parts

    from .fsck import FsckPlan, run_fsck

    cli = context_of(ctx)
    whole = cli.view.format in _OBJECTS
    cli.check_view(FsckRow if whole else FindingRow)
    if fail_on not in ("error", "warning"):
        raise UsageProblem(f"--fail-on: {fail_on!r} is neither error nor warning")
    begin = None if start is None else cli.time("--from", start)
    if begin is not None:
        cli.warn_of_future("--from", begin, "no message is that recent, and none is checked")
    plan = FsckPlan(
        None if only is None else cli.parsed("--only", parse_parts, only),
        topic,
        begin,
        jobs,
        fast,
        resume,
    )
    with open_for_reading(cli) as broker:
        report = run_fsck(cli, broker, plan)
    if whole:
        cli.one(store.check_row(report))
    else:
        cli.rows(FindingRow, store.finding_rows(report))
    bad = report.errors or (report.warnings and fail_on == "warning")
    return DAMAGED if bad else DONE
