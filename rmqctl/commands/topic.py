"""``rmqctl topic``: what topics there are, their queues, and making new ones."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from rmqctl.context import Cli, context_of, prints
from rmqctl.errors import NotFound, Refused, UsageProblem
from rmqctl.opening import open_for_reading, topics_for_change
from rmqctl.rows.topics import CreatedTopicRow, TopicDescription, TopicQueueRow, TopicRow

if TYPE_CHECKING:
    from broker.embedded import EmbeddedBroker
    from storage.configs.topics import TopicConfig

_Names = Annotated[list[str] | None, typer.Argument(metavar="[TOPIC...]", help="Default: all")]
_MoreNames = Annotated[
    list[str] | None,
    typer.Option("--topic", "-t", metavar="TOPIC", help="The same as an option; repeatable"),
]
_MAX_QUEUES = 65_536


@prints(TopicRow)
def list_topics(ctx: typer.Context) -> None:
    """List all topics, those of RocketMQ itself too.

    Those of users alone:      rmqctl topic list --where 'kind = normal'
    Fullest first:             rmqctl topic list --sort -messages
    """
    cli = context_of(ctx)
    with open_for_reading(cli) as broker:
        from rmqctl.looking.topics import topic_rows

        cli.rows(TopicRow, topic_rows(broker))


@prints(TopicQueueRow)
def queues(ctx: typer.Context, topics: _Names = None, topic: _MoreNames = None) -> None:
    """Show the queues of topics: their bounds, and the times of their first and last message.

    Of all topics:             rmqctl topic queues
    Of one, as JSON:           rmqctl topic queues greetings -o json
    """
    cli = context_of(ctx)
    with open_for_reading(cli) as broker:
        from rmqctl.looking.topics import queue_rows

        names = _chosen(broker, topics, topic)
        cli.rows(TopicQueueRow, queue_rows(broker, names, all_topics=not (topics or topic)))


@prints(TopicDescription)
def describe(ctx: typer.Context, topics: _Names = None, topic: _MoreNames = None) -> None:
    """Show all settings of topics, how much they hold and which groups read them.

    One topic is an object in JSON, several are an array.
    """
    cli = context_of(ctx)
    with open_for_reading(cli) as broker:
        from rmqctl.looking.topics import descriptions

        names = _chosen(broker, topics, topic)
        rows = descriptions(broker, names)
        if len(names) == 1 and (topics or topic):
            cli.one(next(iter(rows)))
        else:
            cli.rows(TopicDescription, rows)


@prints(CreatedTopicRow)
def create(
    ctx: typer.Context,
    new_topics: Annotated[
        list[str] | None, typer.Argument(metavar="TOPIC...", help="What to create")
    ] = None,
    topic: _MoreNames = None,
    queue_nums: Annotated[
        int | None, typer.Option("--queues", metavar="N", help="Read and write queues (default 8)")
    ] = None,
    read_queue_nums: Annotated[
        int | None,
        typer.Option("--read-queue-nums", "--read-queues", "-r", metavar="N", help="Read queues"),
    ] = None,
    write_queue_nums: Annotated[
        int | None,
        typer.Option(
            "--write-queue-nums", "--write-queues", "-w", metavar="N", help="Write queues"
        ),
    ] = None,
    perm: Annotated[
        int, typer.Option("--perm", "-p", metavar="N", help="6 read and write, 4 read, 2 write")
    ] = 6,
    order: Annotated[bool, typer.Option("--order/--no-order", help="An ordered topic")] = False,
) -> None:
    """Create topics, with 8 read and 8 write queues unless told otherwise.

    A topic that is there with the same settings is left alone; one with others is refused.

    Eight queues:              rmqctl topic create orders
    Two, to be read only:      rmqctl topic create archive --queues 2 --perm 4
    """
    cli = context_of(ctx)
    names = _names(new_topics, topic)
    if not names:
        raise UsageProblem("missing argument 'TOPIC...'")
    read = _count("--read-queue-nums", read_queue_nums, queue_nums)
    write = _count("--write-queue-nums", write_queue_nums, queue_nums)
    configs = [_new_topic(name, read, write, perm, order=order) for name in names]
    cli.rows(CreatedTopicRow, [*_create(cli, configs)])
    if cli.flag("dry_run"):
        cli.say("dry run: nothing was created")


def _create(cli: Cli, configs: "Iterable[TopicConfig]") -> Iterable[CreatedTopicRow]:
    with topics_for_change(cli) as manager:
        for config in configs:
            known = manager.get(config.topic_name)
            if known is not None and known != config and known.write_queue_nums:
                raise Refused(
                    f"topic {config.topic_name} exists already with {known.read_queue_nums} read "
                    f"and {known.write_queue_nums} write queues, perm {known.perm}; "
                    "creating does not change it"
                )
        for config in configs:
            made = manager.get(config.topic_name) != config
            if not cli.flag("dry_run"):
                made = manager.update(config, _note(cli))
            yield CreatedTopicRow(
                config.topic_name,
                made,
                config.read_queue_nums,
                config.write_queue_nums,
                config.perm,
                config.order,
            )


def _new_topic(name: str, read: int, write: int, perm: int, *, order: bool) -> "TopicConfig":
    from broker.validation import check_changeable_topic
    from storage.configs.topics import TopicConfig

    check_changeable_topic(name)
    if perm not in {2, 4, 6, 7}:
        raise UsageProblem(f"--perm: {perm} is not one of 6 (read and write), 4 (read), 2 (write)")
    return TopicConfig(name, read, write, perm, order=order)


def _count(option: str, own: int | None, both: int | None) -> int:
    count = own if own is not None else 8 if both is None else both
    if not 0 < count <= _MAX_QUEUES:
        raise UsageProblem(f"{option}: {count} is not a number of queues (1 to {_MAX_QUEUES})")
    return count


def _note(cli: Cli) -> dict[str, str]:
    reason = cli.setting("reason")
    return {} if reason is None else {"reason": str(reason)}


def _names(topics: list[str] | None, more: list[str] | None) -> list[str]:
    return list(dict.fromkeys([*(topics or ()), *(more or ())]))


def _chosen(
    broker: "EmbeddedBroker", topics: list[str] | None, more: list[str] | None
) -> list[str]:
    """The topics that were named, else all. NotFound names the first that does not exist."""
    known = broker.topics()
    names = _names(topics, more)
    for name in names:
        if name not in known:
            from broker.validation import check_topic

            check_topic(name)
            raise NotFound(f"topic {name} does not exist in {broker.view.root}")
    return names or sorted(known)
