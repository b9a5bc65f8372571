"""``rmqctl store rebuild``: rebuilds queues and index from the log."""

from typing import Annotated

import typer

from rmqctl.admin.store.rebuild_rows import RebuildRow
from rmqctl.cli.context import context_of, prints
from rmqctl.cli.marks import Changes, changes
from rmqctl.errors import UsageProblem


@prints(RebuildRow)
@changes(Changes.ASKS)
def rebuild(
    ctx: typer.Context,
    what: Annotated[str, typer.Argument(metavar="queue|index", help="What to rebuild")],
    topic: Annotated[
        str | None, typer.Argument(metavar="[TOPIC]", help="Only queues of this topic")
    ] = None,
    queue: Annotated[
        str | None,
        typer.Option("--queue", "-Q", metavar="LIST", help="Only these queues, such as 0,2-4"),
    ] = None,
) -> None:
    """Rebuild consume queues, or the key index, from the log: byte for byte as a broker does.

    Shows the files that differ from the log, asks, and replaces them. Old files are moved to
    rmqctl/quarantine in the store. No other process may have the store open for writing.

    Show differences:          rmqctl store rebuild queue
    Rebuild all queues:        rmqctl store rebuild queue
    Two queues of a topic:     rmqctl store rebuild queue orders -Q 0,3
    The key index:             rmqctl store rebuild index
    """
    from rmqctl.admin import store
    from rmqctl.cli.change_steps import begin_java_check, run_change, will_execute
    from rmqctl.cli.opening import view_of
    from rmqctl.parse.lists import parse_queues
    from rmqctl.store.phases import Phases

    cli = context_of(ctx)
    if what not in ("queue", "index"):
        raise UsageProblem(f"{what!r} is neither queue nor index")
    if what == "index" and (topic is not None or queue is not None):
        raise UsageProblem("the index has the keys of all topics; omit --topic and --queue")
    if queue is not None and topic is None:
        raise UsageProblem("--queue needs --topic")
    numbers = None if queue is None else cli.parsed("--queue", parse_queues, queue)
    with view_of(cli) as view, Phases(cli) as phase:
        java_check = begin_java_check(cli, view.root)
        if will_execute(cli):
            store.refuse_writers(view.root)
        if what == "index":
            change = store.rebuild_index(
                view, now_ms=cli.now_ms, java_check=java_check, phase=phase
            )
        else:
            change = store.rebuild_queues(
                view,
                topic=topic,
                queue_ids=numbers,
                now_ms=cli.now_ms,
                java_check=java_check,
                phase=phase,
            )
        phase.clear()
        try:
            run_change(cli, change)
        finally:
            if change.old_files is not None:
                cli.say(f"old files are in {change.old_files}")
