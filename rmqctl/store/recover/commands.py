"""``rmqctl store recover-offsets`` and ``recover-config``: recovery from damaged files."""

from typing import TYPE_CHECKING, Annotated

import typer

from rmqctl.admin.store.recovery_rows import RecoveredOffset, RecoveredOffsetDone
from rmqctl.admin.store.rows import RecoveredSettingDone
from rmqctl.cli.context import context_of, prints
from rmqctl.cli.marks import Changes, changes
from rmqctl.cli.opening import view_of

if TYPE_CHECKING:
    from rmqctl.admin.store import OffsetRecovery
    from rmqctl.cli.context import Cli


@prints(RecoveredOffsetDone)
@changes(Changes.ASKS)
def recover_offsets(
    ctx: typer.Context,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Also replace newer progress of a group"),
    ] = False,
    handed: Annotated[
        bool,
        typer.Option(
            "--handed",
            help="Without other evidence: after the last delivered message; may skip some",
        ),
    ] = False,
    trace_topic: Annotated[
        str, typer.Option("--trace-topic", metavar="TOPIC", help="Topic of the traces")
    ] = "RMQ_SYS_TRACE_TOPIC",
    no_live: Annotated[
        bool, typer.Option("--no-live", help="Refuse if consumers of the groups are running")
    ] = False,
) -> None:
    """Recover lost progress of groups if consumerOffset.json is empty, truncated or missing.

    Offsets come from the file, its .bak, the journal, samples, retries, dead letters and traces.
    No offset exceeds what the group had committed, so messages may be consumed again, but none is
    skipped. Queues with progress stay as they are. It shows the plan and asks first;
    'rmqctl offset undo' undoes it.

    Preview:   rmqctl store recover-offsets -S /data/store -n
    Recover:   rmqctl store recover-offsets -S /data/store
    """
    cli = context_of(ctx)
    from rmqctl.admin import store
    from rmqctl.cli.change_steps import begin_java_check, run_change

    with view_of(cli) as view:
        java_check = begin_java_check(cli, view.root)
        change = store.recover_offsets(
            view,
            overwrite=overwrite,
            handed=handed,
            trace_topic=trace_topic,
            no_live=no_live,
            warn=cli.warn,
            java_check=java_check,
        )
        for sentence in change.damage:
            cli.say(sentence)
        if change.has_effect and not change.effect_on_file:
            run_change(cli, change)
        else:
            _replace_file(cli, change)


def _replace_file(cli: "Cli", change: "OffsetRecovery") -> None:
    """No progress of a group is written, but perhaps a file as a whole. The rows are only shown."""
    from rmqctl.admin.journal_entry import change_note
    from rmqctl.cli.change_steps import refuse_without_consent, will_execute

    if change.gives_up:
        cli.say(f"no file has what {change.ours} held: without it groups begin as new ones")
    if not will_execute(cli):
        cli.rows(RecoveredOffset, change.plan)
        if not change.has_effect:
            cli.say("there is nothing to change")
        elif cli.flag("dry_run"):
            cli.say("dry run: nothing was changed")
        else:
            refuse_without_consent()
    else:
        if change.has_effect:
            cli.confirm(change.question)
        cli.rows(RecoveredOffsetDone, change.apply(change_note(cli)).rows)
        cli.say(change.effect_on_file or "there is nothing to change")
    for sentence in change.summary:
        cli.say(sentence)


@prints(RecoveredSettingDone)
@changes(Changes.ASKS)
def recover_config(ctx: typer.Context) -> None:
    """Recover settings of topics, groups and delays from truncated, empty or missing files.

    Settings come from the readable parts of topics.json, subscriptionGroup.json and
    delayOffset.json, then from their .bak, then from queues, progress and retries. Other settings
    get RocketMQ's defaults; delayed messages may be delivered again, but none is skipped. Readable
    files stay as they are, damaged ones are moved to the quarantine. It shows the plan and asks
    first.

    Preview:   rmqctl store recover-config -S /data/store -n
    Recover:   rmqctl store recover-config -S /data/store
    """
    cli = context_of(ctx)
    from rmqctl.admin import store
    from rmqctl.cli.change_steps import begin_java_check, run_change

    with view_of(cli) as view:
        java_check = begin_java_check(cli, view.root)
        run_change(cli, store.recover_config(view, now_ms=cli.now_ms, java_check=java_check))
