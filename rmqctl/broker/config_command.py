"""``rmqctl broker config get|set``: the settings of a store and of its broker."""

from typing import TYPE_CHECKING, Annotated

import typer

from rmqctl.admin.broker.rows import BrokerSettingRow
from rmqctl.cli.context import Cli, context_of, prints
from rmqctl.cli.marks import Changes, changes
from rmqctl.cli.opening import open_for_reading
from rmqctl.errors import UsageProblem

if TYPE_CHECKING:
    from storage.readonly import StoreView

_ACTIONS = ("get", "set")


@prints(BrokerSettingRow)
@changes(Changes.ASKS)
def config(
    ctx: typer.Context,
    action: Annotated[
        str, typer.Argument(metavar="get|set", help="Show or change settings")
    ] = "get",
    setting_words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SETTING...|SETTING VALUE]", help="Default: all settings"),
    ] = None,
    unset: Annotated[bool, typer.Option("--unset", help="With set: restore the default")] = False,
    broker_conf: Annotated[
        bool,
        typer.Option("--broker-conf", help="Print the lines for a Java broker's broker.conf"),
    ] = False,
) -> None:
    """Show the settings of a store and its broker, or change one.

    A change applies to every rmqctl process that opens the store afterwards. Names may be
    RocketMQ's or rmqctl's. A Java broker reads its own broker.conf instead. File sizes cannot be
    changed.

    All settings:              rmqctl broker config get
    One setting:               rmqctl broker config get fileReservedTime
    Keep files for a day:      rmqctl broker config set fileReservedTime 24
    For a Java broker:         rmqctl broker config get --broker-conf
    """
    cli = context_of(ctx)
    if action not in _ACTIONS:
        raise UsageProblem(f"{action!r} is neither get nor set")
    names = setting_words or []
    if action == "get":
        _get(cli, names, unset=unset, broker_conf=broker_conf)
    elif broker_conf or len(names) != (1 if unset else 2):
        raise UsageProblem("set takes a SETTING and a VALUE, or a SETTING and --unset")
    else:
        _set(cli, names[0], None if unset else names[1])


def _get(cli: Cli, names: list[str], *, unset: bool, broker_conf: bool) -> None:
    from rmqctl.admin.broker import BrokerSettings

    if unset:
        raise UsageProblem("--unset is for set")
    with open_for_reading(cli) as broker:
        settings = BrokerSettings(broker.view)
        if broker_conf:
            cli.out.write("".join(f"{line}\n" for line in settings.java_lines()))
        else:
            cli.rows(BrokerSettingRow, settings.rows([settings.name_of(name) for name in names]))


def _tell_stranded(cli: Cli, view: "StoreView", levels: str) -> None:
    """Warn of messages that wait in levels that the new setting does not have."""
    from rmqctl.admin.retries.due_list import stranded, stranded_sentence
    from storage.format.delay import parse_delay_levels

    counts = stranded(view, len(parse_delay_levels(levels)))
    if counts:
        cli.warn(stranded_sentence(counts))


def _set(cli: Cli, word: str, value: str | None) -> None:
    from rmqctl.admin.broker import set_setting
    from rmqctl.admin.unreachable_messages import setting_sentences
    from rmqctl.cli.change_steps import begin_java_check, run_change
    from storage.coordination.lock_owners import find_holders

    with open_for_reading(cli) as broker:
        root = broker.view.root
        java_check = begin_java_check(cli, root)
        writers = find_holders(root).writers
        change = set_setting(broker.view, word, value, java_check=java_check)
        if change.name == "message_delay_level" and change.plan:
            _tell_stranded(cli, broker.view, change.plan[0].value or "")
        elif change.plan:
            for sentence in setting_sentences(
                broker, change.name, change.old, change.new, cli.now_ms
            ):
                cli.warn(sentence)
    if writers:
        cli.say(f"process {', '.join(map(str, writers))} keeps the old value until it ends")
    run_change(cli, change)
