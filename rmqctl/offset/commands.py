"""``rmqctl offset``: how far groups are."""

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmqctl.admin.audit.rows import ChangeRow
from rmqctl.admin.offsets.committed import OffsetSource
from rmqctl.admin.offsets.inspection_rows import InspectedOffsetRow, OffsetRow
from rmqctl.cli.as_of import AsOf, broker_then, moment_of, progress_then
from rmqctl.cli.context import Cli, context_of, prints
from rmqctl.cli.marks import most_used
from rmqctl.cli.opening import open_for_reading
from rmqctl.cli.system_rows import All, print_rows, tell_no_progress
from rmqctl.consume.body_forms import BODY_FORMS
from rmqctl.errors import UsageProblem
from rmqctl.parse.lists import parse_queues

from .around_rows import AroundRow, AroundRowOfJson, around_row, around_row_of_json

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from rmqctl.admin.offsets.around import Around
    from rmqctl.admin.offsets.inspection import Place
    from rmqctl.parse.positions import Point
    from storage.format.message import MessageExt

_Groups = Annotated[list[str] | None, typer.Argument(metavar="[GROUP...]", help="Default: all")]
_Topics = Annotated[
    list[str] | None,
    typer.Option("--topic", "-t", metavar="TOPIC", help="Only this topic; repeatable"),
]


@prints(OffsetRow)
def list_offsets(
    ctx: typer.Context,
    groups: _Groups = None,
    topic: _Topics = None,
    everything: All = False,
) -> None:
    """List the progress of all groups, queue by queue.

    Who is behind:             rmqctl offset list --where 'state = BEHIND'
    One group, as JSON:        rmqctl offset list readers -o json
    """
    cli = context_of(ctx)
    chosen = groups or None
    with open_for_reading(cli) as broker:
        from analytics.lag.selection import Choice
        from rmqctl.admin import offsets

        rows = offsets.list_offsets(broker.view, broker, groups=chosen, topics=topic, warn=cli.warn)
        shown = everything or bool(chosen or topic)
        print_rows(cli, OffsetRow, rows, broker.view, everything=shown)
        choice = Choice(chosen, topic)
        if not any(choice.names(*place) for place in broker.consumer_offsets()):
            tell_no_progress(cli)


@prints(InspectedOffsetRow, AroundRow, AroundRowOfJson)
@most_used("--topic", "--queue", "--at", "--around", "--as-of", "--all")
def inspect(
    ctx: typer.Context,
    groups: _Groups = None,
    topic: _Topics = None,
    queue: Annotated[
        str | None, typer.Option("--queue", "-Q", metavar="LIST", help="Only these, such as 0,2-4")
    ] = None,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="POS", help="Show the messages here: 5 start end -5 @-1h"),
    ] = None,
    around: Annotated[
        str | None,
        typer.Option(
            "--around",
            metavar="B,A",
            help="Show B messages before and A after the progress, or --at",
        ),
    ] = None,
    body: Annotated[
        str, typer.Option("--body", metavar="FORM", help="Bodies as text json hex base64 none")
    ] = "text",
    source: Annotated[
        str,
        typer.Option("--source", metavar="WHERE", help="Read the offsets from file bak journal"),
    ] = "file",
    as_of: AsOf = None,
    everything: All = False,
) -> None:
    """Show everything about the progress of groups, queue by queue.

    Age, lag and bytes are those of the messages themselves. Unknown is null, never 0.

    One group:                 rmqctl offset inspect readers
    All that there is:         rmqctl offset inspect readers -o wide
    What it read, reads next:  rmqctl offset inspect readers --around 3,3
    Before the last change:    rmqctl offset inspect --source bak
    As it was an hour ago:     rmqctl offset inspect readers --as-of -1h
    """
    cli = context_of(ctx)
    where = _source(source)
    if as_of is not None and where is not OffsetSource.FILE:
        raise UsageProblem("--as-of and --source exclude each other: both say what is looked at")
    moment = moment_of(cli, as_of)
    form = _body_form(body)
    near = _near(cli, at, around)
    queues = None if queue is None else cli.parsed("--queue", parse_queues, queue)
    from rmqctl.admin import offsets

    chosen = offsets.Chosen(groups or [], topic, queues)
    then = None if as_of is None else progress_then(cli, moment)
    if then is not None:
        then.warn(cli, chosen.groups, chosen.topics)
    with open_for_reading(cli) if then is None else broker_then(cli, moment, then) as broker:
        from storage.configs.journal_changes import Changes

        changes = Changes(broker.view.root)
        if then is None:
            known = offsets.committed_offsets(broker.view, broker, where, changes.moves, cli.warn)
        else:
            table = broker.consumer_offsets()
            known = offsets.CommittedOffsets(table, OffsetSource.SEEN, broker.topics(), then.doubts)
        if near is not None:
            _print_around(cli, broker, offsets.places(broker.view, known, chosen), near, form)
            return

        def wants(*fields: str) -> bool:
            return any(cli.wants(InspectedOffsetRow, field) for field in fields)

        wanted = offsets.Wanted(
            wants("lag_bytes"),
            wants("oldest_unread_msg_id"),
            wants("changed_timestamp", "changed_by") and as_of is None,
        )
        with cli.progress("offset inspect", "queues") as progress:
            rows = offsets.inspect(
                *(broker.view, broker, known, chosen, changes),
                now_ms=moment,
                wanted=wanted,
                advance=progress.advance,
            )
        shown = everything or bool(chosen.groups or topic)
        print_rows(cli, InspectedOffsetRow, rows, broker.view, everything=shown)


