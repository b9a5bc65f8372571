"""``rmqctl doctor``: checks of the environment."""

from pathlib import Path
from typing import Annotated

import typer

from rmqctl.cli.context import Cli, context_of, prints
from rmqctl.cli.paths import expanded
from rmqctl.errors import UsageProblem
from rmqctl.exit_codes import DONE, FAILURE

from .rows import CheckRow


@prints(CheckRow)
def doctor(
    ctx: typer.Context,
    bundle: Annotated[
        str | None,
        typer.Option(
            "--bundle",
            metavar="FILE.tar.gz",
            help="Write an archive for a report of a fault: no message, names replaced",
        ),
    ] = None,
    no_redact: Annotated[
        bool, typer.Option("--no-redact", help="Leave names as they are in the archive")
    ] = False,
) -> int:
    """Check the environment: interpreter, libraries, store, file system, terminal.

    Changes nothing. Exit code 1 if a problem prevents rmqctl from working. Linux is supported, also
    as WSL; macOS is untried (docs/platforms.md).

    The archive has these checks, versions, settings, what fsck finds, the list of files, and
    RocketMQ's and rmqctl's small files: at most 5 MiB, and no body, property or key.

    With another store:        rmqctl doctor -S /data/store
    Problems only:             rmqctl doctor --where 'status != ok' -o plain
    For a report of a fault:   rmqctl doctor --bundle report.tar.gz
    """
    from .doctor import ERROR, checks

    cli = context_of(ctx)
    target = _target(cli, bundle, no_redact=no_redact)
    rows = list(checks(cli))
    if target is not None:
        _make_bundle(cli, target, rows, redact=not no_redact)
    if cli.setting("output") is None and not cli.view.is_shaped:
        _tell(cli, rows)
    else:
        cli.rows(CheckRow, rows)
    return FAILURE if any(row.status == ERROR for row in rows) else DONE


def _target(cli: Cli, bundle: str | None, *, no_redact: bool) -> Path | None:
    """The path of the archive, which is refused before anything is checked."""
    if bundle is None:
        if no_redact:
            raise UsageProblem("--no-redact is about the archive of --bundle")
        return None
    from .bundle.making import check_target

    target = expanded(bundle).absolute()
    check_target(target, cli.store.path)
    return target


def _make_bundle(cli: Cli, target: Path, rows: list[CheckRow], *, redact: bool) -> None:
    from rmqctl.config.commands import setting_rows

    from .bundle.making import make_bundle
    from .version_command import version_row

    make_bundle(cli, target, version_row(), rows, list(setting_rows(cli)), redact=redact)


def _tell(cli: Cli, rows: list[CheckRow]) -> None:
    """One line per check, not truncated, with the advice below it."""
    from rmqctl.output.values import escape_controls

    widest = max(len(row.check) for row in rows)
    for row in rows:
        found, advice = escape_controls(row.found), escape_controls(row.advice)
        cli.out.write(f"{row.status:<8} {row.check:<{widest}}  {found}\n")
        if advice:
            cli.out.write(f"{'':<8} {'':<{widest}}  {advice}\n")
