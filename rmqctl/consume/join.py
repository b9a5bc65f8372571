"""Creating a member of a group: its settings, its queues, its start and end."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from broker.api.members import MessageModel
from broker.api.offsets import ConsumeFromWhere, OffsetCommit
from broker.tables.groups import check_consuming_group
from client.consumer.consumer_config import ConsumerConfig
from client.consumer.consumer_settings import set_by_name
from client.errors import ClientConfigError
from client.rebalance.allocate import AllocateAveragely
from client.runtime.client_config import ClientConfig
from rmqctl.admin.queues.selection import offset_of
from rmqctl.errors import Refused, UsageProblem
from rmqctl.parse.positions import Bound
from storage.format.message import MessageQueue, retry_topic
from storage.format.names import BROADCAST_FOLDER, OURS

from .bounded_progress import LimitedConsumer

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from client.push.push_consumer import PushConsumer
    from rmqctl.admin.queues.selection import Group
    from rmqctl.cli.context import Cli
    from rmqctl.parse.positions import Point

    from .member_options import MemberOptions

PULL_BATCH: Final = 1024
STORE_CHANGES: Final = {
    "max_transfer_count_in_memory": PULL_BATCH,
    "max_transfer_bytes_in_memory": 1 << 20,
}
"""Bytes per pull of a printing member."""
_END_WAIT_MS: Final = 50
_LISTENER_WAIT_MS: Final = 10_000

_COMMANDS: Final = ConsumerConfig(
    consume_thread_min=1, await_termination_millis_when_shutdown=_LISTENER_WAIT_MS
)
"""A member that runs a program: RocketMQ's settings, one thread."""
_PRINTER: Final = replace(
    _COMMANDS,
    consume_message_batch_max_size=1024,
    pull_batch_size=PULL_BATCH,
    pull_threshold_for_queue=4 * PULL_BATCH,
    pull_threshold_size_for_topic=64,
    consume_concurrently_max_span=65_535,
)
"""A member that prints: as many messages per call as memory allows."""


class TheseQueues:
    """Allocates the queues that the user names to this member; divides other topics."""

    name = "NAMED"

    def __init__(self, topic: str, queue_ids: Sequence[int]) -> None:
        self._topic = topic
        self._queue_ids = frozenset(queue_ids)
        self._others = AllocateAveragely()

    def allocate(
        self,
        group: str,
        client_id: str,
        queues: Sequence[MessageQueue],
        client_ids: Sequence[str],
    ) -> list[MessageQueue]:
        """See AllocateMessageQueueStrategy."""
        if queues and queues[0].topic == self._topic:
            return [queue for queue in queues if queue.queue_id in self._queue_ids]
        return self._others.allocate(group, client_id, queues, client_ids)


def configs(
    group: "Group", options: "MemberOptions", *, limited: bool, ends: bool
) -> tuple[ConsumerConfig, ClientConfig]:
    """The settings of a member: defaults, then ``--set``, then named options.

    ``limited``: it stops after a number of messages; ``ends``: at the ends of its queues.
    """
    config = _PRINTER if options.command is None else _COMMANDS
    if ends:
        # An empty pull passes the messages that the filter left out at the end of a queue.
        config = replace(config, broker_suspend_max_time_ms=_END_WAIT_MS)
    config = replace(config, consume_from_where=group.from_where)
    if group.from_where is ConsumeFromWhere.CONSUME_FROM_TIMESTAMP:
        config = replace(config, consume_timestamp=group.consume_timestamp)
    try:
        config, client_config = set_by_name(options.settings, config)
        if options.consume_timestamp is not None:
            config = replace(config, consume_timestamp=options.consume_timestamp)
        if options.threads is not None:
            most = max(options.threads, config.consume_thread_max)
            config = replace(config, consume_thread_min=options.threads, consume_thread_max=most)
        if options.max_reconsume_times is not None:
            config = replace(config, max_reconsume_times=options.max_reconsume_times)
    except ClientConfigError as error:
        raise UsageProblem(str(error)) from None
    # They are reported as failures, and count for --count.
    config = replace(config, deliver_unreadable_bodies=True)
    if options.broadcast:
        config = replace(config, message_model=MessageModel.BROADCASTING)
    if options.orderly and limited:
        config = replace(config, consume_message_batch_max_size=1)
    return config, client_config


