"""``rmqctl topic``: what topics there are, and their queues."""

from typing import Annotated

import typer

from rmqctl.cli.as_of import AsOf, open_at
from rmqctl.cli.context import context_of, prints
from rmqctl.cli.opening import open_for_reading

from .rows import TopicDescription, TopicQueueRow, TopicRow

_Names = Annotated[list[str] | None, typer.Argument(metavar="[TOPIC...]", help="Default: all")]
_MoreNames = Annotated[
    list[str] | None,
    typer.Option("--topic", "-t", metavar="TOPIC", help="The same as an option; repeatable"),
]


@prints(TopicRow)
def list_topics(ctx: typer.Context) -> None:
    """List all topics, those of RocketMQ itself too.

    Those of users alone:      rmqctl topic list --where 'kind = normal'
    Fullest first:             rmqctl topic list --sort -messages
    """
    cli = context_of(ctx)
    with open_for_reading(cli) as broker:
        from .facts import topic_rows

        cli.rows(TopicRow, topic_rows(broker))


@prints(TopicQueueRow)
def queues(
    ctx: typer.Context, topics: _Names = None, topic: _MoreNames = None, as_of: AsOf = None
) -> None:
    """Show the queues of topics: their bounds, and the times of their first and last message.

    Of all topics:             rmqctl topic queues
    Of one, as JSON:           rmqctl topic queues greetings -o json
    As they were yesterday:    rmqctl topic queues --as-of -1d
    """
    cli = context_of(ctx)
    with open_at(cli, as_of) as broker:
        from .facts import chosen_topics, queue_rows

        names = chosen_topics(broker, topics, topic)
        cli.rows(TopicQueueRow, queue_rows(broker, names, all_topics=not (topics or topic)))


@prints(TopicDescription)
def describe(ctx: typer.Context, topics: _Names = None, topic: _MoreNames = None) -> None:
    """Show all settings of topics, how much they hold and which groups read them.

    One topic is an object in JSON, several are an array.
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