@prints(ChangeRow)
def history(
    ctx: typer.Context,
    groups: _Groups = None,
    topic: _Topics = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Only from then on, such as -7d")
    ] = None,
) -> None:
    """Show who has moved the progress of groups, oldest first, a line for each queue.

    Moves without an entry are shown, too, where the files reveal them: without a change id.

    Of one group:              rmqctl offset history readers
    What was not done:         rmqctl offset history --where 'applied = false'
    """
    cli = context_of(ctx)
    start = None if since is None else cli.time("--since", since)
    if start is not None:
        cli.warn_of_future("--since", start, "no change is as new as that")
    with open_for_reading(cli) as broker:
        from rmqctl.admin import audit

        rows = audit.history(
            broker.view, broker, groups or (), topic or (), since=start, warn=cli.warn
        )
        cli.rows(ChangeRow, rows)


def _print_around(
    cli: Cli,
    broker: "EmbeddedBroker",
    where: "list[Place]",
    near: "tuple[Point, Around]",
    body_form: str,
) -> None:
    from rmqctl.admin import offsets
    from rmqctl.admin.queues.selection import offset_of
    from rmqctl.parse.positions import Bound

    at, around = near

    def position_of(place: "Place") -> int | None:
        match at.bound:
            case Bound.STORED:
                return place.committed
            case Bound.OFFSET:
                return at.value
            case _:
                return offset_of(broker, place.topic, place.queue_id, at)

    values = body_form == "json" and cli.view.format.has_values

    def make_row(group: str, position: int, message: "MessageExt") -> Any:
        if values:
            return around_row_of_json(group, position, message)
        return around_row(group, position, message, body_form)

    rows = offsets.messages_around(
        *(broker.view, where, position_of, around, make_row),
        tell=cli.say,
        left_out=cli.left_out,
    )
    cli.rows(AroundRowOfJson if values else AroundRow, rows)


def _near(cli: Cli, at: str | None, around: str | None) -> "tuple[Point, Around] | None":
    """The position to look at, and how far around it; None for no messages at all."""
    if at is None and around is None:
        return None
    from rmqctl.admin.offsets.around import Around
    from rmqctl.parse.positions import Bound, Point, parse_position

    point = Point(Bound.STORED)
    if at is not None:
        position = cli.parsed("--at", lambda text: parse_position(text, cli.now_ms, cli.zone), at)
        if position.begin is None or position.end is not None:
            raise UsageProblem(f"--at: {at!r} is not one place but a range")
        point = position.begin
    return point, Around(0, 1) if around is None else cli.parsed("--around", _around, around)


def _source(text: str) -> OffsetSource:
    known = [source for source in OffsetSource if source is not OffsetSource.SEEN]
    if text.lower() not in known:
        raise UsageProblem(f"--source: {text!r} is not one of {', '.join(known)}")
    return OffsetSource(text.lower())


def _body_form(text: str) -> str:
    if text not in BODY_FORMS:
        raise UsageProblem(f"--body: {text!r} is not one of {', '.join(BODY_FORMS)}")
    return text


def _around(text: str) -> "Around":
    """``B,A``, or one number for both; ValueError for anything else."""
    from rmqctl.admin.offsets.around import Around

    found = re.fullmatch(r"\s*(\d{1,18})(?:\s*,\s*(\d{1,18}))?\s*", text, re.ASCII)
    if not found:
        raise ValueError(f"{text!r} is not how many messages before and after (such as 5,5)")
    before = int(found[1])
    return Around(before, before if found[2] is None else int(found[2]))
