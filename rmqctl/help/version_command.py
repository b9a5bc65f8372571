"""``rmqctl version``."""

import json
import platform
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from rmqctl import __version__
from rmqctl.cli.context import context_of, prints
from rmqctl.cli.marks import uses_no_store
from rmqctl.output.fields import Wide

_BUILT = Path(__file__).resolve().parents[1] / "build.json"
"""What hatch_build.py puts into a wheel; a checkout has none."""


class VersionRow(NamedTuple):
    """What ``version`` prints."""

    rmqctl: Annotated[str, "this program"]
    commit: Annotated[str | None, "the commit it was built from; null for a checkout"]
    compiled: Annotated[list[str], "packages whose loops run as compiled code here"]
    format: Annotated[str, "the version of Apache RocketMQ whose files it reads and writes"]
    own_formats: Annotated[dict[str, int], Wide("versions of rmqctl's own files that it writes")]
    python: Annotated[str, "the interpreter"]
    platform: Annotated[str, "the machine and its operating system"]


@prints(VersionRow)
@uses_no_store
def version(ctx: typer.Context) -> None:
    """Show the versions of rmqctl, its files, Python and the operating system.

    For a report of a fault:   rmqctl version -o json
    The version alone:         rmqctl version --columns rmqctl -o tsv --no-headers
    """
    context_of(ctx).one(version_row())


def version_row() -> VersionRow:
    """The versions of this installation."""
    from storage.format.versions import FORMATS

    return VersionRow(
        rmqctl=__version__,
        commit=built_from(),
        compiled=compiled_packages(),
        format="RocketMQ 4.9",
        own_formats=dict(FORMATS),
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.release()} {platform.machine()}",
    )


def built_from() -> str | None:
    """The commit that this installation was built from; None where it was not noted."""
    try:
        commit = json.loads(_BUILT.read_bytes())["commit"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return commit if isinstance(commit, str) else None


def compiled_packages() -> list[str]:
    """Packages whose compiled modules are there and in use."""
    import client.native
    import rmqctl.native
    import storage.native

    modules = (storage.native, client.native, rmqctl.native)
    return [found.__name__.partition(".")[0] for found in modules if found.compiled is not None]
