"""``rmqctl lag``: who is late, by how much, and since when."""

from enum import StrEnum
from typing import Annotated

import typer

from rmqctl.context import context_of, prints
from rmqctl.lag.options import Groups, IncludeRetry, MoreGroups, Topics, named
from rmqctl.opening import open_for_reading
from rmqctl.rows.lag import LagQueueRow, LagRow, LagTopicRow


class By(StrEnum):
    """What a row of ``lag show`` is about."""

    QUEUE = "queue"
    TOPIC = "topic"
    GROUP = "group"


@prints(LagRow)
def show(
    ctx: typer.Context,
    groups: Groups = None,
    group: MoreGroups = None,
    topic: Topics = None,
    by: Annotated[By, typer.Option("--by", help="What a row is about")] = By.GROUP,
    include_retry: IncludeRetry = False,
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

        seen = look(broker, cli.now_ms, Choice(named(groups, group), topic, include_retry))
        match by:
            case By.GROUP:
                cli.rows(LagRow, tables.group_rows(seen))
            case By.TOPIC:
                cli.rows(LagTopicRow, tables.topic_rows(seen))
            case By.QUEUE:
                cli.rows(LagQueueRow, tables.queue_rows(seen))
