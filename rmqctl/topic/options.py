"""The argument that the topic commands share."""

from typing import Annotated

import typer

Topics = Annotated[list[str] | None, typer.Argument(metavar="[TOPIC...]", help="Default: all")]
