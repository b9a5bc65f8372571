"""``rmqctl store recover-offsets`` and ``recover-config``: what damaged files still tell."""

from typing import Annotated

import typer

from rmqctl.cli.context import context_of, prints
from rmqctl.cli.opening import view_of

from .rows import RecoveredOffsetDone, RecoveredSettingDone


@prints(RecoveredOffsetDone)
def recover_offsets(
    ctx: typer.Context,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Also where a group has other progress by now"),
    ] = False,
    handed: Annotated[
        bool,
        typer.Option(
            "--handed", help="Where nothing tells: behind what the group was given; may skip"
        ),
    ] = False,
    trace_topic: Annotated[
        str, typer.Option("--trace-topic", metavar="TOPIC", help="Where clients wrote traces")
    ] = "RMQ_SYS_TRACE_TOPIC",
    no_live: Annotated[
        bool, typer.Option("--no-live", help="Refuse if consumers of the groups are running")
    ] = False,
) -> None:
    """Bring back progress that was lost: consumerOffset.json is empty, cut or gone.

    It puts together what the file, its .bak, the journal, samples, retries, dead letters and
    traces still tell. No offset is more than what the group had committed, so messages may come
    again, but none is left out. Queues that have progress stay as they are. It does nothing
    without --execute; 'rmqctl offset undo' takes it back.

    Look:      rmqctl store recover-offsets -S /data/store
    Do it:     rmqctl store recover-offsets -S /data/store --execute
    """
    cli = context_of(ctx)
    from .offsets import RecoverOptions, carry_out_recovery

    with view_of(cli) as view:
        wishes = RecoverOptions(overwrite=overwrite, handed=handed, no_live=no_live)
        carry_out_recovery(cli, view, trace_topic, wishes)


@prints(RecoveredSettingDone)
def recover_config(ctx: typer.Context) -> None:
    """Put settings together again: topics, groups and delays whose file is cut, empty or gone.

    What is whole of topics.json, subscriptionGroup.json and delayOffset.json is taken, then
    their .bak, then what queues, progress and retries tell. Settings that nothing tells get
    RocketMQ's defaults; delayed messages may come again, none is left out. Files that can be read
    stay as they are, damaged ones go to the quarantine. It does nothing without --execute.

    Look:      rmqctl store recover-config -S /data/store
    Do it:     rmqctl store recover-config -S /data/store --execute
    """
    cli = context_of(ctx)
    from .config import carry_out_config_recovery

    with view_of(cli) as view:
        carry_out_config_recovery(cli, view)