def with_limit_of_group(
    broker: "EmbeddedBroker", group: "Group", config: ConsumerConfig
) -> ConsumerConfig:
    """The group's retry limit, unless the member has a limit of its own.

    Java's client would send 16 by default, so the group's limit would never apply.
    """
    settings = broker.groups().get(group.name)
    if config.max_reconsume_times != -1 or settings is None:
        return config
    return replace(config, max_reconsume_times=settings.retry_max_times)


def make_consumer(
    broker: "EmbeddedBroker",
    topic: str,
    group: "Group",
    config: ConsumerConfig,
    client_config: ClientConfig,
    tags: str | None,
    queues: Sequence[int] | None,
) -> LimitedConsumer:
    """The member, without listener and quota; ``queues`` None shares all queues in the group."""
    if queues is not None:
        config = replace(config, allocate_message_queue_strategy=TheseQueues(topic, queues))
    if not client_config.local_offset_store_dir:
        # RocketMQ's folder in the user's home is shared by all stores whose brokers have one name.
        folder = broker.view.root / OURS / BROADCAST_FOLDER
        client_config = replace(client_config, local_offset_store_dir=str(folder))
    consumer = LimitedConsumer(
        group.name, brokers=[broker], config=config, client_config=client_config
    )
    consumer.subscribe(topic, tags or "*")
    return consumer


def check_group(
    cli: "Cli", broker: "EmbeddedBroker", consumer: "PushConsumer", topic: str, tags: str | None
) -> None:
    """Refuse a name that is too long for retries (InvalidNameError), and what the group's settings
    forbid (7); warn of members with other settings. Creates nothing.
    """
    group, model = consumer.group, consumer.message_model
    if broker.topic(retry_topic(group)) is None:  # else the name was accepted before
        check_consuming_group(group)
    settings = broker.groups().get(group)
    if settings is not None and not settings.consume_enable:
        raise Refused(f"group {group} is disabled and may not consume")
    broadcasting = model is MessageModel.BROADCASTING
    if settings is not None and broadcasting and not settings.consume_broadcast_enable:
        raise Refused(f"group {group} may not consume in broadcasting mode")
    wanted = tags or "*"
    for member in broker.consumer_connection(group):
        data = member.consumer
        if data is None:
            continue
        who = f"group {group} has a member (process {member.pid} on {member.host}) that"
        if data.message_model is not model:
            cli.warn(f"{who} consumes in {data.message_model} mode, this one in {model}")
        others = {item.topic: item for item in data.subscriptions}
        other = others.pop(topic, None)
        if other is None:
            names = ", ".join(sorted(others.keys() - {retry_topic(group)}))
            cli.warn(f"{who} subscribes to {names}, not to {topic}: pulls of both will fail")
        elif other.sub_string != wanted:
            cli.warn(
                f"{who} subscribes to {other.sub_string!r} of {topic}, this one to {wanted!r}: "
                "the latest subscription applies to both"
            )


def check_name(cli: "Cli", broker: "EmbeddedBroker", topic: str, group: str) -> None:
    """Ask before a new group whose name is almost that of a group of the topic; Refused (7) without
    a terminal and --yes."""
    if broker.consumer_offsets(group):
        return
    from rmqctl.admin.known_groups import groups_of_topic, is_known_group
    from rmqctl.parse.near_names import mistyped_name

    near = mistyped_name(group, groups_of_topic(broker.view, broker, topic))
    if near is None or is_known_group(broker.view, broker, group):
        return
    if not cli.given.get("yes") and not cli.has_questions:
        raise Refused(
            f"topic {topic} has no group {group}, but a group {near}; correct the name, or add "
            f"--new-group to start {group}"
        )
    cli.confirm(f"Topic {topic} has a group {near}. Start a new group {group}?")


