"""The rules by which a time becomes an offset, as words of the command line."""

from typing import TYPE_CHECKING

from storage.read.by_time import Boundary

if TYPE_CHECKING:
    from rmqctl.cli.context import Cli


def parse_boundary(text: str) -> Boundary:
    """``lower``, ``upper`` or ``nearest49``. ValueError for anything else."""
    try:
        return Boundary(text.lower())
    except ValueError:
        raise ValueError(f"{text!r} is not one of nearest49, lower, upper") from None


def warn_of_future(cli: "Cli", option: str, timestamp: int, boundary: Boundary) -> None:
    """Warn where progress would go to a time that has not come yet: it skips all that is unread."""
    where = "end" if boundary is Boundary.LOWER else "last message"
    cli.warn_of_future(option, timestamp, f"every queue goes to its {where}")
