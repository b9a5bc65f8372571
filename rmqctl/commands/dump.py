"""``rmqctl store dump``: what stands in a file of a store, byte by byte."""

from typing import Annotated

import typer

from rmqctl.context import context_of, prints
from rmqctl.errors import NotFound, UsageProblem
from rmqctl.opening import open_for_reading
from rmqctl.rows.messages import MessageRow, message_row


@prints(MessageRow)
def dump(
    ctx: typer.Context,
    what: Annotated[str, typer.Argument(metavar="FILE|POS", help="A file, or a log position")],
) -> None:
    """Decode the record at a position of the commit log."""
    cli = context_of(ctx)
    if not what.isdigit():
        raise UsageProblem(f"{what!r} is not a log position")
    with open_for_reading(cli) as broker:
        message = broker.view.look_message_by_offset(int(what))
        if message is None:
            raise NotFound(f"no record begins at position {what} of {broker.view.root}")
        cli.one(message_row(message))
