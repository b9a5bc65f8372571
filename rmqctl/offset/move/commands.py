"""``rmqctl offset reset``, ``undo``, ``import``, ``delete``, ``orphans``: moving progress."""

from pathlib import Path
from typing import Annotated

import typer

from rmqctl.admin.offsets.orphan_rows import DoneOrphan, Orphan
from rmqctl.admin.offsets.rows import DoneMove
from rmqctl.cli.context import context_of, prints
from rmqctl.cli.marks import Changes, changes, most_used
from rmqctl.cli.opening import open_for_reading
from rmqctl.errors import UsageProblem
from rmqctl.group.options import NewGroup

_Groups = Annotated[
    list[str] | None,
    typer.Argument(metavar="[GROUP...]", help="Whose progress"),
]
_Topics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic", "-t", metavar="TOPIC[:0,2-4]", help="In which topic, or queues; repeatable"
    ),
]
_Queues = Annotated[
    str | None,
    typer.Option("--queue", "-Q", metavar="LIST", help="Only these queues, such as 0,2-4"),
]
_NoLive = Annotated[
    bool, typer.Option("--no-live", help="Refuse if consumers of the group are running")
]
_Expect = Annotated[
    str | None,
    typer.Option(
        "--expect",
        metavar="FILE|N",
        help="Refuse (6) unless progress is as in this plan, or the one queue at N",
    ),
]


@prints(DoneMove)
@changes(Changes.ASKS)
@most_used(
    *("--topic", "--to-datetime", "--by-duration"),
    *("--to-earliest", "--to-latest", "--to-offset"),
)
def reset(
    ctx: typer.Context,
    groups: _Groups = None,
    all_groups: Annotated[
        bool, typer.Option("--all-groups", help="All groups that read the topics")
    ] = False,
    topic: _Topics = None,
    all_topics: Annotated[
        bool, typer.Option("--all-topics", help="All topics that the groups read")
    ] = False,
    queue: _Queues = None,
    to_datetime: Annotated[
        str | None,
        typer.Option("--to-datetime", metavar="T", help="To what was stored at or after a time"),
    ] = None,
    by_duration: Annotated[
        str | None,
        typer.Option("--by-duration", metavar="D", help="To what was stored this long ago"),
    ] = None,
    to_earliest: Annotated[
        bool, typer.Option("--to-earliest", help="To the first message that is still there")
    ] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="To the true end")] = False,
    to_current: Annotated[
        bool, typer.Option("--to-current", help="To where it is: to save it with --export")
    ] = False,
    to_offset: Annotated[
        str | None, typer.Option("--to-offset", metavar="N", help="To an offset")
    ] = None,
    shift_by: Annotated[
        str | None,
        typer.Option("--shift-by", metavar="N", help="Forward by N messages; -N: back"),
    ] = None,
    to_group: Annotated[
        str | None, typer.Option("--to-group", metavar="GROUP", help="To where that group is")
    ] = None,
    from_file: Annotated[
        str | None,
        typer.Option("--from-file", metavar="FILE", help="To what a plan or Kafka's CSV says"),
    ] = None,
    to_message: Annotated[
        str | None,
        typer.Option(
            "--to-message",
            metavar="ID",
            help="To a message; other queues to what was stored at or after it",
        ),
    ] = None,
    boundary: Annotated[
        str,
        typer.Option(
            "--boundary", metavar="RULE", help="For times: lower, upper or nearest49 (RocketMQ 4.9)"
        ),
    ] = "lower",
    no_forward: Annotated[
        bool, typer.Option("--no-forward", help="Refuse (7) if a queue would go forward")
    ] = False,
    no_backward: Annotated[
        bool, typer.Option("--no-backward", help="Refuse (7) if a queue would go back")
    ] = False,
    clamp: Annotated[
        bool,
        typer.Option("--clamp/--no-clamp", help="Cut to what a queue has, or refuse (7)"),
    ] = True,
    preview: Annotated[
        str | None,
        typer.Option(
            "--preview", metavar="full|short", help="Look at messages and count all tags, or not"
        ),
    ] = None,
    new_group: NewGroup = False,
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="FILE", help="Save the plan: .csv or .json"),
    ] = None,
    expect: _Expect = None,
    no_live: _NoLive = False,
) -> None:
    """Move the progress of groups: to a time, an end, an offset, a message, another group.

    Say whose (GROUP, --all-groups), where (--topic, --all-topics) and one place to go to.
    It shows what would be read again or skipped, and asks. All queues
    of one call are moved, or none. Retry topics are left alone unless they are named.

    Preview:       rmqctl offset reset readers -t orders --by-duration 1d -n
    A day back:    rmqctl offset reset readers -t orders --by-duration 1d
    One queue:     rmqctl offset reset readers -t orders:3 --to-offset 100
    Save a plan:   rmqctl offset reset readers --all-topics --to-latest --export plan.csv
    Carry it out:  rmqctl offset reset --from-file plan.csv --expect plan.csv
    """
    cli = context_of(ctx)
    from .boundaries import parse_boundary
    from .options import GroupSelection, ResetGuards, run_reset

    destinations = {
        "--to-datetime": to_datetime,
        "--by-duration": by_duration,
        "--to-earliest": "" if to_earliest else None,
        "--to-latest": "" if to_latest else None,
        "--to-current": "" if to_current else None,
        "--to-offset": to_offset,
        "--shift-by": shift_by,
        "--to-group": to_group,
        "--from-file": from_file,
        "--to-message": to_message,
    }
    given = [(name, value) for name, value in destinations.items() if value is not None]
    if len(given) != 1:
        names = " and ".join(name for name, _ in given)
        problem = f"{names} do not go together" if given else "say where to"
        raise UsageProblem(f"{problem}: exactly one of {', '.join(destinations)}")
    if preview not in {None, "full", "short"}:
        raise UsageProblem(f"--preview: {preview!r} is not one of full, short")
    selection = GroupSelection.parse(
        cli,
        groups,
        topic,
        all_groups=all_groups,
        all_topics=all_topics,
        queues=queue,
        from_file=from_file is not None,
    )
    guards = ResetGuards(
        no_forward=no_forward,
        no_backward=no_backward,
        clamp=clamp,
        no_live=no_live,
        new_groups=new_group,
        full=None if preview is None else preview == "full",
        export=export,
        expect=expect,
    )
    rule = cli.parsed("--boundary", parse_boundary, boundary)
    with open_for_reading(cli) as broker:
        run_reset(cli, broker, selection, *given[0], rule, guards)


