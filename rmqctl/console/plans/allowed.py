"""Whether changes may be turned on in the console."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rmqctl.cli.context import Cli

SETTING: Final = "console_write"
NEVER: Final = "never"


def forbidden(cli: "Cli") -> str | None:
    """Why changes cannot be turned on; None if they can. UsageProblem for a malformed setting."""
    from rmqctl.errors import UsageProblem

    found = cli.settings.get(SETTING)
    if found is not None:
        if found.value not in ("ask", NEVER):
            raise UsageProblem(f"{SETTING}: {found.value!r} is not one of ask, never")
        if found.value == NEVER:
            return f"changes are off: {SETTING} is {NEVER} ({found.origin})"
    if cli.flag("dry_run"):
        return "changes are off: this is a dry run"
    return None
