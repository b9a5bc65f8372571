"""``rmqctl lag``: who is late, by how much, and since when."""

from enum import StrEnum
from typing import Annotated

import typer

from rmqctl.context import context_of, prints
from rmqctl.opening import open_for_reading
from rmqctl.rows.lag import LagQueueRow, LagRow, LagTopicRow


class By(StrEnum):
    """What a row of ``lag show`` is about."""

    QUEUE = "queue"
    TOPIC = "topic"
    GROUP = "group"


_Groups = Annotated[list[str] | None, typer.Argument(metavar="[GROUP...]", help="Default: all")]
_MoreGroups = Annotated[
    list[str] | None,
    typer.Option("--group", "-g", metavar="GROUP", help="The same as an option; repeatable"),
]
_Topics = Annotated[
    list[str] | None,
    typer.Option("--topic", "-t", metavar="TOPIC", help="Only this topic; repeatable"),
]
_IncludeRetry = Annotated[
    bool, typer.Option("--include-retry", help="The groups' retry topics as rows, too")
]


@prints(LagRow)
def show(
    ctx: typer.Context,
    groups: _Groups = None,
    group: _MoreGroups = None,
    topic: _Topics = None,
    by: Annotated[By, typer.Option("--by", help="What a row is about")] = By.GROUP,
    include_retry: _IncludeRetry = False,
) -> None:
    """Show how far groups are behind: messages, bytes, age, rates, and one word for how they do.

    Reads files only: the store may be in use, or belong to a broker that is dead. Retries and dead
    letters have columns of their own. RocketMQ's own groups are shown where they are named.

    Who is late:               rmqctl lag show --where 'lag > 0' --sort -oldest_unread_age_ms
    Which queue it is:         rmqctl lag show readers --by queue
    """
    cli = context_of(ctx)
    with open_for_reading(cli) as broker:
        from rmqctl.lag import tables
        from rmqctl.lag.choosing import Choice
        from rmqctl.lag.looking import look

        names = [*(groups or ()), *(group or ())]
        seen = look(broker, cli.now_ms, Choice(names, topic, include_retry))
        match by:
            case By.GROUP:
                cli.rows(LagRow, tables.group_rows(seen))
            case By.TOPIC:
                cli.rows(LagTopicRow, tables.topic_rows(seen))
            case By.QUEUE:
                cli.rows(LagQueueRow, tables.queue_rows(seen))