@prints(DoneMove)
@changes(Changes.ASKS)
def undo(
    ctx: typer.Context,
    change_id: Annotated[
        int | None, typer.Argument(metavar="[CHANGE-ID]", help="See 'rmqctl offset history'")
    ] = None,
    last: Annotated[bool, typer.Option("--last", help="The last change")] = False,
    no_live: _NoLive = False,
) -> None:
    """Put progress back to where it was before a change.

    All queues of the change, exactly as they were, or none: if one has been moved since, the undo
    is refused (6). What consumers did since is no obstacle; the plan says how much it was. An
    undoing is a change too, and can be undone. It shows the plan and asks first.

    Look:      rmqctl offset undo --last -n
    Do it:     rmqctl offset undo 12
    """
    cli = context_of(ctx)
    if (change_id is None) != last:
        raise UsageProblem("name a change ('rmqctl offset history' lists them), or give --last")
    with open_for_reading(cli) as broker:
        from rmqctl.admin.offsets.undo_change import undo as undo_change
        from rmqctl.cli.change_steps import begin_java_check, run_change

        java_check = begin_java_check(cli, broker.view.root)
        change = undo_change(
            broker.view,
            broker,
            change_id,
            no_live=no_live,
            now_ms=cli.now_ms,
            warn=cli.warn,
            java_check=java_check,
        )
        run_change(cli, change)


