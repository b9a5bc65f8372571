"""``rmqctl topic create``, ``alter`` and ``delete``."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmqctl.admin.topics.rows import ChangedTopicRow, CreatedTopicRow, DeletedTopicRow
from rmqctl.cli.context import context_of, prints
from rmqctl.cli.marks import Changes, changes, most_used
from rmqctl.cli.opening import view_for_change
from rmqctl.errors import UsageProblem

if TYPE_CHECKING:
    from storage.configs.topics import TopicConfig

    from .table_file import WantedTopic

_Queues = Annotated[
    int | None, typer.Option("--queues", metavar="N", help="Number of read and write queues")
]
_ReadQueues = Annotated[
    int | None,
    typer.Option(
        "--read-queue-nums", "--read-queues", "-r", metavar="N", help="Number of read queues"
    ),
]
_WriteQueues = Annotated[
    int | None,
    typer.Option(
        "--write-queue-nums", "--write-queues", "-w", metavar="N", help="Number of write queues"
    ),
]
_Perm = Annotated[
    int | None,
    typer.Option("--perm", "-p", metavar="N", help="6 read and write, 4 read, 2 write"),
]
_Order = Annotated[
    bool | None, typer.Option("--order/--no-order", help="Whether the topic is ordered")
]
_PERMS = (2, 4, 6, 7)


@prints(CreatedTopicRow)
@changes(Changes.PLANS)
@most_used("--from-file", "--queues", "--perm", "--order")
def create(
    ctx: typer.Context,
    new_topics: Annotated[
        list[str] | None, typer.Argument(metavar="[TOPIC...]", help="The topics to create")
    ] = None,
    from_file: Annotated[
        str | None,
        typer.Option(
            "--from-file",
            metavar="FILE",
            help="Create the topics of FILE (- is stdin): names, CSV, JSON or a topics.json",
        ),
    ] = None,
    queue_nums: _Queues = None,
    read_queue_nums: _ReadQueues = None,
    write_queue_nums: _WriteQueues = None,
    perm: _Perm = None,
    order: _Order = None,
) -> None:
    """Create topics. Defaults: 8 read queues, 8 write queues, perm 6.

    An existing topic with the same settings is left unchanged. If one exists with other settings,
    the command fails and creates none. Settings of a file take precedence over options.

    With defaults:             rmqctl topic create orders
    Two queues, read-only:     rmqctl topic create archive --queues 2 --perm 4
    From a file:               rmqctl topic create --from-file topics.csv
    As in another store:       rmqctl topic create --from-file ../old/config/topics.json
    Some of another store:     rmqctl topic list -S ../old -o csv --where 'topic ~ ^shop' |
                                 rmqctl topic create --from-file -
    """
    cli = context_of(ctx)
    from rmqctl.cli.given_file import tell_if_typed

    from .table_file import WantedTopic, wanted_topics

    wanted = [WantedTopic("command line", name) for name in new_topics or ()]
    if from_file is not None:
        tell_if_typed(cli, from_file)
        wanted += wanted_topics(from_file)
    if not wanted:
        raise UsageProblem("missing argument 'TOPIC...'")
    configs: dict[str, TopicConfig] = {}
    for item in wanted:
        read = _count("read queues", item.read_queue_nums, read_queue_nums, queue_nums)
        write = _count("write queues", item.write_queue_nums, write_queue_nums, queue_nums)
        bits = item.perm if item.perm is not None else 6 if perm is None else perm
        ordered = item.order if item.order is not None else bool(order)
        config = _new_topic(item, read, write, bits, order=ordered)
        if configs.setdefault(item.topic, config) != config:
            raise UsageProblem(
                f"{item.where}: topic {item.topic} is given twice, with different settings"
            )
    from rmqctl.admin import topics as admin
    from rmqctl.cli.change_steps import run_creation

    with view_for_change(cli) as view:
        run_creation(cli, admin.create(view, list(configs.values())))


@prints(ChangedTopicRow)
@changes(Changes.ASKS)
@most_used("--queues", "--read-queue-nums", "--write-queue-nums", "--perm", "--order")
def alter(
    ctx: typer.Context,
    topics: Annotated[
        list[str] | None, typer.Argument(metavar="TOPIC...", help="The topics to change")
    ] = None,
    queue_nums: _Queues = None,
    read_queue_nums: _ReadQueues = None,
    write_queue_nums: _WriteQueues = None,
    perm: _Perm = None,
    order: _Order = None,
) -> None:
    """Change the settings of topics. Settings that are not given stay as they are.

    To remove queues without losing messages, reduce write queues first, and read queues after they
    have been read. Running producers and consumers follow within 30 s.

    More queues:               rmqctl topic alter orders --queues 16
    Make it read-only:         rmqctl topic alter orders --perm 4
    """
    cli = context_of(ctx)
    names = topics or []
    if not names:
        raise UsageProblem("missing argument 'TOPIC...'")
    values: dict[str, Any] = {}
    for name, option, own in (
        ("read_queue_nums", "--read-queue-nums", read_queue_nums),
        ("write_queue_nums", "--write-queue-nums", write_queue_nums),
    ):
        count = queue_nums if own is None else own
        if count is not None:
            values[name] = checked_count(option, count)
    if perm is not None:
        values["perm"] = _checked_perm("--perm", perm)
    if order is not None:
        values["order"] = order
    if not values:
        raise UsageProblem("no setting to change; give --queues, --perm or --order")
    from rmqctl.admin import topics as admin
    from rmqctl.cli.guarded_change import run_guarded

    with view_for_change(cli) as view:
        run_guarded(cli, admin.alter(view, names, values))


@prints(DeletedTopicRow)
@changes(Changes.ASKS)
def delete(
    ctx: typer.Context,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic to delete")],
    confirm: Annotated[
        str | None, typer.Option("--confirm", metavar="NAME", help="The topic's name, to confirm")
    ] = None,
    remove_offsets: Annotated[
        bool,
        typer.Option(
            "--remove-offsets/--keep-offsets",
            help="Also delete the progress of groups in it (RocketMQ 4.9 keeps it)",
        ),
    ] = False,
) -> None:
    """Delete the settings and queues of a topic. Its messages can then not be read by topic.

    The records stay in the log until its files expire, so no disk space is freed, and 'message get'
    still finds them by offset id. The progress of groups stays unless --remove-offsets is given: if
    the topic is created again, it starts at offset 0, and such a group would wait for its old
    offsets. Refused while a consumer reads the topic. Other processes may go on: a message that a
    producer sends afterwards creates the topic again, where sending creates topics.

    Preview:                   rmqctl topic delete orders -n
    Delete:                    rmqctl topic delete orders --confirm orders
    """
    from rmqctl.admin import topics as admin
    from rmqctl.cli.guarded_change import run_guarded

    cli = context_of(ctx)
    with view_for_change(cli) as view:
        change = admin.delete(view, topic, remove_offsets=remove_offsets)
        run_guarded(cli, change, confirmed=confirm)


def _new_topic(
    item: "WantedTopic", read: int, write: int, perm: int, *, order: bool
) -> "TopicConfig":
    from broker.errors import InvalidNameError
    from broker.validation import check_topic
    from storage.configs.topics import TopicConfig

    where = "--perm" if item.where == "command line" else f"{item.where}: perm"
    try:
        check_topic(item.topic)
    except InvalidNameError as error:
        if item.where == "command line":
            raise
        raise UsageProblem(f"{item.where}: {error}") from error
    return TopicConfig(item.topic, read, write, _checked_perm(where, perm), order=order)


def _count(what: str, said: int | None, own: int | None, both: int | None) -> int:
    given = [count for count in (said, own, both) if count is not None]
    return checked_count(what, given[0]) if given else 8


def checked_count(option: str, count: int) -> int:
    """A number of queues; UsageProblem for one that a topic cannot have."""
    from storage.format.shapes import MAX_QUEUES

    if not 0 < count <= MAX_QUEUES:
        raise UsageProblem(f"{option}: {count} is not a number of queues (1 to {MAX_QUEUES})")
    return count


def _checked_perm(option: str, perm: int) -> int:
    if perm not in _PERMS:
        raise UsageProblem(
            f"{option}: {perm} is not one of 6 (read and write), 4 (read), 2 (write); "
            "--queues sets the number of queues"
        )
    return perm
