"""``rmqctl topic``: topics and their queues."""

import typer

from rmqctl.admin.topics.rows import TopicDescription, TopicQueueRow, TopicRow
from rmqctl.cli.as_of import AsOf, open_at
from rmqctl.cli.context import context_of, prints
from rmqctl.cli.opening import open_for_reading
from rmqctl.cli.system_rows import All, print_rows

from .options import Topics


@prints(TopicRow)
def list_topics(ctx: typer.Context, everything: All = False) -> None:
    """List the topics of users, or all.

    With those of the system:  rmqctl topic list --all
    Most messages first:       rmqctl topic list --sort -messages
    """
    cli = context_of(ctx)
    with open_for_reading(cli) as broker:
        from rmqctl.admin import topics

        rows = topics.list_topics(broker.view, broker)
        print_rows(cli, TopicRow, rows, broker.view, everything=everything)


@prints(TopicQueueRow)
def queues(
    ctx: typer.Context,
    topics: Topics = None,
    as_of: AsOf = None,
    everything: All = False,
) -> None:
    """Show the queues of topics: their offsets, and the times of their first and last message.

    Of all topics:             rmqctl topic queues
    Of one topic, as JSON:     rmqctl topic queues greetings -o json
    As of a day ago:           rmqctl topic queues --as-of -1d
    """
    cli = context_of(ctx)
    with open_at(cli, as_of) as broker:
        from rmqctl.admin import topics as admin

        names = topics or []
        rows = admin.queues(broker.view, broker, names)
        print_rows(cli, TopicQueueRow, rows, broker.view, everything=everything or bool(names))


@prints(TopicDescription)
def describe(
    ctx: typer.Context,
    topics: Topics = None,
    everything: All = False,
) -> None:
    """Show all settings of topics, their messages and the groups that read them.

    In JSON one topic is an object, several are an array.

    One topic:                 rmqctl topic describe orders
    All, as JSON:              rmqctl topic describe -o json
    """
    cli = context_of(ctx)
    with open_for_reading(cli) as broker:
        from rmqctl.admin import topics as admin

        names = topics or []
        rows = admin.describe(broker.view, broker, names)
        if len(names) == 1:
            cli.one(rows[0])
        else:
            shown = everything or bool(names)
            print_rows(cli, TopicDescription, rows, broker.view, everything=shown)
