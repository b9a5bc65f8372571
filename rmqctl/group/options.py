"""Options of groups."""

from typing import Annotated

import typer

NewGroup = Annotated[
    bool, typer.Option("--new-group", help="Start a group that does not exist yet")
]
