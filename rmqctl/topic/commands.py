"""``rmqctl topic``: topics and their queues."""

from typing import Annotated

import typer

from rmqctl.admin.topics.rows import TopicDescription, TopicQueueRow, TopicRow
from rmqctl.cli.as_of import AsOf, open_at
from rmqctl.cli.context import context_of, prints
from rmqctl.cli.opening import open_for_reading

_Names = Annotated[list[str] | None, typer.Argument(metavar="[TOPIC...]", help="Default: all")]
_MoreNames = Annotated[
    list[str] | None,
    typer.Option("--topic", "-t", metavar="TOPIC", help="A topic, as an option; repeatable"),
]


@prints(TopicRow)
def list_topics(ctx: typer.Context) -> None:
    """List all topics, including those of RocketMQ itself.

    Topics of users:           rmqctl topic list --where 'kind = normal'
    Most messages first:       rmqctl topic list --sort -messages
    """
    cli = context_of(ctx)
    with open_for_reading(cli) as broker:
        from .facts import topic_rows

        cli.rows(TopicRow, topic_rows(broker))


@prints(TopicQueueRow)
def queues(
    ctx: typer.Context, topics: _Names = None, topic: _MoreNames = None, as_of: AsOf = None
) -> None:
    """Show the queues of topics: their offsets, and the times of their first and last message.

    Of all topics:             rmqctl topic queues
    Of one topic, as JSON:     rmqctl topic queues greetings -o json
    As of a day ago:           rmqctl topic queues --as-of -1d
    """
    cli = context_of(ctx)
    with open_at(cli, as_of) as broker:
        from .facts import chosen_topics, queue_rows

        names = chosen_topics(broker, topics, topic)
        cli.rows(TopicQueueRow, queue_rows(broker, names, all_topics=not (topics or topic)))


@prints(TopicDescription)
def describe(ctx: typer.Context, topics: _Names = None, topic: _MoreNames = None) -> None:
    """Show all settings of topics, their messages and the groups that read them.

    In JSON one topic is an object, several are an array.
    """
    cli = context_of(ctx)
    with open_for_reading(cli) as broker:
        from .facts import chosen_topics, descriptions

        names = chosen_topics(broker, topics, topic)
        rows = descriptions(broker, names)
        if len(names) == 1 and (topics or topic):
            cli.one(next(iter(rows)))
        else:
            cli.rows(TopicDescription, rows)
