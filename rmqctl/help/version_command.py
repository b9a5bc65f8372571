"""``rmqctl version``."""

import platform
from typing import Annotated, NamedTuple

import typer

from rmqctl import __version__
from rmqctl.cli.context import context_of, prints
from rmqctl.cli.marks import uses_no_store


class VersionRow(NamedTuple):
    """What ``version`` prints."""

    rmqctl: Annotated[str, "this program"]
    format: Annotated[str, "the version of Apache RocketMQ whose files it reads and writes"]
    python: Annotated[str, "the interpreter"]
    platform: Annotated[str, "the machine and its operating system"]


@prints(VersionRow)
@uses_no_store
def version(ctx: typer.Context) -> None:
    """Show the versions of rmqctl, Python and the operating system.

    For a report of a fault:   rmqctl version
    The version alone:         rmqctl version --columns rmqctl -o tsv --no-headers
    """
    context_of(ctx).one(
        VersionRow(
            rmqctl=__version__,
            format="RocketMQ 4.9",
            python=platform.python_version(),
            platform=f"{platform.system()} {platform.release()} {platform.machine()}",
        )
    )
