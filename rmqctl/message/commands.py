"""``rmqctl message``: finding single messages."""

from typing import TYPE_CHECKING, Annotated

import typer

from rmqctl.cli.context import Cli, context_of, prints
from rmqctl.cli.marks import Changes, changes
from rmqctl.cli.opening import view_of
from rmqctl.cli.scan_display import ScanDisplay
from rmqctl.errors import CliError, UsageProblem
from rmqctl.exit_codes import DAMAGED
from rmqctl.output.message_rows import MessageRow, message_row

if TYPE_CHECKING:
    from storage.format.message import MessageExt


@prints(MessageRow)
@changes(Changes.PLANS)
def get(
    ctx: typer.Context,
    message_id: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="A unique or offset id; with -Q and -O: TOPIC"),
    ] = None,
    topic: Annotated[
        str | None, typer.Argument(metavar="[TOPIC]", help="Only in this topic (default: all)")
    ] = None,
    queue: Annotated[
        int | None, typer.Option("--queue", "-Q", metavar="N", help="The queue")
    ] = None,
    queue_offset: Annotated[
        int | None, typer.Option("--offset", "-O", metavar="N", help="The queue offset")
    ] = None,
    save: Annotated[
        str | None, typer.Option("--save", metavar="FILE", help="Write the exact body to FILE")
    ] = None,
) -> None:
    """Show one message, by id or by topic, queue and offset.

    By unique or offset id:    rmqctl message get 7F000001000ABC...
    By offset:                 rmqctl message get orders -Q 0 -O 17
    Save the body:             rmqctl message get orders -Q 0 -O 17 --save body.bin
    """
    cli = context_of(ctx)
    by_place = queue is not None or queue_offset is not None
    if by_place and topic is None:
        message_id, topic = None, message_id
    if (message_id is None) is not by_place:
        raise UsageProblem("give either an id, or --topic, --queue and --offset")
    if queue is not None and queue < 0:
        raise UsageProblem(f"--queue: {queue} is not a queue number")
    if queue_offset is not None and queue_offset < 0:
        raise UsageProblem(f"--offset: {queue_offset} is not a queue offset")
    with view_of(cli) as view, ScanDisplay(cli) as shown:
        from rmqctl.admin import messages

        if message_id is not None:
            found = messages.with_id(
                view, message_id, topic, left_out=cli.left_out, on_progress=shown
            )
        elif topic is None or queue is None or queue_offset is None:
            raise UsageProblem("--topic, --queue and --offset need each other")
        else:
            found = [messages.at_offset(view, topic, queue, queue_offset)]
        if save is not None:
            _save_body(cli, found, save)
            return
        rows = [_row(message) for message in found]
    if len(rows) == 1:
        cli.one(rows[0])
    else:
        cli.rows(MessageRow, rows)


def _save_body(cli: Cli, found: "list[MessageExt]", save: str) -> None:
    """Write the body of the message."""
    from pathlib import Path

    from rmqctl.message.exchange.formats import saved_to

    for message in found:
        _row(message)  # raises if the body cannot be unpacked
    places = {(message.topic, message.queue_id, message.queue_offset) for message in found}
    if len({message.body for message in found}) > 1:
        shown = ", ".join(f"-t {topic} -Q {queue} -O {offset}" for topic, queue, offset in places)
        raise UsageProblem(f"--save: {len(found)} records have this id; give one of {shown}")
    body = found[0].body
    dry = cli.flag("dry_run")
    with saved_to(Path(save), dry_run=dry) as file:
        file.write(body)
    cli.say(f"{'dry run: would write' if dry else 'wrote'} {len(body):,} bytes to {save}")


def _row(message: "MessageExt") -> MessageRow:
    from storage.format.errors import BodyError

    try:
        return message_row(message)
    except BodyError as error:
        raise CliError(str(error), DAMAGED) from error