@prints(DoneMove)
@changes(Changes.ASKS)
@most_used("--topic", "--clamp", "--expect", "--new-group")
def import_offsets(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV as Kafka's tools, or JSON")],
    groups: _Groups = None,
    topic: _Topics = None,
    clamp: Annotated[
        bool, typer.Option("--clamp/--no-clamp", help="Cut to what a queue has, or refuse (7)")
    ] = True,
    expect: _Expect = None,
    no_live: _NoLive = False,
    new_group: NewGroup = False,
) -> None:
    """Set the progress of groups to what a file says.

    The file has topic, queue and offset in each line, perhaps a group before them: what 'rmqctl
    offset export', 'offset reset --export' and Kafka's tools write. GROUP names whose progress
    it is if the file does not, else which of the file's groups are meant. It shows what it
    would do and asks.

    rmqctl offset import saved.csv readers --dry-run
    """
    cli = context_of(ctx)
    from storage.read.by_time import Boundary

    from .options import GroupSelection, ResetGuards, run_reset

    selection = GroupSelection.parse(
        cli, groups, topic, all_groups=False, all_topics=False, from_file=True
    )
    guards = ResetGuards(clamp=clamp, no_live=no_live, new_groups=new_group, expect=expect)
    with open_for_reading(cli) as broker:
        run_reset(
            *(cli, broker, selection, "--from-file", str(file), Boundary.LOWER, guards),
        )


@prints(DoneMove)
@changes(Changes.ASKS)
def delete(
    ctx: typer.Context,
    groups: _Groups = None,
    topic: _Topics = None,
    all_topics: Annotated[
        bool, typer.Option("--all-topics", help="All topics that the groups read")
    ] = False,
    queue: _Queues = None,
    no_live: _NoLive = False,
) -> None:
    """Forget the progress of groups, in some topics or all.

    A group without progress begins as a new one does. It shows what it would do and asks;
    'rmqctl offset undo' brings the progress back.

    rmqctl offset delete readers -t orders --dry-run
    """
    cli = context_of(ctx)
    from broker.validation import check_group
    from rmqctl.admin.offsets.queues import parse_topic_choice
    from rmqctl.cli.change_steps import begin_java_check
    from rmqctl.parse.lists import parse_queues

    from .options import no_topics

    if not groups:
        raise UsageProblem("name groups")
    if bool(topic) == all_topics:
        raise no_topics(groups)
    for name in groups:
        check_group(name)
    queues = None if queue is None else cli.parsed("--queue", parse_queues, queue)
    choices = [cli.parsed("--topic", parse_topic_choice, text) for text in topic or ()]
    with open_for_reading(cli) as broker:
        from rmqctl.admin.offsets.deletion import delete as delete_offsets
        from rmqctl.cli.change_steps import run_change

        java_check = begin_java_check(cli, broker.view.root)
        change = delete_offsets(
            broker.view,
            broker,
            groups=groups,
            topics=choices or None,
            queues=queues,
            no_live=no_live,
            now_ms=cli.now_ms,
            warn=cli.warn,
            java_check=java_check,
        )
        run_change(cli, change)


@prints(Orphan, DoneOrphan)
@changes(Changes.ASKS)
def orphans(
    ctx: typer.Context,
    fix: Annotated[
        bool, typer.Option("--fix", help="Put the progress among them right (asks first)")
    ] = False,
) -> None:
    """List progress that belongs to nothing: topics and queues that are gone, wrong offsets.

    Also retry topics without a group, and queues of topics that are not set up. --fix deletes
    progress of what is gone, and moves wrong offsets into their queue.

    rmqctl offset orphans --where 'problem = AHEAD'
    """
    cli = context_of(ctx)
    with open_for_reading(cli) as broker:
        from rmqctl.admin.offsets import orphan_change

        view = broker.view
        if not fix:
            cli.rows(Orphan, orphan_change.orphans(view, broker, now_ms=cli.now_ms, warn=cli.warn))
            return
        from rmqctl.cli.change_steps import begin_java_check, run_change

        java_check = begin_java_check(cli, view.root)
        change = orphan_change.fix_orphans(
            view, broker, now_ms=cli.now_ms, warn=cli.warn, java_check=java_check
        )
        run_change(cli, change)
