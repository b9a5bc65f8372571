"""Options that the lag commands share."""

from typing import Annotated

import typer

Groups = Annotated[list[str] | None, typer.Argument(metavar="[GROUP...]", help="Default: all")]
Topics = Annotated[
    list[str] | None,
    typer.Option("--topic", "-t", metavar="TOPIC", help="Only this topic; repeatable"),
]
IncludeRetry = Annotated[
    bool, typer.Option("--include-retry", help="Include the retry topics of groups as rows")
]
