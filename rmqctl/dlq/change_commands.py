"""``rmqctl dlq redrive`` and ``ack``: handling dead letters."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rmqctl.admin.dead_letters.rows import AckRow, RedriveReceipt, RedriveRow
from rmqctl.cli.context import Cli, context_of, prints
from rmqctl.cli.filter_options import filters_messages, message_filter, message_selection
from rmqctl.cli.marks import Changes, changes, most_used
from rmqctl.cli.opening import open_for_reading, open_for_writing
from rmqctl.errors import UsageProblem
from storage.counted import counted

from .rewrite_options import rewrite_of

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from broker.retry.redrive import Content
    from rmqctl.admin.dead_letters import Redrive
    from rmqctl.cli.progress import Progress
    from storage.format.message import MessageExt

    from .edit import EditedFile

_Group = Annotated[str, typer.Argument(metavar="GROUP", help="The consumer group")]
_Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ID...]", help="Ids or queue offsets, as shown by 'dlq browse'"),
]


@prints(RedriveReceipt, RedriveRow)
@filters_messages
@changes(Changes.ASKS)
@most_used("--all", "--target", "--edit", "--rate", "--resume")
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
    """Send dead letters again. It shows the plan and asks first.

    A message that was sent is marked as handled and has a receipt. Other groups that read the
    original topic get it, too; --target retry sends it to this group only.

    Preview:                   rmqctl dlq redrive readers --all -n
    Send all:                  rmqctl dlq redrive readers --all
    One tag, slowly:           rmqctl dlq redrive readers --tag invoice --rate 50/s
    Edit one by hand:          rmqctl dlq redrive readers 17 --edit
    After an interruption:     rmqctl dlq redrive readers --resume last
    """
    cli = context_of(ctx)
    from rmqctl.admin import dead_letters
    from rmqctl.cli.change_steps import begin_java_check
    from rmqctl.produce.rate_limit import Pace

    per_second = None if rate is None else cli.parsed("--rate", _rate, rate)
    wanted = message_filter(cli, changes=True)
    if resume is not None and (ids or wanted.is_given):
        others = "IDs" if ids else "filters"
        raise UsageProblem(f"--resume and {others} exclude each other: a run keeps its own options")
    if target == "":
        raise UsageProblem("--target is empty; name a topic, or omit it for the original topic")
    limits = dead_letters.Limits(
        most, stop_after_errors, 3 if max_redrives is None else max_redrives, allow_empty
    )
    run = _Run(cli)
    pace = Pace(per_second)
    writing = dead_letters.Writing(
        begin_java_check(cli, cli.store.path),
        run.open_writer,
        lambda: pace.portion(1),
        run.started,
        run.on_receipt,
        receipts,
    )
    chosen = None
    if resume is None:
        chosen = message_selection(ids, wanted, "dead letters", everything=everything)
    rewrite = rewrite_of(set_property or (), set_body, pipe, allow_empty=allow_empty)
    with open_for_reading(cli) as broker:
        if chosen is None:
            change = dead_letters.resume(
                broker.view, broker, group, str(resume), limits=limits, writing=writing
            )
        else:
            change = dead_letters.redrive(
                broker.view,
                broker,
                group,
                chosen,
                target=target or "origin",
                rewrite=rewrite,
                edit=run.editor(allow_empty=allow_empty) if edit else None,
                limits=limits,
                writing=writing,
                now_ms=cli.now_ms,
                warn=cli.warn,
                left_out=cli.left_out,
            )
    run.carry_out(change, resumes=resume is not None)


class _Run:
    """A redrive on the terminal: what is printed before, meanwhile and after."""

    def __init__(self, cli: Cli) -> None:
        self._cli = cli
        self._change: Redrive | None = None
        self._progress: Progress | None = None
        self._edited: EditedFile | None = None

    def editor(self, *, allow_empty: bool) -> "Callable[[Sequence[MessageExt]], Content | None]":
        """Has the one message edited by the user; a dry run opens no editor."""
        from rmqctl.cli.change_steps import will_execute

        from .edit import EditedFile, edited

        cli = self._cli
        file = self._edited = EditedFile()
        cli.at_end.append(file.leave)

        def edit(messages: "Sequence[MessageExt]") -> "Content | None":
            if len(messages) != 1:
                many = len(messages)
                raise UsageProblem(f"--edit takes one dead letter, but {many} are selected")
            if not will_execute(cli):
                return None
            return edited(messages[0], cli.environ, file, allow_empty=allow_empty)

        return edit

    @contextmanager
    def open_writer(self) -> "Iterator[EmbeddedBroker]":
        """The store for writing; its timed services run meanwhile."""
        from rmqctl.cli.services import services_by_the_way

        with open_for_writing(self._cli) as broker, services_by_the_way(self._cli, broker):
            yield broker

    def started(self) -> None:
        """Print how to continue the run, and show its progress from now on."""
        assert self._change is not None
        run = self._change.task.run
        self._cli.say(f"run {run}; to continue it after an interruption: --resume {run}")
        self._progress = self._cli.progress("redrive", "messages", len(self._change.plan))

    def on_receipt(self, receipt: RedriveReceipt) -> None:
        """Count a receipt."""
        if receipt.applied and self._edited is not None:
            self._edited.is_sent = True
        if self._progress is not None:
            self._progress.advance(1, 1)

    def carry_out(self, change: "Redrive", *, resumes: bool) -> None:
        """Show the plan, and send with consent."""
        from rmqctl.admin.dead_letters import settle_interrupted
        from rmqctl.admin.journal_entry import change_note
        from rmqctl.cli.change_steps import run_change, will_execute
        from rmqctl.cli.opening import view_of

        cli, task, self._change = self._cli, change.task, change
        if not change.plan and will_execute(cli):
            with view_of(cli) as view:
                settle_interrupted(view, task.group, change_note(cli))
        try:
            run_change(cli, change)
        finally:
            if self._progress is not None:
                self._progress.clear()
            if change.left:
                left = counted(change.left, "dead letter was", "dead letters were")
                cli.say(f"{left} not tried; continue with --resume {task.run}")
        if resumes and not will_execute(cli):
            cli.say(f"this was run {task.run}")


@prints(AckRow)
@filters_messages
@changes(Changes.ASKS)
@most_used("--all", "--older-than", "--undo", "--tag")
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
    from rmqctl.admin import dead_letters
    from rmqctl.cli.change_steps import begin_java_check, run_change

    wanted = message_filter(cli, changes=True)
    if older_than is not None:
        age_ms = cli.parsed("--older-than", _duration, older_than)
        wanted = wanted._replace(to_timestamp=cli.now_ms - age_ms)
    chosen = None
    if not undo or ids or everything or wanted.is_given:
        chosen = message_selection(ids, wanted, "dead letters", everything=everything)
    java_check = begin_java_check(cli, cli.store.path)
    with open_for_reading(cli) as broker:
        if chosen is None:
            change = dead_letters.undo_acknowledge(
                broker.view, broker, group, java_check=java_check
            )
        else:
            make = dead_letters.remove_marks if undo else dead_letters.acknowledge
            change = make(
                broker.view,
                broker,
                group,
                chosen,
                left_out=cli.left_out,
                java_check=java_check,
            )
    run_change(cli, change)


def _duration(text: str) -> int:
    from storage.parse.durations import parse_duration

    return parse_duration(text)


def _rate(text: str) -> float:
    from storage.parse.durations import parse_rate

    return parse_rate(text)
