"""Options that the lag commands share."""

from typing import Annotated

import typer

Groups = Annotated[list[str] | None, typer.Argument(metavar="[GROUP...]", help="Default: all")]
MoreGroups = Annotated[
    list[str] | None,
    typer.Option("--group", "-g", metavar="GROUP", help="A group, as an option; repeatable"),
]
Topics = Annotated[
    list[str] | None,
    typer.Option("--topic", "-t", metavar="TOPIC", help="Only this topic; repeatable"),
]
IncludeRetry = Annotated[
    bool, typer.Option("--include-retry", help="Include the retry topics of groups as rows")
]


def named(groups: list[str] | None, more: list[str] | None) -> list[str]:
    """The groups given as arguments and options; none means all."""
    return [*(groups or ()), *(more or ())]