def check_progress(
    cli: "Cli", broker: "EmbeddedBroker", topic: str, group: str, *, told_where: bool
) -> None:
    """Warn of progress that may be out of date. If it is lost and no option sets the start, ask
    first (7 without a terminal and --yes)."""
    doubt = broker.view.progress_doubt()
    if doubt is None:
        return
    cli.warn(doubt)
    known = any(broker.consumer_offsets(group).values())
    if not known and not told_where:
        cli.warn(
            f"group {group} would start as a new group; --from-where or --offset sets the start"
        )
        cli.confirm(f"Start group {group} as a new group in {topic}?")


def place(
    broker: "EmbeddedBroker",
    topic: str,
    group: "Group",
    queues: Sequence[int],
    begin: "Point | None",
    warn: Callable[[str], None],
) -> None:
    """Set the group's progress in queues where it has none, if ``begin`` gives a start.

    Refused (7) where it has progress: `offset reset` moves that. Progress before the first stored
    message or past the end is corrected, as a pull there would be refused and the queue skipped for
    ten seconds. ``warn`` is called for progress past the end.
    """
    commits = []
    for queue_id in queues:
        known = broker.query_consumer_offset(group.name, topic, queue_id)
        least = broker.min_offset(topic, queue_id)
        offset = known.offset
        if begin is not None and begin.bound is not Bound.STORED:
            if known.stored and offset is not None:
                raise Refused(
                    f"group {group.name} has progress on queue {queue_id} of {topic} "
                    f"(offset {offset}); move it with 'rmqctl offset reset', or read "
                    "without committing (--no-commit)"
                )
            offset = offset_of(broker, topic, queue_id, begin)
        elif offset is None and group.from_where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET:
            offset = least
        elif (
            offset is not None
            and known.stored
            and offset > (most := broker.max_offset(topic, queue_id))
        ):
            warn(
                f"group {group.name} had progress {offset} in queue {queue_id} of {topic}, beyond "
                f"its end {most} (the topic may have been deleted and created again): it continues "
                f"at the end; 'rmqctl offset reset -g {group.name} -t {topic} --to-earliest' reads "
                "the stored messages"
            )
            broker.correct_consumer_offset(
                group.name, topic, queue_id, most, known.generation, offset
            )
            continue
        elif offset is None or offset >= least:
            continue
        commits.append(OffsetCommit(topic, queue_id, max(offset, least), known.generation))
    broker.update_consumer_offsets(group.name, commits)


def why_dropped(broker: "EmbeddedBroker", consumer: "PushConsumer") -> str | None:
    """Why failed messages are dropped without a retry; None if they are not."""
    if consumer.orderly:
        return None  # an orderly queue waits for them
    if consumer.message_model is MessageModel.BROADCASTING:
        return "broadcasting has no retries"
    group = consumer.group
    settings = broker.groups().get(group)
    if settings is None or settings.retry_queue_nums > 0:
        return None
    return (
        f"group {group} has no retry queue; "
        f"'rmqctl group alter {group} --retry-queue-nums 1' adds one"
    )


def ends_of(
    broker: "EmbeddedBroker",
    topic: str,
    group: "Group",
    queues: Sequence[int],
    end: "Point | None",
) -> dict[MessageQueue, int]:
    """Current ends of the queues of the topic and of the group's retry topic."""
    ends = {}
    for queue_id in queues:
        most = broker.max_offset(topic, queue_id)
        if end is not None:
            most = min(most, offset_of(broker, topic, queue_id, end))
        ends[MessageQueue(topic, broker.name, queue_id)] = most
    retries = broker.topic(retry_topic(group.name))
    for queue_id in range(retries.read_queue_nums if retries else 0):
        name = retry_topic(group.name)
        ends[MessageQueue(name, broker.name, queue_id)] = broker.max_offset(name, queue_id)
    return ends
