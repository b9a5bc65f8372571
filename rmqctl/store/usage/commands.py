"""``rmqctl store du`` and ``clean``: disk usage, and deleting expired files."""

from typing import Annotated

import typer

from rmqctl.admin.store.disk_rows import DiskKindRow, DiskUseRow
from rmqctl.admin.store.rows import CleanedFileDone
from rmqctl.cli.context import context_of, prints, prints_instead
from rmqctl.cli.marks import Changes, changes
from rmqctl.cli.opening import open_for_progress, open_for_writing
from rmqctl.errors import UsageProblem

_BY = ("topic", "kind", "group", "day")


def _prints_by(ctx: typer.Context, by: str) -> str:
    """Make ``--by kind -o help`` explain the selected rows."""
    if by == "kind":
        prints_instead(ctx, DiskKindRow)
    return by


@prints(DiskUseRow, DiskKindRow)
def du(
    ctx: typer.Context,
    by: Annotated[
        str,
        typer.Option(
            "--by",
            metavar="WHAT",
            help="topic, kind, group (retries and dead letters) or day",
            is_eager=True,
            callback=_prints_by,
        ),
    ] = "topic",
) -> None:
    """Show what fills the disk, the groups with unread messages, and the next deletions.

    A row for each topic with its messages and queue files, then what is deleted but kept, the
    index, blocks that are reserved for the next messages, and the other files. The sum of
    DISK_BYTES is what 'du -s' counts. Bytes are exact: every unit of the queues is read (20 bytes
    per message), but no record. Below the rows: the files that the next clean deletes and when, why
    the others stay, and when the disk is full at the rate of the last day.

    Largest first:             rmqctl store du --sort -disk_bytes
    Messages, index, reserve:  rmqctl store du --by kind
    Retries and dead letters:  rmqctl store du --by group
    """
    cli = context_of(ctx)
    if by not in _BY:
        raise UsageProblem(f"--by: {by!r} is not one of {', '.join(_BY)}")
    with open_for_progress(cli) as broker:
        from rmqctl.admin import store

        use = store.disk_use(broker.view, broker, now_ms=cli.now_ms, warn=cli.warn)
        if by == "kind":
            cli.rows(DiskKindRow, use.by_kind())
        elif by == "group":
            cli.rows(DiskUseRow, use.by_group())
        elif by == "day":
            cli.rows(DiskUseRow, use.by_day(cli.zone, cli.left_out))
        else:
            cli.rows(DiskUseRow, use.by_topic())
        for folder in use.files.unreadable:
            cli.left_out(f"{folder} cannot be read; what is in it is not counted")
        for sentence in use.sentences():
            cli.say(sentence)


@prints(CleanedFileDone)
@changes(Changes.ASKS)
def clean(
    ctx: typer.Context,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="DUR", help="This age, not fileReservedTime (72h)"),
    ] = None,
    confirm: Annotated[
        str | None,
        typer.Option("--confirm", metavar="NAME", help="The folder's name, for a shorter age"),
    ] = None,
) -> None:
    """Delete expired log files, and the queue and index files that belong to them.

    Deletes as a broker does in the hours of deleteWhen: the oldest first, if they were not written
    for fileReservedTime (72 h), whether read or not; never the newest file. Disk usage has no
    influence. It shows the plan and asks first. If no file is old enough, it prints the settings
    that decide, and what each would free now.

    Preview:         rmqctl store clean -n
    Delete:          rmqctl store clean
    Younger files:   rmqctl store clean --older-than 24h
    """
    cli = context_of(ctx)
    older_than_ms = None
    if older_than is not None:
        from storage.parse.durations import parse_duration

        older_than_ms = cli.parsed("--older-than", parse_duration, older_than)
    with open_for_progress(cli) as broker:
        from rmqctl.admin import store
        from rmqctl.cli.change_steps import run_change

        change = store.clean(
            broker.view,
            broker,
            older_than_ms=older_than_ms,
            now_ms=cli.now_ms,
            warn=cli.warn,
            open_writer=lambda: open_for_writing(cli),
        )
        run_change(cli, change, confirmed=confirm)
