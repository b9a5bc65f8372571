"""``rmqctl group create``, ``alter`` and ``delete``."""

from typing import Annotated, Any, Final

import typer

from rmqctl.admin.groups.rows import ChangedGroupRow, CreatedGroupRow, DeletedGroupRow
from rmqctl.cli.context import context_of, prints
from rmqctl.cli.marks import Changes, changes, most_used
from rmqctl.cli.opening import open_for_reading, view_for_change
from rmqctl.errors import UsageProblem

_Names = Annotated[list[str] | None, typer.Argument(metavar="GROUP...", help="The consumer groups")]
_RetryMaxTimes = Annotated[
    int | None,
    typer.Option("--retry-max-times", metavar="N", help="Retries before a dead letter (16)"),
]
_RetryQueueNums = Annotated[
    int | None,
    typer.Option("--retry-queue-nums", metavar="N", help="Queues of the retry topic (1)"),
]
_ConsumeEnable = Annotated[
    bool | None,
    typer.Option("--consume-enable/--no-consume-enable", help="Whether the group may consume"),
]
_ConsumeFromMin = Annotated[
    bool | None,
    typer.Option(
        "--consume-from-min/--no-consume-from-min", help="Stored, but RocketMQ ignores it"
    ),
]
_Broadcast = Annotated[
    bool | None,
    typer.Option("--broadcast/--no-broadcast", help="Whether members may use broadcasting"),
]
_BrokerId = Annotated[
    int | None, typer.Option("--broker-id", metavar="N", help="Broker to read from (0, the master)")
]
_WhichBroker = Annotated[
    int | None,
    typer.Option(
        "--which-broker-when-consume-slowly", metavar="N", help="Broker for slow consumers (1)"
    ),
]
_Notify = Annotated[
    bool | None,
    typer.Option(
        "--notify-consumer-ids-changed/--no-notify-consumer-ids-changed",
        help="Whether members are notified of changes at once",
    ),
]
_SETTINGS: Final = {
    "retry_max_times": "retry_max_times",
    "retry_queue_nums": "retry_queue_nums",
    "consume_enable": "consume_enable",
    "consume_from_min": "consume_from_min_enable",
    "broadcast": "consume_broadcast_enable",
    "broker_id": "broker_id",
    "which_broker_when_consume_slowly": "which_broker_when_consume_slowly",
    "notify_consumer_ids_changed": "notify_consumer_ids_changed_enable",
}
"""Parameters of ``create`` and ``alter``, and the members of SubscriptionGroupConfig."""


@prints(CreatedGroupRow)
@changes(Changes.PLANS)
@most_used("--retry-max-times", "--retry-queue-nums", "--consume-enable", "--broadcast")
def create(
    ctx: typer.Context,
    new_groups: _Names = None,
    retry_max_times: _RetryMaxTimes = None,
    retry_queue_nums: _RetryQueueNums = None,
    consume_enable: _ConsumeEnable = None,
    consume_from_min: _ConsumeFromMin = None,
    broadcast: _Broadcast = None,
    broker_id: _BrokerId = None,
    which_broker_when_consume_slowly: _WhichBroker = None,
    notify_consumer_ids_changed: _Notify = None,
) -> None:
    """Create consumer groups. Settings that are not given get RocketMQ's defaults.

    An existing group with the same settings is left unchanged. If one exists with other settings,
    the command fails and creates none.

    With defaults:             rmqctl group create billing
    Three retries, not 16:     rmqctl group create billing --retry-max-times 3
    """
    cli = context_of(ctx)
    names = _names(new_groups)
    values = _given(ctx)
    from broker.validation import check_group
    from storage.configs.subscription_groups import SubscriptionGroupConfig

    for name in names:
        check_group(name)
    from rmqctl.admin import groups as admin
    from rmqctl.cli.change_steps import run_creation

    configs = [SubscriptionGroupConfig(name)._replace(**values) for name in names]
    with view_for_change(cli) as view:
        run_creation(cli, admin.create(view, configs))


@prints(ChangedGroupRow)
@changes(Changes.ASKS)
@most_used("--retry-max-times", "--retry-queue-nums", "--consume-enable", "--broadcast")
def alter(
    ctx: typer.Context,
    groups: _Names = None,
    retry_max_times: _RetryMaxTimes = None,
    retry_queue_nums: _RetryQueueNums = None,
    consume_enable: _ConsumeEnable = None,
    consume_from_min: _ConsumeFromMin = None,
    broadcast: _Broadcast = None,
    broker_id: _BrokerId = None,
    which_broker_when_consume_slowly: _WhichBroker = None,
    notify_consumer_ids_changed: _Notify = None,
) -> None:
    """Change the settings of consumer groups. Settings that are not given stay as they are.

    Running members follow the new settings from their next pull or failure.

    Stop all its members:      rmqctl group alter billing --no-consume-enable
    Fewer retries:             rmqctl group alter billing --retry-max-times 3
    """
    cli = context_of(ctx)
    names = _names(groups)
    values = _given(ctx)
    if not values:
        raise UsageProblem("no setting to change; give --retry-max-times or another setting")
    from rmqctl.admin import groups as admin
    from rmqctl.cli.guarded_change import run_guarded

    with view_for_change(cli) as view:
        run_guarded(cli, admin.alter(view, names, values))


@prints(DeletedGroupRow)
@changes(Changes.ASKS)
def delete(
    ctx: typer.Context,
    group: Annotated[str, typer.Argument(metavar="GROUP", help="The group to delete")],
    confirm: Annotated[
        str | None, typer.Option("--confirm", metavar="NAME", help="The group's name, to confirm")
    ] = None,
    remove_offsets: Annotated[
        bool,
        typer.Option("--remove-offsets/--keep-offsets", help="Also delete its progress"),
    ] = False,
    remove_topics: Annotated[
        bool,
        typer.Option(
            "--remove-topics/--keep-topics", help="Also delete its retry and dead letter topics"
        ),
    ] = False,
) -> None:
    """Delete the settings of a consumer group, and on request its progress and topics.

    Refused for a group with live members, as they would create it again. --remove-offsets and
    --remove-topics together do what mqadmin's deleteSubGroup -r true does in a cluster.

    Preview:                   rmqctl group delete billing -n --remove-offsets
    With its progress:         rmqctl group delete billing --remove-offsets --confirm billing
    """
    from rmqctl.admin import groups as admin
    from rmqctl.cli.guarded_change import run_guarded

    cli = context_of(ctx)
    with open_for_reading(cli) as broker:
        change = admin.delete(
            broker.view, broker, group, remove_offsets=remove_offsets, remove_topics=remove_topics
        )
        run_guarded(cli, change, confirmed=confirm)


def _given(ctx: typer.Context) -> dict[str, Any]:
    """The given settings, by the names of SubscriptionGroupConfig."""
    from storage.format.shapes import MAX_INT, MAX_QUEUES

    values = {name: ctx.params[parameter] for parameter, name in _SETTINGS.items()}
    for name, value in values.items():
        most = MAX_QUEUES if name == "retry_queue_nums" else MAX_INT
        if value is not None and not 0 <= value <= most:
            raise UsageProblem(f"--{name.replace('_', '-')}: {value} is not a number (0 to {most})")
    return {name: value for name, value in values.items() if value is not None}


def _names(groups: list[str] | None) -> list[str]:
    if not groups:
        raise UsageProblem("missing argument 'GROUP...'")
    return groups
