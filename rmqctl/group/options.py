"""Options of groups."""

from typing import Annotated

import typer

MoreGroups = Annotated[
    list[str] | None,
    typer.Option("--group", "-g", metavar="GROUP", help="A group, as an option; repeatable"),
]


def named(groups: list[str] | None, more: list[str] | None) -> list[str]:
    """The groups given as arguments and options; none means all."""
    return [*(groups or ()), *(more or ())]


NewGroup = Annotated[
    bool, typer.Option("--new-group", help="Start a group that does not exist yet")
]
