"""Changes of settings, refused while a Java broker has the store open."""

from rmqctl.admin.changes import Change

from .change_steps import run_change
from .context import Cli


def run_guarded(cli: Cli, change: Change, *, confirmed: str | None = None) -> None:
    """Check, plan, ask and apply. A dry run is not checked."""
    if not cli.flag("dry_run"):
        change.check()
    run_change(cli, change, confirmed=confirmed)
