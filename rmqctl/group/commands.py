"""``rmqctl group``: consumer groups, their settings and members."""

from typing import Annotated

import typer

from rmqctl.admin.groups.rows import (
    GroupClientRow,
    GroupDescription,
    GroupRow,
    GroupWhy,
    GroupWhyRow,
)
from rmqctl.cli.context import context_of, prints
from rmqctl.cli.opening import open_for_progress
from rmqctl.cli.system_rows import All, print_rows
from rmqctl.errors import UsageProblem
from rmqctl.output.view import Format

_Names = Annotated[list[str] | None, typer.Argument(metavar="[GROUP...]", help="Default: all")]


@prints(GroupRow)
def list_groups(ctx: typer.Context, everything: All = False) -> None:
    """List the consumer groups of users, or all.

    With those of the system:  rmqctl group list --all
    With live members:         rmqctl group list --where 'members > 0'
    With dead letters:         rmqctl group list --where 'dlq > 0' --sort -dlq
    """
    cli = context_of(ctx)
    with open_for_progress(cli) as broker:
        from rmqctl.admin import groups

        rows = groups.list_groups(broker.view, broker)
        print_rows(cli, GroupRow, rows, broker.view, everything=everything)


@prints(GroupDescription)
def describe(
    ctx: typer.Context,
    groups: _Names = None,
    everything: All = False,
) -> None:
    """Show settings, subscriptions and members of groups, their retries and dead letters.

    In JSON one group is an object, several are an array.

    One group:                 rmqctl group describe readers
    All, as JSON:              rmqctl group describe -o json
    """
    cli = context_of(ctx)
    names = groups or []
    with open_for_progress(cli) as broker:
        from rmqctl.admin import groups as admin

        rows = list(admin.describe(broker.view, broker, names))
        if len(names) == 1:
            cli.one(rows[0])
        else:
            shown = everything or bool(names)
            print_rows(cli, GroupDescription, rows, broker.view, everything=shown)


@prints(GroupClientRow)
def clients(ctx: typer.Context, groups: _Names = None) -> None:
    """Show the live members of groups: where they run and which queues they have.

    Every member is queried. One that does not answer within 10 s has the queues that it announced
    last, and null for running_info.

    Members and their queues:  rmqctl group clients readers
    With all fields:           rmqctl group clients readers -o json
    """
    cli = context_of(ctx)
    names = groups or []
    with open_for_progress(cli) as broker:
        from rmqctl.admin import groups as admin
        from rmqctl.cli.logs import show_logs

        show_logs(cli)
        ask = broker.members.calls.consumer_running_info  # a reader may ask, too
        cli.rows(GroupClientRow, admin.clients(broker.view, broker, names, ask=ask))


@prints(GroupWhyRow, GroupWhy)
def why(
    ctx: typer.Context,
    group: Annotated[str | None, typer.Argument(metavar="GROUP", help="The consumer group")] = None,
) -> None:
    """Show why a group lags, and since when.

    State, members and what each does, queues with unread messages and the message that is next,
    retries, dead letters, and commands that may help. JSON and YAML have one object with all
    queues. Of a Java broker's disk the members are unknown.

    Why does it stand:         rmqctl group why billing
    The blocking messages:     rmqctl group why billing -o json | jq '.queues[].next_message'
    """
    cli = context_of(ctx)
    if group is None:
        raise UsageProblem("name one group, such as 'rmqctl group why billing'")
    with open_for_progress(cli) as broker:
        from rmqctl.admin import groups as admin
        from rmqctl.cli.logs import show_logs

        show_logs(cli)
        ask = broker.members.calls.consumer_running_info  # a reader may ask, too
        found = admin.why(broker.view, broker, group, now_ms=cli.now_ms, ask=ask)
        if cli.view.format in (Format.JSON, Format.YAML):
            cli.one(found)
        else:
            cli.rows(GroupWhyRow, found.facts)
