"""``rmqctl dlq redrive`` and ``ack``: handling dead letters."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rmqctl.cli.context import Cli, context_of, prints
from rmqctl.cli.filter_options import filters_messages, message_filter
from rmqctl.dlq.rows import AckRow, RedriveReceipt, RedriveRow
from rmqctl.errors import UsageProblem

if TYPE_CHECKING:
    from .rewrite import Rewrite

_Group = Annotated[str, typer.Argument(metavar="GROUP", help="The consumer group")]
_Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ID...]", help="Ids or queue offsets, as shown by 'dlq browse'"),
]


@prints(RedriveReceipt, RedriveRow)
@filters_messages
def redrive(
    ctx: typer.Context,
    group: _Group,
    ids: _Ids = None,
    everything: Annotated[bool, typer.Option("--all", help="All unhandled dead letters")] = False,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="WHERE",
            help="origin (default): the original topic; retry: only this group, as a retry; or a "
            "topic",
        ),
    ] = None,
    edit: Annotated[
        bool, typer.Option("--edit", help="Edit the message in $VISUAL or $EDITOR, as JSON")
    ] = False,
    set_property: Annotated[
        list[str] | None,
        typer.Option(
            "--set-property", metavar="N=V", help="Set a property; N= removes it; repeatable"
        ),
    ] = None,
    set_body: Annotated[
        Path | None,
        typer.Option("--set-body", metavar="FILE", help="Send the content of FILE as body"),
    ] = None,
    pipe: Annotated[
        str | None,
        typer.Option(
            "--pipe", metavar="CMD", help="Send the output of CMD, which gets the body; no shell"
        ),
    ] = None,
    rate: Annotated[
        str | None, typer.Option("--rate", metavar="N/s", help="Most messages per second")
    ] = None,
    most: Annotated[
        int | None, typer.Option("--max", metavar="N", min=1, help="Send at most N messages")
    ] = None,
    stop_after_errors: Annotated[
        int,
        typer.Option(
            "--stop-after-errors",
            metavar="N",
            min=1,
            help="Stop after N messages that could not be sent",
        ),
    ] = 1,
    max_redrives: Annotated[
        int | None,
        typer.Option(
            "--max-redrives",
            metavar="N",
            min=1,
            help="Skip messages that were redriven N times already (default: 3)",
        ),
    ] = None,
    allow_empty: Annotated[
        bool,
        typer.Option(
            "--allow-empty",
            help="Send empty bodies, which block groups of Java consumers",
        ),
    ] = False,
    resume: Annotated[
        str | None,
        typer.Option("--resume", metavar="RUN", help="Continue a run, or the 'last' one"),
    ] = None,
    receipts: Annotated[
        Path | None,
        typer.Option(
            "--receipts", metavar="FILE", help="Append the receipts to FILE, as JSON lines"
        ),
    ] = None,
) -> None:
    """Send dead letters again. A dry run unless --execute is given.

    A message that was sent is marked as handled and has a receipt. Other groups that read the
    original topic get it, too; --target retry sends it to this group only.

    Preview, then send:        rmqctl dlq redrive readers --all
                               rmqctl dlq redrive readers --all --execute
    One tag, slowly:           rmqctl dlq redrive readers --tag invoice --rate 50/s --execute
    Edit one by hand:          rmqctl dlq redrive readers 17 --edit --execute
    After an interruption:     rmqctl dlq redrive readers --resume last --execute
    """
    cli = context_of(ctx)
    from .plan import TO_ORIGIN, Choice
    from .redrive import Limits, redrive as begin, resume as go_on

    limits = Limits(
        None if rate is None else cli.parsed("--rate", _rate, rate),
        most,
        stop_after_errors,
        3 if max_redrives is None else max_redrives,
        allow_empty,
    )
    choice = Choice(ids or [], everything, message_filter(cli, changes=True))
    if resume is not None:
        if ids or choice.is_filtered:
            others = "IDs" if ids else "filters"
            raise UsageProblem(
                f"--resume and {others} exclude each other: a run keeps its own options"
            )
        go_on(cli, group, resume, limits, receipts)
        return
    if target == "":
        raise UsageProblem("--target is empty; name a topic, or omit it for the original topic")
    choice.check()
    rewriting = _rewriting(cli, set_property, set_body, pipe)
    begin(
        cli,
        group,
        choice,
        TO_ORIGIN if target is None else target,
        rewriting,
        limits,
        receipts,
        edit=edit,
    )


@prints(AckRow)
@filters_messages
def ack(
    ctx: typer.Context,
    group: _Group,
    ids: _Ids = None,
    everything: Annotated[bool, typer.Option("--all", help="All unhandled dead letters")] = False,
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="DUR", help="Only those older than this")
    ] = None,
    undo: Annotated[
        bool,
        typer.Option("--undo", help="Remove marks: of these, or of the last 'dlq ack'"),
    ] = False,
) -> None:
    """Mark dead letters as handled. The messages stay: RocketMQ's log is append-only.

    Marks belong to rmqctl; other programs ignore them.

    Two dead letters:          rmqctl dlq ack readers 17 18
    Older than a month:        rmqctl dlq ack readers --older-than 30d --reason "too old"
    Undo the last ack:         rmqctl dlq ack readers --undo
    """
    cli = context_of(ctx)
    from .ack import acknowledge, undo_last, unmark
    from .plan import Choice

    wanted = message_filter(cli, changes=True)
    if older_than is not None:
        age_ms = cli.parsed("--older-than", _duration, older_than)
        wanted = wanted._replace(to_timestamp=cli.now_ms - age_ms)
    choice = Choice(ids or [], everything, wanted)
    if undo and not (ids or everything or choice.is_filtered):
        undo_last(cli, group)
        return
    choice.check()
    if undo:
        unmark(cli, group, choice)
    else:
        acknowledge(cli, group, choice)


def _duration(text: str) -> int:
    from rmqctl.parse.durations import parse_duration

    return parse_duration(text)


def _rewriting(
    cli: Cli, set_property: list[str] | None, set_body: Path | None, pipe: str | None
) -> "Rewrite":
    from .rewrite import Rewrite, check_command, parse_properties

    if pipe is not None:
        check_command(pipe)
    body = None
    if set_body is not None:
        try:
            body = set_body.read_bytes()
        except OSError as error:
            raise UsageProblem(f"--set-body: {set_body}: {error.strerror}") from None
        if not body:
            raise UsageProblem(
                f"--set-body: {set_body} is empty, and RocketMQ's clients send no empty bodies"
            )
    return Rewrite(parse_properties(set_property or ()), body, pipe)


def _rate(text: str) -> float:
    from rmqctl.parse.durations import parse_rate

    return parse_rate(text)
