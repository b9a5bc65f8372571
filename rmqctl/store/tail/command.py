"""``rmqctl store tail``: follows the log as it grows, one row per record."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from rmqctl.cli.context import Cli, context_of, prints
from rmqctl.cli.opening import open_for_reading
from rmqctl.errors import UsageProblem

from .rows import TailRow

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker

_LONGEST_WAIT_MS: Final = 1000


@prints(TailRow)
def tail(
    ctx: typer.Context,
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="POS", help="start, end, a log position or a time"),
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", "-c", metavar="N", min=0, help="Stop after N rows")
    ] = None,
    stop_at_end: Annotated[
        bool, typer.Option("--exit", "-e", help="Stop at the current end")
    ] = False,
) -> None:
    """Follow the log as it grows: every stored record of every topic.

    This includes half messages, retries, delayed messages and their deliveries. Takes no lock,
    works beside any writer including a Java broker, and ends with Ctrl-C. Without --from it starts
    at the end, with -e at the start.

    New records:               rmqctl store tail
    One topic:                 rmqctl store tail --where 'topic == orders'
    All stored records:        rmqctl store tail -e
    The last five minutes:     rmqctl store tail --from -5m -e
    """
    cli = context_of(ctx)
    if cli.view.sort and not stop_at_end and count is None:
        raise UsageProblem(
            "--sort prints after all is read, so it needs an end, such as --exit or --count"
        )
    with open_for_reading(cli) as broker:
        _follow(cli, broker, start, count, stop_at_end=stop_at_end)


def _follow(
    cli: Cli, broker: "EmbeddedBroker", start: str | None, count: int | None, *, stop_at_end: bool
) -> None:
    from .tail import tail_from

    place = tail_from(cli, broker.view, start, whole=stop_at_end)
    stream = cli.row_stream(TailRow)

    def has_enough() -> bool:
        return stream.full or stream.taken == count

    try:
        while not has_enough():
            end = broker.wait_for_messages(None, 0)
            for row in place.rows(end):
                stream.write([row])
                if has_enough():
                    break
            if stop_at_end and place.position >= end:
                break
            stream.flush()
            if place.position >= end and not has_enough():
                broker.wait_for_messages(end, _LONGEST_WAIT_MS)
    finally:
        stream.finish()
