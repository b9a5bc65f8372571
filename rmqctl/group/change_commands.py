"""``rmqctl group create``, ``alter`` and ``delete``."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmqctl.admin.journal_entry import change_note
from rmqctl.cli.change_steps import print_created
from rmqctl.cli.context import Cli, context_of, prints
from rmqctl.cli.opening import open_for_reading, tables_for_change
from rmqctl.errors import Refused, UsageProblem

from .rows import ChangedGroupRow, CreatedGroupRow, DeletedGroupRow

if TYPE_CHECKING:
    from storage.configs.subscription_groups import SubscriptionGroupConfig

_Names = Annotated[list[str] | None, typer.Argument(metavar="GROUP...", help="The consumer groups")]
_MoreNames = Annotated[
    list[str] | None,
    typer.Option("--group", "-g", metavar="GROUP", help="A group, as an option; repeatable"),
]
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
_MAX_INT = (1 << 31) - 1


@prints(CreatedGroupRow)
def create(
    ctx: typer.Context,
    new_groups: _Names = None,
    new_group: _MoreNames = None,
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
    names = _names(new_groups, new_group)
    values = _values(
        retry_max_times,
        retry_queue_nums,
        consume_enable,
        consume_from_min,
        broadcast,
        broker_id,
        which_broker_when_consume_slowly,
        notify_consumer_ids_changed,
    )
    from broker.validation import check_group
    from storage.configs.subscription_groups import SubscriptionGroupConfig

    for name in names:
        check_group(name)
    configs = [SubscriptionGroupConfig(name)._replace(**values) for name in names]
    print_created(cli, CreatedGroupRow, list(_create(cli, configs)))


@prints(ChangedGroupRow)
def alter(
    ctx: typer.Context,
    groups: _Names = None,
    group: _MoreNames = None,
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
    names = _names(groups, group)
    values = _values(
        retry_max_times,
        retry_queue_nums,
        consume_enable,
        consume_from_min,
        broadcast,
        broker_id,
        which_broker_when_consume_slowly,
        notify_consumer_ids_changed,
    )
    if not values:
        raise UsageProblem("no setting to change; give --retry-max-times or another setting")
    from rmqctl.cli.guarded_change import change_settings

    from .plans import change_groups, change_rows, group_changes

    with tables_for_change(cli) as tables:
        changes = group_changes(tables, names, values)
        change_settings(
            cli,
            tables.view.root,
            ChangedGroupRow,
            list(change_rows(tables, changes)),
            lambda: change_groups(tables, changes, lambda name: change_note(cli, group=name)),
            question=f"Change {', '.join(names)}?",
        )


@prints(DeletedGroupRow)
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
    from rmqctl.cli.guarded_change import change_settings

    from .deletion import GroupDeletion

    cli = context_of(ctx)
    with tables_for_change(cli) as tables, open_for_reading(cli) as broker:
        deletion = GroupDeletion(
            tables, broker, group, remove_offsets=remove_offsets, remove_topics=remove_topics
        )
        if not cli.flag("dry_run"):
            deletion.check_possible()
        change_settings(
            cli,
            tables.view.root,
            DeletedGroupRow,
            deletion.plan(),
            lambda: deletion.carry_out(change_note(cli, group=group)),
            question=f"Delete group {group} of {tables.view.root}?",
            confirm_name=group,
            confirmed=confirm,
        )


def _create(cli: Cli, configs: "Sequence[SubscriptionGroupConfig]") -> Iterator[CreatedGroupRow]:
    from broker.tables.shared_table import Update

    from .plans import refuse_system_group

    with tables_for_change(cli) as tables:
        manager = tables.groups
        groups = manager.all()
        for config in configs:
            refuse_system_group(config.group_name)
            _refuse_others(config)(groups.get(config.group_name))
        new = [config for config in configs if config.group_name not in groups]
        made: dict[str, bool | None] = {config.group_name: None for config in new}
        if not cli.flag("dry_run"):
            done = manager.update_all(
                Update(config, change_note(cli, group=config.group_name), _refuse_others(config))
                for config in new
            )
            made = {name: name in done for name in made}
        for config in configs:
            yield CreatedGroupRow(
                config.group_name,
                made.get(config.group_name, False),
                config.retry_max_times,
                config.retry_queue_nums,
                config.consume_enable,
                config.consume_from_min_enable,
                config.consume_broadcast_enable,
            )


def _refuse_others(
    config: "SubscriptionGroupConfig",
) -> "Callable[[SubscriptionGroupConfig | None], None]":
    """A check that a group has no settings, or these: before the plan, and under the write lock."""

    def check(known: "SubscriptionGroupConfig | None") -> None:
        if known is not None and known != config:
            raise Refused(
                f"group {config.group_name} exists already with other settings; "
                f"'rmqctl group alter {config.group_name}' changes them"
            )

    return check


def _values(
    retry_max_times: int | None,
    retry_queue_nums: int | None,
    consume_enable: bool | None,
    consume_from_min: bool | None,
    broadcast: bool | None,
    broker_id: int | None,
    which_broker: int | None,
    notify: bool | None,
) -> dict[str, Any]:
    """The given settings, by the names of SubscriptionGroupConfig."""
    values = {
        "retry_max_times": retry_max_times,
        "retry_queue_nums": retry_queue_nums,
        "consume_enable": consume_enable,
        "consume_from_min_enable": consume_from_min,
        "consume_broadcast_enable": broadcast,
        "broker_id": broker_id,
        "which_broker_when_consume_slowly": which_broker,
        "notify_consumer_ids_changed_enable": notify,
    }
    for name, value in values.items():
        if value is not None and not 0 <= value <= _MAX_INT:
            raise UsageProblem(f"--{name.replace('_', '-')}: {value} is not a number from 0 on")
    return {name: value for name, value in values.items() if value is not None}


def _names(groups: list[str] | None, more: list[str] | None) -> list[str]:
    names = list(dict.fromkeys([*(groups or ()), *(more or ())]))
    if not names:
        raise UsageProblem("missing argument 'GROUP...'")
    return names
